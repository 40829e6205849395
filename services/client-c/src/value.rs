//! Values of properties and arguments: read in place, and built for calls.

use std::{ffi::c_char, ptr};

use annals_def::{DataType, MAX_TYPE_DEPTH, Value};

use crate::{
    failure::{AnnalsError, Failure, answering, reporting},
    inputs::{AnnalsBytes, AnnalsPart, AnnalsText, borrow, borrow_mut, elements, give_up, part_number, put},
};

/// A value: of a property, of an argument, or of a part of them.
//
// Pointers to it are pointers to a [`Value`].
#[derive(Debug)]
pub struct AnnalsValue {
    _opaque: (),
}

/// The kind of a value. In brackets, the types of definitions whose values are of it.
#[repr(u32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnalsValueKind {
    /// No value: NULL, a mailbox of nobody, a FIXED_DICT that is None.
    None = 0,
    /// A signed integer (INT8 to INT64).
    Int = 1,
    /// An unsigned integer (UINT8 to UINT64).
    Uint = 2,
    /// A floating-point number (FLOAT32, FLOAT64).
    Float = 3,
    /// Text in UTF-8 (UNICODE_STRING).
    Text = 4,
    /// Bytes (STRING, BLOB; UDO_REF as 16 bytes; PYTHON and USER_TYPE, which the script host interprets).
    Bytes = 5,
    /// Two to four floating-point numbers (VECTOR2 to VECTOR4).
    Vector = 6,
    /// The address of an entity's part (MAILBOX).
    Mailbox = 7,
    /// Values of one type (ARRAY, TUPLE).
    List = 8,
    /// Values by field (FIXED_DICT), in the order of the type: annals_type_field finds a field's index.
    Dict = 9,
}

/// The address of an entity's part.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct AnnalsMailbox {
    pub entity: u64,
    /// The number of its type among those of the schema.
    pub type_id: u16,
    pub part: AnnalsPart,
}

/// The kind of the values of a type.
pub(crate) fn kind_of_type(data_type: &DataType) -> AnnalsValueKind {
    match data_type {
        DataType::Int8 | DataType::Int16 | DataType::Int32 | DataType::Int64 => AnnalsValueKind::Int,
        DataType::UInt8 | DataType::UInt16 | DataType::UInt32 | DataType::UInt64 => AnnalsValueKind::Uint,
        DataType::Float32 | DataType::Float64 => AnnalsValueKind::Float,
        DataType::Unicode => AnnalsValueKind::Text,
        DataType::String | DataType::Blob | DataType::UdoRef | DataType::Python(_) | DataType::UserType(_) => {
            AnnalsValueKind::Bytes
        }
        DataType::Vector2 | DataType::Vector3 | DataType::Vector4 => AnnalsValueKind::Vector,
        DataType::Mailbox => AnnalsValueKind::Mailbox,
        DataType::Array(_) | DataType::Tuple(_) => AnnalsValueKind::List,
        DataType::FixedDict(_) => AnnalsValueKind::Dict,
    }
}

impl AnnalsValue {
    /// A value as it is handed out: borrowed.
    pub(crate) fn lent(value: &Value) -> *const Self {
        ptr::from_ref(value).cast()
    }

    fn made(value: Value) -> *mut Self {
        Box::into_raw(Box::new(value)).cast()
    }
}

/// The value that a pointer from outside points to.
///
/// # Safety
/// `value` is NULL or misaligned, or a value of this library that nothing changes or frees as long as the result is used.
pub(crate) unsafe fn value_at<'a>(value: *const AnnalsValue, name: &str) -> Result<&'a Value, Failure> {
    // SAFETY: as promised by the caller.
    unsafe { borrow(value.cast(), name) }
}

fn parts(value: &Value) -> &[Value] {
    match value {
        Value::Sequence(values) | Value::Dict(values) => values,
        _ => &[],
    }
}

/// The levels of a value. No value has more than [`MAX_TYPE_DEPTH`]: every walk over one is within a small stack.
fn depth(value: &Value) -> usize {
    match value {
        Value::Sequence(values) | Value::Dict(values) => 1 + values.iter().map(depth).max().unwrap_or(0),
        _ => 1,
    }
}

