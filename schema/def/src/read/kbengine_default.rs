//! The value that KBEngine reads from the text of a `<Default>`.
//!
//! That engine rejects no text: it reads as far as it understands and uses zero, or an empty value, for the rest.
//! Numbers are read as C++ streams do, vectors are split at commas, and the text of an ARRAY or a FIXED_DICT is a
//! Python expression, of which this module understands literals.

use super::python::{self, Literal};
use crate::{
    check::check,
    data_type::{DataType, FixedDict},
    value::Value,
};

/// The initial value in the engine.
pub(super) struct Made {
    pub(super) value: Value,
    pub(super) from: Origin,
}

/// The relation of a value to the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Origin {
    /// It is the value of the text.
    Text,
    /// The engine uses it instead.
    Engine,
    /// The engine evaluates the text, which this module cannot.
    Nothing,
}

impl Origin {
    fn text_if(is_as_written: bool) -> Self {
        if is_as_written { Self::Text } else { Self::Engine }
    }
}

/// The value that the engine reads from a text; `None` for a type whose values it keeps as text, or does not have.
pub(super) fn made(data_type: &DataType, text: &str) -> Option<Made> {
    let value = match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => Value::Int(signed(data_type, text)),
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            Value::UInt(unsigned(data_type, text))
        }
        DataType::Float32 => {
            let number: f32 = float_prefix(text).parse().unwrap_or(0.0);
            Value::Float32(number.clamp(f32::MIN, f32::MAX))
        }
        DataType::Float64 => {
            let number: f64 = float_prefix(text).parse().unwrap_or(0.0);
            Value::Float64(number.clamp(f64::MIN, f64::MAX))
        }
        DataType::String => Value::string(text),
        DataType::Unicode => Value::Unicode(text.to_owned()),
        DataType::Blob => Value::Bytes(text.as_bytes().to_vec()),
        DataType::Vector2 => Value::Vector2(vector(text).unwrap_or_default()),
        DataType::Vector3 => Value::Vector3(vector(text).unwrap_or_default()),
        DataType::Vector4 => Value::Vector4(vector(text).unwrap_or_default()),
        DataType::Array(_) | DataType::Tuple(_) | DataType::FixedDict(_) => return Some(of_python(data_type, text)),
        DataType::Mailbox | DataType::UdoRef | DataType::Python(_) | DataType::UserType(_) => return None,
    };
    let is_as_written = match &value {
        Value::Int(number) => text.parse() == Ok(*number),
        Value::UInt(number) => text.parse() == Ok(*number),
        Value::Float32(_) | Value::Float64(_) => float_prefix(text) == text && text.parse::<f64>().is_ok(),
        Value::Vector2(_) => vector::<2>(text).is_some(),
        Value::Vector3(_) => vector::<3>(text).is_some(),
        Value::Vector4(_) => vector::<4>(text).is_some(),
        _ => true,
    };
    let from = Origin::text_if(is_as_written);
    Some(Made { value, from })
}

/// The digits at the start of a text, and whether a minus precedes them.
fn integer_prefix(text: &str) -> (bool, u128) {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
    let number = match &digits[..end] {
        "" => 0,
        digits => digits.parse().unwrap_or(u128::MAX),
    };
    (text.starts_with('-'), number)
}

/// A signed number: clamped to 32 or 64 bits, then truncated to its low bits.
fn signed(data_type: &DataType, text: &str) -> i64 {
    let (is_negative, number) = integer_prefix(text);
    let number = i128::try_from(number).unwrap_or(i128::MAX);
    let number = if is_negative { -number } else { number };
    let wide = i64::try_from(number).unwrap_or(if is_negative { i64::MIN } else { i64::MAX });
    let narrow = wide.clamp(i32::MIN.into(), i32::MAX.into());
    let [a, b, c, d, ..] = narrow.to_le_bytes();
    match data_type {
        DataType::Int8 => i8::from_le_bytes([a]).into(),
        DataType::Int16 => i16::from_le_bytes([a, b]).into(),
        DataType::Int32 => i32::from_le_bytes([a, b, c, d]).into(),
        _ => wide,
    }
}

