//! The encoding of values.
//!
//! ```text
//! value     = integer | float | vector | bytes | mailbox | udo_ref | sequence | dict
//! integer   = 1, 2, 4 or 8 bytes, little-endian, two's complement
//! float     = 4 or 8 bytes, IEEE 754, little-endian
//! vector    = 2, 3 or 4 floats of 4 bytes
//! bytes     = length byte{length}              STRING, BLOB, UNICODE_STRING (UTF-8), PYTHON, USER_TYPE
//! length    = byte below 255 | ff and 3 bytes little-endian, at least 255
//! mailbox   = entity (8) home (4) type (2) part (1: 0 base, 1 cell) 01 | 00{16}
//! udo_ref   = 16 bytes
//! sequence  = [length] value{length}           no length if the type has a size
//! dict      = [00 | 01] value{fields}          the byte if None is allowed; 00 is None and ends the value
//! ```
//!
//! [`Form::Stored`] omits fields that are not persistent, and writes a sequence marked `persistAsBlob` as `bytes` that
//! contain it. [`Form::Shown`] writes None for every mailbox, and accepts nothing else: clients have no use for an
//! address, and addresses from clients are not trusted. The encoding is canonical: decoded bytes encode to the same
//! bytes.

use annals_ids::{EntityId, Mailbox, OwnerId, Part, TypeId};

use crate::{
    check::{Mismatch, Problem, Step, check, longest, longest_counted},
    data_type::{DataType, FixedDict, Form, MAILBOX_SIZE, MAX_LENGTH, Sequence},
    value::Value,
};

/// First byte of a length of 255 or more.
const LONG_LENGTH: u8 = 0xff;

/// Why a value could not be encoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The value does not fit its type.
    #[error("the value does not fit its type")]
    Mismatch(#[from] Mismatch),
    /// A sequence stored as one blob exceeds the maximum length of a blob.
    #[error("a sequence stored as one blob takes {found} bytes, above the limit of {MAX_LENGTH}; remove persistAsBlob")]
    BlobTooLong {
        /// Its bytes.
        found: usize,
    },
}

/// Why bytes are not an encoded value of the type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// The bytes end too early.
    #[error("expected {wanted} more bytes, {left} are left")]
    Truncated {
        /// Number of missing bytes, or of elements of at least a byte.
        wanted: usize,
        /// Number of bytes left.
        left: usize,
    },
    /// A length below 255 in the long form.
    #[error("the length {0} is not in its short form")]
    LongForm(usize),
    /// A string that is not UTF-8.
    #[error("a UNICODE_STRING holds bytes that are not UTF-8")]
    NotUtf8,
    /// A marker byte that is neither 0 nor 1.
    #[error("expected the byte 00 (None) or 01 (a value), found {0:#04x}")]
    BadMarker(u8),
    /// A null mailbox with non-zero bytes, an unknown part, or an address between server and client.
    #[error("the 16 bytes of a mailbox are neither all zero nor an address that is valid here")]
    BadMailbox,
    /// Too many elements that take no bytes.
    #[error("{0} elements without bytes exceed the limit")]
    TooManyEmpty(usize),
    /// Trailing bytes.
    #[error("{0} bytes follow the value")]
    Trailing(usize),
}

/// Appends the value's bytes to `out`, which is unchanged on error.
///
/// # Errors
/// If the value does not fit the type, or a sequence stored as a blob is too long for one.
pub fn encode(data_type: &DataType, value: &Value, form: Form, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    check(data_type, value)?;
    let start = out.len();
    put(data_type, value, form, out).inspect_err(|_| out.truncate(start))
}

