//! The types of members, with aliases resolved.
//!
//! A [`DataType`] is a finite tree without names, so types can be compared with `==`. A default that an alias gives to
//! an inner type is kept where the inner type is used.

use std::{fmt, sync::Arc};

use crate::value::Value;

/// Maximum length of a string, blob or opaque value in bytes, and of a sequence in elements: the limit of a three-byte
/// length.
pub const MAX_LENGTH: usize = (1 << 24) - 1;

/// Maximum nesting of types. The deepest in a published game so far is 5; the limit keeps every walk over a type or a
/// value within a small stack.
pub const MAX_TYPE_DEPTH: usize = 32;

/// Maximum nodes of one type, all aliases expanded. Nested aliases can double the type with every line, so a short file
/// could ask for a type that fills the memory; a large hand-written type has a few hundred.
pub const MAX_TYPE_NODES: usize = 4_096;

/// Maximum values in a default value: fixed-size sequences are filled, and nested sizes multiply.
pub const MAX_DEFAULT_VALUES: usize = 16_384;

/// Maximum length of a sequence whose elements take no bytes (possible only where the stored form leaves out all
/// members): without it, a count of three bytes could stand for sixteen million values.
pub const MAX_EMPTY_ELEMENTS: usize = 1_024;

/// Bytes of a mailbox: entity (8), home owner (4), type (2), part (1), presence (1).
pub const MAILBOX_SIZE: usize = 16;

/// Bytes of a reference to a user data object: its GUID.
pub const UDO_REF_SIZE: usize = 16;

/// A type with aliases resolved. Types with parts are reference-counted, so a clone is cheap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DataType {
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    /// `FLOAT32`, also written `FLOAT`
    Float32,
    /// `FLOAT64`, also written `DOUBLE`
    Float64,
    /// `STRING`: bytes in no particular encoding
    String,
    /// `UNICODE_STRING`, also written `UNICODE`
    Unicode,
    /// `BLOB`: bytes, base-64 in files
    Blob,
    Vector2,
    Vector3,
    Vector4,
    /// `MAILBOX`, also written `ENTITYCALL`
    Mailbox,
    /// `UDO_REF`: the GUID of a user data object
    UdoRef,
    /// `PYTHON` and similar types: bytes that only the script host interprets
    Python(PythonKind),
    /// `USER_TYPE`: bytes that only the named implementation interprets
    UserType(String),
    /// `ARRAY`: of variable length unless a size is given
    Array(Arc<Sequence>),
    /// `TUPLE`: replaced as a whole
    Tuple(Arc<Sequence>),
    /// `FIXED_DICT`: named fields of their own types
    FixedDict(Arc<FixedDict>),
}

/// The kind of object that a script host expects in an opaque value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PythonKind {
    /// `PYTHON`: anything
    Any,
    /// `PY_DICT`
    Dict,
    /// `PY_LIST`
    List,
    /// `PY_TUPLE`
    Tuple,
}

/// The shape of an `ARRAY` or a `TUPLE`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sequence {
    /// The type of each element.
    pub of: DataType,
    /// The fixed length, if the declaration gives a `size`.
    pub size: Option<u32>,
    /// The value of a new element: the default of the element's alias, else of its type.
    pub element_default: Value,
    /// Stored as one blob instead of a table of its own.
    pub persist_as_blob: bool,
}

/// The shape of a `FIXED_DICT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FixedDict {
    /// Fields in declaration order, a parent's first. Values are in the same order.
    pub fields: Vec<Field>,
    /// Whether the whole value may be `None`.
    pub allow_none: bool,
    /// The converter that wraps the value for scripts, if any.
    pub implemented_by: Option<String>,
}

/// One field of a `FIXED_DICT`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its key.
    pub name: String,
    pub data_type: DataType,
    /// Its initial value: the default of its alias, else of its type.
    pub default: Value,
    /// Whether it is stored with the dictionary.
    pub persistent: bool,
    /// Characters or bytes reserved in the database.
    pub database_length: Option<u32>,
}

