//! Requests for overviews of a cell: received over the bus, answered by the holder between two inputs. Without requests
//! they cost nothing.

use std::time::Duration;

use annals_ids::{OwnerId, OwnerKind};
use annals_node::time::Mono;
use annals_wire::{
    control,
    overview::{Overview, OverviewRequest, WireOverview},
};
use futures::StreamExt;

use crate::{clock, process::Process};

/// Maximum overviews that an owner makes per second: each takes one iteration over all its entities, which must not
/// delay its ticks, however many processes ask. Further requests get no answer.
const PER_SECOND: u32 = 4;

/// Subscription to requests for overviews of one owner.
pub(crate) struct Overviews {
    requests: Option<async_nats::Subscriber>,
    budget: Budget,
}

/// A request for an overview.
pub(crate) struct Asked {
    pub(crate) region: OverviewRequest,
    reply: async_nats::Subject,
}

/// Counts the overviews of the present second.
#[derive(Default)]
struct Budget {
    began: Option<Mono>,
    made: u32,
}

impl Overviews {
    /// Subscribes, if it is an owner of cells.
    pub(crate) async fn listen(process: &Process, owner: OwnerId, kind: OwnerKind) -> Self {
        let requests = match kind {
            OwnerKind::Cell => {
                let subject = process.subjects.overview(owner);
                let listening = process.bus.client().subscribe(subject).await;
                listening
                    .map_err(|error| tracing::warn!(%owner, %error, "cannot subscribe to overviews of the owner"))
                    .ok()
            }
            _ => None,
        };
        Self {
            requests,
            budget: Budget::default(),
        }
    }

    /// Waits for the next request that is to be answered.
    pub(crate) async fn next(&mut self) -> Asked {
        while let Some(requests) = &mut self.requests {
            let Some(message) = requests.next().await else {
                self.requests = None;
                break;
            };
            match (control::decode(&message.payload), message.reply) {
                (Ok(region), Some(reply)) if self.budget.allows(clock::mono()) => return Asked { region, reply },
                (Ok(_), _) => {}
                (Err(error), _) => tracing::warn!(subject = %message.subject, %error, "dropped a malformed message"),
            }
        }
        std::future::pending().await
    }
}

impl Budget {
    /// Whether another overview may be made; if so, counts it.
    fn allows(&mut self, now: Mono) -> bool {
        if self
            .began
            .is_none_or(|began| now.since(began) >= Duration::from_secs(1))
        {
            (self.began, self.made) = (Some(now), 0);
        }
        let allows = self.made < PER_SECOND;
        self.made += u32::from(allows);
        allows
    }
}

impl Asked {
    /// Sends the overview.
    pub(crate) async fn answer(&self, process: &Process, overview: Option<Overview>) {
        let Some(overview) = overview else { return };
        let answer = control::encode(&WireOverview::from(&overview));
        let sent = process.bus.client().publish(self.reply.clone(), answer.into());
        if let Err(error) = sent.await {
            tracing::debug!(%error, "could not send an overview");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overviews_are_limited_per_second() {
        let mut budget = Budget::default();
        let second = |nth: u64| Mono(nth * 1_000_000);
        for now in [second(5), second(6)] {
            let made = (0..100).filter(|_| budget.allows(now)).count();
            assert_eq!(made, PER_SECOND as usize);
        }
        assert!(!budget.allows(Mono(second(7).0 - 1)));
        assert!(budget.allows(second(7)));
    }
}
