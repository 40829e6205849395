//! Deadlines: timers of entities and timeouts of awaited replies, derived from the state and kept beside it.

use std::collections::BTreeSet;

use annals_event::Image;
use annals_ids::{Address, CallNumber, EntityId, TimerId, WorldTime};

/// An item with a deadline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Due {
    /// A timer of an entity.
    Timer(EntityId, TimerId),
    /// The wait of an entity for the reply to a call.
    Reply(EntityId, Address, CallNumber),
}

/// Items by deadline, soonest first.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    due: BTreeSet<(WorldTime, Due)>,
}

impl Schedule {
    /// Adds an item.
    pub(crate) fn add(&mut self, at: WorldTime, due: Due) {
        self.due.insert((at, due));
    }

    /// Removes an item.
    pub(crate) fn remove(&mut self, at: WorldTime, due: Due) {
        self.due.remove(&(at, due));
    }

    /// Adds all deadlines of an entity.
    pub(crate) fn adopt(&mut self, entity: EntityId, image: &Image) {
        self.due.extend(of(entity, image));
    }

    /// Removes all deadlines of an entity.
    pub(crate) fn forget(&mut self, entity: EntityId, image: &Image) {
        for due in of(entity, image) {
            self.due.remove(&due);
        }
    }

    /// Next deadline.
    #[must_use]
    pub(crate) fn next(&self) -> Option<WorldTime> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Removes and returns an item that is due.
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