/// Which form of a value is encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// All fields: between processes.
    Whole,
    /// Without non-persistent fields; sequences marked `persistAsBlob` are prefixed with their length in bytes.
    Stored,
    /// All fields: between server and client. Mailboxes are None.
    Shown,
}

impl DataType {
    /// The types that have neither parts nor parameters, in the order of their codes in stored schemas.
    pub const SIMPLE: [DataType; 18] = [
        Self::Int8,
        Self::Int16,
        Self::Int32,
        Self::Int64,
        Self::UInt8,
        Self::UInt16,
        Self::UInt32,
        Self::UInt64,
        Self::Float32,
        Self::Float64,
        Self::String,
        Self::Unicode,
        Self::Blob,
        Self::Vector2,
        Self::Vector3,
        Self::Vector4,
        Self::Mailbox,
        Self::UdoRef,
    ];

    /// Bytes of a value of this type in [`Form::Whole`] if all values take the same number of bytes, else `None`.
    #[must_use]
    pub fn stream_size(&self) -> Option<usize> {
        match self {
            Self::Int8 | Self::UInt8 => Some(1),
            Self::Int16 | Self::UInt16 => Some(2),
            Self::Int32 | Self::UInt32 | Self::Float32 => Some(4),
            Self::Int64 | Self::UInt64 | Self::Float64 | Self::Vector2 => Some(8),
            Self::Vector3 => Some(12),
            Self::Vector4 => Some(16),
            Self::Mailbox => Some(MAILBOX_SIZE),
            Self::UdoRef => Some(UDO_REF_SIZE),
            Self::String | Self::Unicode | Self::Blob | Self::Python(_) | Self::UserType(_) => None,
            Self::Array(sequence) | Self::Tuple(sequence) => sequence.stream_size(),
            Self::FixedDict(dict) => dict.stream_size(),
        }
    }

    /// The default of the type itself (D4), without a default that an alias or a property gives.
    #[must_use]
    pub fn default_value(&self) -> Value {
        match self {
            Self::Int8 | Self::Int16 | Self::Int32 | Self::Int64 => Value::Int(0),
            Self::UInt8 | Self::UInt16 | Self::UInt32 | Self::UInt64 => Value::UInt(0),
            Self::Float32 => Value::Float32(0.0),
            Self::Float64 => Value::Float64(0.0),
            Self::String | Self::Blob => Value::Bytes(Vec::new()),
            Self::Unicode => Value::Unicode(String::new()),
            Self::Vector2 => Value::Vector2([0.0; 2]),
            Self::Vector3 => Value::Vector3([0.0; 3]),
            Self::Vector4 => Value::Vector4([0.0; 4]),
            Self::Mailbox => Value::Mailbox(None),
            Self::UdoRef => Value::UdoRef([0; UDO_REF_SIZE]),
            Self::Python(_) | Self::UserType(_) => Value::Opaque(Vec::new()),
            Self::Array(sequence) | Self::Tuple(sequence) => {
                let length = sequence.size.unwrap_or(0) as usize;
                Value::Sequence(vec![sequence.element_default.clone(); length])
            }
            Self::FixedDict(dict) if dict.allow_none => Value::None,
            Self::FixedDict(dict) => dict.filled(),
        }
    }

    /// The value after it has been stored and read back: non-persistent fields have their defaults.
    #[must_use]
    pub fn stored_value(&self, value: &Value) -> Value {
        match (self, value) {
            (Self::Array(sequence) | Self::Tuple(sequence), Value::Sequence(values)) => {
                Value::Sequence(values.iter().map(|value| sequence.of.stored_value(value)).collect())
            }
            (Self::FixedDict(dict), Value::Dict(values)) => {
                let fields = dict
                    .fields
                    .iter()
                    .zip(values)
                    .map(|(field, value)| match field.persistent {
                        true => field.data_type.stored_value(value),
                        false => field.default.clone(),
                    });
                Value::Dict(fields.collect())
            }
            (_, value) => value.clone(),
        }
    }

