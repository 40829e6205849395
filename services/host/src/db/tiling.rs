//! Writes the tiles of the archive's tree (rule F16). A separate task, so that folding never waits for it.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_db::{FoldError, Tiler};
use annals_ids::{BatchNumber, OwnerId};
use tokio::sync::watch;

use super::rounds::Rounds;
use crate::{telemetry::Chain, waiting::Wait};

/// Interval of the checks whether there are enough leaves for a tile.
const ROUND: Duration = Duration::from_secs(5);

/// Pause between two turns: reading and hashing some thousand leaves takes tens of milliseconds, and an archive without
/// tiles needs many turns.
const PAUSE: Duration = Duration::from_millis(20);

/// Writes tile after tile, until folding ends or another db folds.
pub(super) async fn tile_all(mut tiler: Tiler, cursors: watch::Receiver<BTreeMap<OwnerId, BatchNumber>>) {
    let mut rounds = Rounds::new(ROUND, cursors);
    let mut wait = Wait::new(
        "the store",
        "no tiles of the archive's tree are written until then; retrying",
    );
    while rounds.next().await.is_some() {
        loop {
            match tiler.tile_next().await {
                Ok(Some(tiled)) => {
                    tracing::debug!(first = %tiled.first, leaves = tiled.leaves, "wrote tiles");
                }
                Ok(None) => {
                    wait.ends();
                    break;
                }
                // Folding ends with the same error, and reports it.
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