/// Decodes one value from the front of `bytes` and advances behind it. Never allocates more than a fixed multiple of
/// the available bytes.
///
/// # Errors
/// If the bytes are not a value of this type; `bytes` is then somewhere in the middle.
pub fn decode(data_type: &DataType, form: Form, bytes: &mut &[u8]) -> Result<Value, DecodeError> {
    match data_type {
        DataType::Int8 => Ok(Value::Int(i8::from_le_bytes(take(bytes)?).into())),
        DataType::Int16 => Ok(Value::Int(i16::from_le_bytes(take(bytes)?).into())),
        DataType::Int32 => Ok(Value::Int(i32::from_le_bytes(take(bytes)?).into())),
        DataType::Int64 => Ok(Value::Int(i64::from_le_bytes(take(bytes)?))),
        DataType::UInt8 => Ok(Value::UInt(u8::from_le_bytes(take(bytes)?).into())),
        DataType::UInt16 => Ok(Value::UInt(u16::from_le_bytes(take(bytes)?).into())),
        DataType::UInt32 => Ok(Value::UInt(u32::from_le_bytes(take(bytes)?).into())),
        DataType::UInt64 => Ok(Value::UInt(u64::from_le_bytes(take(bytes)?))),
        DataType::Float32 => Ok(Value::Float32(f32::from_le_bytes(take(bytes)?))),
        DataType::Float64 => Ok(Value::Float64(f64::from_le_bytes(take(bytes)?))),
        DataType::Vector2 => Ok(Value::Vector2(take_floats(bytes)?)),
        DataType::Vector3 => Ok(Value::Vector3(take_floats(bytes)?)),
        DataType::Vector4 => Ok(Value::Vector4(take_floats(bytes)?)),
        DataType::String | DataType::Blob => Ok(Value::Bytes(take_bytes(bytes)?.to_vec())),
        DataType::Python(_) | DataType::UserType(_) => Ok(Value::Opaque(take_bytes(bytes)?.to_vec())),
        DataType::Unicode => {
            let text = std::str::from_utf8(take_bytes(bytes)?).map_err(|_| DecodeError::NotUtf8)?;
            Ok(Value::Unicode(text.to_owned()))
        }
        DataType::Mailbox => match take_mailbox(bytes)? {
            Some(_) if form == Form::Shown => Err(DecodeError::BadMailbox),
            mailbox => Ok(Value::Mailbox(mailbox)),
        },
        DataType::UdoRef => Ok(Value::UdoRef(take(bytes)?)),
        DataType::Array(sequence) | DataType::Tuple(sequence) => take_sequence(sequence, form, bytes),
        DataType::FixedDict(dict) => take_dict(dict, form, bytes),
    }
}

/// Decodes one value that takes all of `bytes`.
///
/// # Errors
/// If the bytes are not exactly one value of this type.
pub fn decode_all(data_type: &DataType, form: Form, mut bytes: &[u8]) -> Result<Value, DecodeError> {
    let value = decode(data_type, form, &mut bytes)?;
    if bytes.is_empty() {
        Ok(value)
    } else {
        Err(DecodeError::Trailing(bytes.len()))
    }
}

/// Appends elements with their count, the encoding of a slice. `out` is unchanged on error.
///
/// # Errors
/// If an element does not fit the type, or there are more than a count allows.
pub fn encode_elements(of: &DataType, values: &[Value], form: Form, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    let (found, limit) = (values.len(), longest_counted(of));
    if found > limit {
        return Err(Problem::TooLong { found, limit }.here().into());
    }
    for (i, value) in values.iter().enumerate() {
        check(of, value).map_err(|mismatch| mismatch.inside(Step::Element(i)))?;
    }
    put_length(values.len(), out);
    values.iter().try_for_each(|value| put(of, value, form, out))
}

/// Decodes elements with their count from the front of `bytes` and advances behind them. Never allocates more than a
/// fixed multiple of the available bytes.
///
/// # Errors
/// If the bytes are not elements of this type; `bytes` is then somewhere in the middle.
pub fn decode_elements(of: &DataType, form: Form, bytes: &mut &[u8]) -> Result<Vec<Value>, DecodeError> {
    let count = take_length(bytes)?;
    if count > longest_counted(of) {
        return Err(DecodeError::TooManyEmpty(count));
    }
    take_values(of, count, form, bytes)
}

/// Bytes of a value that fits its type, in [`Form::Whole`].
pub(crate) fn stream_length(data_type: &DataType, value: &Value) -> usize {
    if let Some(size) = data_type.stream_size() {
        return size;
    }
    match (data_type, value) {
        (_, Value::Bytes(bytes) | Value::Opaque(bytes)) => length_length(bytes.len()) + bytes.len(),
        (_, Value::Unicode(text)) => length_length(text.len()) + text.len(),
        (DataType::Array(sequence) | DataType::Tuple(sequence), Value::Sequence(values)) => {
            let count = sequence.size.map_or_else(|| length_length(values.len()), |_| 0);
            let values = values.iter().map(|value| stream_length(&sequence.of, value));
            count + values.sum::<usize>()
        }
        (DataType::FixedDict(dict), Value::Dict(values)) => {
            let fields = dict.fields.iter().zip(values);
            let fields = fields.map(|(field, value)| stream_length(&field.data_type, value));
            usize::from(dict.allow_none) + fields.sum::<usize>()
        }
        _ => 1,
    }
}

