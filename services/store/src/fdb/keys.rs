//! Mapping between a realm's keys and the cluster's: adds and removes the prefix.

use bytes::Bytes;

use super::Prefix;
use crate::mutation::Stamped;
use crate::{KeyRange, StoreError, Versionstamp};

/// The part of the cluster that belongs to one realm.
#[derive(Clone, Debug)]
pub(super) struct KeySpace {
    prefix: Bytes,
}

impl KeySpace {
    /// The keys that begin with `prefix`.
    pub(super) fn new(prefix: &Prefix) -> Self {
        Self {
            prefix: Bytes::copy_from_slice(prefix.as_str().as_bytes()),
        }
    }

    /// Length of the prefix.
    pub(super) fn prefix_bytes(&self) -> usize {
        self.prefix.len()
    }

    /// A key in the cluster's form.
    pub(super) fn key(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix, key].concat()
    }

    /// A range in the cluster's form. Every key is below [`crate::limits::KEYS_END`], so that the end of all keys needs
    /// no special case.
    pub(super) fn range(&self, range: &KeyRange) -> (Vec<u8>, Vec<u8>) {
        (self.key(&range.begin), self.key(&range.end))
    }

    /// A key of the cluster in the realm's form.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a key outside the realm.
    pub(super) fn own(&self, key: &[u8]) -> Result<Bytes, StoreError> {
        key.strip_prefix(&self.prefix[..])
            .map(Bytes::copy_from_slice)
            .ok_or_else(|| StoreError::Corrupt("the cluster returned a key of another realm".into()))
    }

    /// A key with a gap for the commit's versionstamp, in the cluster's form.
    pub(super) fn stamped_key(&self, key: &Stamped) -> Vec<u8> {
        gapped(&self.prefix, key)
    }
}

/// A value with a gap for the commit's versionstamp, in the cluster's form.
pub(super) fn stamped_value(value: &Stamped) -> Vec<u8> {
    gapped(&[], value)
}

