//! A change of a member's value: the whole of it, a part of it, or a slice of an array in it.
//!
//! [`apply`] is how values change wherever there is a schema; [`Change::make`] does the same where the log is folded, which
//! knows no types because everything in it was checked before it was written. [`difference`] finds the changes that lead
//! from one value to another. [`Located`] is a change with what others need to read it who do not hold the value.

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

/// What to do at which place of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Where: an element or field at each step, empty for the whole value. For [`Edit::Splice`] the way to the array.
    pub path: Path,
    /// What.
    pub edit: Edit,
}

/// What to do at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Edit {
    /// Put this value there.
    Set(Value),
    /// Take elements out of an `ARRAY` and put others in their place. One of a fixed size keeps its length.
    Splice {
        /// The index of the first element taken out, and of the first put in.
        at: u32,
        /// How many are taken out.
        removed: u32,
        /// What is put in.
        inserted: Vec<Value>,
    },
}

/// What a change has replaced, and where: what callbacks are told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Replaced {
    /// The whole value: `set_x(old)`.
    Whole {
        /// What was there.
        old: Value,
    },
    /// A part of it: `setNested_x(path, old)`.
    Nested {
        /// Where.
        path: Path,
        /// What was there.
        old: Value,
    },
    /// Elements of an array in it: `setSlice_x(path, old)`.
    Slice {
        /// Which array.
        path: Path,
        /// Where in it the new elements are.
        range: Range<u32>,
        /// The elements that were there.
        old: Vec<Value>,
    },
}

/// Why nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// The new value or elements do not fit.
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
    /// Elements were to be put into something that is no array.
    #[error("{path} leads to {found}: only the elements of an ARRAY can be inserted, removed or replaced together")]
    NotAnArray {
        /// The whole path.
        path: Path,
        /// The type that is there.
        found: String,
    },
    /// The slice to be replaced is not there.
    #[error("the array at {path} has {length} elements, and no slice from {at} to {end}")]
    NoSlice {
        /// Which array.
        path: Path,
        /// The first of them.
        at: u32,
        /// The one after the last.
        end: u64,
        /// How many elements there are.
        length: usize,
    },
}

impl Change {
    /// The whole value becomes this one.
    #[must_use]
    pub fn whole(value: Value) -> Self {
        Self::part(Path::WHOLE, value)
    }

    /// The part at `path` becomes this value.
    #[must_use]
    pub fn part(path: Path, value: Value) -> Self {
        Self {
            path,
            edit: Edit::Set(value),
        }
    }

    /// In the array at `path`, `removed` elements from `at` on give way to others.
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

    /// Whether the value is the same after the change as before.
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

    /// Whether the change can be made to a value of this type.
    ///
    /// # Errors
    /// What is wrong with it.
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

    /// Makes the change, which was checked when it was decided on: only whether the value has such a place matters.
    ///
    /// # Errors
    /// If it has none; `value` is then as before.
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

/// Makes a change to a value of type `data_type`, and returns what it replaced. A `TUPLE` has no parts that can be changed,
/// only the whole of it.
///
/// # Errors
/// If there is no such place, or what is new does not fit there; `value` is then as before.
pub fn apply(data_type: &DataType, value: &mut Value, change: &Change) -> Result<Replaced, ChangeError> {
    change.check(data_type, value)?;
    change.make(value)
}

/// The elements of a slice, if they are there.
fn slice(values: &[Value], at: u32, removed: u32) -> Option<&[Value]> {
    let start = at as usize;
    values.get(start..start.checked_add(removed as usize)?)
}

/// Whether these elements fit an array from `at` on, which then has this length.
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
