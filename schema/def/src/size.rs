//! How many bytes values take.

use std::{fmt, iter};

use crate::{
    data_type::{DataType, Form},
    stream::encode,
    value::Value,
};

/// The bytes of a value on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// Every value takes as many.
    Fixed(usize),
    /// It depends on the value.
    Variable {
        /// The least that any value takes.
        least: usize,
        /// What the default takes.
        of_default: usize,
    },
}

impl Size {
    /// The size of values of a type, the type's own default among them.
    #[must_use]
    pub fn of(data_type: &DataType) -> Self {
        match data_type.stream_size() {
            Some(fixed) => Self::Fixed(fixed),
            None => Self::of_value(data_type, &data_type.default_value()),
        }
    }

    /// The size of values of a type, one of which is known.
    #[must_use]
    pub fn of_value(data_type: &DataType, default: &Value) -> Self {
        if let Some(fixed) = data_type.stream_size() {
            return Self::Fixed(fixed);
        }
        let mut bytes = Vec::new();
        let least = least(data_type);
        let of_default = match encode(data_type, default, Form::Whole, &mut bytes) {
            Ok(()) => bytes.len(),
            // A schema put together by hand can have a default that does not fit.
            Err(_) => least,
        };
        Self::Variable { least, of_default }
    }

    /// The bytes, if there are always as many.
    #[must_use]
    pub fn fixed(self) -> Option<usize> {
        match self {
            Self::Fixed(bytes) => Some(bytes),
            Self::Variable { .. } => None,
        }
    }

    /// The least bytes that any value takes.
    #[must_use]
    pub fn least(self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Variable { least, .. } => least,
        }
    }

    /// The bytes that the default takes.
    #[must_use]
    pub fn of_default(self) -> usize {
        match self {
            Self::Fixed(bytes) => bytes,
            Self::Variable { of_default, .. } => of_default,
        }
    }
}

/// The least bytes that a value of a type takes.
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
        // The length of nothing, or the mark of None.
        _ => 1,
    }
}

/// Arguments one after the other.
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
