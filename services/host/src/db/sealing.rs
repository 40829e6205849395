//! Seals archived batches into segments. A separate task, so that folding never waits for it.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_db::{FoldError, Sealer};
use annals_ids::{BatchNumber, OwnerId};
use tokio::sync::watch;

use super::rounds::Rounds;
use crate::waiting::Wait;

/// Interval of the checks whether there is enough for a segment.
const ROUND: Duration = Duration::from_secs(5);

/// Seals segment after segment, until folding ends or another db folds.
pub(super) async fn seal_all(mut sealer: Sealer, cursors: watch::Receiver<BTreeMap<OwnerId, BatchNumber>>) {
    let mut rounds = Rounds::new(ROUND, cursors);
    let mut wait = Wait::new(
        "the store",
        "the archive is not sealed into segments until then; retrying",
    );
    while rounds.next().await.is_some() {
        loop {
            match sealer.seal_next().await {
                Ok(Some(segment)) => tracing::info!(
                    first = %segment.first,
                    last = %segment.last,
                    bytes = segment.bytes,
                    stored = segment.stored(),
                    "a segment of the archive is sealed"
                ),
                Ok(None) => {
                    wait.ends();
                    break;
                }
                // Folding ends with the same error, and reports it.
                Err(FoldError::Superseded { .. }) => return,
                Err(error) => {
                    wait.lasts(error);
                    break;
                }
            }
        }
    }
}
