//! Encoded sizes of values.

use std::{fmt, iter};

use crate::{
    data_type::{DataType, Form},
    stream::encode,
    value::Value,
};

/// The size of a value on the wire, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// All values take the same number of bytes.
    Fixed(usize),
    /// It depends on the value.
    Variable {
        /// The minimum of all values.
        least: usize,
        /// The size of the default.
        of_default: usize,
    },
}

impl Size {
    /// The size of values of a type; `of_default` is that of the type's own default.
    #[must_use]
    pub fn of(data_type: &DataType) -> Self {
        match data_type.stream_size() {
            Some(fixed) => Self::Fixed(fixed),
            None => Self::of_value(data_type, &data_type.default_value()),
        }
    }

    /// The size of values of a type, with `of_default` from this value.
    #[must_use]
    pub fn of_value(data_type: &DataType, default: &Value) -> Self {
        if let Some(fixed) = data_type.stream_size() {
            return Self::Fixed(fixed);
        }
        let mut bytes = Vec::new();
        let least = least(data_type);
        let of_default = match encode(data_type, default, Form::Whole, &mut bytes) {
            Ok(()) => bytes.len(),
            // A schema built by hand can have a default that does not fit.
            Err(_) => least,
        };
        Self::Variable { least, of_default }
    }

    /// The size, if it is fixed.
    #[must_use]
    pub fn fixed(self) -> Option<usize> {
        match self {
            Self::Fixed(bytes) => Some(bytes),
            Self::Variable { .. } => None,
        }
    }

    /// The minimum size.
    #[must_use]
    pub fn least(self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Variable { least, .. } => least,
        }
    }

    /// The size of the default.
    #[must_use]
    pub fn of_default(self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Variable { of_default, .. } => of_default,
        }
    }
}

/// The minimum size of a value of a type.
fn least(data_type: &DataType) -> usize {
    if let Some(fixed) = data_type.stream_size() {
        return fixed;
    }
    match data_type {
        DataType::Array(sequence) | DataType::Tuple(sequence) => match sequence.size {
            Some(size) => least(&sequence.of).saturating_mul(size as usize),
            None => 1,
        },
        DataType::FixedDict(dict) if !dict.allow_none => dict
            .fields
            .iter()
            .fold(0_usize, |sum, field| sum.saturating_add(least(&field.data_type))),
        // A length of zero, or the mark of None.
        _ => 1,
    }
}

/// Concatenated arguments.
impl iter::Sum for Size {
    fn sum<I: Iterator<Item = Self>>(sizes: I) -> Self {
        sizes.fold(Self::Fixed(0), |sum, size| match (sum, size) {
            (Self::Fixed(a), Self::Fixed(b)) => Self::Fixed(a.saturating_add(b)),
            (a, b) => Self::Variable {
                least: a.least().saturating_add(b.least()),
                of_default: a.of_default().saturating_add(b.of_default()),
            },
        })
    }
}

/// `4 B`, `1+ B`.
impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Fixed(bytes) => f.pad(&format!("{bytes} B")),
            Self::Variable { least, .. } => f.pad(&format!("{least}+ B")),
        }
    }
}
