//! Where a change inside a value is.

use std::fmt;

use crate::{
    check::{Mismatch, check},
    data_type::DataType,
    value::Value,
};

/// The way from a member's value to a part of it: the element of a sequence or the field of a dictionary at each level.
/// Empty for the whole value.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Path(pub Vec<u32>);

/// Why nothing was assigned.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AssignError {
    /// The new value does not fit what is declared there.
    #[error("the value does not fit what is declared at {path}")]
    Mismatch {
        /// Where it was to be put.
        path: Path,
        /// What does not fit.
        source: Box<Mismatch>,
    },
    /// The path leads into something that has no parts.
    #[error("{path} leads nowhere: {found} has no parts that can be assigned, from step {step}")]
    NoParts {
        /// The whole path.
        path: Path,
        /// The first step that cannot be taken, from 0.
        step: usize,
        /// The type that has no parts.
        found: String,
    },
    /// The path names an element or field that is not there.
    #[error("{path} leads nowhere: step {step} is beyond the {length} parts there")]
    OutOfRange {
        /// The whole path.
        path: Path,
        /// The step that cannot be taken, from 0.
        step: usize,
        /// How many parts there are.
        length: usize,
    },
}

impl Path {
    /// The path to the whole value.
    pub const WHOLE: Path = Path(Vec::new());

    /// The part of the value that the path leads to.
    #[must_use]
    pub fn find<'a>(&self, value: &'a Value) -> Option<&'a Value> {
        self.0.iter().try_fold(value, |value, &step| match value {
            Value::Sequence(values) | Value::Dict(values) => values.get(usize::try_from(step).ok()?),
            _ => None,
        })
    }

    /// The type of the part that the path leads to; indices of elements are taken as given.
    #[must_use]
    pub fn find_type<'a>(&self, data_type: &'a DataType) -> Option<&'a DataType> {
        self.0.iter().try_fold(data_type, |data_type, &step| match data_type {
            DataType::Array(sequence) => Some(&sequence.of),
            DataType::FixedDict(dict) => dict
                .fields
                .get(usize::try_from(step).ok()?)
                .map(|field| &field.data_type),
            _ => None,
        })
    }
}

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        for (i, step) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            write!(f, "{separator}{step}")?;
        }
        f.write_str("]")
    }
}

/// Puts `new` at `path` in `value`, which is of type `data_type`, and returns what was there. A tuple has no parts that
/// can be assigned, only the whole of it.
///
/// # Errors
/// If the path leads nowhere or `new` does not fit there; `value` is then as before.
pub fn assign(data_type: &DataType, value: &mut Value, path: &Path, new: Value) -> Result<Value, AssignError> {
    let (data_type, part) = part_mut(data_type, value, path)?;
    check(data_type, &new).map_err(|source| AssignError::Mismatch {
        path: path.clone(),
        source: Box::new(source),
    })?;
    Ok(std::mem::replace(part, new))
}

fn part_mut<'t, 'v>(
    mut data_type: &'t DataType,
    mut value: &'v mut Value,
    path: &Path,
) -> Result<(&'t DataType, &'v mut Value), AssignError> {
    for (step, &index) in path.0.iter().enumerate() {
        let index = usize::try_from(index).unwrap_or(usize::MAX);
        let (part_type, parts) = match (data_type, value) {
            (DataType::Array(sequence), Value::Sequence(values)) => (Some(&sequence.of), values),
            (DataType::FixedDict(dict), Value::Dict(values)) => {
                (dict.fields.get(index).map(|field| &field.data_type), values)
            }
            _ => {
                return Err(AssignError::NoParts {
                    path: path.clone(),
                    step,
                    found: data_type.to_string(),
                });
            }
        };
        let length = parts.len();
        match (part_type, parts.get_mut(index)) {
            (Some(part_type), Some(part)) => (data_type, value) = (part_type, part),
            _ => {
                return Err(AssignError::OutOfRange {
                    path: path.clone(),
                    step,
                    length,
                });
            }
        }
    }
    Ok((data_type, value))
}
