//! The segments of a realm's archive, listed.

use std::fmt;

use annals_audit::archive::read_tree;
use annals_ids::{LeafIndex, Shard, WallTime};
use annals_store::{Store, StoreError, archive, segment::Segment};

use crate::tail::clock;

/// The segments of an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segments {
    /// When the realm began.
    began: WallTime,
    /// Its segments, in order.
    pub sealed: Vec<Segment>,
    /// How many leaves the archive has.
    pub leaves: u64,
}

impl Segments {
    /// Lists the segments of a shard.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn list(store: &Store, shard: Shard, began: WallTime) -> Result<Self, StoreError> {
        let sealed = archive::read_segments(store, shard).await?;
        // Read after the segments: the archive only grows.
        let leaves = read_tree(store, shard).await?.size;
        Ok(Self { began, sealed, leaves })
    }
}

impl fmt::Display for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for segment in &self.sealed {
            let since = |wall: WallTime| clock(wall.0.saturating_sub(self.began.0));
            write!(
                f,
                "leaves {} to {}  {} to {}  {} B in {} B, {} blocks  {}  owners",
                segment.first,
                segment.last,
                since(segment.earliest),
                since(segment.latest),
                segment.bytes,
                segment.stored(),
                segment.blocks.len(),
                segment.name(),
            )?;
            for run in &segment.runs {
                write!(f, " {}@{}-{}", run.owner, run.first, run.last)?;
            }
            writeln!(f)?;
        }
        let first = self
            .sealed
            .last()
            .map_or(LeafIndex(0), |last| LeafIndex(last.last.0 + 1));
        let loose = self.leaves.saturating_sub(first.0);
        write!(
            f,
            "{} segments; {loose} of {} leaves are not sealed yet",
            self.sealed.len(),
            self.leaves
        )
    }
}