/// The bytes before and after the gap, arbitrary bytes in the gap, and at the end the offset of the gap as a
/// little-endian 32-bit integer (API version 520 and later).
fn gapped(prefix: &[u8], stamped: &Stamped) -> Vec<u8> {
    let place = prefix.len() + stamped.before.len();
    let place = u32::try_from(place).expect("invariant: keys and values are checked against their limits before");
    let gap = [0xff; Versionstamp::BYTES];
    [prefix, &stamped.before, &gap, &stamped.after, &place.to_le_bytes()].concat()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::limits::{PREFIX_BYTES, TRANSACTION_BYTES};
    use crate::{CommitRequest, Mutation, Version};

    /// Overhead of a mutation and of a range in the client, beside their bytes.
    const MUTATION: usize = 56;
    const RANGE: usize = 32;

    fn space() -> KeySpace {
        KeySpace::new(&Prefix::new("annals/r/").expect("a prefix"))
    }

    /// Result of a stamped text in the cluster: the offset removed, the stamp inserted there.
    fn filled(mut gapped: Vec<u8>, stamp: Versionstamp) -> Vec<u8> {
        let place = gapped.split_off(gapped.len() - 4);
        let place = u32::from_le_bytes(place.try_into().expect("four bytes")) as usize;
        gapped[place..place + Versionstamp::BYTES].copy_from_slice(&stamp.0);
        gapped
    }

    #[test]
    fn keys_of_other_realms_are_rejected() {
        assert!(matches!(space().own(b"annals/s/k"), Err(StoreError::Corrupt(_))));
        assert!(matches!(space().own(b"annals/"), Err(StoreError::Corrupt(_))));
    }

    /// The size of a transaction as the client computes it, from the exact bytes that it is given for `request`.
    fn client_bytes(space: &KeySpace, request: &CommitRequest) -> usize {
        let range = |(begin, end): (Vec<u8>, Vec<u8>)| RANGE + begin.len() + end.len();
        let single = |key: Vec<u8>| {
            let end = [&key[..], b"\0"].concat();
            RANGE + key.len() + end.len()
        };
        let mutation = |mutation: &Mutation| match mutation {
            Mutation::Set { key, value } => MUTATION + space.key(key).len() + value.len() + single(space.key(key)),
            // The client turns it into the range of one key.
            Mutation::Clear { key } => MUTATION + 2 * space.key(key).len() + 1 + single(space.key(key)),
            Mutation::ClearRange { range: cleared } if cleared.is_empty() => 0,
            Mutation::ClearRange { range: cleared } => {
                let (begin, end) = space.range(cleared);
                MUTATION + begin.len() + end.len() + range((begin, end))
            }
            Mutation::Add { key, delta } => {
                MUTATION + space.key(key).len() + delta.to_le_bytes().len() + single(space.key(key))
            }
            Mutation::SetStampedKey { key, value } => {
                let mut key = space.stamped_key(key);
                let given = MUTATION + key.len() + value.len();
                key.truncate(key.len() - 4);
                given + single(key)
            }
            Mutation::SetStampedValue { key, value } => {
                MUTATION + space.key(key).len() + stamped_value(value).len() + single(space.key(key))
            }
        };
        let conflicts = request.read_conflicts.iter().chain(&request.write_conflicts);
        let conflicts = conflicts.filter(|range| !range.is_empty());
        conflicts.map(|conflict| range(space.range(conflict))).sum::<usize>()
            + request.mutations.iter().map(mutation).sum::<usize>()
    }

    fn some_bytes() -> impl Strategy<Value = Bytes> {
        prop::collection::vec(any::<u8>(), 0..40).prop_map(Bytes::from)
    }

    fn some_range() -> impl Strategy<Value = KeyRange> {
        (some_bytes(), some_bytes()).prop_map(|(one, two)| KeyRange::new(one.clone().min(two.clone()), one.max(two)))
    }

    fn some_mutation() -> impl Strategy<Value = Mutation> {
        let stamped = || (some_bytes(), some_bytes()).prop_map(|(before, after)| Stamped { before, after });
        prop_oneof![
            (some_bytes(), some_bytes()).prop_map(|(key, value)| Mutation::Set { key, value }),
            some_bytes().prop_map(|key| Mutation::Clear { key }),
            some_range().prop_map(|range| Mutation::ClearRange { range }),
            some_bytes().prop_map(|key| Mutation::ClearRange {
                range: KeyRange::new(key.clone(), key)
            }),
            (some_bytes(), any::<i64>()).prop_map(|(key, delta)| Mutation::Add { key, delta }),
            (stamped(), some_bytes()).prop_map(|(key, value)| Mutation::SetStampedKey { key, value }),
            (some_bytes(), stamped()).prop_map(|(key, value)| Mutation::SetStampedValue { key, value }),
        ]
    }

    #[test]
    fn the_largest_transaction_by_our_count_is_within_the_clients() {
        let space = KeySpace::new(&Prefix::new(&"p".repeat(PREFIX_BYTES)).expect("a prefix"));
        let clear = Mutation::Clear {
            key: Bytes::from_static(b"0123456789abcdef"),
        };
        let each = clear.bytes(PREFIX_BYTES);
        let request = CommitRequest {
            mutations: vec![clear; TRANSACTION_BYTES / each],
            ..CommitRequest::default()
        };
        assert!(client_bytes(&space, &request) <= TRANSACTION_BYTES);
        assert!(
            client_bytes(&space, &request) > TRANSACTION_BYTES - each,
            "and no margin is left"
        );
    }

    proptest! {
        #[test]
        fn a_transaction_counts_as_in_the_client(
            prefix in 1..=PREFIX_BYTES,
            mutations in prop::collection::vec(some_mutation(), 0..20),
            read_conflicts in prop::collection::vec(some_range(), 0..8),
            write_conflicts in prop::collection::vec(some_range(), 0..8),
        ) {
            let space = KeySpace::new(&Prefix::new(&"p".repeat(prefix)).expect("a prefix"));
            let stamped = mutations.iter().filter(|one| matches!(one, Mutation::SetStampedKey { .. })).count();
            let request = CommitRequest { read_version: None, read_conflicts, write_conflicts, mutations };
            // The client's conflict range of a stamped key leaves out the offset of the stamp, four bytes at either
            // end.
            prop_assert_eq!(request.bytes(space.prefix_bytes()), client_bytes(&space, &request) + 8 * stamped);
        }

        #[test]
        fn prefixed_keys_round_trip_in_order(
            one in prop::collection::vec(any::<u8>(), 0..12),
            two in prop::collection::vec(any::<u8>(), 0..12),
        ) {
            let space = space();
            prop_assert_eq!(&space.own(&space.key(&one)).expect("its own")[..], &one[..]);
            prop_assert_eq!(space.key(&one).cmp(&space.key(&two)), one.cmp(&two));
            let (begin, end) = space.range(&KeyRange::everything());
            prop_assert!(begin <= space.key(&one));
            prop_assert_eq!(space.key(&one) < end, one.as_slice() < crate::limits::KEYS_END);
        }

        #[test]
        fn a_versionstamp_fills_its_gap(
            before in prop::collection::vec(any::<u8>(), 0..300),
            after in prop::collection::vec(any::<u8>(), 0..300),
        ) {
            let stamped = Stamped { before: before.into(), after: after.into() };
            let stamp = Versionstamp::new(Version(0x0102_0304_0506_0708), 0x090a);
            prop_assert_eq!(filled(stamped_value(&stamped), stamp), stamped.with(stamp).to_vec());
            prop_assert_eq!(filled(space().stamped_key(&stamped), stamp), space().key(&stamped.with(stamp)));
        }
    }
}
