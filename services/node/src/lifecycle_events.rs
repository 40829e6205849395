//! Lifecycle events of the realm, delivered to every part on an owner: one part per input, so that the effects fit into
//! the log and its limits for any number of parts.

use std::collections::VecDeque;

use annals_ids::EntityId;

use crate::{behaviour::Behaviour, context::Context};

/// A lifecycle event of the realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifecycleEvent {
    /// The owner is ready to serve.
    Ready {
        /// Whether this owner runs the realm's bootstrap.
        is_bootstrap: bool,
    },
    /// The realm is about to stop.
    ShuttingDown,
    /// The realm stops.
    ShutDown(ShutDown),
}

/// The stages of a stop, as games know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutDown {
    /// 0: clients are about to be disconnected.
    Parting,
    /// 1: stored entities are about to be written.
    Writing,
    /// 2: stored entities are written.
    Written,
}

impl LifecycleEvent {
    /// Calls the part's behaviour.
    pub(crate) fn dispatch(self, behaviour: &dyn Behaviour, context: &mut Context<'_>) {
        match self {
            LifecycleEvent::Ready { is_bootstrap } => behaviour.app_ready(context, is_bootstrap),
            LifecycleEvent::ShuttingDown => behaviour.app_shutting_down(context),
            LifecycleEvent::ShutDown(ShutDown::Parting) => behaviour.app_shut_down(context, 0),
            LifecycleEvent::ShutDown(ShutDown::Writing) => behaviour.app_shut_down(context, 1),
            LifecycleEvent::ShutDown(ShutDown::Written) => behaviour.app_shut_down(context, 2),
        }
    }
}

/// Queued lifecycle events, and the parts that have not received the current one.
#[derive(Debug, Default)]
pub(crate) struct LifecycleEvents {
    pending: VecDeque<LifecycleEvent>,
    current: Option<(LifecycleEvent, VecDeque<EntityId>)>,
    delivered: u64,
}

impl LifecycleEvents {
    /// Queues an event, behind earlier ones.
    pub(crate) fn enqueue(&mut self, moment: LifecycleEvent) {
        self.pending.push_back(moment);
    }

    /// Whether any part has still to receive an event.
    pub(crate) fn is_busy(&self) -> bool {
        self.current.is_some() || !self.pending.is_empty()
    }

    /// Number of events that every part has received.
    pub(crate) fn delivered(&self) -> u64 {
        self.delivered
    }

    /// Next part to notify, and the event. `parts` returns all parts present when delivery of an event begins.
    pub(crate) fn next(&mut self, parts: impl Fn() -> VecDeque<EntityId>) -> Option<(LifecycleEvent, EntityId)> {
        loop {
            if let Some((moment, left)) = &mut self.current {
                if let Some(entity) = left.pop_front() {
                    return Some((*moment, entity));
                }
                self.current = None;
                self.delivered += 1;
            }
            let moment = self.pending.pop_front()?;
            self.current = Some((moment, parts()));
        }
    }
}
