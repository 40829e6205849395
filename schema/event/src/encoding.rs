//! The primitives of the log's encodings: little-endian integers, LEB128 numbers, length-prefixed bytes.
//!
//! Every value has exactly one encoding, because hashes are computed over it; the reader rejects all others.

use std::collections::BTreeMap;

use annals_ids::Hash;
use thiserror::Error;

/// Why bytes could not be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("malformed {what} at byte {offset}")]
pub struct Malformed {
    /// What was expected at that offset.
    pub what: &'static str,
    /// Offset of the error, from the start of the given bytes.
    pub offset: usize,
}

/// Upper bound (exclusive) of every 64-bit number that is counted up by one: calls, history, lives of a space. It
/// cannot be reached by counting, and from any number below it there are as many numbers left.
pub const ORDINALS: u64 = 1 << 63;

/// The same bound for timers and controllers, which are counted in 32 bits.
const SHORT_ORDINALS: u32 = 1 << 31;

/// Appends `value` as an unsigned LEB128 number.
pub fn put_number(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    out.push(value.to_le_bytes()[0]);
}

/// Number of bytes that [`put_number`] appends.
#[must_use]
pub(crate) fn number_length(value: u64) -> usize {
    let bits = u64::BITS - (value | 1).leading_zeros();
    bits.div_ceil(7) as usize
}

/// Appends `bytes`, prefixed with their length.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Decodes what the `put` functions encode.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    offset: usize,
    /// By how many bits the bound on ordinals is lowered.
    spare: u32,
}

