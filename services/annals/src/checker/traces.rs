//! What is left of cell parts that ended before the horizon (rule F14): no floor has them, and their events are gone. What
//! is kept of the batches in front of it names them, because each part tells its home that it begins, and that it ends.

use std::collections::BTreeSet;

use annals_event::{Body, Header, Thinned};
use annals_ids::{Address, EntityId, Part};

/// What logs tell of cell parts beside their events.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces {
    /// Those that were called in front of the horizon.
    called: BTreeSet<EntityId>,
    /// Those that called somebody there. That is not in the hash of a batch, so it counts only if the call was taken.
    callers: BTreeSet<EntityId>,
    /// Those of which somebody has taken a call.
    heard: BTreeSet<EntityId>,
    /// Those that live, as their bases know.
    placed: BTreeSet<EntityId>,
}

impl Traces {
    /// Takes what is left of a batch.
    pub(super) fn take_thinned(&mut self, batch: &Thinned) {
        self.take(&batch.header);
        self.called
            .extend(batch.header.consumed.iter().filter_map(|call| cell(call.to)));
        self.callers
            .extend(batch.calls.iter().filter_map(|(link, _)| cell(link.from)));
    }

    /// Takes what a batch says of itself.
    pub(super) fn take(&mut self, header: &Header) {
        self.heard
            .extend(header.consumed.iter().filter_map(|call| cell(call.from)));
    }

    /// Takes what a base part hears of its cell part.
    pub(super) fn take_of_base(&mut self, entity: EntityId, body: &Body) {
        match body {
            Body::Placed(Some(_)) => self.placed.insert(entity),
            Body::Placed(None) | Body::Destroyed => self.placed.remove(&entity),
            _ => false,
        };
    }

    /// Whether a cell part lived in front of the horizon and is no more; `has_ended` if the horizon has it that its home was
    /// yet to hear of that.
    pub(super) fn tell_an_end(&self, entity: EntityId, has_ended: bool) -> bool {
        let has = |parts: &BTreeSet<EntityId>| parts.contains(&entity);
        let has_lived = has(&self.called) || (has(&self.callers) && (has(&self.heard) || has_ended));
        has_lived && (has_ended || !has(&self.placed))
    }
}

fn cell(address: Address) -> Option<EntityId> {
    match address.entity() {
        Some((entity, Part::Cell)) => Some(entity),
        _ => None,
    }
}
