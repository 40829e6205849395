//! Values of scenarios: 64-bit integers as decimal text, bytes as an object, the rest as JSON has it.

use annals_def::{DataType, Step, Value};
use serde_json::{Map, Value as Json, json};

/// A value as JSON.
pub(super) fn to_json(data_type: &DataType, value: &Value) -> Json {
    match (value, data_type) {
        (Value::Int(number), DataType::Int64) => json!(number.to_string()),
        (Value::UInt(number), DataType::UInt64) => json!(number.to_string()),
        (Value::Int(number), _) => json!(number),
        (Value::UInt(number), _) => json!(number),
        (Value::Float32(number), _) => json!(f64::from(*number)),
        (Value::Float64(number), _) => json!(number),
        (Value::Bytes(bytes) | Value::Opaque(bytes), _) => bytes_to_json(bytes),
        (Value::UdoRef(bytes), _) => bytes_to_json(bytes),
        (Value::Unicode(text), _) => json!(text),
        (Value::Vector2(numbers), _) => json!(numbers.map(f64::from)),
        (Value::Vector3(numbers), _) => json!(numbers.map(f64::from)),
        (Value::Vector4(numbers), _) => json!(numbers.map(f64::from)),
        (Value::Sequence(elements), DataType::Array(sequence) | DataType::Tuple(sequence)) => {
            Json::Array(elements.iter().map(|element| to_json(&sequence.of, element)).collect())
        }
        (Value::Dict(values), DataType::FixedDict(dict)) => {
            let fields = dict.fields.iter().zip(values);
            let fields = fields.map(|(field, value)| (field.name.clone(), to_json(&field.data_type, value)));
            Json::Object(fields.collect())
        }
        // Clients see no mailboxes.
        (Value::Mailbox(_) | Value::None, _) => Json::Null,
        (Value::Sequence(_) | Value::Dict(_), _) => json!({ "mismatch": value.to_string() }),
    }
}

/// Bytes as JSON.
pub(super) fn bytes_to_json(bytes: &[u8]) -> Json {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    json!({ "bytes": digits })
}

/// An argument of a call. What does not fit the type is passed on as what it is: the library has to refuse it.
pub(super) fn from_json(data_type: Option<&DataType>, json: &Json) -> Value {
    match json {
        Json::String(text) => text_value(data_type, text),
        Json::Number(number) => number_value(data_type, number),
        Json::Array(elements) => {
            let of = match data_type {
                Some(DataType::Array(sequence) | DataType::Tuple(sequence)) => Some(&sequence.of),
                _ => None,
            };
            Value::Sequence(elements.iter().map(|element| from_json(of, element)).collect())
        }
        Json::Object(fields) => object_value(data_type, fields),
        Json::Bool(is) => Value::UInt(u64::from(*is)),
        Json::Null => Value::None,
    }
}

fn text_value(data_type: Option<&DataType>, text: &str) -> Value {
    let parsed = match data_type {
        Some(DataType::Int64) => text.parse().ok().map(Value::Int),
        Some(DataType::UInt64) => text.parse().ok().map(Value::UInt),
        _ => None,
    };
    parsed.unwrap_or_else(|| Value::Unicode(text.to_owned()))
}

fn number_value(data_type: Option<&DataType>, number: &serde_json::Number) -> Value {
    let is_unsigned = matches!(
        data_type,
        Some(DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64)
    );
    match (data_type, number.as_u64(), number.as_i64(), number.as_f64()) {
        #[expect(clippy::cast_possible_truncation, reason = "the type has this precision")]
        (Some(DataType::Float32), _, _, Some(number)) => Value::Float32(number as f32),
        (Some(DataType::Float64), _, _, Some(number)) => Value::Float64(number),
        (_, Some(number), _, _) if is_unsigned => Value::UInt(number),
        (_, _, Some(number), _) => Value::Int(number),
        (_, _, _, number) => Value::Float64(number.unwrap_or_default()),
    }
}

fn object_value(data_type: Option<&DataType>, fields: &Map<String, Json>) -> Value {
    if let (1, Some(Json::String(digits))) = (fields.len(), fields.get("bytes")) {
        let bytes = digits.as_bytes().chunks(2).map(|pair| {
            let pair = std::str::from_utf8(pair).ok()?;
            u8::from_str_radix(pair, 16).ok()
        });
        return bytes.collect::<Option<_>>().map_or(Value::None, Value::Bytes);
    }
    match data_type {
        Some(DataType::FixedDict(dict)) => {
            let values = dict.fields.iter().map(|field| {
                let json = fields.get(&field.name).unwrap_or(&Json::Null);
                from_json(Some(&field.data_type), json)
            });
            Value::Dict(values.collect())
        }
        _ => Value::Dict(fields.values().map(|field| from_json(None, field)).collect()),
    }
}

/// The part of a value to which steps lead, and its type.
pub(super) fn part_at<'v>(
    data_type: &'v DataType,
    value: &'v Value,
    steps: &[Step],
) -> Option<(&'v DataType, &'v Value)> {
    steps.iter().try_fold((data_type, value), |(data_type, value), step| {
        match (data_type, value, step) {
            (DataType::Array(sequence), Value::Sequence(elements), Step::Element(index)) => {
                Some((&sequence.of, elements.get(*index)?))
            }
            (DataType::FixedDict(dict), Value::Dict(values), Step::Field(name)) => {
                let index = dict.fields.iter().position(|field| field.name == *name)?;
                Some((&dict.fields[index].data_type, values.get(index)?))
            }
            _ => None,
        }
    })
}

/// Steps as JSON.
pub(super) fn path_to_json(steps: &[Step]) -> Json {
    let steps = steps.iter().map(|step| match step {
        Step::Element(index) => json!(index),
        Step::Field(name) => json!(name),
    });
    Json::Array(steps.collect())
}
