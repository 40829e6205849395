//! Values as the log keeps them: self-describing, so that an auditor needs no schema to read a batch.
//!
//! ```text
//! value = tag:u8 payload
//! ```
//! The tag names the variant; integers are LEB128 (signed ones zigzag), floats and vectors little-endian bits.

use annals_def::Value;
use annals_ids::{EntityId, Mailbox, OwnerId, Part, TypeId};

use crate::encoding::{Malformed, Reader, number_length, put_bytes, put_number};

/// Maximum nesting depth of values; the compiler of `.def` files allows no deeper type.
pub const MAX_DEPTH: usize = 32;

/// Appends a value.
pub fn put_value(out: &mut Vec<u8>, value: &Value) {
    match value {
        Value::None => out.push(0),
        Value::Int(value) => {
            out.push(1);
            put_number(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
        }
        Value::UInt(value) => {
            out.push(2);
            put_number(out, *value);
        }
        Value::Float32(value) => {
            out.push(3);
            out.extend(value.to_bits().to_le_bytes());
        }
        Value::Float64(value) => {
            out.push(4);
            out.extend(value.to_bits().to_le_bytes());
        }
        Value::Bytes(value) => {
            out.push(5);
            put_bytes(out, value);
        }
        Value::Unicode(value) => {
            out.push(6);
            put_bytes(out, value.as_bytes());
        }
        Value::Vector2(axes) => put_axes(out, 7, axes),
        Value::Vector3(axes) => put_axes(out, 8, axes),
        Value::Vector4(axes) => put_axes(out, 9, axes),
        Value::Mailbox(None) => out.push(10),
        Value::Mailbox(Some(mailbox)) => {
            out.push(11);
            put_mailbox(out, mailbox);
        }
        Value::UdoRef(guid) => {
            out.push(12);
            out.extend(guid);
        }
        Value::Opaque(value) => {
            out.push(13);
            put_bytes(out, value);
        }
        Value::Sequence(values) => {
            out.push(14);
            put_values(out, values);
        }
        Value::Dict(values) => {
            out.push(15);
            put_values(out, values);
        }
    }
}

/// Appends values, prefixed with their count.
pub fn put_values(out: &mut Vec<u8>, values: &[Value]) {
    put_number(out, values.len() as u64);
    for value in values {
        put_value(out, value);
    }
}

/// Number of bytes that [`put_value`] appends.
#[must_use]
pub fn value_length(value: &Value) -> usize {
    let with_length = |length: usize| number_length(length as u64) + length;
    let tagged = match value {
        Value::None | Value::Mailbox(None) => 0,
        Value::Int(value) => number_length(((value << 1) ^ (value >> 63)).cast_unsigned()),
        Value::UInt(value) => number_length(*value),
        Value::Float32(_) => 4,
        Value::Float64(_) | Value::Vector2(_) => 8,
        Value::Vector3(_) => 12,
        Value::Vector4(_) | Value::UdoRef(_) => 16,
        Value::Bytes(value) | Value::Opaque(value) => with_length(value.len()),
        Value::Unicode(value) => with_length(value.len()),
        Value::Mailbox(Some(mailbox)) => {
            let numbers = [mailbox.entity.0, mailbox.home.0.into(), mailbox.type_id.0.into()];
            1 + numbers.into_iter().map(number_length).sum::<usize>()
        }
        Value::Sequence(values) | Value::Dict(values) => {
            number_length(values.len() as u64) + values.iter().map(value_length).sum::<usize>()
        }
    };
    1 + tagged
}

/// How deep a value is nested: 0 for one that contains no others. A value deeper than [`MAX_DEPTH`] cannot be read.
#[must_use]
pub fn value_depth(value: &Value) -> usize {
    match value {
        Value::Sequence(values) | Value::Dict(values) => 1 + values.iter().map(value_depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn put_axes(out: &mut Vec<u8>, tag: u8, axes: &[f32]) {
    out.push(tag);
    for axis in axes {
        out.extend(axis.to_bits().to_le_bytes());
    }
}

/// Appends a mailbox.
pub fn put_mailbox(out: &mut Vec<u8>, mailbox: &Mailbox) {
    out.push(match mailbox.part {
        Part::Base => 0,
        Part::Cell => 1,
    });
    put_number(out, mailbox.entity.0);
    put_number(out, u64::from(mailbox.home.0));
    put_number(out, u64::from(mailbox.type_id.0));
}

/// Takes a value.
///
/// # Errors
/// When it is not in its one encoding, or nests deeper than [`MAX_DEPTH`].
pub fn take_value(reader: &mut Reader<'_>) -> Result<Value, Malformed> {
    take_nested(reader, 0)
}

/// Takes values, prefixed with their count.
///
/// # Errors
/// As [`take_value`].
pub fn take_values(reader: &mut Reader<'_>) -> Result<Vec<Value>, Malformed> {
    take_nested_values(reader, 0)
}

fn take_nested(reader: &mut Reader<'_>, depth: usize) -> Result<Value, Malformed> {
    let wrong = reader.malformed("value");
    if depth > MAX_DEPTH {
        return Err(reader.malformed("value nesting"));
    }
    Ok(match reader.byte("value")? {
        0 => Value::None,
        1 => {
            let zigzag = reader.number("integer")?;
            Value::Int((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
        }
        2 => Value::UInt(reader.number("integer")?),
        3 => Value::Float32(take_float(reader)?),
        4 => Value::Float64(f64::from_bits(u64::from_le_bytes(reader.array("float")?))),
        5 => Value::Bytes(reader.bytes("bytes")?.to_vec()),
        6 => {
            let text = std::str::from_utf8(reader.bytes("text")?);
            Value::Unicode(text.map_err(|_| wrong)?.to_owned())
        }
        7 => Value::Vector2([take_float(reader)?, take_float(reader)?]),
        8 => Value::Vector3([take_float(reader)?, take_float(reader)?, take_float(reader)?]),
        9 => Value::Vector4([
            take_float(reader)?,
            take_float(reader)?,
            take_float(reader)?,
            take_float(reader)?,
        ]),
        10 => Value::Mailbox(None),
        11 => Value::Mailbox(Some(take_mailbox(reader)?)),
        12 => Value::UdoRef(reader.array("reference")?),
        13 => Value::Opaque(reader.bytes("opaque value")?.to_vec()),
        14 => Value::Sequence(take_nested_values(reader, depth + 1)?),
        15 => Value::Dict(take_nested_values(reader, depth + 1)?),
        _ => return Err(wrong),
    })
}

fn take_nested_values(reader: &mut Reader<'_>, depth: usize) -> Result<Vec<Value>, Malformed> {
    let count = reader.count(1, "value count")?;
    (0..count).map(|_| take_nested(reader, depth)).collect()
}

fn take_float(reader: &mut Reader<'_>) -> Result<f32, Malformed> {
    Ok(f32::from_bits(u32::from_le_bytes(reader.array("float")?)))
}

/// Takes a mailbox.
///
/// # Errors
/// When its part is unknown or a number too large.
pub fn take_mailbox(reader: &mut Reader<'_>) -> Result<Mailbox, Malformed> {
    let wrong = reader.malformed("mailbox");
    let part = match reader.byte("mailbox")? {
        0 => Part::Base,
        1 => Part::Cell,
        _ => return Err(wrong),
    };
    Ok(Mailbox {
        part,
        entity: EntityId(reader.number("entity")?),
        home: OwnerId(reader.narrow("owner")?),
        type_id: TypeId(reader.narrow("type")?),
    })
}

#[cfg(test)]
mod tests {
    use annals_def::{generate, generate_type, split_mix};

    use super::*;

    #[test]
    fn the_length_of_a_value_is_its_encoded_length() {
        for seed in 0..2_000 {
            let mut dice = split_mix(seed);
            let value = generate(&generate_type(4, &mut dice), &mut dice);
            let mut bytes = Vec::new();
            put_value(&mut bytes, &value);
            assert_eq!(value_length(&value), bytes.len(), "seed {seed}: {value}");
        }
    }
}
