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

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use annals_def::{Field, FixedDict, Sequence, check};

    use super::*;

    #[test]
    fn values_become_those_of_the_declared_type() {
        let numbers = DataType::Array(Arc::new(Sequence::of(DataType::UInt8)));
        let dict = FixedDict::of(vec![
            Field::of("a", numbers.clone()),
            Field::of("b", DataType::String),
            Field::of("c", DataType::Float32),
        ]);
        let ints = Value::Sequence(vec![Value::Int(1), Value::UInt(2)]);
        let uints = Value::Sequence(vec![Value::UInt(1), Value::UInt(2)]);
        let text = Value::Unicode("x".to_owned());
        let bytes = Value::Bytes(b"x".to_vec());
        let guid = Value::Bytes(vec![7; 16]);
        for (given, data_type, expected) in [
            (Value::UInt(5), DataType::Int8, Value::Int(5)),
            (Value::Int(5), DataType::UInt64, Value::UInt(5)),
            (Value::Int(2), DataType::Float64, Value::Float64(2.0)),
            (Value::Float64(0.5), DataType::Float32, Value::Float32(0.5)),
            (text.clone(), DataType::Blob, bytes.clone()),
            (bytes.clone(), DataType::Unicode, text.clone()),
            (guid, DataType::UdoRef, Value::UdoRef([7; 16])),
            (Value::None, DataType::Mailbox, Value::Mailbox(None)),
            (ints.clone(), numbers.clone(), uints.clone()),
            (
                Value::Sequence(vec![ints, text, Value::Int(1)]),
                DataType::FixedDict(Arc::new(dict)),
                Value::Dict(vec![uints, bytes, Value::Float32(1.0)]),
            ),
        ] {
            let found = wanted(&given, &data_type);
            assert_eq!(found, expected, "{given:?} as {data_type}");
            assert_eq!(check(&data_type, &found), Ok(()), "{data_type}");
        }
    }

    #[test]
    fn a_value_that_does_not_fit_stays_as_it_is() {
        for (given, data_type) in [
            (Value::Int(-1), DataType::UInt8),
            (Value::UInt(u64::MAX), DataType::Int64),
            (Value::Float64(0.5), DataType::Int8),
            (Value::Bytes(vec![0xff]), DataType::Unicode),
            (Value::Bytes(vec![7; 15]), DataType::UdoRef),
            (Value::Unicode("1".to_owned()), DataType::Float32),
        ] {
            assert_eq!(wanted(&given, &data_type), given, "{data_type}");
        }
    }
}
