//! Moments as positions in the archive, and the end of each log there.

use std::collections::BTreeMap;

use annals_evidence::Until;
use annals_ids::{BatchNumber, Hash, OwnerId};

use crate::{
    answer::AuditError,
    index::Index,
    rows::{self, Where},
};

impl Index {
    /// Number of leaves of the archive before the end of a moment: all if `until` is none; otherwise up to the first
    /// batch closed after it by its writer's clock, as in the restoration of a realm to a moment.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub async fn leaves_until(&self, until: Option<Until>) -> Result<u64, AuditError> {
        let all = self.extent()?.leaves;
        match until {
            None => Ok(all),
            Some(Until::Leaf(leaf)) => Ok(all.min(leaf.0 + 1)),
            Some(Until::Wall(wall)) => match self.rows(rows::moments_after(wall), 1).await?.first() {
                Some((_, leaf)) => Ok(rows::decode_leaf(leaf).map_err(AuditError::Index)?.0),
                None => Ok(all),
            },
        }
    }

    /// The last batch of each log among the first `leaves` of the archive, with its verified hash. Logs that begin
    /// later are omitted.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub async fn ends(&self, leaves: u64) -> Result<BTreeMap<OwnerId, (BatchNumber, Hash)>, AuditError> {
        let mut ends = BTreeMap::new();
        for (&owner, tail) in self.tails() {
            let mut end = None;
            // The batches of a log are archived in their order.
            let (mut known, mut beyond) = (BatchNumber(0), tail.batch.next());
            while known.next() < beyond {
                let middle = BatchNumber(known.0 + (beyond.0 - known.0) / 2);
                let lies = self.find(owner, middle).await?;
                if lies.leaf.0 < leaves {
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
    pub async fn verified(&self, owner: OwnerId, batch: BatchNumber) -> Result<Option<Hash>, AuditError> {
        let at = annals_ids::LogPosition { owner, batch };
        Ok(self.lies(at).await?.map(|lies| lies.hash))
    }

    /// Position of a batch that must have been taken in.
    pub(crate) async fn find(&self, owner: OwnerId, batch: BatchNumber) -> Result<Where, AuditError> {
        let at = annals_ids::LogPosition { owner, batch };
        let lies = self.lies(at).await?;
        lies.ok_or_else(|| AuditError::Index(rows::damaged()))
    }
}
