//! Values of members at run time.
//!
//! A [`Value`] does not know its type; [`crate::check`] checks it against one. Exactly one variant fits each type, so
//! equal values have equal bytes. Floating-point numbers are compared by their bits: a NaN equals itself, and `0.0`
//! differs from `-0.0`, because replay must give the same bits.

use std::{fmt, hash};

use annals_ids::Mailbox;

/// A value of some [`crate::DataType`].
#[derive(Clone, Debug)]
pub enum Value {
    /// `INT8` to `INT64`
    Int(i64),
    /// `UINT8` to `UINT64`
    UInt(u64),
    Float32(f32),
    Float64(f64),
    /// `STRING` and `BLOB`
    Bytes(Vec<u8>),
    /// `UNICODE_STRING`
    Unicode(String),
    Vector2([f32; 2]),
    Vector3([f32; 3]),
    Vector4([f32; 4]),
    /// `MAILBOX`, and `None`
    Mailbox(Option<Mailbox>),
    /// `UDO_REF`: a GUID; all zeroes are a null reference
    UdoRef([u8; 16]),
    /// `PYTHON`, `PY_DICT`, `PY_LIST`, `PY_TUPLE` and `USER_TYPE`: bytes for the script host; empty is its `None`. A
    /// default from a file is kept as written there.
    Opaque(Vec<u8>),
    /// `ARRAY` and `TUPLE`: the elements
    Sequence(Vec<Value>),
    /// `FIXED_DICT`: the fields' values in the order of the type's fields
    Dict(Vec<Value>),
    /// `None` of a `FIXED_DICT` that allows it
    None,
}

impl Value {
    /// A short form of an initial value; an opaque value as written in its file.
    #[must_use]
    pub fn in_words(&self) -> String {
        match self {
            Self::Opaque(bytes) if bytes.is_empty() => "None".to_owned(),
            Self::Opaque(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            value => value.to_string(),
        }
    }

    /// The name of the variant in terms of the language, for messages.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Int(_) => "a signed integer",
            Self::UInt(_) => "an unsigned integer",
            Self::Float32(_) => "a 32-bit float",
            Self::Float64(_) => "a 64-bit float",
            Self::Bytes(_) => "bytes",
            Self::Unicode(_) => "a unicode string",
            Self::Vector2(_) => "a vector of 2",
            Self::Vector3(_) => "a vector of 3",
            Self::Vector4(_) => "a vector of 4",
            Self::Mailbox(_) => "a mailbox",
            Self::UdoRef(_) => "a user data object reference",
            Self::Opaque(_) => "an opaque value",
            Self::Sequence(_) => "a sequence",
            Self::Dict(_) => "a dictionary",
            Self::None => "None",
        }
    }

    /// A copy of text as `STRING` bytes.
    #[must_use]
    pub fn string(text: &str) -> Self {
        Self::Bytes(text.as_bytes().to_vec())
    }

    /// Approximate memory of a copy, in values.
    pub(crate) fn cost(&self) -> usize {
        match self {
            Self::Bytes(bytes) | Self::Opaque(bytes) => 1 + bytes.len() / size_of::<Self>(),
            Self::Unicode(text) => 1 + text.len() / size_of::<Self>(),
            Self::Sequence(values) | Self::Dict(values) => 1 + values.iter().map(Value::cost).sum::<usize>(),
            _ => 1,
        }
    }

    /// Number of values in this one, itself included.
    #[must_use]
    pub fn value_count(&self) -> usize {
        match self {
            Self::Sequence(values) | Self::Dict(values) => 1 + values.iter().map(Value::value_count).sum::<usize>(),
            _ => 1,
        }
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Int(a), Self::Int(b)) => a == b,
            (Self::UInt(a), Self::UInt(b)) => a == b,
            (Self::Float32(a), Self::Float32(b)) => a.to_bits() == b.to_bits(),
            (Self::Float64(a), Self::Float64(b)) => a.to_bits() == b.to_bits(),
            (Self::Bytes(a), Self::Bytes(b)) | (Self::Opaque(a), Self::Opaque(b)) => a == b,
            (Self::Unicode(a), Self::Unicode(b)) => a == b,
            (Self::Vector2(a), Self::Vector2(b)) => same_bits(a, b),
            (Self::Vector3(a), Self::Vector3(b)) => same_bits(a, b),
            (Self::Vector4(a), Self::Vector4(b)) => same_bits(a, b),
            (Self::Mailbox(a), Self::Mailbox(b)) => a == b,
            (Self::UdoRef(a), Self::UdoRef(b)) => a == b,
            (Self::Sequence(a), Self::Sequence(b)) | (Self::Dict(a), Self::Dict(b)) => a == b,
            (Self::None, Self::None) => true,
            _ => false,
        }
    }
}

