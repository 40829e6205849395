//! Schedule of db's tasks beside folding: round after round, for as long as db folds.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_ids::{BatchNumber, OwnerId};
use tokio::{
    sync::watch,
    time::{Interval, MissedTickBehavior},
};

/// The rounds of a task. A round that takes longer than a period delays the next one.
pub(super) struct Rounds {
    ticks: Interval,
    cursors: watch::Receiver<BTreeMap<OwnerId, BatchNumber>>,
}

impl Rounds {
    /// A round at once, and then one each period, until folding ends, which drops the sender of `cursors`.
    pub(super) fn new(period: Duration, cursors: watch::Receiver<BTreeMap<OwnerId, BatchNumber>>) -> Self {
        let mut ticks = tokio::time::interval(period);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Self { ticks, cursors }
    }

    /// Waits for the next round; `None` once folding has ended.
    pub(super) async fn next(&mut self) -> Option<()> {
        tokio::select! {
            _ = self.ticks.tick() => Some(()),
            () = closed(&mut self.cursors) => None,
        }
    }

    /// Up to where each log is archived now.
    pub(super) fn cursors(&self) -> watch::Ref<'_, BTreeMap<OwnerId, BatchNumber>> {
        self.cursors.borrow()
    }
}

async fn closed(cursors: &mut watch::Receiver<BTreeMap<OwnerId, BatchNumber>>) {
    while cursors.changed().await.is_ok() {}
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;

    use super::*;

    /// Longer than any test.
    const PERIOD: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn rounds_end_when_the_cursor_sender_is_dropped() {
        let (moved, cursors) = watch::channel(BTreeMap::new());
        let mut rounds = Rounds::new(PERIOD, cursors);
        assert_eq!(rounds.next().await, Some(()), "the first is at once");
        moved.send_replace(BTreeMap::from([(OwnerId(1), BatchNumber(2))]));
        assert_eq!(rounds.next().now_or_never(), None, "a cursor that moves begins none");
        assert_eq!(rounds.cursors().get(&OwnerId(1)), Some(&BatchNumber(2)));
        drop(moved);
        assert_eq!(rounds.next().await, None, "and the next one is not waited for");
    }
}