/// An unsigned number: clamped to 32 or 64 bits, a negative one wrapped around, then truncated to its low bits.
fn unsigned(data_type: &DataType, text: &str) -> u64 {
    let (is_negative, number) = integer_prefix(text);
    let negated = |number: u64| if is_negative { number.wrapping_neg() } else { number };
    let wide = u64::try_from(number).map_or(u64::MAX, negated);
    let narrow = u32::try_from(number).map_or(
        u32::MAX,
        |number| {
            if is_negative { number.wrapping_neg() } else { number }
        },
    );
    let [a, b, ..] = narrow.to_le_bytes();
    match data_type {
        DataType::UInt8 => a.into(),
        DataType::UInt16 => u16::from_le_bytes([a, b]).into(),
        DataType::UInt32 => narrow.into(),
        _ => wide,
    }
}

/// The prefix of a text that a stream reads as a floating-point number.
fn float_prefix(text: &str) -> &str {
    let (mut has_point, mut has_exponent, mut has_digits, mut may_be_sign) = (false, false, false, true);
    for (at, c) in text.char_indices() {
        match c {
            '0'..='9' => has_digits = true,
            '+' | '-' if may_be_sign => {}
            '.' if !has_point && !has_exponent => has_point = true,
            'e' | 'E' if has_digits && !has_exponent => has_exponent = true,
            _ => return &text[..at],
        }
        may_be_sign = matches!(c, 'e' | 'E');
    }
    text
}

/// Numbers separated by commas, with blanks and parentheses anywhere.
fn vector<const N: usize>(text: &str) -> Option<[f32; N]> {
    let text = text.replace([' ', '(', ')'], "");
    let mut parts = [0.0; N];
    let mut words = text.split(',');
    for part in &mut parts {
        *part = match words.next()?.trim_start() {
            "" => 0.0,
            word => word.parse().ok().filter(|number: &f32| number.is_finite())?,
        };
    }
    words.next().is_none().then_some(parts)
}

/// The value of a Python expression; if it has another type, the engine's zero. The origin says whether the text is a
/// literal at all.
fn of_python(data_type: &DataType, text: &str) -> Made {
    let is_none = |dict: &FixedDict| dict.allow_none && text == "None";
    let literal = python::expression(text);
    let value = match data_type {
        DataType::FixedDict(dict) if is_none(dict) => Some(Value::None),
        _ => literal.as_ref().and_then(|literal| evaluated(data_type, literal)),
    };
    let value = value.filter(|value| check(data_type, value).is_ok());
    let from = match (&value, &literal) {
        (None, None) => Origin::Nothing,
        (value, _) => Origin::text_if(value.is_some()),
    };
    let value = value.unwrap_or_else(|| zero(data_type));
    Made { value, from }
}

/// The engine's initial value where there is no text; defaults of aliases do not count.
fn zero(data_type: &DataType) -> Value {
    match data_type {
        DataType::FixedDict(dict) if !dict.allow_none => {
            Value::Dict(dict.fields.iter().map(|field| zero(&field.data_type)).collect())
        }
        other => other.default_value(),
    }
}

/// The value of a literal of exactly this type; a whole number is not a float.
fn evaluated(data_type: &DataType, literal: &Literal) -> Option<Value> {
    match (data_type, literal) {
        (DataType::Array(sequence) | DataType::Tuple(sequence), Literal::List(items)) => {
            let values = items.iter().map(|item| evaluated(&sequence.of, item));
            Some(Value::Sequence(values.collect::<Option<_>>()?))
        }
        (DataType::FixedDict(dict), Literal::Dict(items)) => {
            let of_field = |name: &str| {
                items
                    .iter()
                    .rev()
                    .find(|(key, _)| *key == Literal::Text(name.to_owned()))
            };
            let is_known =
                |(key, _): &(Literal, Literal)| matches!(key, Literal::Text(name) if dict.field(name).is_some());
            let values = dict.fields.iter().map(|field| {
                let (_, literal) = of_field(&field.name)?;
                evaluated(&field.data_type, literal)
            });
            let values = values.collect::<Option<_>>()?;
            items.iter().all(is_known).then_some(Value::Dict(values))
        }
        (DataType::Vector2, Literal::List(items)) => floats(items).map(Value::Vector2),
        (DataType::Vector3, Literal::List(items)) => floats(items).map(Value::Vector3),
        (DataType::Vector4, Literal::List(items)) => floats(items).map(Value::Vector4),
        (DataType::Unicode, Literal::Text(text)) => Some(Value::Unicode(text.clone())),
        (DataType::String, Literal::Text(text)) => text.is_ascii().then(|| Value::string(text)),
        (DataType::Mailbox, Literal::Word(word)) => (word == "None").then_some(Value::Mailbox(None)),
        (DataType::Float32, Literal::Word(word)) => real(word).map(Value::Float32),
        (DataType::Float64, Literal::Word(word)) => real(word).map(Value::Float64),
        (_, Literal::Word(word)) => whole(data_type, word),
        _ => None,
    }
}

