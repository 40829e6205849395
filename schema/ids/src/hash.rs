//! A SHA-256 value.

use std::{fmt, str::FromStr};

/// A SHA-256 value. All zeroes means "no predecessor": the previous hash in the first batch of a log.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The previous hash in the first batch of a log.
    pub const ZERO: Hash = Hash([0; 32]);
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseHashError;

impl fmt::Display for ParseHashError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a hash is 64 hexadecimal digits")
    }
}

impl std::error::Error for ParseHashError {}

impl FromStr for Hash {
    type Err = ParseHashError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let digits = text.as_bytes();
        if digits.len() != 64 {
            return Err(ParseHashError);
        }
        let mut hash = [0; 32];
        for (byte, pair) in hash.iter_mut().zip(digits.chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Ok(Hash(hash))
    }
}

fn nibble(digit: u8) -> Result<u8, ParseHashError> {
    char::from(digit)
        .to_digit(16)
        .and_then(|value| u8::try_from(value).ok())
        .ok_or(ParseHashError)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_parses_back() {
        let hash = Hash(std::array::from_fn(|i| u8::try_from(i * 7 % 256).unwrap()));
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!("abc".parse::<Hash>(), Err(ParseHashError));
        assert_eq!("z".repeat(64).parse::<Hash>(), Err(ParseHashError));
    }
}
