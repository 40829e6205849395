//! An operator's decision about logs that the realm's store did not know (rule F17 of `docs/protocol.md`).
//!
//! ```text
//! adoption = number:number wall:number leaves:number operator:bytes reason:bytes adopted:number events:number
//!            discarded:number
//! ```
//! The texts are UTF-8.

use annals_ids::{LeafIndex, WallTime};

use super::call::take_text;
use crate::encoding::{Malformed, Reader, put_bytes, put_number};

/// An operator's decision about logs unknown to the store (rule F17).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Adoption {
    /// Number of the decision in its realm, from 0.
    pub number: u32,
    /// Time of the decision, by the operator's wall clock.
    pub at: WallTime,
    /// Number of leaves in the archive before the decision.
    pub leaves: LeafIndex,
    /// The operator's name.
    pub operator: String,
    /// The operator's reason.
    pub reason: String,
    /// Number of batches that the store adopted.
    pub adopted: u64,
    /// Number of events in those batches.
    pub events: u64,
    /// Number of batches that were discarded.
    pub discarded: u64,
}

impl Adoption {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.number));
        put_number(out, self.at.0);
        put_number(out, self.leaves.0);
        put_bytes(out, self.operator.as_bytes());
        put_bytes(out, self.reason.as_bytes());
        for count in [self.adopted, self.events, self.discarded] {
            put_number(out, count);
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            number: reader.narrow("number of an adoption")?,
            at: WallTime(reader.number("wall time")?),
            leaves: LeafIndex(reader.number("leaves")?),
            operator: take_text(reader)?,
            reason: take_text(reader)?,
            adopted: reader.number("batches")?,
            events: reader.number("events")?,
            discarded: reader.number("batches")?,
        })
    }
}
