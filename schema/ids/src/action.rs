//! The identifier of an operator's action.

use std::{fmt, str::FromStr};

/// One operator action. The requesting tool picks it at random, so a repeated request takes effect once.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ActionId(pub u128);

impl fmt::Display for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

impl fmt::Debug for ActionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is not 32 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParseActionError;

impl fmt::Display for ParseActionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an action is 32 hexadecimal digits")
    }
}

impl std::error::Error for ParseActionError {}

impl FromStr for ActionId {
    type Err = ParseActionError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let are_digits = text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
        let number = are_digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        number.map(ActionId).ok_or(ParseActionError)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_and_parses_back() {
        let action = ActionId(0x00ab_cdef << 32);
        assert_eq!(action.to_string(), "000000000000000000abcdef00000000");
        assert_eq!(action.to_string().parse(), Ok(action));
        for wrong in [
            "",
            "abc",
            &"g".repeat(32),
            &format!("+{}", "1".repeat(31)),
            &"1".repeat(33),
        ] {
            assert_eq!(wrong.parse::<ActionId>(), Err(ParseActionError), "{wrong:?}");
        }
    }
}
