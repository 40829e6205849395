//! The messages between a client and the process that serves the store, and their conversions.

use bytes::Bytes;
use prost::Oneof;

use crate::{
    CommitRequest, Committed, KeyRange, Mutation, Page, RangeRead, ScanOrder, Stamped, StoreError, Version,
    Versionstamp,
};

/// Version of this protocol. A peer with another version is rejected with an error that names it.
pub(super) const PROTOCOL: u32 = 1;

/// A client's request.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Request {
    #[prost(uint32, tag = "1")]
    pub(super) protocol: u32,
    #[prost(oneof = "Ask", tags = "2, 3, 4, 5, 6, 7")]
    pub(super) ask: Option<Ask>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Ask {
    #[prost(message, tag = "2")]
    ReadVersion(ReadVersion),
    #[prost(message, tag = "3")]
    Get(Get),
    #[prost(message, tag = "4")]
    GetRange(GetRange),
    #[prost(message, tag = "5")]
    Commit(Commit),
    #[prost(message, tag = "6")]
    Part(Part),
    #[prost(message, tag = "7")]
    Watch(Watch),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct ReadVersion {
    /// Whether to include what is submitted. An earlier release answers without it.
    #[prost(bool, tag = "1")]
    pub(super) submitted: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Get {
    #[prost(uint64, tag = "1")]
    pub(super) at: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) key: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct GetRange {
    #[prost(uint64, tag = "1")]
    pub(super) at: u64,
    #[prost(message, optional, tag = "2")]
    pub(super) range: Option<Range>,
    #[prost(uint64, tag = "3")]
    pub(super) limit: u64,
    #[prost(bool, tag = "4")]
    pub(super) reverse: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Range {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) begin: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) end: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Commit {
    #[prost(uint64, optional, tag = "1")]
    pub(super) read_version: Option<u64>,
    #[prost(message, repeated, tag = "2")]
    pub(super) read_conflicts: Vec<Range>,
    #[prost(message, repeated, tag = "3")]
    pub(super) write_conflicts: Vec<Range>,
    #[prost(message, repeated, tag = "4")]
    pub(super) mutations: Vec<Change>,
}

/// A mutation. `key` and `value` depend on its kind; for a stamped one, the part before the stamp, with `after` the
/// part after it.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Change {
    #[prost(enumeration = "Kind", tag = "1")]
    pub(super) kind: i32,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "3")]
    pub(super) value: Bytes,
    #[prost(bytes = "bytes", tag = "4")]
    pub(super) after: Bytes,
    #[prost(sint64, tag = "5")]
    pub(super) delta: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Kind {
    None = 0,
    Set = 1,
    Clear = 2,
    /// From `key` to `value`.
    ClearRange = 3,
    Add = 4,
    SetStampedKey = 5,
    SetStampedValue = 6,
}

/// A part of an encoded [`Commit`]; the commit is answered when the last part has arrived.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Part {
    /// Unique name of the upload.
    #[prost(string, tag = "1")]
    pub(super) upload: String,
    /// Index of the part, from 0.
    #[prost(uint32, tag = "2")]
    pub(super) index: u32,
    #[prost(bool, tag = "3")]
    pub(super) last: bool,
    #[prost(bytes = "bytes", tag = "4")]
    pub(super) bytes: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Watch {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", optional, tag = "2")]
    pub(super) seen: Option<Bytes>,
}

/// The server's answer.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Answer {
    #[prost(oneof = "Says", tags = "1, 2, 3, 4, 5, 6, 7")]
    pub(super) says: Option<Says>,
}

