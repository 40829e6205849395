//! Converts stored entities that were written under former definitions, beside db's other work.

use std::{sync::Arc, time::Duration};

use annals_db::{
    Migrations,
    migrating::{MigrateError, convert_next, read_converting},
};
use annals_def::Schema;
use annals_store::Store;
use tokio::sync::watch;

use crate::{telemetry::Chain, waiting::Wait};

/// Pause between two slices: db has other work, and an entity that is loaded before its turn is converted then.
const PAUSE: Duration = Duration::from_millis(20);

/// Pause after a failure.
const AGAIN_AFTER: Duration = Duration::from_secs(5);

/// Converts all of them, at the start and after each change of definitions. Does not end.
pub(super) async fn convert_all(store: Store, mut definitions: watch::Receiver<Arc<Schema>>) {
    let mut wait = Wait::new(
        "the store",
        "stored entities are not converted to the realm's definitions until then; retrying",
    );
    loop {
        let present = Arc::clone(&definitions.borrow_and_update());
        if let Err(error) = convert(&store, &present).await {
            wait.lasts(Chain(&error));
            tokio::time::sleep(AGAIN_AFTER).await;
            continue;
        }
        wait.ends();
        if definitions.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn convert(store: &Store, present: &Schema) -> Result<(), MigrateError> {
    if read_converting(store).await?.is_none() {
        return Ok(());
    }
    let migrations = Migrations::read(store).await?;
    loop {
        let slice = convert_next(store, present, &migrations).await?;
        for taken in &slice.taken {
            tracing::error!(%taken, "a unique value belongs to more than one entity");
        }
        if slice.is_done {
            tracing::info!("all stored entities are converted to the realm's definitions");
            return Ok(());
        }
        tracing::info!(converted = slice.converted, of = slice.of, "converting stored entities");
        tokio::time::sleep(PAUSE).await;
    }
}
