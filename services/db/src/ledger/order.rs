//! The order in which the folds of several shards changed the ledger (rule T5).

use annals_ids::NoticeNumber;
use annals_store::{
    ScanOrder, Store, StoreError, Transaction,
    layout::shards::{self, LedgerChange},
};
use async_recursion::async_recursion as boxed;

/// Rows read at a time.
const PAGE: usize = 1_024;

/// Reads the leaves at which the ledger changed, in the order of the changes. A realm that has had one shard for a time
/// changed its ledger in the order of that shard's leaves until then.
///
/// # Errors
/// When the store cannot be read, or a row is damaged.
#[boxed]
pub async fn read_changes(store: &Store) -> Result<Vec<LedgerChange>, StoreError> {
    let (mut changes, mut last) = (Vec::new(), NoticeNumber(0));
    loop {
        let range = shards::changes_after(last);
        let range = &range;
        let read =
            |transaction: Transaction| async move { transaction.get_range(range, PAGE, ScanOrder::Forward).await };
        let page = store.read(read).await?;
        for (key, value) in &page.rows {
            last = shards::change_of(key)?;
            changes.push(LedgerChange::decode(value)?);
        }
        if !page.more {
            return Ok(changes);
        }
    }
}
