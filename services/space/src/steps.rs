//! Movements between two updates: bodies that appeared, vanished or moved.

use std::cmp::Ordering;

use annals_ids::{EntityId, Position};

/// Position of an absent body: infinitely far from everything.
pub(crate) const NOWHERE: [f32; 2] = [f32::INFINITY; 2];

/// A body, by its index among all bodies; removed bodies follow the present ones.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Who(pub(crate) u32);

/// Position at the last update and position now: x and z, metres.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) was: [f32; 2],
    pub(crate) is: [f32; 2],
}

impl Step {
    /// From optional positions; a missing one is [`NOWHERE`].
    pub(crate) fn between(was: Option<Position>, is: Option<Position>) -> Self {
        let flat = |at: Option<Position>| at.map_or(NOWHERE, |at| [at.x, at.z]);
        Self {
            was: flat(was),
            is: flat(is),
        }
    }

    /// A step without movement, at the present position.
    pub(crate) fn arrived(self) -> Self {
        Self { was: self.is, ..self }
    }

    /// Distance moved, along the farther axis.
    pub(crate) fn length(self) -> f32 {
        distance(self.was, self.is)
    }
}

/// Distance of two positions, along the farther axis.
#[inline]
pub(crate) fn distance(one: [f32; 2], other: [f32; 2]) -> f32 {
    let (x, z) = ((one[0] - other[0]).abs(), (one[1] - other[1]).abs());
    // Equals `max` without NaN, with half the instructions when many are compared at once.
    if x > z { x } else { z }
}

/// Joins two iterators by key; both ascend by it.
pub(crate) fn paired<W, I>(
    was: impl IntoIterator<Item = W>,
    is: impl IntoIterator<Item = I>,
    key_of_was: impl Fn(&W) -> EntityId,
    key_of_is: impl Fn(&I) -> EntityId,
) -> impl Iterator<Item = (Option<W>, Option<I>)> {
    let (mut was, mut is) = (was.into_iter().peekable(), is.into_iter().peekable());
    std::iter::from_fn(move || {
        let order = match (was.peek(), is.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(before), Some(now)) => key_of_was(before).cmp(&key_of_is(now)),
        };
        Some(match order {
            Ordering::Less => (was.next(), None),
            Ordering::Equal => (was.next(), is.next()),
            Ordering::Greater => (None, is.next()),
        })
    })
}
