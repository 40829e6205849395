//! Events of real entities since the last tick.
//!
//! An image keeps only the newest part of its history. This keeps all events back to the last tick, so that a receiver
//! that is sent events at every tick misses none.

use std::collections::BTreeMap;

use annals_event::{Body, Event, Subject};
use annals_ids::EntityId;

/// Maximum number of events kept. Beyond it they are dropped, and a receiver that lacks more than an image holds is
/// sent the whole state.
const LIMIT: usize = 20_000;

/// Events since the last tick, per entity.
#[derive(Debug, Default)]
pub(crate) struct RecentEvents {
    events: BTreeMap<EntityId, Vec<Event>>,
    count: usize,
}

impl RecentEvents {
    /// Records the events of one input.
    pub(crate) fn note(&mut self, recorded: &[Event]) {
        for event in recorded {
            let Subject::Entity(entity, _) = event.subject else {
                continue;
            };
            if matches!(event.body, Body::Onloaded { .. } | Body::CellCreated(_)) {
                self.events.remove(&entity);
                continue;
            }
            if event.history.is_some() {
                self.events.entry(entity).or_default().push(event.clone());
                self.count += 1;
            }
        }
        if self.count > LIMIT {
            self.forget();
        }
    }

    /// Events of an entity, dense, up to its newest history number.
    pub(crate) fn of(&self, entity: EntityId) -> &[Event] {
        self.events.get(&entity).map_or(&[], Vec::as_slice)
    }

    /// Drops all events; they were sent.
    pub(crate) fn forget(&mut self) {
        self.events.clear();
        self.count = 0;
    }
}
