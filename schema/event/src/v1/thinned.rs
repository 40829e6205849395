//! What remains of a batch whose events were deleted (rule F14).
//!
//! ```text
//! thinned = header count:number (from:address to:address n:number)*
//! ```
//! The header is the batch's own, so its hash, its place in the chain and in the Merkle tree are unchanged. Also kept
//! are the links and numbers of the calls that the batch made, without their content: a batch that consumed one of them
//! refers to it in a header that is kept (rule F5).

use annals_ids::{Address, CallNumber, Hash, OwnerId};

use super::{
    batch::{Batch, Header, Tail, put_address, take_address},
    call::Link,
    event::{Body, Subject},
};
use crate::encoding::{Malformed, Reader, put_number};

/// A batch without its events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thinned {
    pub header: Header,
    pub hash: Hash,
    /// The calls that it made, in order.
    pub calls: Vec<(Link, CallNumber)>,
}

impl Thinned {
    /// The part of a batch that is kept.
    #[must_use]
    pub fn of(batch: &Batch) -> Self {
        Self {
            header: batch.header.clone(),
            hash: batch.hash,
            calls: calls_made(batch).collect(),
        }
    }

    /// Encodes the stored form.
    #[must_use]
    pub fn write(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.header.write(&mut out);
        put_number(&mut out, self.calls.len() as u64);
        for (link, number) in &self.calls {
            put_address(&mut out, link.from);
            put_address(&mut out, link.to);
            put_number(&mut out, number.0);
        }
        out
    }

    /// Reads the stored form.
    ///
    /// # Errors
    /// When anything is not in its one encoding.
    pub fn read(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (header, hash) = Header::take(bytes, &mut reader)?;
        let count = reader.count(5, "count of calls")?;
        let mut calls = Vec::new();
        for _ in 0..count {
            let (from, to) = (take_address(&mut reader)?, take_address(&mut reader)?);
            calls.push((Link { from, to }, CallNumber(reader.ordinal("call number")?)));
        }
        reader.finish("end of a thinned batch")?;
        Ok(Self { header, hash, calls })
    }

    /// The log's end after the batch.
    #[must_use]
    pub fn tail(&self) -> Tail {
        self.header.tail(self.hash)
    }
}

/// The calls that a batch made, in order.
pub fn calls_made(batch: &Batch) -> impl Iterator<Item = (Link, CallNumber)> {
    batch.events.iter().filter_map(|event| match &event.body {
        Body::Called { to, number, .. } => Some((link_of(batch, event.subject, *to), *number)),
        _ => None,
    })
}

/// The calls whose receivers consumed them, according to a batch of their sender: on each link, all up to this number.
/// Clients and services outside the realm are not included, since they have no log.
pub fn calls_confirmed(batch: &Batch) -> impl Iterator<Item = (Link, CallNumber)> {
    batch.events.iter().filter_map(|event| match &event.body {
        Body::Confirmed {
            to: Address::Client(_) | Address::Owner(OwnerId::OUTSIDE | OwnerId::DOWNLOADS),
            ..
        } => None,
        Body::Confirmed { to, upto, lost: false } => Some((link_of(batch, event.subject, *to), *upto)),
        _ => None,
    })
}

fn link_of(batch: &Batch, sender: Subject, to: Address) -> Link {
    let from = match sender {
        Subject::Owner => Address::Owner(batch.header.owner),
        Subject::Entity(entity, part) => Address::of(entity, part),
    };
    Link { from, to }
}
