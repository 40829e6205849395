//! Commits that arrive in parts.
//!
//! Pure. Parts of one upload arrive in order, each sent after the previous one was answered. A part out of order ends
//! the upload, and nothing of it was applied. Stalled uploads are evicted to make room.

use std::collections::BTreeMap;
use std::time::Duration;

use bytes::Bytes;

use super::message::{Part, malformed};
use super::{COMMIT_BYTES, PART_BYTES};
use crate::StoreError;

/// Maximum concurrent uploads; together they take at most this many times `COMMIT_BYTES`, 320 MB.
const UPLOADS: usize = 16;

/// Time without a new part after which an upload is abandoned.
const STANDSTILL: Duration = Duration::from_secs(10);

/// Maximum length of an upload's name, in bytes: a NATS inbox is shorter.
const NAME_BYTES: usize = 128;

/// State of an upload after a part.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// Number of parts received; more will follow.
    Parts(u32),
    /// The whole message, after the last part.
    Whole(Bytes),
}

/// Uploads in progress.
#[derive(Debug, Default)]
pub(super) struct Uploads {
    by_name: BTreeMap<String, Upload>,
}

#[derive(Debug)]
struct Upload {
    bytes: Vec<u8>,
    parts: u32,
    grown: Duration,
}

impl Uploads {
    /// Accepts a part at time `now`.
    pub(super) fn take(&mut self, now: Duration, part: Part) -> Result<Taken, StoreError> {
        if part.upload.len() > NAME_BYTES || part.bytes.len() > PART_BYTES {
            return Err(malformed("holds an oversized part"));
        }
        let mut upload = match self.by_name.remove(&part.upload) {
            Some(upload) => upload,
            None if part.index == 0 => Upload {
                bytes: Vec::new(),
                parts: 0,
                grown: now,
            },
            None => return Err(lost()),
        };
        if upload.parts != part.index {
            return Err(lost());
        }
        let bytes = upload.bytes.len() + part.bytes.len();
        if bytes > COMMIT_BYTES {
            return Err(StoreError::TransactionTooLarge { bytes });
        }
        upload.bytes.extend_from_slice(&part.bytes);
        upload.parts += 1;
        upload.grown = now;
        if part.last {
            return Ok(Taken::Whole(upload.bytes.into()));
        }
        self.by_name
            .retain(|_, other| now.saturating_sub(other.grown) < STANDSTILL);
        if self.by_name.len() >= UPLOADS {
            return Err(StoreError::Unavailable("too many large commits at a time".into()));
        }
        let parts = upload.parts;
        self.by_name.insert(part.upload, upload);
        Ok(Taken::Parts(parts))
    }
}

fn lost() -> StoreError {
    StoreError::Unavailable("a part of a large commit was lost; commit it again".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(upload: &str, index: u32, last: bool, bytes: &'static [u8]) -> Part {
        Part {
            upload: upload.to_owned(),
            index,
            last,
            bytes: Bytes::from_static(bytes),
        }
    }

    fn at(seconds: u64) -> Duration {
        Duration::from_secs(seconds)
    }

    #[test]
    fn parts_make_a_whole_and_uploads_do_not_mix() {
        let mut uploads = Uploads::default();
        assert_eq!(uploads.take(at(0), part("a", 0, false, b"1")), Ok(Taken::Parts(1)));
        assert_eq!(uploads.take(at(0), part("b", 0, false, b"x")), Ok(Taken::Parts(1)));
        assert_eq!(uploads.take(at(0), part("a", 1, false, b"2")), Ok(Taken::Parts(2)));
        assert_eq!(
            uploads.take(at(0), part("b", 1, true, b"y")),
            Ok(Taken::Whole(Bytes::from_static(b"xy")))
        );
        assert_eq!(
            uploads.take(at(0), part("a", 2, true, b"3")),
            Ok(Taken::Whole(Bytes::from_static(b"123")))
        );
        assert!(uploads.by_name.is_empty());
    }

    #[test]
    fn a_part_out_of_order_ends_its_upload() {
        for wrong in [0, 1, 3] {
            let mut uploads = Uploads::default();
            assert_eq!(uploads.take(at(0), part("a", 0, false, b"1")), Ok(Taken::Parts(1)));
            assert_eq!(uploads.take(at(0), part("a", 1, false, b"2")), Ok(Taken::Parts(2)));
            assert_eq!(
                uploads.take(at(0), part("a", wrong, true, b"?")),
                Err(lost()),
                "part {wrong} for part 2"
            );
            assert_eq!(
                uploads.take(at(0), part("a", 2, true, b"3")),
                Err(lost()),
                "nothing is left of it"
            );
        }
    }

    #[test]
    fn number_and_size_of_uploads_are_bounded() {
        let mut uploads = Uploads::default();
        for upload in 0..UPLOADS {
            assert_eq!(
                uploads.take(at(0), part(&upload.to_string(), 0, false, b"1")),
                Ok(Taken::Parts(1))
            );
        }
        assert!(matches!(
            uploads.take(at(9), part("late", 0, false, b"1")),
            Err(StoreError::Unavailable(_))
        ));
        assert_eq!(
            uploads.take(at(10), part("late", 0, false, b"1")),
            Ok(Taken::Parts(1)),
            "the others stood still"
        );

        let mut index = 0;
        let large = vec![0; PART_BYTES];
        let refused = loop {
            let next = Part {
                upload: "large".to_owned(),
                index,
                last: false,
                bytes: large.clone().into(),
            };
            match uploads.take(at(20), next) {
                Ok(_) => index += 1,
                Err(refused) => break refused,
            }
            assert!(index as usize * PART_BYTES <= COMMIT_BYTES);
        };
        assert!(matches!(refused, StoreError::TransactionTooLarge { .. }), "{refused}");
        let oversized = Part {
            bytes: vec![0; PART_BYTES + 1].into(),
            ..part("o", 0, true, b"")
        };
        assert!(matches!(uploads.take(at(20), oversized), Err(StoreError::Corrupt(_))));
    }
}