/// Runs `read` on a value, and writes what it finds.
///
/// # Safety
/// `value` is NULL or a value of this library, and `result` is NULL or a place for a `T`.
unsafe fn read<T>(value: *const AnnalsValue, result: *mut T, read: impl FnOnce(&Value) -> Option<T>) -> bool {
    answering(false, || {
        // SAFETY: as promised by the caller.
        let found = read(unsafe { value_at(value, "value") }?);
        let is_found = found.is_some();
        if let Some(found) = found {
            // SAFETY: as promised by the caller.
            unsafe { put(result, found) };
        }
        Ok(is_found)
    })
}

/// The kind of a value.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_get_kind(value: *const AnnalsValue) -> AnnalsValueKind {
    answering(AnnalsValueKind::None, || {
        // SAFETY: the caller passes NULL or a value of this library.
        Ok(match unsafe { value_at(value, "value") }? {
            Value::None | Value::Mailbox(None) => AnnalsValueKind::None,
            Value::Int(_) => AnnalsValueKind::Int,
            Value::UInt(_) => AnnalsValueKind::Uint,
            Value::Float32(_) | Value::Float64(_) => AnnalsValueKind::Float,
            Value::Unicode(_) => AnnalsValueKind::Text,
            Value::Bytes(_) | Value::UdoRef(_) | Value::Opaque(_) => AnnalsValueKind::Bytes,
            Value::Vector2(_) | Value::Vector3(_) | Value::Vector4(_) => AnnalsValueKind::Vector,
            Value::Mailbox(Some(_)) => AnnalsValueKind::Mailbox,
            Value::Sequence(_) => AnnalsValueKind::List,
            Value::Dict(_) => AnnalsValueKind::Dict,
        })
    })
}

/// Reads an integer of either kind. False, and no result, if the value is none or does not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_get_int(value: *const AnnalsValue, result: *mut i64) -> bool {
    let integer = |value: &Value| match value {
        Value::Int(number) => Some(*number),
        Value::UInt(number) => i64::try_from(*number).ok(),
        _ => None,
    };
    // SAFETY: the caller passes NULL or a value of this library, and NULL or a place for the result.
    unsafe { read(value, result, integer) }
}

/// Reads an integer of either kind. False, and no result, if the value is none or does not fit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_get_uint(value: *const AnnalsValue, result: *mut u64) -> bool {
    let integer = |value: &Value| match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::UInt(number) => Some(*number),
        _ => None,
    };
    // SAFETY: the caller passes NULL or a value of this library, and NULL or a place for the result.
    unsafe { read(value, result, integer) }
}

/// Reads a number of any kind, integers as the nearest floating-point number. False, and no result, if the value is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_get_float(value: *const AnnalsValue, result: *mut f64) -> bool {
    let number = |value: &Value| match value {
        Value::Int(number) => Some(*number as f64),
        Value::UInt(number) => Some(*number as f64),
        Value::Float32(number) => Some(f64::from(*number)),
        Value::Float64(number) => Some(*number),
        _ => None,
    };
    // SAFETY: the caller passes NULL or a value of this library, and NULL or a place for the result.
    unsafe { read(value, result, number) }
}

/// Reads text, or bytes that are UTF-8; it is valid as long as the value. False, and no result, if the value is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_get_text(value: *const AnnalsValue, result: *mut AnnalsText) -> bool {
    let text = |value: &Value| match value {
        Value::Unicode(text) => Some(AnnalsText::new(text)),
        Value::Bytes(bytes) => str::from_utf8(bytes).ok().map(AnnalsText::new),
        _ => None,
    };
    // SAFETY: the caller passes NULL or a value of this library, and NULL or a place for the result.
    unsafe { read(value, result, text) }
}

/// Reads bytes, or those of a text; they are valid as long as the value. False, and no result, if the value is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_get_bytes(value: *const AnnalsValue, result: *mut AnnalsBytes) -> bool {
    let bytes = |value: &Value| match value {
        Value::Bytes(bytes) | Value::Opaque(bytes) => Some(AnnalsBytes::new(bytes)),
        Value::Unicode(text) => Some(AnnalsBytes::new(text.as_bytes())),
        Value::UdoRef(guid) => Some(AnnalsBytes::new(guid)),
        _ => None,
    };
    // SAFETY: the caller passes NULL or a value of this library, and NULL or a place for the result.
    unsafe { read(value, result, bytes) }
}

