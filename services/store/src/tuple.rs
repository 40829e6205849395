//! Tuples as keys: the part of FoundationDB's tuple encoding that Annals uses, byte for byte.
//!
//! Elements are written one after the other so that the bytes of two tuples sort as the tuples do, element by element:
//!
//! ```text
//! bytes    01 (each 00 as 00 ff) 00
//! text     02 (UTF-8, each 00 as 00 ff) 00
//! integer  14 for zero; 14 + n, then n bytes big-endian, for a positive one of n bytes;
//!          14 - n, then n bytes big-endian of 2^(8n) - 1 + value, for a negative one
//! ```
//!
//! Pure. An integer has one encoding only; the reader refuses any other.

use bytes::Bytes;

const BYTES: u8 = 0x01;
const TEXT: u8 = 0x02;
const ZERO: u8 = 0x14;
const END: u8 = 0x00;
const ESCAPE: u8 = 0xff;

/// Writes a tuple, element by element.
#[derive(Clone, Debug, Default)]
pub struct Packer {
    bytes: Vec<u8>,
}

impl Packer {
    /// An empty tuple.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a byte string.
    #[must_use]
    pub fn bytes(mut self, value: &[u8]) -> Self {
        self.escaped(BYTES, value);
        self
    }

    /// Adds a text.
    #[must_use]
    pub fn text(mut self, value: &str) -> Self {
        self.escaped(TEXT, value.as_bytes());
        self
    }

    /// Adds an unsigned integer.
    #[must_use]
    pub fn u64(mut self, value: u64) -> Self {
        let length = significant_bytes(value);
        self.bytes.push(ZERO + length);
        self.low_bytes(value, length);
        self
    }

    /// Adds a signed integer. A non-negative one has the same encoding as an unsigned one.
    #[must_use]
    pub fn i64(mut self, value: i64) -> Self {
        if value >= 0 {
            return self.u64(value.unsigned_abs());
        }
        let length = significant_bytes(value.unsigned_abs());
        self.bytes.push(ZERO - length);
        self.low_bytes(highest(length) - value.unsigned_abs(), length);
        self
    }

    /// The bytes of the tuple.
    #[must_use]
    pub fn finish(self) -> Bytes {
        self.bytes.into()
    }

    fn escaped(&mut self, code: u8, value: &[u8]) {
        self.bytes.push(code);
        for &byte in value {
            self.bytes.push(byte);
            if byte == END {
                self.bytes.push(ESCAPE);
            }
        }
        self.bytes.push(END);
    }

    fn low_bytes(&mut self, value: u64, length: u8) {
        self.bytes
            .extend_from_slice(&value.to_be_bytes()[size_of::<u64>() - usize::from(length)..]);
    }
}

/// Why bytes are not the tuple that was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TupleError {
    /// The bytes end within an element.
    #[error("a tuple ends within an element")]
    Truncated,
    /// The element is of another kind.
    #[error("a tuple holds an element of code {found:#04x} where {wanted} is expected")]
    Unexpected {
        /// Its first byte.
        found: u8,
        /// The kind of element that was requested.
        wanted: &'static str,
    },
    /// An integer too large for the requested width, or not in its shortest form.
    #[error("a tuple holds an integer that is out of range or not in its shortest form")]
    BadInteger,
    /// Text that is not UTF-8.
    #[error("a tuple holds a text that is not UTF-8")]
    BadText,
    /// Bytes remain after the end of the tuple.
    #[error("a tuple has {0} B after its last element")]
    Trailing(usize),
}

/// Reads a tuple, element by element.
#[derive(Clone, Debug)]
pub struct Unpacker<'a> {
    rest: &'a [u8],
}

impl<'a> Unpacker<'a> {
    /// Reads `bytes` from the start.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// The next element, a byte string.
    ///
    /// # Errors
    /// Any [`TupleError`] but trailing bytes.
    pub fn bytes(&mut self) -> Result<Vec<u8>, TupleError> {
        self.code("bytes", |code| code == BYTES)?;
        self.unescaped()
    }

    /// The next element, a text.
    ///
    /// # Errors
    /// Any [`TupleError`] but trailing bytes.
    pub fn text(&mut self) -> Result<String, TupleError> {
        self.code("a text", |code| code == TEXT)?;
        String::from_utf8(self.unescaped()?).map_err(|_| TupleError::BadText)
    }

    /// The next element, an unsigned integer.
    ///
    /// # Errors
    /// Any [`TupleError`] but trailing bytes.
    pub fn u64(&mut self) -> Result<u64, TupleError> {
        let code = self.code("an unsigned integer", |code| (ZERO..=ZERO + 8).contains(&code))?;
        let length = code - ZERO;
        let value = self.integer(length)?;
        if significant_bytes(value) == length {
            Ok(value)
        } else {
            Err(TupleError::BadInteger)
        }
    }

    /// The next element, a signed integer.
    ///
    /// # Errors
    /// Any [`TupleError`] but trailing bytes.
    pub fn i64(&mut self) -> Result<i64, TupleError> {
        match self.rest.first() {
            Some(&code) if (ZERO - 8..ZERO).contains(&code) => {
                self.rest = &self.rest[1..];
                let length = ZERO - code;
                let magnitude = highest(length) - self.integer(length)?;
                if significant_bytes(magnitude) != length {
                    return Err(TupleError::BadInteger);
                }
                0_i64.checked_sub_unsigned(magnitude).ok_or(TupleError::BadInteger)
            }
            _ => i64::try_from(self.u64()?).map_err(|_| TupleError::BadInteger),
        }
    }