/// Bytes of an encoded length.
fn length_length(length: usize) -> usize {
    if length < LONG_LENGTH as usize { 1 } else { 4 }
}

/// Appends the bytes of a checked value.
fn put(data_type: &DataType, value: &Value, form: Form, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    match value {
        Value::Int(number) => put_low_bytes(data_type, &number.to_le_bytes(), out),
        Value::UInt(number) => put_low_bytes(data_type, &number.to_le_bytes(), out),
        Value::Float32(number) => out.extend(number.to_le_bytes()),
        Value::Float64(number) => out.extend(number.to_le_bytes()),
        Value::Bytes(bytes) | Value::Opaque(bytes) => put_bytes(bytes, out),
        Value::Unicode(text) => put_bytes(text.as_bytes(), out),
        Value::Vector2(parts) => put_floats(parts, out),
        Value::Vector3(parts) => put_floats(parts, out),
        Value::Vector4(parts) => put_floats(parts, out),
        Value::Mailbox(mailbox) => put_mailbox(mailbox.filter(|_| form != Form::Shown), out),
        Value::UdoRef(guid) => out.extend(guid),
        Value::Sequence(values) => match data_type {
            DataType::Array(sequence) | DataType::Tuple(sequence) => {
                return put_sequence(sequence, values, form, out);
            }
            _ => unreachable!("a checked sequence has a sequence type"),
        },
        Value::Dict(values) => match data_type {
            DataType::FixedDict(dict) => return put_dict(dict, values, form, out),
            _ => unreachable!("a checked dictionary has a dictionary type"),
        },
        Value::None => out.push(0),
    }
    Ok(())
}

/// Appends the low bytes of an integer, as many as its type has, of eight in little-endian order.
fn put_low_bytes(data_type: &DataType, bytes: &[u8; 8], out: &mut Vec<u8>) {
    let size = data_type.stream_size().expect("invariant: integers have a fixed size");
    out.extend(&bytes[..size]);
}

fn put_floats(parts: &[f32], out: &mut Vec<u8>) {
    out.extend(parts.iter().flat_map(|part| part.to_le_bytes()));
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    put_length(bytes.len(), out);
    out.extend(bytes);
}

/// Appends a length of at most [`MAX_LENGTH`].
fn put_length(length: usize, out: &mut Vec<u8>) {
    debug_assert!(length <= MAX_LENGTH, "lengths are checked before they are written");
    let [low, middle, high, ..] = length.to_le_bytes();
    if length < LONG_LENGTH as usize {
        out.push(low);
    } else {
        out.extend([LONG_LENGTH, low, middle, high]);
    }
}

fn put_mailbox(mailbox: Option<Mailbox>, out: &mut Vec<u8>) {
    let Some(Mailbox {
        entity,
        home,
        type_id,
        part,
    }) = mailbox
    else {
        out.extend([0; MAILBOX_SIZE]);
        return;
    };
    out.extend(entity.0.to_le_bytes());
    out.extend(home.0.to_le_bytes());
    out.extend(type_id.0.to_le_bytes());
    out.push(match part {
        Part::Base => 0,
        Part::Cell => 1,
    });
    out.push(1);
}

fn put_sequence(sequence: &Sequence, values: &[Value], form: Form, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if form == Form::Stored && sequence.persist_as_blob {
        let mut blob = Vec::new();
        put_elements(sequence, values, form, &mut blob)?;
        if blob.len() > MAX_LENGTH {
            return Err(EncodeError::BlobTooLong { found: blob.len() });
        }
        put_bytes(&blob, out);
        return Ok(());
    }
    put_elements(sequence, values, form, out)
}

fn put_elements(sequence: &Sequence, values: &[Value], form: Form, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if sequence.size.is_none() {
        put_length(values.len(), out);
    }
    values.iter().try_for_each(|value| put(&sequence.of, value, form, out))
}

fn put_dict(dict: &FixedDict, values: &[Value], form: Form, out: &mut Vec<u8>) -> Result<(), EncodeError> {
    if dict.allow_none {
        out.push(1);
    }
    for (field, value) in dict.fields.iter().zip(values) {
        if form != Form::Stored || field.persistent {
            put(&field.data_type, value, form, out)?;
        }
    }
    Ok(())
}

