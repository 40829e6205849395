//! Which part of the past is asked about.

use annals_ids::{LeafIndex, WallTime};

use crate::Cited;

/// Up to when.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Until {
    /// What was done up to this moment, by the clock of whoever was asked.
    Wall(WallTime),
    /// What is in the archive up to this leaf, the order in which all happened that depends on one another.
    Leaf(LeafIndex),
}

/// From when to when; everything, if neither is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// From this moment on.
    pub since: Option<WallTime>,
    /// Up to there.
    pub until: Option<Until>,
}

impl Span {
    /// Whether something had happened by the end of the span.
    #[must_use]
    pub fn had_come_to(&self, cited: &Cited) -> bool {
        self.ends_after(cited.leaf, cited.entry.wall)
    }

    /// Whether something happened within it.
    #[must_use]
    pub fn holds(&self, cited: &Cited) -> bool {
        self.covers(cited.leaf, cited.entry.wall)
    }

    /// Whether what is in that leaf, and was done then, is within it.
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
