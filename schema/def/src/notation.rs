//! Values as text, the notation that `<Default>` and data files share: numbers, vectors and bytes, parsed and
//! formatted.
//!
//! Formatted values parse to the same value, to the bit.

use std::fmt::{Display, Write as _};
use std::str::FromStr;

/// The 64 digits of base 64 (RFC 4648).
const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Parses an integer, decimal or hexadecimal after `0x`.
#[must_use]
pub fn integer(text: &str) -> Option<i128> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let Some(digits) = digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) else {
        return text.parse().ok();
    };
    // No sign is allowed behind `0x`.
    let number = u64::from_str_radix(digits, 16)
        .ok()
        .filter(|_| !digits.starts_with('+'));
    let number = number.map(i128::from)?;
    Some(if text.starts_with('-') { -number } else { number })
}

/// Parses a finite number; words such as `inf` and `nan` are rejected.
#[must_use]
pub fn number<F: FromStr + Into<f64> + Copy>(text: &str) -> Option<F> {
    let is_number = text.chars().all(|c| c.is_ascii_digit() || "+-.eE".contains(c));
    let number = text.parse().ok().filter(|_| is_number);
    number.filter(|&number: &F| number.into().is_finite())
}

/// Parses numbers separated by blanks or commas, with or without parentheses.
#[must_use]
pub fn vector<const N: usize>(text: &str) -> Option<[f32; N]> {
    let inner = text.trim_matches(['(', ')', '[', ']']);
    let mut parts = [0.0; N];
    let mut words = inner
        .split(|c: char| c.is_whitespace() || c == ',')
        .filter(|word| !word.is_empty());
    for part in &mut parts {
        *part = number(words.next()?)?;
    }
    words.next().is_none().then_some(parts)
}

/// Parses bytes in base 64 (RFC 4648), with blanks anywhere and optional padding.
#[must_use]
pub fn base64(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut bits, mut held) = (0_u32, 0);
    for c in text.trim_end_matches('=').bytes().filter(|c| !c.is_ascii_whitespace()) {
        let six = match c {
            b'A'..=b'Z' => c - b'A',
            b'a'..=b'z' => c - b'a' + 26,
            b'0'..=b'9' => c - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = bits << 6 | u32::from(six);
        held += 6;
        if held >= 8 {
            held -= 8;
            bytes.push((bits >> held).to_le_bytes()[0]);
        }
    }
    // Six remaining bits would be a character that begins no byte.
    (held < 6).then_some(bytes)
}

/// Formats a finite number with six digits behind the point, as the predecessors do; with more digits if six would
/// parse to another number. `None` if it is not finite.
#[must_use]
pub fn float32(number: f32) -> Option<String> {
    number.is_finite().then(|| with_digits(number, 6))
}

/// The same with 17 digits behind the point.
#[must_use]
pub fn float64(number: f64) -> Option<String> {
    number.is_finite().then(|| with_digits(number, 17))
}

fn with_digits<F: Display + FromStr + PartialEq + Copy>(number: F, digits: usize) -> String {
    let usual = format!("{number:.digits$}");
    match usual.parse() {
        Ok(read) if number == read => usual,
        Ok(_) | Err(_) => number.to_string(),
    }
}

/// Formats the parts of a vector with blanks between them. `None` if one is not finite.
#[must_use]
pub fn parts(vector: &[f32]) -> Option<String> {
    let parts: Option<Vec<String>> = vector.iter().map(|&part| float32(part)).collect();
    parts.map(|parts| parts.join(" "))
}

/// Formats bytes in base 64 with padding, on one line.
#[must_use]
pub fn to_base64(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let bits = three.iter().fold(0_u32, |bits, &byte| bits << 8 | u32::from(byte)) << (8 * (3 - three.len()));
        for place in 0..4 {
            let digit = DIGITS[(bits >> (18 - 6 * place) & 0x3f) as usize];
            // One digit for each that contains bits of these bytes.
            let c = if place <= three.len() { char::from(digit) } else { '=' };
            let _ = text.write_char(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_read_with_and_without_padding() {
        assert_eq!(base64("SGVsbG8gV29ybGQh").as_deref(), Some(b"Hello World!".as_slice()));
        assert_eq!(base64("AAEC").as_deref(), Some([0, 1, 2].as_slice()));
        assert_eq!(base64("AA ==").as_deref(), Some([0].as_slice()));
        assert_eq!(base64("AAE").as_deref(), Some([0, 1].as_slice()));
        assert_eq!(base64("A"), None);
        assert_eq!(base64("A-EC"), None);
    }

    #[test]
    fn bytes_are_padded_to_whole_groups() {
        let written = |bytes: &[u8]| to_base64(bytes);
        assert_eq!(written(b""), "");
        assert_eq!(written(b"f"), "Zg==");
        assert_eq!(written(b"fo"), "Zm8=");
        assert_eq!(written(b"foobar"), "Zm9vYmFy");
        assert_eq!(
            base64(&written(&[0xff, 0xfe, 0xfd, 0])),
            Some(vec![0xff, 0xfe, 0xfd, 0])
        );
    }

    #[test]
    fn numbers_are_written_as_the_predecessors_do_unless_that_loses_something() {
        assert_eq!(float32(56.75).as_deref(), Some("56.750000"));
        assert_eq!(float32(34567.9).as_deref(), Some("34567.898438"));
        assert_eq!(float32(1e-30).as_deref(), Some("0.000000000000000000000000000001"));
        assert_eq!(float64(123_456.75).as_deref(), Some("123456.75000000000000000"));
        assert_eq!(float32(f32::NAN), None);
        assert_eq!(float64(f64::INFINITY), None);
        for number in [f32::MIN_POSITIVE, f32::MAX, -0.1, 16_777_217.0, 1e-45] {
            let text = float32(number).expect("finite");
            assert_eq!(super::number(&text), Some(number), "{text}");
        }
    }

    #[test]
    fn what_is_not_a_number_is_none() {
        for text in ["", "inf", "NaN", "1e999", "1,5", "0x10", "1 2"] {
            assert_eq!(number::<f64>(text), None, "{text}");
        }
        assert_eq!(number::<f32>("1e39"), None, "too large for 32 bits");
        for text in ["", "-", "0x", "0x+1", "1.0", "٣", "0x10000000000000000"] {
            assert_eq!(integer(text), None, "{text}");
        }
        assert_eq!(integer("-0x10"), Some(-16));
        assert_eq!(vector("(1, 2.5,-3)"), Some([1.0, 2.5, -3.0]));
        assert_eq!(vector::<3>("1 2"), None);
        assert_eq!(vector::<2>("1 2 3"), None);
    }
}
