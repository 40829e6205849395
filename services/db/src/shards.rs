//! The number of a realm's shards (rules T).

use annals_ids::Shard;
use annals_store::{
    Store, StoreError, Transaction,
    layout::{
        archive::{Tree, tree_key},
        ledger::{self, Head},
        shards::{self, AloneUntil, count_key, encode_count, encode_grown},
    },
};
use async_recursion::async_recursion as boxed;

/// Gives a realm at least so many shards, at most [`shards::SHARDS`], and returns how many it has. Shards are never
/// removed: their logs are a part of the realm's past. Records how far the archive of the first shard went while the realm
/// had no other (rule T5).
///
/// # Errors
/// When the store cannot be used.
///
/// # Panics
/// If more are asked for.
#[boxed]
pub async fn ensure_shards(store: &Store, least: u16) -> Result<u16, StoreError> {
    assert!(least <= shards::SHARDS, "{least} shards are more than a realm can have");
    let work = |transaction: Transaction| async move {
        let value = transaction.get(&count_key()).await?;
        let (count, alone) = shards::decode_grown(value.as_deref())?;
        if least > count {
            let alone = match alone {
                None if count == 1 => read_alone(&transaction).await?,
                alone => alone,
            };
            let value = alone.map_or_else(|| encode_count(least).to_vec(), |alone| encode_grown(least, alone));
            transaction.set(&count_key(), &value)?;
        }
        Ok::<_, StoreError>(count.max(least))
    };
    let (count, _) = store.run_repeatable(work).await?;
    Ok(count)
}

/// What the only shard of a realm has archived so far, if anything.
async fn read_alone(transaction: &Transaction) -> Result<Option<AloneUntil>, StoreError> {
    let tree = Tree::decode(transaction.get(&tree_key(Shard(0))).await?.as_deref())?;
    let head = Head::decode(transaction.get(&ledger::head_key()).await?.as_deref())?;
    Ok((tree.size > 0).then_some(AloneUntil {
        leaves: tree.size,
        notice: head.notice,
    }))
}

/// Number of a realm's shards.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn read_shards(store: &Store) -> Result<u16, StoreError> {
    store
        .read(|transaction: Transaction| async move { shards::read_count(&transaction).await })
        .await
}