fn floats<const N: usize>(items: &[Literal]) -> Option<[f32; N]> {
    let number = |item: &Literal| match item {
        Literal::Word(word) => word.parse().ok().filter(|number: &f32| number.is_finite()),
        _ => None,
    };
    let numbers: Vec<f32> = items.iter().map(number).collect::<Option<_>>()?;
    numbers.try_into().ok()
}

/// A number with a point or an exponent.
fn real<F: std::str::FromStr>(word: &str) -> Option<F> {
    let is_real = word.contains(['.', 'e', 'E']) && float_prefix(word) == word;
    is_real.then(|| word.parse().ok()).flatten()
}

/// A whole number of an integer type; `check` checks its range.
fn whole(data_type: &DataType, word: &str) -> Option<Value> {
    let number = match word {
        "True" => 1,
        "False" => 0,
        word => crate::notation::integer(word)?,
    };
    match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => {
            i64::try_from(number).ok().map(Value::Int)
        }
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => {
            u64::try_from(number).ok().map(Value::UInt)
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_type::MAX_TYPE_DEPTH;

    fn shown(data_type: &DataType, text: &str) -> String {
        let made = made(data_type, text).expect("the engine has such values");
        let mark = if made.from == Origin::Text { "" } else { " instead" };
        format!("{}{mark}", made.value)
    }

    #[test]
    fn numbers_are_read_as_far_as_they_are_ones() {
        for (data_type, text, expected) in [
            (DataType::Int32, "7", "7"),
            (DataType::Int32, "-7", "-7"),
            (DataType::Int32, "1.5", "1 instead"),
            (DataType::Int32, "12abc", "12 instead"),
            (DataType::Int32, "abc", "0 instead"),
            (DataType::Int32, "0xff", "0 instead"),
            (DataType::Int32, "true", "0 instead"),
            (DataType::Int32, "3000000000", "2147483647 instead"),
            (DataType::Int8, "300", "44 instead"),
            (DataType::Int64, "-99999999999999999999", "-9223372036854775808 instead"),
            (DataType::UInt8, "256", "0 instead"),
            (DataType::UInt8, "-1", "255 instead"),
            (DataType::UInt16, "70000", "4464 instead"),
            (DataType::UInt32, "-5", "4294967291 instead"),
            (DataType::UInt32, "5000000000", "4294967295 instead"),
            (DataType::UInt64, "-1", "18446744073709551615 instead"),
            (DataType::Float32, "1.5", "1.5"),
            (DataType::Float32, "1.5f", "1.5 instead"),
            (DataType::Float32, "1,5", "1 instead"),
            (DataType::Float32, "1e", "0 instead"),
            (DataType::Float32, "inf", "0 instead"),
            (DataType::Float64, "-.5e1", "-5"),
        ] {
            assert_eq!(shown(&data_type, text), expected, "{data_type} {text}");
        }
        assert_eq!(
            made(&DataType::Float32, "1e99").map(|made| made.value),
            Some(Value::Float32(f32::MAX))
        );
    }

    #[test]
    fn vectors_have_commas() {
        for (text, expected) in [
            ("(1, 2.5, -3)", "(1, 2.5, -3)"),
            ("1,2,3", "(1, 2, 3)"),
            ("1,,3", "(1, 0, 3)"),
            ("10", "(0, 0, 0) instead"),
            ("1 2 3", "(0, 0, 0) instead"),
            ("1,2", "(0, 0, 0) instead"),
            ("1,2,x", "(0, 0, 0) instead"),
        ] {
            assert_eq!(shown(&DataType::Vector3, text), expected, "{text}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = "[".repeat(MAX_TYPE_DEPTH * 50);
        assert!(python::expression(&deep).is_none());
    }
}
