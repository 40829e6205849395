//! Lifecycle events of the realm, delivered to every part on an owner: one part per input, so that the effects fit into
//! the log and its limits for any number of parts.

use std::collections::VecDeque;

use annals_ids::EntityId;

use crate::{behaviour::Behaviour, context::Context};

/// A lifecycle event of the realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
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

impl Moment {
    /// Calls the part's behaviour.
    pub(crate) fn tell(self, behaviour: &dyn Behaviour, context: &mut Context<'_>) {
        match self {
            Moment::Ready { is_bootstrap } => behaviour.app_ready(context, is_bootstrap),
            Moment::ShuttingDown => behaviour.app_shutting_down(context),
            Moment::ShutDown(ShutDown::Parting) => behaviour.app_shut_down(context, 0),
            Moment::ShutDown(ShutDown::Writing) => behaviour.app_shut_down(context, 1),
            Moment::ShutDown(ShutDown::Written) => behaviour.app_shut_down(context, 2),
        }
    }
}

/// Queued lifecycle events, and the parts that have not received the current one.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    coming: VecDeque<Moment>,
    present: Option<(Moment, VecDeque<EntityId>)>,
    over: u64,
}

impl Moments {
    /// Queues an event, behind earlier ones.
    pub(crate) fn come(&mut self, moment: Moment) {
        self.coming.push_back(moment);
    }

    /// Whether any part has still to receive an event.
    pub(crate) fn is_busy(&self) -> bool {
        self.present.is_some() || !self.coming.is_empty()
    }

    /// Number of events that every part has received.
    pub(crate) fn over(&self) -> u64 {
        self.over
    }

    /// Next part to notify, and the event. `parts` returns all parts present when delivery of an event begins.
    pub(crate) fn next(&mut self, parts: impl Fn() -> VecDeque<EntityId>) -> Option<(Moment, EntityId)> {
        loop {
            if let Some((moment, left)) = &mut self.present {
                if let Some(entity) = left.pop_front() {
                    return Some((*moment, entity));
                }
                self.present = None;
                self.over += 1;
            }
            let moment = self.coming.pop_front()?;
            self.present = Some((moment, parts()));
        }
    }
}
