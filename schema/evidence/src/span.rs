//! The part of the past that a question covers.

use std::{collections::BTreeMap, fmt};

use annals_ids::{LeafIndex, Shard, WallTime};

use crate::Cited;

/// A leaf of the archive of a shard. Leaves of different shards are in no order of time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct ShardLeaf {
    pub shard: Shard,
    /// Its index in the shard's tree.
    pub leaf: LeafIndex,
}

impl fmt::Display for ShardLeaf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of shard {}", self.leaf, self.shard)
    }
}

/// A prefix of the archive of each shard: its number of leaves.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cut(BTreeMap<Shard, u64>);

/// The end of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Until {
    /// Everything done up to this moment, by the recorded wall time.
    Wall(WallTime),
    /// Everything in these prefixes of the archives. The order of one archive is causal.
    Cut(Cut),
}

/// A time span; unbounded on a side that is not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Span {
    /// The beginning, inclusive.
    pub since: Option<WallTime>,
    /// The end, inclusive.
    pub until: Option<Until>,
}

impl Cut {
    /// Number of leaves of a shard's archive.
    #[must_use]
    pub fn leaves(&self, shard: Shard) -> u64 {
        self.0.get(&shard).copied().unwrap_or(0)
    }

    /// Whether a leaf is in it.
    #[must_use]
    pub fn has(&self, at: ShardLeaf) -> bool {
        at.leaf.0 < self.leaves(at.shard)
    }

    /// Number of leaves of each shard.
    pub fn shards(&self) -> impl Iterator<Item = (Shard, u64)> {
        self.0.iter().map(|(shard, leaves)| (*shard, *leaves))
    }

    /// Number of leaves of all shards.
    #[must_use]
    pub fn batches(&self) -> u64 {
        self.0.values().sum()
    }

    /// Whether all of its leaves are in the other one.
    #[must_use]
    pub fn is_within(&self, other: &Self) -> bool {
        self.shards().all(|(shard, leaves)| leaves <= other.leaves(shard))
    }

    /// Extends it by the leaves of another one.
    pub fn include(&mut self, other: &Self) {
        for (shard, leaves) in other.shards() {
            let own = self.0.entry(shard).or_default();
            *own = leaves.max(*own);
        }
    }
}

impl FromIterator<(Shard, u64)> for Cut {
    fn from_iter<T: IntoIterator<Item = (Shard, u64)>>(shards: T) -> Self {
        Self(shards.into_iter().collect())
    }
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
    pub fn covers(&self, leaf: ShardLeaf, wall: WallTime) -> bool {
        self.ends_after(leaf, wall) && self.since.is_none_or(|since| wall >= since)
    }

    fn ends_after(&self, leaf: ShardLeaf, wall: WallTime) -> bool {
        match &self.until {
            None => true,
            Some(Until::Wall(until)) => wall <= *until,
            Some(Until::Cut(cut)) => cut.has(leaf),
        }
    }
}