/// Takes `N` bytes from the front.
fn take<const N: usize>(bytes: &mut &[u8]) -> Result<[u8; N], DecodeError> {
    let (front, rest) = bytes.split_first_chunk::<N>().ok_or(DecodeError::Truncated {
        wanted: N,
        left: bytes.len(),
    })?;
    *bytes = rest;
    Ok(*front)
}

fn take_floats<const N: usize>(bytes: &mut &[u8]) -> Result<[f32; N], DecodeError> {
    let mut parts = [0.0; N];
    for part in &mut parts {
        *part = f32::from_le_bytes(take(bytes)?);
    }
    Ok(parts)
}

fn take_length(bytes: &mut &[u8]) -> Result<usize, DecodeError> {
    let [first] = take(bytes)?;
    if first != LONG_LENGTH {
        return Ok(first.into());
    }
    let [low, middle, high] = take(bytes)?;
    let length = usize::from(low) | usize::from(middle) << 8 | usize::from(high) << 16;
    if length < LONG_LENGTH.into() {
        Err(DecodeError::LongForm(length))
    } else {
        Ok(length)
    }
}

fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Result<&'a [u8], DecodeError> {
    let wanted = take_length(bytes)?;
    let left = bytes.len();
    let (front, rest) = bytes
        .split_at_checked(wanted)
        .ok_or(DecodeError::Truncated { wanted, left })?;
    *bytes = rest;
    Ok(front)
}

fn take_mailbox(bytes: &mut &[u8]) -> Result<Option<Mailbox>, DecodeError> {
    let raw: [u8; MAILBOX_SIZE] = take(bytes)?;
    if raw == [0; MAILBOX_SIZE] {
        return Ok(None);
    }
    let mut raw = raw.as_slice();
    let entity = EntityId(u64::from_le_bytes(take(&mut raw)?));
    let home = OwnerId(u32::from_le_bytes(take(&mut raw)?));
    let type_id = TypeId(u16::from_le_bytes(take(&mut raw)?));
    let part = match take(&mut raw)? {
        [0, 1] => Part::Base,
        [1, 1] => Part::Cell,
        _ => return Err(DecodeError::BadMailbox),
    };
    Ok(Some(Mailbox {
        entity,
        home,
        type_id,
        part,
    }))
}

fn take_sequence(sequence: &Sequence, form: Form, bytes: &mut &[u8]) -> Result<Value, DecodeError> {
    if form == Form::Stored && sequence.persist_as_blob {
        let mut blob = take_bytes(bytes)?;
        let value = take_elements(sequence, form, &mut blob)?;
        return if blob.is_empty() {
            Ok(value)
        } else {
            Err(DecodeError::Trailing(blob.len()))
        };
    }
    take_elements(sequence, form, bytes)
}

fn take_elements(sequence: &Sequence, form: Form, bytes: &mut &[u8]) -> Result<Value, DecodeError> {
    let count = match sequence.size {
        Some(size) => size as usize,
        None => take_length(bytes)?,
    };
    if count > longest(sequence) {
        return Err(DecodeError::TooManyEmpty(count));
    }
    let values = take_values(&sequence.of, count, form, bytes)?;
    Ok(Value::Sequence(values))
}

fn take_values(of: &DataType, count: usize, form: Form, bytes: &mut &[u8]) -> Result<Vec<Value>, DecodeError> {
    if count > bytes.len() && !of.may_be_empty(form) {
        return Err(DecodeError::Truncated {
            wanted: count,
            left: bytes.len(),
        });
    }
    let mut values = Vec::with_capacity(count);
    for _ in 0..count {
        values.push(decode(of, form, bytes)?);
    }
    Ok(values)
}

fn take_dict(dict: &FixedDict, form: Form, bytes: &mut &[u8]) -> Result<Value, DecodeError> {
    if dict.allow_none {
        match take(bytes)? {
            [0] => return Ok(Value::None),
            [1] => {}
            [other] => return Err(DecodeError::BadMarker(other)),
        }
    }
    let mut values = Vec::with_capacity(dict.fields.len());
    for field in &dict.fields {
        values.push(if form != Form::Stored || field.persistent {
            decode(&field.data_type, form, bytes)?
        } else {
            field.default.clone()
        });
    }
    Ok(Value::Dict(values))
}
