//! Type checks: whether a value fits a type, and where it does not.

use std::fmt;

use crate::{
    data_type::{DataType, FixedDict, Form, MAX_EMPTY_ELEMENTS, MAX_LENGTH, Sequence},
    value::Value,
};

/// A value that does not fit its type. The caller keeps the old value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The path of the mismatch, from the outside in; empty for the value itself.
    pub at: Vec<Step>,
    /// The problem there.
    pub problem: Problem,
}

/// One step into a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// An element of a sequence.
    Element(usize),
    /// A field of a dictionary.
    Field(String),
}

/// A mismatch at one place of a value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Problem {
    /// The value is of another kind.
    #[error("expected {wanted}, found {found}")]
    Kind {
        /// The declared type.
        wanted: String,
        /// The kind of the value.
        found: &'static str,
    },
    /// The number is out of range.
    #[error("{found} does not fit {wanted}, which holds {low} to {high}")]
    Range {
        /// The declared type.
        wanted: String,
        /// The number in the value.
        found: i128,
        /// The lowest number allowed.
        low: i128,
        /// The highest number allowed.
        high: i128,
    },
    /// A sequence of fixed size has a different length.
    #[error("expected {wanted} elements, found {found}")]
    Size {
        /// The declared size.
        wanted: u32,
        /// The length of the value.
        found: usize,
    },
    /// The length is too long to be encoded.
    #[error("the length {found} is above the limit of {limit}")]
    TooLong {
        /// The length of the value.
        found: usize,
        /// The greatest length allowed.
        limit: usize,
    },
    /// A dictionary has a different number of fields.
    #[error("expected {wanted} fields, found {found}")]
    FieldCount {
        /// The declared number of fields.
        wanted: usize,
        /// The number in the value.
        found: usize,
    },
    /// `None` for a dictionary that does not allow it.
    #[error("found None, but the FIXED_DICT has no <AllowNone> true </AllowNone>")]
    NoneNotAllowed,
}

/// Checks that the value fits the type.
///
/// # Errors
/// The first mismatch, in the order of elements and fields.
pub fn check(data_type: &DataType, value: &Value) -> Result<(), Mismatch> {
    match (data_type, value) {
        (DataType::Int8, Value::Int(found)) => in_range(data_type, *found, i8::MIN, i8::MAX),
        (DataType::Int16, Value::Int(found)) => in_range(data_type, *found, i16::MIN, i16::MAX),
        (DataType::Int32, Value::Int(found)) => in_range(data_type, *found, i32::MIN, i32::MAX),
        (DataType::UInt8, Value::UInt(found)) => in_range(data_type, *found, 0, u8::MAX),
        (DataType::UInt16, Value::UInt(found)) => in_range(data_type, *found, 0, u16::MAX),
        (DataType::UInt32, Value::UInt(found)) => in_range(data_type, *found, 0, u32::MAX),
        (DataType::Int64, Value::Int(_))
        | (DataType::UInt64, Value::UInt(_))
        | (DataType::Float32, Value::Float32(_))
        | (DataType::Float64, Value::Float64(_))
        | (DataType::Vector2, Value::Vector2(_))
        | (DataType::Vector3, Value::Vector3(_))
        | (DataType::Vector4, Value::Vector4(_))
        | (DataType::Mailbox, Value::Mailbox(_))
        | (DataType::UdoRef, Value::UdoRef(_)) => Ok(()),
        (DataType::String | DataType::Blob, Value::Bytes(bytes))
        | (DataType::Python(_) | DataType::UserType(_), Value::Opaque(bytes)) => not_too_long(bytes.len(), MAX_LENGTH),
        (DataType::Unicode, Value::Unicode(text)) => not_too_long(text.len(), MAX_LENGTH),
        (DataType::Array(sequence) | DataType::Tuple(sequence), Value::Sequence(values)) => {
            check_sequence(sequence, values)
        }
        (DataType::FixedDict(dict), Value::Dict(values)) => check_dict(dict, values),
        (DataType::FixedDict(dict), Value::None) if dict.allow_none => Ok(()),
        (DataType::FixedDict(_), Value::None) => Err(Problem::NoneNotAllowed.here()),
        _ => Err(Problem::Kind {
            wanted: data_type.to_string(),
            found: value.kind(),
        }
        .here()),
    }
}

fn check_sequence(sequence: &Sequence, values: &[Value]) -> Result<(), Mismatch> {
    if let Some(wanted) = sequence.size
        && values.len() != wanted as usize
    {
        return Err(Problem::Size {
            wanted,
            found: values.len(),
        }
        .here());
    }
    not_too_long(values.len(), longest(sequence))?;
    for (i, value) in values.iter().enumerate() {
        check(&sequence.of, value).map_err(|mismatch| mismatch.inside(Step::Element(i)))?;
    }
    Ok(())
}

/// The greatest length of a sequence that every encoding can carry.
pub(crate) fn longest(sequence: &Sequence) -> usize {
    if sequence.size.is_none() && sequence.of.may_be_empty(Form::Stored) {
        MAX_EMPTY_ELEMENTS
    } else {
        MAX_LENGTH
    }
}

/// The greatest number of elements of this type that a count may announce.
pub(crate) fn longest_counted(of: &DataType) -> usize {
    if of.may_be_empty(Form::Whole) {
        MAX_EMPTY_ELEMENTS
    } else {
        MAX_LENGTH
    }
}

fn check_dict(dict: &FixedDict, values: &[Value]) -> Result<(), Mismatch> {
    if values.len() != dict.fields.len() {
        return Err(Problem::FieldCount {
            wanted: dict.fields.len(),
            found: values.len(),
        }
        .here());
    }
    for (field, value) in dict.fields.iter().zip(values) {
        check(&field.data_type, value).map_err(|mismatch| mismatch.inside(Step::Field(field.name.clone())))?;
    }
    Ok(())
}

fn in_range<T, L, H>(data_type: &DataType, found: T, low: L, high: H) -> Result<(), Mismatch>
where
    i128: From<T> + From<L> + From<H>,
{
    let (found, low, high) = (i128::from(found), i128::from(low), i128::from(high));
    if (low..=high).contains(&found) {
        return Ok(());
    }
    Err(Problem::Range {
        wanted: data_type.to_string(),
        found,
        low,
        high,
    }
    .here())
}

fn not_too_long(found: usize, limit: usize) -> Result<(), Mismatch> {
    if found <= limit {
        Ok(())
    } else {
        Err(Problem::TooLong { found, limit }.here())
    }
}

impl Problem {
    pub(crate) fn here(self) -> Mismatch {
        Mismatch {
            at: Vec::new(),
            problem: self,
        }
    }
}

impl Mismatch {
    /// The same mismatch with `step` prepended to its path.
    pub(crate) fn inside(mut self, step: Step) -> Self {
        self.at.insert(0, step);
        self
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.at.is_empty() {
            f.write_str("at ")?;
            for (i, step) in self.at.iter().enumerate() {
                match step {
                    Step::Element(index) => write!(f, "[{index}]")?,
                    Step::Field(name) if i == 0 => f.write_str(name)?,
                    Step::Field(name) => write!(f, ".{name}")?,
                }
            }
            f.write_str(": ")?;
        }
        self.problem.fmt(f)
    }
}

impl std::error::Error for Mismatch {}