    /// Whether a database can index the type: numbers, strings and blobs (D8).
    #[must_use]
    pub fn can_be_indexed(&self) -> bool {
        matches!(
            self,
            Self::Int8
                | Self::Int16
                | Self::Int32
                | Self::Int64
                | Self::UInt8
                | Self::UInt16
                | Self::UInt32
                | Self::UInt64
                | Self::Float32
                | Self::Float64
                | Self::String
                | Self::Unicode
                | Self::Blob
        )
    }

    /// Whether parts of a value can change separately.
    #[must_use]
    pub fn has_parts(&self) -> bool {
        match self {
            Self::Array(_) => true,
            Self::FixedDict(dict) => !dict.fields.is_empty(),
            _ => false,
        }
    }

    /// Whether a value can contain an array of which a slice can change separately.
    #[must_use]
    pub fn has_slices(&self) -> bool {
        match self {
            Self::Array(_) => true,
            Self::FixedDict(dict) => dict.fields.iter().any(|field| field.data_type.has_slices()),
            _ => false,
        }
    }

    /// Whether this type, or one inside it, satisfies the predicate.
    pub fn any(&self, predicate: &mut dyn FnMut(&DataType) -> bool) -> bool {
        predicate(self)
            || match self {
                Self::Array(sequence) | Self::Tuple(sequence) => sequence.of.any(predicate),
                Self::FixedDict(dict) => dict.fields.iter().any(|field| field.data_type.any(&mut *predicate)),
                _ => false,
            }
    }

    /// Number of nodes of the type's tree, itself included.
    #[must_use]
    pub fn node_count(&self) -> usize {
        match self {
            Self::Array(sequence) | Self::Tuple(sequence) => 1 + sequence.of.node_count(),
            Self::FixedDict(dict) => {
                1 + dict
                    .fields
                    .iter()
                    .map(|field| field.data_type.node_count())
                    .sum::<usize>()
            }
            _ => 1,
        }
    }

    /// Approximate size when written out, in nodes of types and values of defaults.
    pub(crate) fn cost(&self) -> usize {
        match self {
            Self::Array(sequence) | Self::Tuple(sequence) => 1 + sequence.of.cost() + sequence.element_default.cost(),
            Self::FixedDict(dict) => {
                let fields = dict
                    .fields
                    .iter()
                    .map(|field| field.data_type.cost() + field.default.cost());
                1 + fields.sum::<usize>()
            }
            _ => 1,
        }
    }

    /// Number of values in [`DataType::default_value`], computed without building it; `None` on overflow.
    #[must_use]
    pub fn default_count(&self) -> Option<usize> {
        match self {
            Self::Array(sequence) | Self::Tuple(sequence) => {
                let length = usize::try_from(sequence.size.unwrap_or(0)).ok()?;
                sequence
                    .element_default
                    .value_count()
                    .checked_mul(length)?
                    .checked_add(1)
            }
            Self::FixedDict(dict) if !dict.allow_none => dict
                .fields
                .iter()
                .try_fold(1_usize, |sum, field| sum.checked_add(field.default.value_count())),
            _ => Some(1),
        }
    }

    /// Depth of the type's tree, itself included.
    #[must_use]
    pub fn depth(&self) -> usize {
        match self {
            Self::Array(sequence) | Self::Tuple(sequence) => 1 + sequence.of.depth(),
            Self::FixedDict(dict) => {
                1 + dict
                    .fields
                    .iter()
                    .map(|field| field.data_type.depth())
                    .max()
                    .unwrap_or(0)
            }
            _ => 1,
        }
    }

    /// Whether a value can be encoded in zero bytes in this form.
    pub(crate) fn may_be_empty(&self, form: Form) -> bool {
        match self {
            Self::FixedDict(dict) => {
                !dict.allow_none
                    && dict
                        .fields
                        .iter()
                        .all(|field| form == Form::Stored && !field.persistent || field.data_type.may_be_empty(form))
            }
            Self::Array(sequence) | Self::Tuple(sequence) => {
                let counted = sequence.size.is_none() || form == Form::Stored && sequence.persist_as_blob;
                !counted && (sequence.size == Some(0) || sequence.of.may_be_empty(form))
            }
            _ => false,
        }
    }
}

