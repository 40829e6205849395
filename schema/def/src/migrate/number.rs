//! Conversion of numbers between types: exact, or none.

use crate::{data_type::DataType, value::Value};

/// Bits of a whole number that a 32-bit float represents exactly.
const FLOAT32_BITS: u32 = f32::MANTISSA_DIGITS;

/// Bits of a whole number that a 64-bit float represents exactly.
const FLOAT64_BITS: u32 = f64::MANTISSA_DIGITS;

/// The range of a number type.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Signed integers, above and below 0, with this many bits beside the sign.
    Signed(u32),
    /// Unsigned integers, from 0, of this many bits.
    Unsigned(u32),
    /// 32-bit or 64-bit floats, which represent whole numbers of this many bits.
    Float(u32),
}

fn kind(data_type: &DataType) -> Option<Kind> {
    Some(match data_type {
        DataType::Int8 => Kind::Signed(7),
        DataType::Int16 => Kind::Signed(15),
        DataType::Int32 => Kind::Signed(31),
        DataType::Int64 => Kind::Signed(63),
        DataType::UInt8 => Kind::Unsigned(8),
        DataType::UInt16 => Kind::Unsigned(16),
        DataType::UInt32 => Kind::Unsigned(32),
        DataType::UInt64 => Kind::Unsigned(64),
        DataType::Float32 => Kind::Float(FLOAT32_BITS),
        DataType::Float64 => Kind::Float(FLOAT64_BITS),
        _ => return None,
    })
}

/// Whether the new type contains all numbers of the old one; `None` if one of them is not a number type.
pub(super) fn widens(from: &DataType, to: &DataType) -> Option<bool> {
    Some(match (kind(from)?, kind(to)?) {
        (Kind::Signed(old), Kind::Signed(new) | Kind::Float(new))
        | (Kind::Unsigned(old), Kind::Unsigned(new) | Kind::Signed(new) | Kind::Float(new))
        | (Kind::Float(old), Kind::Float(new)) => old <= new,
        (Kind::Signed(_), Kind::Unsigned(_)) | (Kind::Float(_), _) => false,
    })
}

/// Whether both types have the same representation, so that a value in range needs no conversion.
pub(super) fn is_same_kind(from: &DataType, to: &DataType) -> bool {
    matches!(
        (kind(from), kind(to)),
        (Some(Kind::Signed(_)), Some(Kind::Signed(_))) | (Some(Kind::Unsigned(_)), Some(Kind::Unsigned(_)))
    )
}

/// The equal number of type `to`, if there is one. Minus zero equals zero, and all NaNs are equal.
pub(super) fn convert(value: &Value, to: &DataType) -> Option<Value> {
    match *value {
        Value::Int(number) => from_whole(number.into(), to),
        Value::UInt(number) => from_whole(number.into(), to),
        Value::Float32(number) => from_float(number.into(), to),
        Value::Float64(number) => from_float(number, to),
        _ => None,
    }
}

fn from_whole(number: i128, to: &DataType) -> Option<Value> {
    match kind(to)? {
        Kind::Signed(_) => i64::try_from(number).ok().map(Value::Int),
        Kind::Unsigned(_) => u64::try_from(number).ok().map(Value::UInt),
        Kind::Float(FLOAT32_BITS) => Some(number as f32)
            .filter(|float| *float as i128 == number)
            .map(Value::Float32),
        Kind::Float(_) => Some(number as f64)
            .filter(|float| *float as i128 == number)
            .map(Value::Float64),
    }
}

fn from_float(number: f64, to: &DataType) -> Option<Value> {
    match kind(to)? {
        Kind::Float(FLOAT32_BITS) => Some(number as f32)
            .filter(|float| f64::from(*float) == number || number.is_nan())
            .map(Value::Float32),
        Kind::Float(_) => Some(Value::Float64(number)),
        // Whole numbers within 64 bits; others are rejected by the range of the type.
        Kind::Signed(_) | Kind::Unsigned(_) if number.fract() == 0.0 => from_whole(number as i128, to),
        Kind::Signed(_) | Kind::Unsigned(_) => None,
    }
}
