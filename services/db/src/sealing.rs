//! Sealing: moves archived batches from single rows into compressed segments.
//!
//! A sealer gathers archived batches in order until they fill a segment, and replaces them by it in one transaction,
//! conditional on the fold lease. A crash leaves one form or the other; the next sealer begins after the newest
//! segment.

use annals_event::Header;
use annals_ids::{LeafIndex, Shard};
use annals_store::{
    ArchivedBatch, Store, StoreError, Transaction, archive,
    segment::{self, Leaf, SEGMENT_BYTES, SEGMENT_LEAVES, Segment},
};
use async_recursion::async_recursion as boxed;

use crate::fold::{FoldError, check_lease, unless_superseded};

/// Bytes of batches read in one transaction: well within the 5 s that one may last.
const READ_BYTES: usize = 1 << 20;

/// Seals a shard's archive for as long as its [`crate::Folder`] folds it.
pub struct Sealer {
    store: Store,
    shard: Shard,
    term: u64,
    /// Maximum leaves of a segment.
    most: usize,
    /// Archived batches that are not sealed yet, in order.
    gathered: Vec<Leaf>,
    bytes: usize,
    /// Next leaf to read; `None` if unknown.
    next: Option<LeafIndex>,
}

impl Sealer {
    pub(crate) fn new(store: Store, shard: Shard, term: u64) -> Self {
        Self {
            store,
            shard,
            term,
            most: SEGMENT_LEAVES,
            gathered: Vec::new(),
            bytes: 0,
            next: None,
        }
    }

    /// Seals segments of at most `most` leaves.
    #[must_use]
    pub fn of_leaves(mut self, most: usize) -> Self {
        self.most = most.clamp(1, SEGMENT_LEAVES);
        self
    }

    /// Seals the next segment, if there are enough leaves for a whole one.
    ///
    /// # Errors
    /// When another db process folds the shard, or the store cannot be used.
    #[boxed]
    pub async fn seal_next(&mut self) -> Result<Option<Segment>, FoldError> {
        let sealed = match self.gather().await {
            Ok(Some(count)) => self.seal(count).await.map(Some),
            Ok(None) => return Ok(None),
            Err(error) => Err(error),
        };
        match sealed {
            Ok(sealed) => Ok(sealed),
            Err(error) => {
                self.gathered.clear();
                self.bytes = 0;
                self.next = None;
                Err(unless_superseded(&self.store, self.shard, self.term, error).await)
            }
        }
    }

    /// Reads on until there is enough for a segment. Returns its number of leaves.
    async fn gather(&mut self) -> Result<Option<usize>, FoldError> {
        let shard = self.shard;
        loop {
            if let Some(count) = self.whole() {
                return Ok(Some(count));
            }
            let next = match self.next {
                Some(next) => next,
                None => {
                    self.store
                        .read(|transaction| async move { end(&transaction, shard).await })
                        .await?
                }
            };
            let read = |transaction: Transaction| async move {
                archive::read_loose(&transaction, shard, next, READ_BYTES).await
            };
            let found = self.store.read(read).await?;
            let mut next = next;
            let is_end = found.is_empty();
            for (index, archived) in found {
                if index != next {
                    return Err(StoreError::Corrupt(format!("the archive lacks leaf {next}").into()).into());
                }
                self.bytes += archived.size();
                self.gathered.push(leaf(index, archived)?);
                next = LeafIndex(next.0 + 1);
            }
            self.next = Some(next);
            if is_end {
                return Ok(None);
            }
        }
    }

    /// Number of gathered leaves that make a segment, if there are enough.
    fn whole(&self) -> Option<usize> {
        if self.bytes < SEGMENT_BYTES && self.gathered.len() < self.most {
            return None;
        }
        let mut bytes = 0;
        let fits = |leaf: &&Leaf| {
            bytes += leaf.archived.size();
            bytes <= SEGMENT_BYTES
        };
        let count = self.gathered.iter().take(self.most).take_while(fits).count();
        Some(count.max(1))
    }

    async fn seal(&mut self, count: usize) -> Result<Segment, FoldError> {
        let leaves: Vec<Leaf> = self.gathered.drain(..count).collect();
        self.bytes -= leaves.iter().map(|leaf| leaf.archived.size()).sum::<usize>();
        let (segment, blocks) = segment::seal(self.shard, leaves)?;
        let (shard, term) = (self.shard, self.term);
        let (sealed, blocks) = (&segment, &blocks);
        let work = |transaction: Transaction| async move {
            check_lease(&transaction, shard, term).await?;
            // An earlier attempt was applied but its answer was lost.
            if end(&transaction, shard).await? == sealed.first {
                archive::write_segment(&transaction, sealed, blocks)?;
            }
            Ok::<_, FoldError>(())
        };
        self.store.run_repeatable(work).await?;
        Ok(segment)
    }
}

/// The first leaf that is not sealed.
async fn end(transaction: &Transaction, shard: Shard) -> Result<LeafIndex, StoreError> {
    let newest = archive::newest_segment(transaction, shard).await?;
    Ok(newest.map_or(LeafIndex(0), |newest| LeafIndex(newest.last.0 + 1)))
}

/// Makes a leaf from an archived batch and its header.
///
/// # Errors
/// [`StoreError::Corrupt`] when the bytes are not a batch.
pub fn leaf(index: LeafIndex, archived: ArchivedBatch) -> Result<Leaf, StoreError> {
    let damaged = |error| StoreError::Corrupt(format!("leaf {index} of the archive is not a batch: {error}").into());
    let (header, _) = Header::read(archived.header()).map_err(damaged)?;
    Ok(Leaf {
        leaf: index,
        owner: header.owner,
        batch: header.number,
        wall: header.wall,
        archived,
    })
}