/// Reads a vector into an array of four, and returns the number of its parts: 2 to 4, or 0 if the value is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_get_vector(value: *const AnnalsValue, result: *mut f32) -> usize {
    answering(0, || {
        // SAFETY: the caller passes NULL or a value of this library.
        let parts: &[f32] = match unsafe { value_at(value, "value") }? {
            Value::Vector2(parts) => parts,
            Value::Vector3(parts) => parts,
            Value::Vector4(parts) => parts,
            _ => &[],
        };
        for (index, part) in parts.iter().enumerate() {
            if !result.is_null() {
                // SAFETY: the caller passes NULL or an array of four, and there are at most as many.
                unsafe { put(result.add(index), *part) };
            }
        }
        Ok(parts.len())
    })
}

/// Reads a mailbox. False, and no result, if the value is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_get_mailbox(value: *const AnnalsValue, result: *mut AnnalsMailbox) -> bool {
    let mailbox = |value: &Value| match value {
        Value::Mailbox(Some(mailbox)) => Some(AnnalsMailbox {
            entity: mailbox.entity.0,
            type_id: mailbox.type_id.0,
            part: part_number(mailbox.part),
        }),
        _ => None,
    };
    // SAFETY: the caller passes NULL or a value of this library, and NULL or a place for the result.
    unsafe { read(value, result, mailbox) }
}

/// The number of elements of a list, or of fields of a dictionary; else 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_count(value: *const AnnalsValue) -> usize {
    // SAFETY: the caller passes NULL or a value of this library.
    answering(0, || Ok(parts(unsafe { value_at(value, "value") }?).len()))
}

/// An element of a list or a field of a dictionary, from 0, valid as long as the value; NULL if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_at(value: *const AnnalsValue, index: usize) -> *const AnnalsValue {
    answering(ptr::null(), || {
        // SAFETY: the caller passes NULL or a value of this library.
        let part = parts(unsafe { value_at(value, "value") }?).get(index);
        Ok(part.map_or(ptr::null(), AnnalsValue::lent))
    })
}

/// A copy of a value, to keep it or to pass it on; NULL for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_copy(value: *const AnnalsValue) -> *mut AnnalsValue {
    answering(ptr::null_mut(), || {
        // SAFETY: the caller passes NULL or a value of this library.
        Ok(AnnalsValue::made(unsafe { value_at(value, "value") }?.clone()))
    })
}

/// Makes a value that is none. Every value that was made or copied has to be freed with annals_value_free. Numbers, text
/// and bytes that are made so fit all types that can hold them: annals_client_call converts them.
#[unsafe(no_mangle)]
pub extern "C" fn annals_value_new_none() -> *mut AnnalsValue {
    answering(ptr::null_mut(), || Ok(AnnalsValue::made(Value::None)))
}

/// Makes an integer.
#[unsafe(no_mangle)]
pub extern "C" fn annals_value_new_int(number: i64) -> *mut AnnalsValue {
    answering(ptr::null_mut(), || Ok(AnnalsValue::made(Value::Int(number))))
}

/// Makes an unsigned integer.
#[unsafe(no_mangle)]
pub extern "C" fn annals_value_new_uint(number: u64) -> *mut AnnalsValue {
    answering(ptr::null_mut(), || Ok(AnnalsValue::made(Value::UInt(number))))
}

/// Makes a floating-point number.
#[unsafe(no_mangle)]
pub extern "C" fn annals_value_new_float(number: f64) -> *mut AnnalsValue {
    answering(ptr::null_mut(), || Ok(AnnalsValue::made(Value::Float64(number))))
}

/// Makes text from UTF-8. NULL after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_new_text(
    bytes: *const c_char,
    length: usize,
    error: *mut *mut AnnalsError,
) -> *mut AnnalsValue {
    let body = || {
        // SAFETY: the caller passes that many bytes.
        let bytes = unsafe { elements(bytes.cast::<u8>(), length, "bytes") }?;
        let text = str::from_utf8(bytes).map_err(|_| Failure::argument("the text is not UTF-8"))?;
        Ok(AnnalsValue::made(Value::Unicode(text.to_owned())))
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, ptr::null_mut(), body) }
}

