//! What has changed between two updates: who came, who went, who moved from where to where.

use std::cmp::Ordering;

use annals_ids::{EntityId, Position};

/// Where something is that is nowhere: infinitely far from everything.
pub(crate) const NOWHERE: [f32; 2] = [f32::INFINITY; 2];

/// A body, by its place among all there are; behind them come those that are no more.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Who(pub(crate) u32);

/// Where something was at the last update and where it is now: x and z, metres.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Step {
    pub(crate) was: [f32; 2],
    pub(crate) is: [f32; 2],
}

impl Step {
    /// Of something that was nowhere, or is nowhere any more, where there is no position.
    pub(crate) fn between(was: Option<Position>, is: Option<Position>) -> Self {
        let flat = |at: Option<Position>| at.map_or(NOWHERE, |at| [at.x, at.z]);
        Self {
            was: flat(was),
            is: flat(is),
        }
    }

    /// The same place, if nothing had moved.
    pub(crate) fn arrived(self) -> Self {
        Self { was: self.is, ..self }
    }

    /// How far it went along the axis on which it went farther.
    pub(crate) fn length(self) -> f32 {
        distance(self.was, self.is)
    }
}

/// How far two places are apart along the axis on which they are farther apart.
#[inline]
pub(crate) fn distance(one: [f32; 2], other: [f32; 2]) -> f32 {
    let (x, z) = ((one[0] - other[0]).abs(), (one[1] - other[1]).abs());
    // As `max` would be if there were no NaN, and half the instructions where many are compared at once.
    if x > z { x } else { z }
}

/// Puts together what has the same key in both; both ascend by it.
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
