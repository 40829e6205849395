//! Oracle for the conversion of values: a simpler second implementation.

use annals_def::{DataType, Sequence, Value, check};
use annals_ids::{Mailbox, TypeId};

/// Maps old types to new ones.
pub(crate) type Numbers<'a> = &'a dyn Fn(TypeId) -> Option<TypeId>;

/// The converted value, if there is one.
pub(crate) fn crossed((from, to): (&DataType, &DataType), value: &Value, numbers: Numbers<'_>) -> Option<Value> {
    use DataType::{Array, Blob, FixedDict, Mailbox as Address, Python, String, Tuple, Unicode};
    let crossed = match (from, to, value) {
        (Address, Address, Value::Mailbox(mailbox)) => Value::Mailbox(mailbox.and_then(|mailbox| {
            let type_id = numbers(mailbox.type_id)?;
            Some(Mailbox { type_id, ..mailbox })
        })),
        (Array(old) | Tuple(old), Array(new) | Tuple(new), Value::Sequence(values)) => {
            Value::Sequence(elements((old, new), values, numbers)?)
        }
        (FixedDict(_), FixedDict(_), Value::None) => Value::None,
        (FixedDict(old), FixedDict(new), Value::Dict(values)) => {
            let field = |field: &annals_def::Field| match old.field(&field.name) {
                None => Some(field.default.clone()),
                Some((at, old)) => self::crossed((&old.data_type, &field.data_type), &values[at], numbers),
            };
            Value::Dict(new.fields.iter().map(field).collect::<Option<_>>()?)
        }
        (old, new, value) if old == new => value.clone(),
        (String | Blob, String | Blob, bytes) => bytes.clone(),
        (String | Blob, Unicode, Value::Bytes(bytes)) => {
            Value::Unicode(std::string::String::from_utf8(bytes.clone()).ok()?)
        }
        (Unicode, String | Blob, Value::Unicode(text)) => Value::Bytes(text.as_bytes().to_vec()),
        (Python(_), Python(annals_def::PythonKind::Any), opaque) => opaque.clone(),
        (_, new, value) => number(value, new)?,
    };
    check(to, &crossed).is_ok().then_some(crossed)
}

fn elements((old, new): (&Sequence, &Sequence), values: &[Value], numbers: Numbers<'_>) -> Option<Vec<Value>> {
    let mut values = values.to_vec();
    let mut fill = 0;
    if let (Some(before), Some(after)) = (old.size, new.size) {
        let cut = values.split_off((after as usize).min(values.len()));
        if cut.iter().any(|value| *value != old.element_default) {
            return None;
        }
        fill = after.saturating_sub(before) as usize;
    }
    let mut crossed = values
        .iter()
        .map(|value| self::crossed((&old.of, &new.of), value, numbers))
        .collect::<Option<Vec<_>>>()?;
    crossed.extend(vec![new.element_default.clone(); fill]);
    Some(crossed)
}

/// The equal number in the type `to`, found by trying.
fn number(value: &Value, to: &DataType) -> Option<Value> {
    let (whole, float) = match *value {
        Value::Int(number) => (Some(i128::from(number)), None),
        Value::UInt(number) => (Some(i128::from(number)), None),
        Value::Float32(number) => (None, Some(f64::from(number))),
        Value::Float64(number) => (None, Some(number)),
        _ => return None,
    };
    let whole = whole.or_else(|| float.filter(|float| float.fract() == 0.0).map(|float| float as i128));
    let candidates = [
        whole.and_then(|whole| i64::try_from(whole).ok()).map(Value::Int),
        whole.and_then(|whole| u64::try_from(whole).ok()).map(Value::UInt),
        Some(Value::Float32(
            float.map_or_else(|| whole.unwrap_or(0) as f32, |float| float as f32),
        )),
        Some(Value::Float64(float.unwrap_or_else(|| whole.unwrap_or(0) as f64))),
    ];
    let is_equal = |candidate: &Value| match *candidate {
        Value::Float32(found) => match float {
            Some(float) => f64::from(found) == float,
            None => Some(found as i128) == whole,
        },
        Value::Float64(found) => match float {
            Some(float) => found == float,
            None => Some(found as i128) == whole,
        },
        _ => true,
    };
    let mut fitting = candidates
        .into_iter()
        .flatten()
        .filter(|candidate| check(to, candidate).is_ok());
    fitting.find(is_equal)
}
