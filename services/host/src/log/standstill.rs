//! Tells an operator when a log stands still. Its owner shows nothing meanwhile, and what is wrong is elsewhere: without this
//! nobody would say so.

use std::time::Duration;

use annals_ids::OwnerId;
use annals_node::time::Mono;

/// How long a log may stand still before it is told: twice as long as an owner stays fresh, so that a single answer that was
/// lost is no news.
const TOLD_AFTER: Duration = Duration::from_secs(2);

/// How long a log has stood still.
#[derive(Debug, Default)]
pub(super) struct Standstill {
    since: Option<Mono>,
    told: bool,
}

impl Standstill {
    /// The log, or the store, did not do what it was asked to; tells so once, when it has been so for too long.
    pub(super) fn lasts(&mut self, now: Mono, owner: OwnerId, why: &str) {
        let since = *self.since.get_or_insert(now);
        if now.since(since) >= TOLD_AFTER && !self.told {
            self.told = true;
            tracing::error!(
                %owner,
                "the log stands still and nothing is shown: {why}; look at the nats-server's log and disk; one whose disk was full has to be started again once there is room, which `annals up` does"
            );
        }
    }

    /// Whether it was told, and has not ended.
    pub(super) fn is_told(&self) -> bool {
        self.told
    }

    /// It did.
    pub(super) fn ends(&mut self, now: Mono, owner: OwnerId) {
        if let Some(since) = self.since.take()
            && std::mem::take(&mut self.told)
        {
            tracing::info!(%owner, "the log goes on after {:.1} s", now.since(since).as_secs_f32());
        }
    }
}
