//! The number of a realm's shards (rules T).

use annals_store::{
    Store, StoreError, Transaction,
    layout::shards::{self, count_key, encode_count},
};

/// Gives a realm at least so many shards, at most [`shards::SHARDS`], and returns how many it has. Shards are never
/// removed: their logs are a part of the realm's past.
///
/// # Errors
/// When the store cannot be used.
///
/// # Panics
/// If more are asked for.
pub async fn ensure_shards(store: &Store, least: u16) -> Result<u16, StoreError> {
    assert!(least <= shards::SHARDS, "{least} shards are more than a realm can have");
    let work = |transaction: Transaction| async move {
        let count = shards::read_count(&transaction).await?;
        if least > count {
            transaction.set(&count_key(), &encode_count(least))?;
        }
        Ok::<_, StoreError>(count.max(least))
    };
    let (count, _) = store.run_repeatable(work).await?;
    Ok(count)
}

/// Number of a realm's shards.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_shards(store: &Store) -> Result<u16, StoreError> {
    store
        .read(|transaction: Transaction| async move { shards::read_count(&transaction).await })
        .await
}
