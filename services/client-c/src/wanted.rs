//! Conversion of values as C makes them to those of a declared type: C has one kind of integer, of text and of list where
//! definitions have several.

use annals_def::{DataType, Value};

/// The value as one of this type, if it means the same there; else as it is, so that the check of the call names it.
pub(crate) fn wanted(value: &Value, data_type: &DataType) -> Value {
    converted(value, data_type).unwrap_or_else(|| value.clone())
}

fn converted(value: &Value, data_type: &DataType) -> Option<Value> {
    use DataType as T;
    use Value as V;
    Some(match (data_type, value) {
        (T::Int8 | T::Int16 | T::Int32 | T::Int64, V::UInt(number)) => V::Int(i64::try_from(*number).ok()?),
        (T::UInt8 | T::UInt16 | T::UInt32 | T::UInt64, V::Int(number)) => V::UInt(u64::try_from(*number).ok()?),
        (T::Float32, number) => V::Float32(as_float(number)? as f32),
        (T::Float64, number) => V::Float64(as_float(number)?),
        (T::String | T::Blob, V::Unicode(text)) => V::Bytes(text.clone().into_bytes()),
        (T::Unicode, V::Bytes(bytes)) => V::Unicode(String::from_utf8(bytes.clone()).ok()?),
        (T::UdoRef, V::Bytes(bytes)) => V::UdoRef(bytes.as_slice().try_into().ok()?),
        (T::Python(_) | T::UserType(_), V::Bytes(bytes)) => V::Opaque(bytes.clone()),
        (T::Mailbox, V::None) => V::Mailbox(None),
        (T::Array(sequence) | T::Tuple(sequence), V::Sequence(values)) => {
            V::Sequence(values.iter().map(|value| wanted(value, &sequence.of)).collect())
        }
        (T::FixedDict(dict), V::Sequence(values) | V::Dict(values)) if values.len() == dict.fields.len() => {
            let fields = dict.fields.iter().zip(values);
            V::Dict(fields.map(|(field, value)| wanted(value, &field.data_type)).collect())
        }
        _ => return None,
    })
}

fn as_float(value: &Value) -> Option<f64> {
    match value {
        Value::Int(number) => Some(*number as f64),
        Value::UInt(number) => Some(*number as f64),
        Value::Float32(number) => Some(f64::from(*number)),
        Value::Float64(number) => Some(*number),
        _ => None,
    }
}
