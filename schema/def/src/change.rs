//! Changes of a member's value: the whole value, a part of it, or a slice of an array in it.
//!
//! [`apply`] changes values wherever there is a schema. [`Change::make`] does the same where the log is folded: there
//! are no types there, as everything in a log was checked before it was written. [`difference`] computes the changes
//! between two values. [`Located`] is a change with the sizes that a reader without the value needs.

mod bits;
mod difference;
mod located;

use std::ops::Range;

pub use difference::difference;
pub use located::{Located, OtherShape, PackedPath, unpack_path};

use crate::{
    check::{Mismatch, Problem, Step, check, longest, longest_counted},
    data_type::{DataType, Sequence},
    path::Path,
    value::Value,
};

/// An edit at one place of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The place: an element or field at each step, empty for the whole value. For [`Edit::Splice`] the path of the
    /// array.
    pub path: Path,
    /// The edit at that place.
    pub edit: Edit,
}

/// An edit of the value at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Replaces the value.
    Set(Value),
    /// Removes elements of an `ARRAY` and inserts others at the same index. An array of fixed size keeps its length.
    Splice {
        /// Index of the first removed element, and of the first inserted one.
        at: u32,
        /// Number of removed elements.
        removed: u32,
        /// The inserted elements.
        inserted: Vec<Value>,
    },
}

/// What a change replaced, and where: the arguments of callbacks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The whole value: `set_x(old)`.
    Whole {
        /// The old value.
        old: Value,
    },
    /// A part of the value: `setNested_x(path, old)`.
    Nested {
        /// The path of the part.
        path: Path,
        /// The old value of the part.
        old: Value,
    },
    /// Elements of an array in the value: `setSlice_x(path, old)`.
    Slice {
        /// The path of the array.
        path: Path,
        /// The range of the new elements.
        range: Range<u32>,
        /// The old elements.
        old: Vec<Value>,
    },
}

/// Why a change was not applied. The value is unchanged.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The new value or elements do not fit.
    #[error("the value does not fit the type declared at {path}")]
    Mismatch {
        /// The path of the change.
        path: Path,
        /// The first part that does not fit.
        source: Box<Mismatch>,
    },
    /// The path leads into a value without parts.
    #[error("invalid path {path}: at step {step}, {found} has no parts that can be assigned")]
    NoParts {
        /// The whole path.
        path: Path,
        /// The first step that cannot be taken, from 0.
        step: usize,
        /// The type that has no parts.
        found: String,
    },
    /// The path names an element or field that does not exist.
    #[error("invalid path {path}: step {step} is beyond the {length} parts there")]
    OutOfRange {
        /// The whole path.
        path: Path,
        /// The step that does not exist, from 0.
        step: usize,
        /// The number of parts at that step.
        length: usize,
    },
    /// The path of a splice leads to a value that is not an array.
    #[error(
        "invalid path {path} for a slice: found {found}, but only elements of an ARRAY can be inserted, removed or \
         replaced"
    )]
    NotAnArray {
        /// The whole path.
        path: Path,
        /// The type at the path.
        found: String,
    },
    /// The array does not have the slice to be replaced.
    #[error("invalid slice from {at} to {end}: the array at {path} has {length} elements")]
    NoSlice {
        /// The path of the array.
        path: Path,
        /// Index of the first element of the slice.
        at: u32,
        /// Index behind the last element of the slice.
        end: u64,
        /// The length of the array.
        length: usize,
    },
}

impl Change {
    /// A change that replaces the whole value.
    #[must_use]
    pub fn whole(value: Value) -> Self {
        Self::part(Path::WHOLE, value)
    }

    /// A change that replaces the part at `path`.
    #[must_use]
    pub fn part(path: Path, value: Value) -> Self {
        Self {
            path,
            edit: Edit::Set(value),
        }
    }

    /// A change that replaces `removed` elements from `at` on in the array at `path`.
    #[must_use]
    pub fn splice(path: Path, at: u32, removed: u32, inserted: Vec<Value>) -> Self {
        Self {
            path,
            edit: Edit::Splice { at, removed, inserted },
        }
    }

