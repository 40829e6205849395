//! Types and defaults in Rust syntax.

use annals_def::{DataType, Sequence, UDO_REF_SIZE, Value};

use crate::codegen::shapes::Shapes;

/// Maximum declared size for a Rust array: the longest for which Rust implements `Default`.
const LONGEST_ARRAY: u32 = 32;

/// The Rust type of a type.
pub(super) fn spelled(data_type: &DataType, shapes: &Shapes) -> String {
    let simple = match data_type {
        DataType::Int8 => "i8",
        DataType::Int16 => "i16",
        DataType::Int32 => "i32",
        DataType::Int64 => "i64",
        DataType::UInt8 => "u8",
        DataType::UInt16 => "u16",
        DataType::UInt32 => "u32",
        DataType::UInt64 => "u64",
        DataType::Float32 => "f32",
        DataType::Float64 => "f64",
        DataType::String | DataType::Blob => "Bytes",
        DataType::Unicode => "String",
        DataType::Vector2 => "Vector2",
        DataType::Vector3 => "Vector3",
        DataType::Vector4 => "Vector4",
        DataType::Mailbox => "Option<Mailbox>",
        DataType::UdoRef => "UdoRef",
        DataType::Python(_) | DataType::UserType(_) => "Opaque",
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            let of = spelled(&sequence.of, shapes);
            return match sequence.size {
                None => format!("Vec<{of}>"),
                Some(size) if size <= LONGEST_ARRAY => format!("[{of}; {size}]"),
                Some(size) => format!("Exactly<{of}, {size}>"),
            };
        }
        DataType::FixedDict(dict) => {
            let name = shapes.get(dict).map_or("()", |shape| shape.name.as_str());
            return if dict.allow_none {
                format!("Option<{name}>")
            } else {
                name.to_owned()
            };
        }
    };
    simple.to_owned()
}

/// The type that edits a value in place, with the lifetimes of a method; `None` if only the whole value can be
/// replaced.
pub(super) fn editor(data_type: &DataType, shapes: &Shapes) -> Option<String> {
    match data_type {
        DataType::Array(sequence) => Some(format!("ArrayEdit<'_, 'd, {}>", spelled(&sequence.of, shapes))),
        DataType::FixedDict(dict) => shapes.get(dict).map(|shape| format!("{}<'_, 'd>", shape.edit_name)),
        _ => None,
    }
}

/// Whether the value equals `Default` of its Rust type.
pub(super) fn is_rust_default(data_type: &DataType, value: &Value) -> bool {
    match (data_type, value) {
        (DataType::Array(sequence) | DataType::Tuple(sequence), Value::Sequence(values)) => values
            .iter()
            .all(|value| sequence.size.is_some() && is_rust_default(&sequence.of, value)),
        (DataType::FixedDict(dict), value) if dict.allow_none => *value == Value::None,
        (DataType::FixedDict(dict), value) => *value == dict.filled(),
        _ => *value == data_type.default_value(),
    }
}

/// An expression for a value of the type.
pub(super) fn literal(data_type: &DataType, value: &Value, shapes: &Shapes) -> String {
    match (data_type, value) {
        (_, Value::Int(number)) => number.to_string(),
        (_, Value::UInt(number)) => number.to_string(),
        (_, Value::Float32(number)) => float32(*number),
        (_, Value::Float64(number)) if number.is_finite() => format!("{number:?}"),
        (_, Value::Float64(number)) => format!("f64::from_bits({:#x})", number.to_bits()),
        (_, Value::Bytes(bytes)) => format!("Bytes({})", byte_string(bytes)),
        (_, Value::Opaque(bytes)) => format!("Opaque({})", byte_string(bytes)),
        (_, Value::Unicode(text)) if text.is_empty() => "String::new()".to_owned(),
        (_, Value::Unicode(text)) => format!("{text:?}.to_owned()"),
        (_, Value::Vector2(parts)) => format!("Vector2([{}])", joined(parts.iter().map(|part| float32(*part)))),
        (_, Value::Vector3(parts)) => format!("Vector3([{}])", joined(parts.iter().map(|part| float32(*part)))),
        (_, Value::Vector4(parts)) => format!("Vector4([{}])", joined(parts.iter().map(|part| float32(*part)))),
        // Declarations can give no other value.
        (_, Value::Mailbox(_) | Value::None) => "None".to_owned(),
        (_, Value::UdoRef(guid)) if *guid == [0; UDO_REF_SIZE] => format!("UdoRef([0; {UDO_REF_SIZE}])"),
        (_, Value::UdoRef(guid)) => format!("UdoRef([{}])", joined(guid.iter().map(u8::to_string))),
        (DataType::Array(sequence) | DataType::Tuple(sequence), Value::Sequence(values)) => {
            elements(sequence, values, shapes)
        }
        (DataType::FixedDict(dict), Value::Dict(values)) => {
            let Some(shape) = shapes.get(dict) else {
                return "()".to_owned();
            };
            let filled = if *value == dict.filled() {
                format!("{}::default()", shape.name)
            } else {
                let fields = dict.fields.iter().zip(values).zip(&shape.field_names);
                let fields = fields
                    .map(|((field, value), name)| format!("{name}: {}", literal(&field.data_type, value, shapes)));
                format!("{} {{ {} }}", shape.name, joined(fields))
            };
            if dict.allow_none {
                format!("Some({filled})")
            } else {
                filled
            }
        }
        _ => "Default::default()".to_owned(),
    }
}

fn elements(sequence: &Sequence, values: &[Value], shapes: &Shapes) -> String {
    let all = || joined(values.iter().map(|value| literal(&sequence.of, value, shapes)));
    let same = match values {
        [first, rest @ ..] if !rest.is_empty() && rest.iter().all(|value| value == first) => {
            Some(literal(&sequence.of, first, shapes))
        }
        _ => None,
    };
    match (sequence.size, same) {
        (None, _) if values.is_empty() => "Vec::new()".to_owned(),
        (None, Some(same)) => format!("vec![{same}; {}]", values.len()),
        (None, None) => format!("vec![{}]", all()),
        (Some(size), Some(same)) if size > LONGEST_ARRAY => format!("Exactly::all(&{same})"),
        (Some(size), None) if size > LONGEST_ARRAY => format!("Exactly::from([{}])", all()),
        (Some(size), Some(same)) if is_copy(&sequence.of) => format!("[{same}; {size}]"),
        (Some(_), Some(same)) => format!("std::array::from_fn(|_| {same})"),
        (Some(_), None) => format!("[{}]", all()),
    }
}

/// Whether the Rust type is `Copy`.
fn is_copy(data_type: &DataType) -> bool {
    match data_type {
        DataType::String
        | DataType::Blob
        | DataType::Unicode
        | DataType::Python(_)
        | DataType::UserType(_)
        | DataType::FixedDict(_) => false,
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            sequence.size.is_some_and(|size| size <= LONGEST_ARRAY) && is_copy(&sequence.of)
        }
        _ => true,
    }
}

fn float32(number: f32) -> String {
    if number.is_finite() {
        format!("{number:?}")
    } else {
        format!("f32::from_bits({:#x})", number.to_bits())
    }
}

fn byte_string(bytes: &[u8]) -> String {
    if bytes.is_empty() {
        "Vec::new()".to_owned()
    } else {
        format!("b\"{}\".to_vec()", bytes.escape_ascii())
    }
}

fn joined(parts: impl Iterator<Item = String>) -> String {
    parts.collect::<Vec<_>>().join(", ")
}
