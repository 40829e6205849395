//! Changes that can be read without the value to which they apply.
//!
//! A client receives a path in as few bits as distinguish each step from its neighbours. The sender may hold a value
//! that has changed since and no longer knows how many neighbours there were, so a change carries these numbers.
//!
//! ```text
//! packed path of a part   = (1 index)* 0 index
//! packed path of a slice  = (1 index)* 0 start end
//! ```
//! An index among n parts takes as many bits as distinguish n values; the start of a slice, and the end of what it
//! replaces, as many as distinguish n + 1 values, n being the length of the array. The first index is that of the
//! property. Bits are written the most significant first; zeroes fill the last byte.

use std::ops::Range;

use super::{
    Change, Edit, Replaced,
    bits::{BitReader, BitWriter, bits_required},
};
use crate::{data_type::MAX_LENGTH, path::Path, value::Value};

/// A change with the number of parts at each step of its path, and the length of the array for a slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Located {
    change: Change,
    /// One number per step of the path, and one more for a slice.
    parts: Vec<u32>,
}

/// Why a change does not fit a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the change was made to a value with another structure")]
pub struct OtherShape;

impl Located {
    /// The change with the numbers of parts of `value`; `None` if `value` does not have the place.
    #[must_use]
    pub fn new(change: Change, value: &Value) -> Option<Self> {
        let parts = count_parts(&change, value)?;
        Some(Self { change, parts })
    }

    /// The change with these numbers of parts; `None` if their count does not match the path, an index is out of
    /// bounds, or a number is above what a value can have.
    #[must_use]
    pub fn with_parts(change: Change, parts: Vec<u32>) -> Option<Self> {
        if parts.iter().any(|&parts| parts as usize > MAX_LENGTH) {
            return None;
        }
        let steps = change.path.0.len();
        let inside = change.path.0.iter().zip(&parts).all(|(index, parts)| index < parts);
        let fits = match &change.edit {
            Edit::Set(_) => parts.len() == steps,
            Edit::Splice { at, removed, .. } => {
                let end = at.checked_add(*removed);
                parts.len() == steps + 1 && end.is_some_and(|end| end <= parts[steps])
            }
        };
        (inside && fits).then_some(Self { change, parts })
    }

    /// A change that replaces the whole value.
    #[must_use]
    pub fn whole(value: Value) -> Self {
        Self {
            change: Change::whole(value),
            parts: Vec::new(),
        }
    }

    /// The change itself.
    #[must_use]
    pub fn change(&self) -> &Change {
        &self.change
    }

    /// The number of parts at each step of the path, and the length of the array for a slice.
    #[must_use]
    pub fn parts(&self) -> &[u32] {
        &self.parts
    }

    /// Applies the change to a value of the same shape as the one that it was first applied to.
    ///
    /// # Errors
    /// If the number of parts differs somewhere on the path; `value` is then unchanged.
    pub fn make(&self, value: &mut Value) -> Result<Replaced, OtherShape> {
        if count_parts(&self.change, value).as_ref() != Some(&self.parts) {
            return Err(OtherShape);
        }
        self.change.make(value).map_err(|_| OtherShape)
    }

    /// Appends the packed path, for property `property` of `properties`.
    pub fn pack(&self, (property, properties): (u32, u32), out: &mut Vec<u8>) {
        let mut bits = BitWriter::default();
        let steps = self.change.path.0.iter().copied().zip(self.parts.iter().copied());
        let mut steps: Vec<(u32, u32)> = std::iter::once((property, properties)).chain(steps).collect();
        let last = match &self.change.edit {
            Edit::Set(_) => steps.pop(),
            Edit::Splice { .. } => None,
        };
        for (index, parts) in steps {
            bits.put(1, 1);
            bits.put(bits_required(parts), index);
        }
        bits.put(1, 0);
        if let Some((index, parts)) = last {
            bits.put(bits_required(parts), index);
        }
        if let (Edit::Splice { at, removed, .. }, Some(length)) = (&self.change.edit, self.parts.last()) {
            let width = slice_width(*length);
            bits.put(width, *at);
            bits.put(width, at + removed);
        }
        out.extend(bits.finish());
    }
}

/// The number of parts at each step of the path, and the length of the array for a slice.
fn count_parts(change: &Change, value: &Value) -> Option<Vec<u32>> {
    let mut parts = Vec::with_capacity(change.path.0.len() + 1);
    let mut place = value;
    for &index in &change.path.0 {
        let (Value::Sequence(values) | Value::Dict(values)) = place else {
            return None;
        };
        parts.push(number_of(values)?);
        place = values.get(index as usize)?;
    }
    if let Edit::Splice { at, removed, .. } = &change.edit {
        let Value::Sequence(values) = place else { return None };
        let length = number_of(values)?;
        at.checked_add(*removed).filter(|&end| end <= length)?;
        parts.push(length);
    }
    Some(parts)
}

/// The number of these parts, if a value can have so many.
fn number_of(parts: &[Value]) -> Option<u32> {
    u32::try_from(parts.len()).ok().filter(|_| parts.len() <= MAX_LENGTH)
}

/// Bits of the start of a slice, and of its end. In an array of `length` elements, at most [`MAX_LENGTH`], there are
/// `length + 1` positions: before each element and behind the last.
fn slice_width(length: u32) -> u32 {
    bits_required(length + 1)
}

/// An unpacked path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackedPath {
    /// The property's index.
    pub property: u32,
    /// The path in the property; that of the array for a slice.
    pub path: Path,
    /// The replaced range of the array at the path, for a slice.
    pub slice: Option<Range<u32>>,
}

/// Reads a packed path from the front of `bytes`, and advances `bytes` behind it. `held` returns the values of the
/// properties, by index.
///
/// `None` if the path does not exist in these values, or is not in canonical form; `bytes` is then unchanged.
pub fn unpack_path<'v>(
    bytes: &mut &[u8],
    is_slice: bool,
    properties: u32,
    held: impl FnOnce(u32) -> Option<&'v Value>,
) -> Option<PackedPath> {
    let mut bits = BitReader::new(bytes);
    let mut more = bits.take(1)? == 1;
    if !more && is_slice {
        return None;
    }
    let property = take_index(&mut bits, properties)?;
    let mut place = held(property)?;
    let mut path = Path::WHOLE;
    while more {
        more = bits.take(1)? == 1;
        if !more && is_slice {
            break;
        }
        let (Value::Sequence(values) | Value::Dict(values)) = place else {
            return None;
        };
        let parts = number_of(values)?;
        let index = take_index(&mut bits, parts)?;
        path.0.push(index);
        place = values.get(index as usize)?;
    }
    let slice = if is_slice {
        Some(take_slice(&mut bits, place)?)
    } else {
        None
    };
    *bytes = bits.finish()?;
    Some(PackedPath { property, path, slice })
}

fn take_slice(bits: &mut BitReader<'_>, place: &Value) -> Option<Range<u32>> {
    let Value::Sequence(values) = place else {
        return None;
    };
    let length = number_of(values)?;
    let width = slice_width(length);
    let (start, end) = (bits.take(width)?, bits.take(width)?);
    (start <= end && end <= length).then_some(start..end)
}

fn take_index(bits: &mut BitReader<'_>, parts: u32) -> Option<u32> {
    bits.take(bits_required(parts)).filter(|&index| index < parts)
}
