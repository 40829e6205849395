//! A ban, as it is sent to the banned player.

use annals_event::{Malformed, Reader, put_bytes, put_number};
use annals_ids::WallTime;

use super::fields::{put_option, take_option, take_text};

/// Maximum length of the reason for a ban (bytes).
pub const MAX_BAN_REASON_BYTES: usize = 500;

/// A ban of an account.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ban {
    /// When it ends; `None` if it does not end by itself.
    pub until: Option<WallTime>,
    /// The operator's reason.
    pub reason: String,
}

impl Ban {
    /// Appends it, without a kind.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        put_option(out, self.until, |out, until| put_number(out, until.0));
        put_bytes(out, self.reason.as_bytes());
    }

    pub(super) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            until: take_option(reader, "end of the ban", |reader| {
                reader.number("end of the ban").map(WallTime)
            })?,
            reason: take_text(reader, MAX_BAN_REASON_BYTES, "reason for the ban")?,
        })
    }
}
