//! Values of properties as JSON.

use annals_def::{DataType, Value};
use serde_json::json;

/// Numbers and text as they are, fields by name; text that is not valid UTF-8 as its bytes, and values without a JSON
/// form as their display text.
pub(crate) fn value_to_json(data_type: &DataType, value: &Value) -> serde_json::Value {
    match (data_type, value) {
        (_, Value::Int(number)) => json!(number),
        (_, Value::UInt(number)) => json!(number),
        (_, Value::Float32(number)) => json!(number),
        (_, Value::Float64(number)) => json!(number),
        (_, Value::Unicode(text)) => json!(text),
        (_, Value::Bytes(bytes)) => match std::str::from_utf8(bytes) {
            Ok(text) => json!(text),
            Err(_) => json!({ "bytes": bytes }),
        },
        (_, Value::None | Value::Mailbox(None)) => serde_json::Value::Null,
        (DataType::Array(sequence) | DataType::Tuple(sequence), Value::Sequence(values)) => {
            values.iter().map(|value| value_to_json(&sequence.of, value)).collect()
        }
        (DataType::FixedDict(dict), Value::Dict(values)) => {
            let fields = dict.fields.iter().zip(values);
            let named = fields.map(|(field, value)| (field.name.clone(), value_to_json(&field.data_type, value)));
            serde_json::Value::Object(named.collect())
        }
        (_, value) => json!(value.to_string()),
    }
}