impl Eq for Value {}

impl hash::Hash for Value {
    fn hash<H: hash::Hasher>(&self, state: &mut H) {
        std::mem::discriminant(self).hash(state);
        match self {
            Self::Int(value) => value.hash(state),
            Self::UInt(value) => value.hash(state),
            Self::Float32(value) => value.to_bits().hash(state),
            Self::Float64(value) => value.to_bits().hash(state),
            Self::Bytes(value) | Self::Opaque(value) => value.hash(state),
            Self::Unicode(value) => value.hash(state),
            Self::Vector2(value) => value.map(f32::to_bits).hash(state),
            Self::Vector3(value) => value.map(f32::to_bits).hash(state),
            Self::Vector4(value) => value.map(f32::to_bits).hash(state),
            Self::Mailbox(value) => value.hash(state),
            Self::UdoRef(value) => value.hash(state),
            Self::Sequence(values) | Self::Dict(values) => values.hash(state),
            Self::None => {}
        }
    }
}

fn same_bits(a: &[f32], b: &[f32]) -> bool {
    a.iter().map(|x| x.to_bits()).eq(b.iter().map(|x| x.to_bits()))
}

/// Maximum bytes shown of a string or blob.
const SHOWN_BYTES: usize = 32;

/// Maximum elements shown of a sequence.
const SHOWN_ELEMENTS: usize = 8;

/// A short form for messages and logs; long parts end in an ellipsis.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => value.fmt(f),
            Self::UInt(value) => value.fmt(f),
            Self::Float32(value) => value.fmt(f),
            Self::Float64(value) => value.fmt(f),
            Self::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) => write_text(f, text),
                Err(_) => write_hex(f, bytes),
            },
            Self::Unicode(text) => write_text(f, text),
            Self::Vector2(parts) => write_list(f, '(', parts.iter(), ')'),
            Self::Vector3(parts) => write_list(f, '(', parts.iter(), ')'),
            Self::Vector4(parts) => write_list(f, '(', parts.iter(), ')'),
            Self::Mailbox(None) | Self::None => f.write_str("None"),
            Self::Mailbox(Some(mailbox)) => mailbox.address().fmt(f),
            Self::UdoRef(guid) => write_hex(f, guid),
            Self::Opaque(bytes) => write!(f, "opaque value of {} bytes", bytes.len()),
            Self::Sequence(values) => write_list(f, '[', values.iter(), ']'),
            Self::Dict(values) => write_list(f, '{', values.iter(), '}'),
        }
    }
}

fn write_text(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    if text.len() <= SHOWN_BYTES {
        return write!(f, "{text:?}");
    }
    let end = text.floor_char_boundary(SHOWN_BYTES);
    write!(f, "{:?}… ({} bytes)", &text[..end], text.len())
}

fn write_hex(f: &mut fmt::Formatter<'_>, bytes: &[u8]) -> fmt::Result {
    f.write_str("0x")?;
    bytes
        .iter()
        .take(SHOWN_BYTES)
        .try_for_each(|byte| write!(f, "{byte:02x}"))?;
    if bytes.len() > SHOWN_BYTES {
        write!(f, "… ({} bytes)", bytes.len())?;
    }
    Ok(())
}

fn write_list<T: fmt::Display>(
    f: &mut fmt::Formatter<'_>,
    open: char,
    parts: impl ExactSizeIterator<Item = T>,
    close: char,
) -> fmt::Result {
    let count = parts.len();
    write!(f, "{open}")?;
    for (i, part) in parts.take(SHOWN_ELEMENTS).enumerate() {
        let separator = if i == 0 { "" } else { ", " };
        write!(f, "{separator}{part}")?;
    }
    if count > SHOWN_ELEMENTS {
        write!(f, ", … ({count} in all)")?;
    }
    write!(f, "{close}")
}
