//! When what is due: timers of entities and deadlines of awaited replies, derived from the state and kept beside it.

use std::collections::BTreeSet;

use annals_event::Image;
use annals_ids::{Address, CallNumber, EntityId, TimerId, WorldTime};

/// Something that becomes due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A timer of an entity.
    Timer(EntityId, TimerId),
    /// The wait of an entity for the reply to a call.
    Reply(EntityId, Address, CallNumber),
}

/// What becomes due, soonest first.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    due: BTreeSet<(WorldTime, Due)>,
}

impl Schedule {
    /// Adds something.
    pub(crate) fn add(&mut self, at: WorldTime, due: Due) {
        self.due.insert((at, due));
    }

    /// Takes something away.
    pub(crate) fn remove(&mut self, at: WorldTime, due: Due) {
        self.due.remove(&(at, due));
    }

    /// Adds all that an entity waits for.
    pub(crate) fn adopt(&mut self, entity: EntityId, image: &Image) {
        self.due.extend(of(entity, image));
    }

    /// Takes away all that an entity waited for.
    pub(crate) fn forget(&mut self, entity: EntityId, image: &Image) {
        for due in of(entity, image) {
            self.due.remove(&due);
        }
    }

    /// When the next is due.
    #[must_use]
    pub(crate) fn next(&self) -> Option<WorldTime> {
        self.due.first().map(|(at, _)| *at)
    }

    /// What is due by now; it is taken away.
    pub(crate) fn pop(&mut self, now: WorldTime) -> Option<Due> {
        let (at, due) = *self.due.first()?;
        (at <= now).then(|| {
            self.due.remove(&(at, due));
            due
        })
    }
}

fn of(entity: EntityId, image: &Image) -> impl Iterator<Item = (WorldTime, Due)> {
    let timers = image
        .timers
        .iter()
        .map(move |(timer, at)| (at.due, Due::Timer(entity, *timer)));
    let awaiting = &image.links.awaiting;
    timers.chain(
        awaiting
            .iter()
            .map(move |((to, number), wait)| (wait.deadline, Due::Reply(entity, *to, *number))),
    )
}
