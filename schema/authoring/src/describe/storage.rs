//! How the store keeps a property.
//!
//! A stored entity is one value under its database id: its generation, the name of its type, and for each persistent
//! property the name and the self-describing value, which survives a change of the schema. Names are prefixed with
//! their length, numbers are in base 128; db writes it.

use annals_def::{DataType, EntityType, Index, Property, Size, Value};

/// Bytes of the number of migrations of the realm when an entity was written: it takes more than this from the 128th
/// on.
const GENERATION_BYTES: usize = 1;

/// The storage of a persistent property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Storage {
    /// The key of the entry within the stored entity: the name of the property.
    pub key: String,
    /// Bytes of the entry, with its name; fixed only if all values take the same number of bytes.
    pub size: Size,
    /// Expected characters or bytes, if declared.
    pub database_length: Option<u32>,
    pub index: StoredIndex,
}

/// How the store finds entities by a property.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredIndex {
    /// No index.
    None,
    /// The identifier: the store has a key of the type and the value's first bytes, which leads to the database id.
    Identifier,
    /// A declared index; several entities may have the same value.
    Plain,
    /// A declared index; at most one entity per value.
    Unique,
}

impl Storage {
    /// The storage of a property; `None` if it is not stored.
    pub(super) fn of(one: &EntityType, property: &Property) -> Option<Self> {
        (one.persistent && property.persistent).then(|| {
            let name = with_length(property.name.len());
            let of_default = name + stored(&property.default);
            let least = name + least(&property.data_type);
            let size = match has_fixed_size(&property.data_type) {
                true => Size::Fixed(least),
                false => Size::Variable { least, of_default },
            };
            let index = match property.indexed {
                _ if property.identifier => StoredIndex::Identifier,
                Index::None => StoredIndex::None,
                Index::Plain => StoredIndex::Plain,
                Index::Unique => StoredIndex::Unique,
            };
            Self {
                key: property.name.clone(),
                size,
                database_length: property.database_length,
                index,
            }
        })
    }

    /// Bytes of a stored entity before its properties: its generation, the name of its type, and their count.
    pub(super) fn head(type_name: &str, properties: usize) -> usize {
        GENERATION_BYTES + with_length(type_name.len()) + number(properties as u64)
    }
}

impl StoredIndex {
    /// The kind of index, in words; empty if there is none.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Identifier => "identifier",
            Self::Plain => "index",
            Self::Unique => "unique index",
        }
    }
}

/// Size of `length` bytes with their length prefix.
fn with_length(length: usize) -> usize {
    number(length as u64) + length
}

/// Bytes of a number in base 128.
fn number(value: u64) -> usize {
    (u64::BITS - value.leading_zeros()).div_ceil(7).max(1) as usize
}

/// Bytes of a self-describing value.
fn stored(value: &Value) -> usize {
    1 + match value {
        Value::None | Value::Mailbox(None) => 0,
        Value::Int(value) => number(((value << 1) ^ (value >> 63)).cast_unsigned()),
        Value::UInt(value) => number(*value),
        Value::Float32(_) => 4,
        Value::Float64(_) | Value::Vector2(_) => 8,
        Value::Vector3(_) => 12,
        Value::Vector4(_) | Value::UdoRef(_) => 16,
        Value::Bytes(bytes) | Value::Opaque(bytes) => with_length(bytes.len()),
        Value::Unicode(text) => with_length(text.len()),
        Value::Mailbox(Some(mailbox)) => {
            1 + number(mailbox.entity.0) + number(mailbox.home.0.into()) + number(mailbox.type_id.0.into())
        }
        Value::Sequence(values) | Value::Dict(values) => {
            number(values.len() as u64) + values.iter().map(stored).sum::<usize>()
        }
    }
}

/// Minimum bytes of a self-describing value of a type.
fn least(data_type: &DataType) -> usize {
    1 + match data_type {
        DataType::Mailbox => 0,
        DataType::Float32 => 4,
        DataType::Float64 | DataType::Vector2 => 8,
        DataType::Vector3 => 12,
        DataType::Vector4 | DataType::UdoRef => 16,
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            let size = sequence.size.unwrap_or(0);
            let elements = least(&sequence.of).saturating_mul(size as usize);
            number(size.into()).saturating_add(elements)
        }
        DataType::FixedDict(dict) if dict.allow_none => 0,
        DataType::FixedDict(dict) => {
            let fields = dict.fields.iter().map(|field| least(&field.data_type));
            fields.fold(number(dict.fields.len() as u64), usize::saturating_add)
        }
        // An integer near zero, or a length of zero.
        _ => 1,
    }
}

/// Whether all values of a type take the same number of bytes: integers do not, as small ones are shorter.
fn has_fixed_size(data_type: &DataType) -> bool {
    match data_type {
        DataType::Float32
        | DataType::Float64
        | DataType::Vector2
        | DataType::Vector3
        | DataType::Vector4
        | DataType::UdoRef => true,
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            sequence.size.is_some() && (sequence.size == Some(0) || has_fixed_size(&sequence.of))
        }
        DataType::FixedDict(dict) => {
            !dict.allow_none && dict.fields.iter().all(|field| has_fixed_size(&field.data_type))
        }
        _ => false,
    }
}
