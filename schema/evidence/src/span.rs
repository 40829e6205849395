//! The part of the past that a question covers.

use annals_ids::{LeafIndex, WallTime};

use crate::Cited;

/// The end of a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// Everything done up to this moment, by the recorded wall time.
    Wall(WallTime),
    /// Everything in the archive up to this leaf, in the order of the archive, which is causal.
    Leaf(LeafIndex),
}

/// A time span; unbounded on a side that is not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The beginning, inclusive.
    pub since: Option<WallTime>,
    /// The end, inclusive.
    pub until: Option<Until>,
}

impl Span {
    /// Whether an entry had happened by the end of the span.
    #[must_use]
    pub fn had_come_to(&self, cited: &Cited) -> bool {
        self.ends_after(cited.leaf, cited.entry.wall)
    }

    /// Whether an entry happened within it.
    #[must_use]
    pub fn holds(&self, cited: &Cited) -> bool {
        self.covers(cited.leaf, cited.entry.wall)
    }

    /// Whether an event in that leaf, at that time, is within it.
    #[must_use]
    pub fn covers(&self, leaf: LeafIndex, wall: WallTime) -> bool {
        self.ends_after(leaf, wall) && self.since.is_none_or(|since| wall >= since)
    }

    fn ends_after(&self, leaf: LeafIndex, wall: WallTime) -> bool {
        match self.until {
            None => true,
            Some(Until::Wall(until)) => wall <= until,
            Some(Until::Leaf(until)) => leaf <= until,
        }
    }
}
