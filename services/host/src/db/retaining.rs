//! Deletes old cell events (rule F14). A separate task, so that folding never waits for it.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_db::{FoldError, Retention, RetentionProgress};
use annals_ids::{BatchNumber, OwnerId, WallTime};
use tokio::sync::watch;

use super::rounds::Rounds;
use crate::{clock, telemetry::Chain, waiting::Wait};

/// Interval of the checks for events that are old enough.
const ROUND: Duration = Duration::from_secs(10);

/// Pause between two turns: a segment takes tens of milliseconds, and folding is not affected.
const PAUSE: Duration = Duration::from_millis(100);

/// Deletes what is older than `age`, until folding ends or another db folds.
pub(super) async fn let_all_go(
    mut retention: Retention,
    age: Duration,
    cursors: watch::Receiver<BTreeMap<OwnerId, BatchNumber>>,
) {
    let mut rounds = Rounds::new(ROUND, cursors);
    let mut wait = Wait::new("the store", "old events of cells are kept until then; retrying");
    while rounds.next().await.is_some() {
        loop {
            let age = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
            match retention.turn(WallTime(clock::wall().0.saturating_sub(age))).await {
                Ok(RetentionProgress::Idle) => {
                    wait.ends();
                    break;
                }
                Ok(RetentionProgress::Folding) => {}
                Ok(RetentionProgress::Moved(horizon)) => tracing::info!(
                    last = %horizon.leaf,
                    floors = horizon.bytes,
                    "the events of cells up to this leaf are old enough to be deleted"
                ),
                Ok(RetentionProgress::Thinned { last, bytes }) => {
                    tracing::debug!(%last, bytes, "a segment of the archive is thinned");
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