impl<'a> Reader<'a> {
    /// Starts at the first byte.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            offset: 0,
            spare: 0,
        }
    }

    /// As [`Reader::new`], for a message from another process: ordinals are rejected from half of their bound on.
    /// Numbers counted on from them, and logged, are then below the bound, so they can be decoded again.
    #[must_use]
    pub fn of_message(bytes: &'a [u8]) -> Self {
        Self {
            spare: 1,
            ..Self::new(bytes)
        }
    }

    /// Number of bytes read.
    #[must_use]
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// Number of bytes left: the bound for anything that a count in the input would allocate.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() - self.offset
    }

    /// An error at the current offset.
    #[must_use]
    pub fn malformed(&self, what: &'static str) -> Malformed {
        Malformed {
            what,
            offset: self.offset,
        }
    }

    /// Takes `count` bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn take(&mut self, count: usize, what: &'static str) -> Result<&'a [u8], Malformed> {
        let end = self.offset.checked_add(count).filter(|&end| end <= self.bytes.len());
        let end = end.ok_or_else(|| self.malformed(what))?;
        let taken = &self.bytes[self.offset..end];
        self.offset = end;
        Ok(taken)
    }

    /// Takes a fixed number of bytes.
    ///
    /// # Errors
    /// When fewer are left.
    pub fn array<const N: usize>(&mut self, what: &'static str) -> Result<[u8; N], Malformed> {
        let taken = self.take(N, what)?;
        Ok(taken.try_into().expect("take returns as many bytes as were asked for"))
    }

    /// Takes one byte.
    ///
    /// # Errors
    /// When no byte is left.
    pub fn byte(&mut self, what: &'static str) -> Result<u8, Malformed> {
        Ok(self.array::<1>(what)?[0])
    }

    /// Takes a hash.
    ///
    /// # Errors
    /// When fewer than 32 bytes are left.
    pub fn hash(&mut self, what: &'static str) -> Result<Hash, Malformed> {
        self.array(what).map(Hash)
    }

    /// Takes an unsigned LEB128 number in its shortest form.
    ///
    /// # Errors
    /// When it is cut off, longer than needed, or larger than 64 bits.
    pub fn number(&mut self, what: &'static str) -> Result<u64, Malformed> {
        let start = self.offset;
        let wrong = Malformed { what, offset: start };
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(what).map_err(|_| wrong)?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                return Err(wrong);
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                let padded = byte == 0 && shift > 0;
                return if padded { Err(wrong) } else { Ok(value) };
            }
        }
        Err(wrong)
    }

    /// Takes a number that is counted up by one, and that as many more can therefore follow.
    ///
    /// # Errors
    /// As [`Reader::number`], and when it is not below [`ORDINALS`], or half of that in a message.
    pub fn ordinal(&mut self, what: &'static str) -> Result<u64, Malformed> {
        let offset = self.offset;
        let value = self.number(what)?;
        if value < ORDINALS >> self.spare {
            Ok(value)
        } else {
            Err(Malformed { what, offset })
        }
    }

    /// Takes a 32-bit number that is counted up by one.
    ///
    /// # Errors
    /// As [`Reader::narrow`], and when as many more cannot follow it.
    pub fn short_ordinal(&mut self, what: &'static str) -> Result<u32, Malformed> {
        let offset = self.offset;
        let value: u32 = self.narrow(what)?;
        if value < SHORT_ORDINALS >> self.spare {
            Ok(value)
        } else {
            Err(Malformed { what, offset })
        }
    }

    /// Takes a number that must fit a narrower integer.
    ///
    /// # Errors
    /// As [`Reader::number`], and when it does not fit.
    pub fn narrow<T: TryFrom<u64>>(&mut self, what: &'static str) -> Result<T, Malformed> {
        let offset = self.offset;
        let value = self.number(what)?;
        T::try_from(value).map_err(|_| Malformed { what, offset })
    }

    /// Takes a count of elements that occupy at least `least` bytes each, so a hostile count cannot cause an
    /// allocation.
    ///
    /// # Errors
    /// When the remaining bytes cannot hold that many elements.
    pub fn count(&mut self, least: usize, what: &'static str) -> Result<usize, Malformed> {
        let offset = self.offset;
        let count: usize = self.narrow(what)?;
        if count.saturating_mul(least.max(1)) > self.remaining() {
            return Err(Malformed { what, offset });
        }
        Ok(count)
    }

    /// Takes length-prefixed bytes.
    ///
    /// # Errors
    /// When fewer are left than the prefix says.
    pub fn bytes(&mut self, what: &'static str) -> Result<&'a [u8], Malformed> {
        let length = self.count(1, what)?;
        self.take(length, what)
    }

    /// Takes key-value pairs, prefixed with their count. Each takes at least `least` bytes; keys ascend, as in an
    /// ordered map, because two orders would be two encodings.
    ///
    /// # Errors
    /// When the remaining bytes cannot hold that many pairs, one is malformed, or a key is not above the previous one.
    pub fn map<K: Ord, V>(
        &mut self,
        least: usize,
        what: &'static str,
        mut key: impl FnMut(&mut Self) -> Result<K, Malformed>,
        mut value: impl FnMut(&mut Self) -> Result<V, Malformed>,
    ) -> Result<BTreeMap<K, V>, Malformed> {
        let mut map = BTreeMap::new();
        for _ in 0..self.count(least, what)? {
            let wrong = self.malformed(what);
            let key = key(self)?;
            if map.last_key_value().is_some_and(|(last, _)| *last >= key) {
                return Err(wrong);
            }
            map.insert(key, value(self)?);
        }
        Ok(map)
    }

    /// Checks that no bytes are left.
    ///
    /// # Errors
    /// When bytes are left.
    pub fn finish(&self, what: &'static str) -> Result<(), Malformed> {
        if self.remaining() == 0 {
            Ok(())
        } else {
            Err(self.malformed(what))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_one_encoding() {
        for value in [
            0,
            1,
            127,
            128,
            300,
            16_383,
            16_384,
            u64::from(u32::MAX),
            u64::MAX - 1,
            u64::MAX,
        ] {
            let mut bytes = Vec::new();
            put_number(&mut bytes, value);
            assert_eq!(bytes.len(), number_length(value));
            assert_eq!(Reader::new(&bytes).number("n"), Ok(value));
            for cut in 0..bytes.len() {
                assert!(Reader::new(&bytes[..cut]).number("n").is_err(), "{value} cut at {cut}");
            }
        }
        assert!(Reader::new(&[0x80, 0x00]).number("n").is_err(), "padded");
        assert!(Reader::new(&[0xff; 11]).number("n").is_err(), "endless");
        let mut too_large = vec![0xff; 9];
        too_large.push(2);
        assert!(Reader::new(&too_large).number("n").is_err(), "65 bits");
    }

    #[test]
    fn hostile_lengths_allocate_nothing() {
        let mut bytes = Vec::new();
        put_number(&mut bytes, u64::MAX);
        assert!(Reader::new(&bytes).bytes("b").is_err());
        assert!(Reader::new(&bytes).count(8, "c").is_err());
    }

    #[test]
    fn a_map_has_one_order() {
        let read = |bytes: &[u8]| Reader::new(bytes).map(2, "pair", |r| r.byte("key"), |r| r.byte("value"));
        assert_eq!(read(&[2, 1, 9, 3, 8]), Ok(BTreeMap::from([(1, 9), (3, 8)])));
        let wrong = |offset| Err(Malformed { what: "pair", offset });
        assert_eq!(read(&[2, 3, 8, 1, 9]), wrong(3), "descending");
        assert_eq!(read(&[2, 3, 8, 3, 8]), wrong(3), "twice");
        assert_eq!(read(&[3, 3, 8, 4, 9]), wrong(0), "more than there are");
    }
}