/// Makes bytes. NULL after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_new_bytes(
    bytes: *const u8,
    length: usize,
    error: *mut *mut AnnalsError,
) -> *mut AnnalsValue {
    let body = || {
        // SAFETY: the caller passes that many bytes.
        let bytes = unsafe { elements(bytes, length, "bytes") }?;
        Ok(AnnalsValue::made(Value::Bytes(bytes.to_vec())))
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, ptr::null_mut(), body) }
}

/// Makes a vector of two to four parts. NULL after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_new_vector(
    parts: *const f32,
    count: usize,
    error: *mut *mut AnnalsError,
) -> *mut AnnalsValue {
    let body = || {
        if !(2..=4).contains(&count) {
            return Err(Failure::argument(format!("a vector has 2 to 4 parts, not {count}")));
        }
        // SAFETY: the caller passes that many parts.
        let value = match *unsafe { elements(parts, count, "parts") }? {
            [x, y] => Value::Vector2([x, y]),
            [x, y, z] => Value::Vector3([x, y, z]),
            [x, y, z, w] => Value::Vector4([x, y, z, w]),
            _ => return Err(Failure::argument("a vector has 2 to 4 parts")),
        };
        Ok(AnnalsValue::made(value))
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, ptr::null_mut(), body) }
}

/// Makes an empty list. With a value for each field in their order it also serves as a dictionary.
#[unsafe(no_mangle)]
pub extern "C" fn annals_value_new_list() -> *mut AnnalsValue {
    answering(ptr::null_mut(), || Ok(AnnalsValue::made(Value::Sequence(Vec::new()))))
}

/// Appends a copy of an element to a list that was made, or copied. The element still has to be freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_push(
    list: *mut AnnalsValue,
    element: *const AnnalsValue,
    error: *mut *mut AnnalsError,
) -> bool {
    let body = || {
        // SAFETY: the caller passes NULL or a value of this library. It is copied before `list` is borrowed, which may be
        // the same.
        let element = unsafe { value_at(element, "element") }?.clone();
        if depth(&element) >= MAX_TYPE_DEPTH {
            return Err(Failure::argument(format!(
                "no type is nested deeper than {MAX_TYPE_DEPTH}"
            )));
        }
        // SAFETY: the caller passes NULL or a value that it has made, and so nothing else uses it.
        match unsafe { borrow_mut(list.cast::<Value>(), "list") }? {
            Value::Sequence(values) => values.push(element),
            other => return Err(Failure::argument(format!("list is {}, not a list", other.kind()))),
        }
        Ok(true)
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, false, body) }
}

/// Frees a value that was made or copied. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_value_free(value: *mut AnnalsValue) {
    // SAFETY: the caller passes NULL or a value that it has made and not freed.
    unsafe { give_up(value.cast::<Value>()) }
}

#[cfg(test)]
mod tests {
    use std::mem::MaybeUninit;

    use annals_ids::{EntityId, Mailbox, OwnerId, Part, TypeId};

    use super::*;
    use crate::inputs::ANNALS_PART_BASE;

    /// Programs in C read mailboxes and make none.
    #[test]
    fn a_mailbox_is_read() {
        let mailbox = Value::Mailbox(Some(Mailbox {
            entity: EntityId(7),
            home: OwnerId(1),
            type_id: TypeId(3),
            part: Part::Base,
        }));
        let mut found = MaybeUninit::uninit();
        // SAFETY: both pointers are valid, and a result is written if the function says so.
        let found = unsafe {
            assert_eq!(
                annals_value_get_kind(AnnalsValue::lent(&mailbox)),
                AnnalsValueKind::Mailbox
            );
            assert!(annals_value_get_mailbox(
                AnnalsValue::lent(&mailbox),
                found.as_mut_ptr()
            ));
            found.assume_init()
        };
        assert_eq!((found.entity, found.type_id, found.part), (7, 3, ANNALS_PART_BASE));
        // SAFETY: the pointer is valid.
        let kind = unsafe { annals_value_get_kind(AnnalsValue::lent(&Value::Mailbox(None))) };
        assert_eq!(kind, AnnalsValueKind::None);
    }
}