    /// Whether the change replaces the whole value.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.path.0.is_empty() && matches!(self.edit, Edit::Set(_))
    }

    /// Whether the change leaves the value as it is.
    #[must_use]
    pub fn is_vain(&self, value: &Value) -> bool {
        let there = self.path.find(value);
        match &self.edit {
            Edit::Set(new) => there == Some(new),
            Edit::Splice { at, removed, inserted } => match there {
                Some(Value::Sequence(values)) => slice(values, *at, *removed) == Some(inserted.as_slice()),
                _ => false,
            },
        }
    }

    /// Checks whether the change can be applied to a value of this type.
    ///
    /// # Errors
    /// If the path does not exist, or the new value or elements do not fit there.
    pub fn check(&self, data_type: &DataType, value: &Value) -> Result<(), ChangeError> {
        let (data_type, value) = self.find(data_type, value)?;
        match &self.edit {
            Edit::Set(new) => check(data_type, new).map_err(|source| self.mismatch(source)),
            Edit::Splice { at, removed, inserted } => match (data_type, value) {
                (DataType::Array(sequence), Value::Sequence(values)) => {
                    slice(values, *at, *removed).ok_or_else(|| self.no_slice(*at, *removed, values.len()))?;
                    let length = values.len() - *removed as usize + inserted.len();
                    check_elements(sequence, *at, inserted, length).map_err(|source| self.mismatch(source))
                }
                _ => Err(self.not_an_array(data_type.to_string())),
            },
        }
    }

    /// Applies the change without a check of types, which was done when the change was decided.
    ///
    /// # Errors
    /// If the value does not have the place; `value` is then unchanged.
    pub fn make(&self, value: &mut Value) -> Result<Replaced, ChangeError> {
        let mut place = value;
        for (step, &index) in self.path.0.iter().enumerate() {
            let (Value::Sequence(parts) | Value::Dict(parts)) = place else {
                return Err(self.no_parts(step, place.kind().to_owned()));
            };
            let length = parts.len();
            place = parts
                .get_mut(index as usize)
                .ok_or_else(|| self.out_of_range(step, length))?;
        }
        match &self.edit {
            Edit::Set(new) => {
                let old = std::mem::replace(place, new.clone());
                let path = self.path.clone();
                Ok(if path.0.is_empty() {
                    Replaced::Whole { old }
                } else {
                    Replaced::Nested { path, old }
                })
            }
            Edit::Splice { at, removed, inserted } => {
                let Value::Sequence(values) = place else {
                    return Err(self.not_an_array(place.kind().to_owned()));
                };
                slice(values, *at, *removed).ok_or_else(|| self.no_slice(*at, *removed, values.len()))?;
                let start = *at as usize;
                let old = values.splice(start..start + *removed as usize, inserted.iter().cloned());
                let old = old.collect();
                let end = u32::try_from(start + inserted.len()).unwrap_or(u32::MAX);
                Ok(Replaced::Slice {
                    path: self.path.clone(),
                    range: *at..end,
                    old,
                })
            }
        }
    }

    /// The type and the value at the end of the path.
    fn find<'t, 'v>(
        &self,
        mut data_type: &'t DataType,
        mut value: &'v Value,
    ) -> Result<(&'t DataType, &'v Value), ChangeError> {
        for (step, &index) in self.path.0.iter().enumerate() {
            let index = index as usize;
            let (part_type, parts) = match (data_type, value) {
                (DataType::Array(sequence), Value::Sequence(values)) => (Some(&sequence.of), values),
                (DataType::FixedDict(dict), Value::Dict(values)) => {
                    (dict.fields.get(index).map(|field| &field.data_type), values)
                }
                _ => return Err(self.no_parts(step, data_type.to_string())),
            };
            match (part_type, parts.get(index)) {
                (Some(part_type), Some(part)) => (data_type, value) = (part_type, part),
                _ => return Err(self.out_of_range(step, parts.len())),
            }
        }
        Ok((data_type, value))
    }

    fn mismatch(&self, source: Mismatch) -> ChangeError {
        ChangeError::Mismatch {
            path: self.path.clone(),
            source: Box::new(source),
        }
    }

    fn no_parts(&self, step: usize, found: String) -> ChangeError {
        let path = self.path.clone();
        ChangeError::NoParts { path, step, found }
    }

    fn out_of_range(&self, step: usize, length: usize) -> ChangeError {
        let path = self.path.clone();
        ChangeError::OutOfRange { path, step, length }
    }

    fn not_an_array(&self, found: String) -> ChangeError {
        let path = self.path.clone();
        ChangeError::NotAnArray { path, found }
    }

    fn no_slice(&self, at: u32, removed: u32, length: usize) -> ChangeError {
        let path = self.path.clone();
        let end = u64::from(at) + u64::from(removed);
        ChangeError::NoSlice { path, at, end, length }
    }
}

/// Applies a change to a value of type `data_type`, and returns what it replaced. A `TUPLE` can only be replaced as a
/// whole.
///
/// # Errors
/// If the place does not exist, or the new value or elements do not fit there; `value` is then unchanged.
pub fn apply(data_type: &DataType, value: &mut Value, change: &Change) -> Result<Replaced, ChangeError> {
    change.check(data_type, value)?;
    change.make(value)
}

/// The elements of a slice; `None` if it is out of bounds.
fn slice(values: &[Value], at: u32, removed: u32) -> Option<&[Value]> {
    let start = at as usize;
    values.get(start..start.checked_add(removed as usize)?)
}

/// Checks that these elements can be inserted at `at` into an array whose length is then `length`.
fn check_elements(sequence: &Sequence, at: u32, inserted: &[Value], length: usize) -> Result<(), Mismatch> {
    if let Some(wanted) = sequence.size.filter(|&size| size as usize != length) {
        return Err(Problem::Size { wanted, found: length }.here());
    }
    for (found, limit) in [
        (length, longest(sequence)),
        (inserted.len(), longest_counted(&sequence.of)),
    ] {
        if found > limit {
            return Err(Problem::TooLong { found, limit }.here());
        }
    }
    for (i, value) in inserted.iter().enumerate() {
        check(&sequence.of, value).map_err(|mismatch| mismatch.inside(Step::Element(at as usize + i)))?;
    }
    Ok(())
}