#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Says {
    #[prost(message, tag = "1")]
    Failed(Failed),
    #[prost(uint64, tag = "2")]
    ReadVersion(u64),
    #[prost(message, tag = "3")]
    Value(Value),
    #[prost(message, tag = "4")]
    Rows(Rows),
    #[prost(message, tag = "5")]
    Committed(Applied),
    /// Number of parts received.
    #[prost(uint32, tag = "6")]
    PartTaken(u32),
    /// Whether the value of the watched key has changed; if not, the client asks again.
    #[prost(bool, tag = "7")]
    Changed(bool),
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Value {
    #[prost(bytes = "bytes", optional, tag = "1")]
    pub(super) value: Option<Bytes>,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Rows {
    #[prost(message, repeated, tag = "1")]
    pub(super) rows: Vec<OneRow>,
    #[prost(bool, tag = "2")]
    pub(super) more: bool,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct OneRow {
    #[prost(bytes = "bytes", tag = "1")]
    pub(super) key: Bytes,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) value: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Applied {
    #[prost(uint64, tag = "1")]
    pub(super) version: u64,
    #[prost(bytes = "bytes", tag = "2")]
    pub(super) stamp: Bytes,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct Failed {
    #[prost(enumeration = "Reason", tag = "1")]
    pub(super) reason: i32,
    /// The size that exceeds a limit.
    #[prost(uint64, tag = "2")]
    pub(super) bytes: u64,
    /// The text of an error, if it has one.
    #[prost(string, tag = "3")]
    pub(super) detail: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, prost::Enumeration)]
#[repr(i32)]
pub(super) enum Reason {
    None = 0,
    Conflict = 1,
    TooOld = 2,
    TransactionTooLarge = 3,
    ClearTooWide = 4,
    KeyTooLarge = 5,
    ValueTooLarge = 6,
    KeyReserved = 7,
    RangeInverted = 8,
    TooManyWatches = 9,
    CommitUnknown = 10,
    Unavailable = 11,
    Poisoned = 12,
    Corrupt = 13,
    Unreadable = 14,
    Finished = 15,
    Refused = 16,
}

/// The error for a malformed message.
pub(super) fn malformed(what: &str) -> StoreError {
    StoreError::Corrupt(format!("a message of the store's protocol {what}").into())
}

impl Request {
    pub(super) fn new(ask: Ask) -> Self {
        Self {
            protocol: PROTOCOL,
            ask: Some(ask),
        }
    }

    /// The decoded request, if the peer has the same protocol version.
    pub(super) fn ask(self) -> Result<Ask, StoreError> {
        if self.protocol != PROTOCOL {
            let why = format!(
                "is of version {}, and this side uses {PROTOCOL}; run the same release",
                self.protocol
            );
            return Err(malformed(&why));
        }
        self.ask
            .ok_or_else(|| malformed("has no request that this release knows"))
    }
}

impl From<KeyRange> for Range {
    fn from(range: KeyRange) -> Self {
        Self {
            begin: range.begin,
            end: range.end,
        }
    }
}

impl From<Range> for KeyRange {
    fn from(range: Range) -> Self {
        Self {
            begin: range.begin,
            end: range.end,
        }
    }
}

impl GetRange {
    pub(super) fn new(at: Version, read: RangeRead) -> Self {
        let reverse = read.order == ScanOrder::Reverse;
        Self {
            at: at.0,
            range: Some(read.range.into()),
            limit: read.limit as u64,
            reverse,
        }
    }

    pub(super) fn read(self) -> Result<RangeRead, StoreError> {
        let range: KeyRange = self.range.ok_or_else(|| malformed("lacks a range"))?.into();
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX);
        if limit == 0 {
            return Err(malformed("reads at most 0 rows"));
        }
        let order = if self.reverse {
            ScanOrder::Reverse
        } else {
            ScanOrder::Forward
        };
        Ok(RangeRead { range, limit, order })
    }
}

impl From<Page> for Rows {
    fn from(page: Page) -> Self {
        let rows = page.rows.into_iter().map(|(key, value)| OneRow { key, value });
        Self {
            rows: rows.collect(),
            more: page.more,
        }
    }
}

impl From<Rows> for Page {
    fn from(rows: Rows) -> Self {
        Self {
            rows: rows.rows.into_iter().map(|row| (row.key, row.value)).collect(),
            more: rows.more,
        }
    }
}

impl From<Committed> for Applied {
    fn from(committed: Committed) -> Self {
        Self {
            version: committed.version.0,
            stamp: Bytes::copy_from_slice(&committed.stamp.0),
        }
    }
}

impl TryFrom<Applied> for Committed {
    type Error = StoreError;

    fn try_from(applied: Applied) -> Result<Self, StoreError> {
        let stamp = applied
            .stamp
            .as_ref()
            .try_into()
            .map_err(|_| malformed("holds no versionstamp"))?;
        Ok(Self {
            version: Version(applied.version),
            stamp: Versionstamp(stamp),
        })
    }
}

impl From<CommitRequest> for Commit {
    fn from(request: CommitRequest) -> Self {
        Self {
            read_version: request.read_version.map(|version| version.0),
            read_conflicts: request.read_conflicts.into_iter().map(Range::from).collect(),
            write_conflicts: request.write_conflicts.into_iter().map(Range::from).collect(),
            mutations: request.mutations.into_iter().map(Change::from).collect(),
        }
    }
}

impl TryFrom<Commit> for CommitRequest {
    type Error = StoreError;

    fn try_from(commit: Commit) -> Result<Self, StoreError> {
        Ok(Self {
            read_version: commit.read_version.map(Version),
            read_conflicts: commit.read_conflicts.into_iter().map(KeyRange::from).collect(),
            write_conflicts: commit.write_conflicts.into_iter().map(KeyRange::from).collect(),
            mutations: commit
                .mutations
                .into_iter()
                .map(Mutation::try_from)
                .collect::<Result<_, _>>()?,
        })
    }
}

impl From<Mutation> for Change {
    fn from(mutation: Mutation) -> Self {
        let of = |kind: Kind, key, value| Self {
            kind: kind.into(),
            key,
            value,
            ..Self::default()
        };
        match mutation {
            Mutation::Set { key, value } => of(Kind::Set, key, value),
            Mutation::Clear { key } => of(Kind::Clear, key, Bytes::new()),
            Mutation::ClearRange { range } => of(Kind::ClearRange, range.begin, range.end),
            Mutation::Add { key, delta } => Self {
                delta,
                ..of(Kind::Add, key, Bytes::new())
            },
            Mutation::SetStampedKey { key, value } => Self {
                after: key.after,
                ..of(Kind::SetStampedKey, key.before, value)
            },
            Mutation::SetStampedValue { key, value } => Self {
                after: value.after,
                ..of(Kind::SetStampedValue, key, value.before)
            },
        }
    }
}

impl TryFrom<Change> for Mutation {
    type Error = StoreError;

    fn try_from(change: Change) -> Result<Self, StoreError> {
        let kind = change.kind();
        let Change {
            key,
            value,
            after,
            delta,
            ..
        } = change;
        Ok(match kind {
            Kind::None => return Err(malformed("holds a mutation of a kind that this release does not know")),
            Kind::Set => Self::Set { key, value },
            Kind::Clear => Self::Clear { key },
            Kind::ClearRange => Self::ClearRange {
                range: KeyRange { begin: key, end: value },
            },
            Kind::Add => Self::Add { key, delta },
            Kind::SetStampedKey => Self::SetStampedKey {
                key: Stamped { before: key, after },
                value,
            },
            Kind::SetStampedValue => Self::SetStampedValue {
                key,
                value: Stamped { before: value, after },
            },
        })
    }
}

impl From<StoreError> for Failed {
    fn from(error: StoreError) -> Self {
        let plain = |reason: Reason| Self {
            reason: reason.into(),
            ..Self::default()
        };
        let sized = |reason: Reason, bytes: usize| Self {
            bytes: bytes as u64,
            ..plain(reason)
        };
        let worded = |reason: Reason, detail: &str| Self {
            detail: detail.to_owned(),
            ..plain(reason)
        };
        match error {
            StoreError::Conflict => plain(Reason::Conflict),
            StoreError::TooOld => plain(Reason::TooOld),
            StoreError::TransactionTooLarge { bytes } => sized(Reason::TransactionTooLarge, bytes),
            StoreError::ClearTooWide => plain(Reason::ClearTooWide),
            StoreError::KeyTooLarge { bytes } => sized(Reason::KeyTooLarge, bytes),
            StoreError::ValueTooLarge { bytes } => sized(Reason::ValueTooLarge, bytes),
            StoreError::KeyReserved => plain(Reason::KeyReserved),
            StoreError::RangeInverted => plain(Reason::RangeInverted),
            StoreError::Unreadable => plain(Reason::Unreadable),
            StoreError::Finished => plain(Reason::Finished),
            StoreError::TooManyWatches => plain(Reason::TooManyWatches),
            StoreError::CommitUnknown => plain(Reason::CommitUnknown),
            StoreError::Unavailable(why) => worded(Reason::Unavailable, &why),
            StoreError::Poisoned(why) => worded(Reason::Poisoned, &why),
            StoreError::Corrupt(why) => worded(Reason::Corrupt, &why),
            StoreError::Refused(why) => worded(Reason::Refused, &why),
        }
    }
}

impl From<Failed> for StoreError {
    fn from(failed: Failed) -> Self {
        let reason = failed.reason();
        let bytes = usize::try_from(failed.bytes).unwrap_or(usize::MAX);
        let detail = failed.detail.as_str().into();
        match reason {
            Reason::None => malformed("has an error code that this release does not know"),
            Reason::Conflict => Self::Conflict,
            Reason::TooOld => Self::TooOld,
            Reason::TransactionTooLarge => Self::TransactionTooLarge { bytes },
            Reason::ClearTooWide => Self::ClearTooWide,
            Reason::KeyTooLarge => Self::KeyTooLarge { bytes },
            Reason::ValueTooLarge => Self::ValueTooLarge { bytes },
            Reason::KeyReserved => Self::KeyReserved,
            Reason::RangeInverted => Self::RangeInverted,
            Reason::TooManyWatches => Self::TooManyWatches,
            Reason::CommitUnknown => Self::CommitUnknown,
            Reason::Unavailable => Self::Unavailable(detail),
            Reason::Poisoned => Self::Poisoned(detail),
            Reason::Corrupt => Self::Corrupt(detail),
            Reason::Refused => Self::Refused(detail),
            Reason::Unreadable => Self::Unreadable,
            Reason::Finished => Self::Finished,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message;

    use super::*;

    fn bytes() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..6).prop_map(Bytes::from)
    }

    fn range() -> impl Strategy<Value = KeyRange> {
        (bytes(), bytes()).prop_map(|(begin, end)| KeyRange { begin, end })
    }

    fn stamped() -> impl Strategy<Value = Stamped> {
        (bytes(), bytes()).prop_map(|(before, after)| Stamped { before, after })
    }

    fn mutation() -> impl Strategy<Value = Mutation> {
        prop_oneof![
            (bytes(), bytes()).prop_map(|(key, value)| Mutation::Set { key, value }),
            bytes().prop_map(|key| Mutation::Clear { key }),
            range().prop_map(|range| Mutation::ClearRange { range }),
            (bytes(), any::<i64>()).prop_map(|(key, delta)| Mutation::Add { key, delta }),
            (stamped(), bytes()).prop_map(|(key, value)| Mutation::SetStampedKey { key, value }),
            (bytes(), stamped()).prop_map(|(key, value)| Mutation::SetStampedValue { key, value }),
        ]
    }

    fn errors() -> Vec<StoreError> {
        vec![
            StoreError::Conflict,
            StoreError::TooOld,
            StoreError::TransactionTooLarge { bytes: 10_000_001 },
            StoreError::ClearTooWide,
            StoreError::KeyTooLarge { bytes: 10_001 },
            StoreError::ValueTooLarge { bytes: 100_001 },
            StoreError::KeyReserved,
            StoreError::RangeInverted,
            StoreError::Unreadable,
            StoreError::Finished,
            StoreError::TooManyWatches,
            StoreError::CommitUnknown,
            StoreError::Unavailable("a".into()),
            StoreError::Poisoned("b".into()),
            StoreError::Corrupt("c".into()),
            StoreError::Refused("d".into()),
        ]
    }

    #[test]
    fn every_error_crosses_the_wire() {
        for error in errors() {
            let sent = Failed::from(error.clone()).encode_to_vec();
            assert_eq!(StoreError::from(Failed::decode(&sent[..]).unwrap()), error);
        }
    }

    proptest! {
        #[test]
        fn a_commit_crosses_the_wire(
            read_version in proptest::option::of(any::<u64>().prop_map(Version)),
            read_conflicts in prop::collection::vec(range(), 0..3),
            write_conflicts in prop::collection::vec(range(), 0..3),
            mutations in prop::collection::vec(mutation(), 0..6),
        ) {
            let request = CommitRequest { read_version, read_conflicts, write_conflicts, mutations };
            let sent = Commit::from(request.clone()).encode_to_vec();
            prop_assert_eq!(CommitRequest::try_from(Commit::decode(&sent[..]).unwrap()), Ok(request));
        }

        #[test]
        fn garbage_is_refused_and_never_panics(garbage in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(request) = Request::decode(&garbage[..]) && let Ok(Ask::Commit(commit)) = request.ask() {
                drop(CommitRequest::try_from(commit));
            }
        }
    }
}