impl Sequence {
    /// A sequence of variable length whose new elements have the element type's own default.
    #[must_use]
    pub fn of(of: DataType) -> Self {
        let element_default = of.default_value();
        Self {
            of,
            size: None,
            element_default,
            persist_as_blob: false,
        }
    }

    /// The same with a fixed length.
    #[must_use]
    pub fn sized(of: DataType, size: u32) -> Self {
        Self {
            size: Some(size),
            ..Self::of(of)
        }
    }

    fn stream_size(&self) -> Option<usize> {
        let length = usize::try_from(self.size?).ok()?;
        self.of.stream_size()?.checked_mul(length)
    }
}

impl FixedDict {
    /// A dictionary of these fields that cannot be `None`.
    #[must_use]
    pub fn of(fields: Vec<Field>) -> Self {
        Self {
            fields,
            allow_none: false,
            implemented_by: None,
        }
    }

    /// The value in which each field holds its default.
    #[must_use]
    pub fn filled(&self) -> Value {
        Value::Dict(self.fields.iter().map(|field| field.default.clone()).collect())
    }

    /// The field of this name, with its position.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<(usize, &Field)> {
        self.fields.iter().enumerate().find(|(_, field)| field.name == name)
    }

    fn stream_size(&self) -> Option<usize> {
        if self.allow_none {
            return None;
        }
        self.fields
            .iter()
            .try_fold(0_usize, |sum, field| sum.checked_add(field.data_type.stream_size()?))
    }
}

impl Field {
    /// A persistent field whose initial value is its type's default.
    #[must_use]
    pub fn of(name: impl Into<String>, data_type: DataType) -> Self {
        let default = data_type.default_value();
        Self {
            name: name.into(),
            data_type,
            default,
            persistent: true,
            database_length: None,
        }
    }
}

impl fmt::Display for DataType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int8 => f.write_str("INT8"),
            Self::Int16 => f.write_str("INT16"),
            Self::Int32 => f.write_str("INT32"),
            Self::Int64 => f.write_str("INT64"),
            Self::UInt8 => f.write_str("UINT8"),
            Self::UInt16 => f.write_str("UINT16"),
            Self::UInt32 => f.write_str("UINT32"),
            Self::UInt64 => f.write_str("UINT64"),
            Self::Float32 => f.write_str("FLOAT32"),
            Self::Float64 => f.write_str("FLOAT64"),
            Self::String => f.write_str("STRING"),
            Self::Unicode => f.write_str("UNICODE_STRING"),
            Self::Blob => f.write_str("BLOB"),
            Self::Vector2 => f.write_str("VECTOR2"),
            Self::Vector3 => f.write_str("VECTOR3"),
            Self::Vector4 => f.write_str("VECTOR4"),
            Self::Mailbox => f.write_str("MAILBOX"),
            Self::UdoRef => f.write_str("UDO_REF"),
            Self::Python(PythonKind::Any) => f.write_str("PYTHON"),
            Self::Python(PythonKind::Dict) => f.write_str("PY_DICT"),
            Self::Python(PythonKind::List) => f.write_str("PY_LIST"),
            Self::Python(PythonKind::Tuple) => f.write_str("PY_TUPLE"),
            Self::UserType(name) => write!(f, "USER_TYPE {name}"),
            Self::Array(sequence) => write!(f, "ARRAY of {sequence}"),
            Self::Tuple(sequence) => write!(f, "TUPLE of {sequence}"),
            Self::FixedDict(dict) => dict.fmt(f),
        }
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.size {
            Some(size) => write!(f, "{size} x {}", self.of),
            None => self.of.fmt(f),
        }
    }
}

impl fmt::Display for FixedDict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("FIXED_DICT { ")?;
        for (i, field) in self.fields.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{}: {}", field.name, field.data_type)?;
        }
        f.write_str(if self.allow_none { " } or None" } else { " }" })
    }
}
