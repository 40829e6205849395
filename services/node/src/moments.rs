//! Moments in the course of the realm, of which every part on an owner is told: one part at a time, so that however many
//! there are, what they do about it fits into the log and its limits.

use std::collections::VecDeque;

use annals_ids::EntityId;

use crate::{behaviour::Behaviour, context::Context};

/// A moment in the course of the realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// The owner serves.
    Ready {
        /// Whether the realm begins on it.
        is_bootstrap: bool,
    },
    /// The realm is about to stop.
    ShuttingDown,
    /// It stops.
    ShutDown(ShutDown),
}

/// The stages of a stop, as games know them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShutDown {
    /// 0: clients are about to be sent away.
    Parting,
    /// 1: entities of the database are about to be written.
    Writing,
    /// 2: they are written.
    Written,
}

impl Moment {
    /// Tells a part's behaviour.
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

/// The moments that came, and who is still to be told.
#[derive(Debug, Default)]
pub(crate) struct Moments {
    coming: VecDeque<Moment>,
    present: Option<(Moment, VecDeque<EntityId>)>,
    over: u64,
}

impl Moments {
    /// A moment has come. Those before it are told first.
    pub(crate) fn come(&mut self, moment: Moment) {
        self.coming.push_back(moment);
    }

    /// Whether anybody is still to be told.
    pub(crate) fn is_busy(&self) -> bool {
        self.present.is_some() || !self.coming.is_empty()
    }

    /// How many moments everybody was told of.
    pub(crate) fn over(&self) -> u64 {
        self.over
    }

    /// Who is to be told next, and of what. `parts` gives everybody who is there when a moment begins to be told.
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
