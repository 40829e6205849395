//! Writing the tiles of the archive's tree (rule F16). It has a task of its own, so that folding never waits for it.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_db::{FoldError, Tiler};
use annals_ids::{BatchNumber, OwnerId};
use tokio::sync::watch;

use super::rounds::Rounds;
use crate::{telemetry::Chain, waiting::Wait};

/// How often it is looked whether there are leaves enough for a tile.
const ROUND: Duration = Duration::from_secs(5);

/// Between two turns: reading and hashing some thousand leaves takes some ten milliseconds, and an archive that has no tiles
/// yet has many of them.
const PAUSE: Duration = Duration::from_millis(20);

/// Writes tile after tile, until nobody moves cursors any more or another db folds.
pub(super) async fn tile_all(mut tiler: Tiler, cursors: watch::Receiver<BTreeMap<OwnerId, BatchNumber>>) {
    let mut rounds = Rounds::new(ROUND, cursors);
    let mut wait = Wait::new(
        "the store",
        "no tiles of the archive's tree are written meanwhile; it is tried again",
    );
    while rounds.next().await.is_some() {
        loop {
            match tiler.tile_next().await {
                Ok(Some(tiled)) => {
                    tracing::debug!(first = %tiled.first, leaves = tiled.leaves, "leaves are in tiles");
                }
                Ok(None) => {
                    wait.ends();
                    break;
                }
                // The folding ends with the same error, and says so.
                Err(FoldError::Superseded { .. }) => return,
                Err(error) => {
                    wait.lasts(Chain(&error));
                    break;
                }
            }
            tokio::time::sleep(PAUSE).await;
        }
    }
}