    /// Checks that no bytes remain.
    ///
    /// # Errors
    /// [`TupleError::Trailing`].
    pub fn end(self) -> Result<(), TupleError> {
        if self.rest.is_empty() {
            Ok(())
        } else {
            Err(TupleError::Trailing(self.rest.len()))
        }
    }

    fn code(&mut self, wanted: &'static str, is_wanted: impl Fn(u8) -> bool) -> Result<u8, TupleError> {
        let (&found, rest) = self.rest.split_first().ok_or(TupleError::Truncated)?;
        if !is_wanted(found) {
            return Err(TupleError::Unexpected { found, wanted });
        }
        self.rest = rest;
        Ok(found)
    }

    fn unescaped(&mut self) -> Result<Vec<u8>, TupleError> {
        let mut value = Vec::new();
        loop {
            let (&byte, rest) = self.rest.split_first().ok_or(TupleError::Truncated)?;
            self.rest = rest;
            if byte == END {
                match self.rest.split_first() {
                    Some((&ESCAPE, rest)) => self.rest = rest,
                    _ => return Ok(value),
                }
            }
            value.push(byte);
        }
    }

    fn integer(&mut self, length: u8) -> Result<u64, TupleError> {
        let (digits, rest) = self
            .rest
            .split_at_checked(usize::from(length))
            .ok_or(TupleError::Truncated)?;
        self.rest = rest;
        Ok(digits.iter().fold(0, |value, &digit| value << 8 | u64::from(digit)))
    }
}

/// Number of bytes of a number without leading zeros.
fn significant_bytes(value: u64) -> u8 {
    u8::try_from((u64::BITS - value.leading_zeros()).div_ceil(8)).expect("invariant: 64 bits are eight bytes")
}

/// The largest number of `length` bytes.
fn highest(length: u8) -> u64 {
    if length == 0 {
        0
    } else {
        u64::MAX >> (u64::BITS - 8 * u32::from(length))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The examples of FoundationDB's specification of the tuple layer.
    #[test]
    fn agrees_with_the_published_examples() {
        assert_eq!(
            Packer::new().bytes(b"foo\0bar").finish().as_ref(),
            b"\x01foo\x00\xffbar\x00"
        );
        assert_eq!(
            Packer::new().text("F\u{d4}O\0bar").finish().as_ref(),
            b"\x02\x46\xc3\x94\x4f\x00\xff\x62\x61\x72\x00"
        );
        assert_eq!(Packer::new().i64(-5_551_212).finish().as_ref(), b"\x11\xab\x4b\x93");
    }

    #[derive(Clone, Debug, PartialEq, PartialOrd)]
    enum Element {
        Bytes(Vec<u8>),
        Text(String),
        Integer(i128),
    }

    fn element() -> impl Strategy<Value = Element> {
        prop_oneof![
            prop::collection::vec(prop_oneof![Just(0u8), Just(0xff), any::<u8>()], 0..6).prop_map(Element::Bytes),
            "[\\x00a-c\u{e4}]{0,5}".prop_map(Element::Text),
            prop_oneof![any::<i64>(), -300i64..300, Just(i64::MIN), Just(i64::MAX)]
                .prop_map(|value| Element::Integer(value.into())),
            prop_oneof![any::<u64>(), Just(u64::MAX)].prop_map(|value| Element::Integer(value.into())),
        ]
    }

    fn pack(tuple: &[Element]) -> Bytes {
        let packer = tuple.iter().fold(Packer::new(), |packer, element| match element {
            Element::Bytes(value) => packer.bytes(value),
            Element::Text(value) => packer.text(value),
            Element::Integer(value) => match u64::try_from(*value) {
                Ok(value) => packer.u64(value),
                Err(_) => packer.i64(i64::try_from(*value).expect("a generated integer fits")),
            },
        });
        packer.finish()
    }

    fn unpack(bytes: &[u8], like: &[Element]) -> Result<Vec<Element>, TupleError> {
        let mut unpacker = Unpacker::new(bytes);
        let elements = like.iter().map(|element| {
            Ok(match element {
                Element::Bytes(_) => Element::Bytes(unpacker.bytes()?),
                Element::Text(_) => Element::Text(unpacker.text()?),
                Element::Integer(value) if *value < 0 => Element::Integer(unpacker.i64()?.into()),
                Element::Integer(_) => Element::Integer(unpacker.u64()?.into()),
            })
        });
        let elements = elements.collect::<Result<Vec<_>, _>>()?;
        unpacker.end()?;
        Ok(elements)
    }

    proptest! {
        #[test]
        fn pack_and_unpack_round_trip(tuple in prop::collection::vec(element(), 0..5)) {
            prop_assert_eq!(unpack(&pack(&tuple), &tuple), Ok(tuple));
        }

        #[test]
        fn bytes_sort_as_tuples_do(
            one in prop::collection::vec(element(), 0..4),
            two in prop::collection::vec(element(), 0..4),
            shared in prop::collection::vec(element(), 0..3),
        ) {
            let one = [shared.clone(), one].concat();
            let two = [shared, two].concat();
            prop_assert_eq!(Some(pack(&one).cmp(&pack(&two))), one.partial_cmp(&two));
        }

        #[test]
        fn other_bytes_are_rejected_or_canonical(bytes in prop::collection::vec(prop_oneof![0u8..3, 0x0cu8..0x1d, any::<u8>()], 0..12)) {
            for integer in [true, false] {
                let mut unpacker = Unpacker::new(&bytes);
                let packed = if integer {
                    unpacker.i64().map(|value| Packer::new().i64(value))
                } else {
                    unpacker.bytes().map(|value| Packer::new().bytes(&value))
                };
                if let Ok(packed) = packed && unpacker.end().is_ok() {
                    prop_assert_eq!(packed.finish(), &bytes[..]);
                }
            }
        }
    }
}
