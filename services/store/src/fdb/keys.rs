//! A realm's keys within the cluster's: the prefix put before them and taken off again.

use bytes::Bytes;

use super::Prefix;
use crate::mutation::Stamped;
use crate::{KeyRange, StoreError, Versionstamp};

/// The part of the cluster that is one realm's.
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

    /// A key, as the cluster has it.
    pub(super) fn key(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix, key].concat()
    }

    /// A range, as the cluster has it. Every key lies below [`crate::limits::KEYS_END`], so that the end of all keys needs no
    /// case of its own.
    pub(super) fn range(&self, range: &KeyRange) -> (Vec<u8>, Vec<u8>) {
        (self.key(&range.begin), self.key(&range.end))
    }

    /// A key of the cluster, as the realm has it.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for a key that is none of the realm's.
    pub(super) fn own(&self, key: &[u8]) -> Result<Bytes, StoreError> {
        key.strip_prefix(&self.prefix[..])
            .map(Bytes::copy_from_slice)
            .ok_or_else(|| StoreError::Corrupt("the cluster gave a key of another realm".into()))
    }

    /// A key with a gap for the commit's versionstamp, as the cluster takes it.
    pub(super) fn stamped_key(&self, key: &Stamped) -> Vec<u8> {
        gapped(&self.prefix, key)
    }
}

/// A value with a gap for the commit's versionstamp, as the cluster takes it.
pub(super) fn stamped_value(value: &Stamped) -> Vec<u8> {
    gapped(&[], value)
}

/// What stands before and after the gap, the gap filled with anything, and behind it all, as a little-endian 32-bit integer,
/// where the gap begins (API version 520 and later).
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
    use crate::Version;

    fn space() -> KeySpace {
        KeySpace::new(&Prefix::new("annals/r/").expect("a prefix"))
    }

    /// What the cluster makes of a gapped text: the offset taken off, the stamp put where it says.
    fn filled(mut gapped: Vec<u8>, stamp: Versionstamp) -> Vec<u8> {
        let place = gapped.split_off(gapped.len() - 4);
        let place = u32::from_le_bytes(place.try_into().expect("four bytes")) as usize;
        gapped[place..place + Versionstamp::BYTES].copy_from_slice(&stamp.0);
        gapped
    }

    #[test]
    fn keys_of_others_are_refused() {
        assert!(matches!(space().own(b"annals/s/k"), Err(StoreError::Corrupt(_))));
        assert!(matches!(space().own(b"annals/"), Err(StoreError::Corrupt(_))));
    }

    proptest! {
        #[test]
        fn a_key_comes_back_and_keeps_its_place(
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
        fn a_stamp_lands_in_its_gap(
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
