//! Moments as positions in the archives, and the end of each log there.
//!
//! Every batch has a [`Seat`] in one order of all batches: that of the archive within a shard, and by the clocks of the
//! writers between shards, as archives of different shards are in no order (rule T3). A cut is a prefix of that order,
//! so of any two cuts one is within the other.

use async_recursion::async_recursion as boxed;
use std::collections::BTreeMap;

use annals_evidence::{Cut, Until};
use annals_ids::{BatchNumber, Hash, LeafIndex, LogPosition, OwnerId, Shard};
use annals_store::KeyRange;

use crate::{
    answer::AuditError,
    index::Index,
    rows::{self, Seat, Where},
};

impl Index {
    /// The archives before the end of a moment: all of them if `until` is none; otherwise each up to the first batch
    /// closed after it by its writer's clock, as in the restoration of a realm to a moment.
    ///
    /// # Errors
    /// When the index cannot be read.
    #[boxed]
    pub async fn cut(&self, until: Option<&Until>) -> Result<Cut, AuditError> {
        let all = |shard| (shard, self.leaves(shard));
        match until {
            None => Ok(self.shards().map(all).collect()),
            Some(Until::Cut(cut)) => {
                let within = self.shards().map(all);
                Ok(within
                    .map(|(shard, leaves)| (shard, leaves.min(cut.leaves(shard))))
                    .collect())
            }
            Some(Until::Wall(wall)) => {
                let mut cut = Vec::new();
                for shard in self.shards() {
                    cut.push((
                        shard,
                        self.leaves_before(shard, rows::moments_after(shard, *wall)).await?,
                    ));
                }
                Ok(cut.into_iter().collect())
            }
        }
    }

    /// All batches up to this one, in the order of the index.
    pub(crate) async fn cut_after(&self, seat: Seat) -> Result<Cut, AuditError> {
        self.cut_at(seat, seat.leaf.leaf.0 + 1).await
    }

    /// All batches before this one, in the order of the index.
    pub(crate) async fn cut_before(&self, seat: Seat) -> Result<Cut, AuditError> {
        self.cut_at(seat, seat.leaf.leaf.0).await
    }

    async fn cut_at(&self, Seat { moment, leaf }: Seat, leaves: u64) -> Result<Cut, AuditError> {
        let mut cut = Vec::new();
        for shard in self.shards() {
            // Of batches of the same moment, those of the shard with the smaller number are first.
            let later = match shard < leaf.shard {
                true => rows::moments_after(shard, moment),
                false => rows::moments_from(shard, moment),
            };
            cut.push(match shard == leaf.shard {
                true => (shard, leaves),
                false => (shard, self.leaves_before(shard, later).await?),
            });
        }
        Ok(cut.into_iter().collect())
    }

    /// Number of leaves of a shard before the first of these moments.
    async fn leaves_before(&self, shard: Shard, moments: KeyRange) -> Result<u64, AuditError> {
        match self.rows(moments, 1).await?.first() {
            Some((_, leaf)) => {
                let LeafIndex(leaves) = rows::decode_leaf(leaf).map_err(AuditError::Index)?;
                Ok(leaves)
            }
            None => Ok(self.leaves(shard)),
        }
    }

    /// The last batch of each log within a cut, with its verified hash. Logs that begin later are omitted.
    ///
    /// # Errors
    /// When the index cannot be read.
    #[boxed]
    pub async fn ends(&self, cut: &Cut) -> Result<BTreeMap<OwnerId, (BatchNumber, Hash)>, AuditError> {
        let mut ends = BTreeMap::new();
        for (&owner, log) in self.log_ends() {
            let mut end = None;
            // The batches of a log are archived in their order.
            let (mut known, mut beyond) = (BatchNumber(0), log.tail.batch.next());
            while known.next() < beyond {
                let middle = BatchNumber(known.0 + (beyond.0 - known.0) / 2);
                let lies = self.find(owner, middle).await?;
                if cut.has(lies.seat.leaf) {
                    (known, end) = (middle, Some((middle, lies.hash)));
                } else {
                    beyond = middle;
                }
            }
            if let Some(end) = end {
                ends.insert(owner, end);
            }
        }
        Ok(ends)
    }

    /// The hash with which a batch was verified; `None` if it was not.
    ///
    /// # Errors
    /// When the index cannot be read.
    #[boxed]
    pub async fn verified(&self, owner: OwnerId, batch: BatchNumber) -> Result<Option<Hash>, AuditError> {
        let at = LogPosition { owner, batch };
        Ok(self.lies(at).await?.map(|lies| lies.hash))
    }

    /// Position of a batch that must have been taken in.
    pub(crate) async fn find(&self, owner: OwnerId, batch: BatchNumber) -> Result<Where, AuditError> {
        let at = LogPosition { owner, batch };
        let lies = self.lies(at).await?;
        lies.ok_or_else(|| AuditError::Index(rows::damaged()))
    }
}
