//! The trees that stored checkpoints of certain logs state, newest first. Checkpoints that are not signed by these logs
//! are ignored.

use annals_proof::{SignedNote, TreeHead, Trust};
use annals_store::{KeyRange, ScanOrder, Store, StoreError, Transaction, layout::checkpoints};

use super::Signer;
use crate::signer::stored::LOOKED_AT;

/// A reader of checkpoints, page by page.
pub(super) struct StoredHeads {
    logs: Vec<Trust>,
    /// The rows that were not read; `None` after the last page.
    rest: Option<KeyRange>,
}

impl StoredHeads {
    /// The trees of these logs.
    pub(super) fn of(signer: &Signer, logs: Vec<Trust>) -> Self {
        let rest = Some(checkpoints::checkpoints(signer.shard));
        Self { logs, rest }
    }

    /// The trees in the next page of rows, which can be none; `None` after the last page.
    ///
    /// # Errors
    /// When the store does not answer.
    pub(super) async fn page(&mut self, store: &Store) -> Result<Option<Vec<TreeHead>>, StoreError> {
        let Some(range) = self.rest.take() else {
            return Ok(None);
        };
        let rows = &range;
        let read =
            |transaction: Transaction| async move { transaction.get_range(rows, LOOKED_AT, ScanOrder::Reverse).await };
        let page = store.read(read).await?;
        let oldest = page.rows.last().filter(|_| page.more);
        self.rest = oldest.map(|(oldest, _)| KeyRange::new(range.begin.clone(), oldest.clone()));
        Ok(Some(
            page.rows.iter().filter_map(|(_, value)| self.head_in(value)).collect(),
        ))
    }

    fn head_in(&self, value: &[u8]) -> Option<TreeHead> {
        let note = SignedNote::parse(value).ok()?;
        let trusted = self.logs.iter().find_map(|log| log.check(&note).ok());
        Some(trusted?.checkpoint.head)
    }
}
