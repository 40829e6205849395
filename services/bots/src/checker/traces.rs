//! Traces of cell parts that ended before the horizon (rule F14): no floor has them, and their events are gone. The
//! thinned batches before the horizon name them, because each part notifies its home when it begins and when it ends.

use std::collections::BTreeSet;

use annals_event::{Body, Header, Thinned};
use annals_ids::{Address, EntityId, Part};

/// What logs contain about cell parts besides their events.
#[derive(Clone, Debug, Default)]
pub(super) struct Traces {
    /// Those that were called before the horizon.
    called: BTreeSet<EntityId>,
    /// Those that made a call there. The calls kept of a thinned batch are not covered by its hash, so one counts only
    /// if it was taken.
    callers: BTreeSet<EntityId>,
    /// Those from which a call was taken.
    receivers: BTreeSet<EntityId>,
    /// Those that exist, according to their bases.
    placed: BTreeSet<EntityId>,
}

impl Traces {
    /// Takes a thinned batch.
    pub(super) fn take_thinned(&mut self, batch: &Thinned) {
        self.take(&batch.header);
        self.called
            .extend(batch.header.consumed.iter().filter_map(|call| cell(call.to)));
        self.callers
            .extend(batch.calls.iter().filter_map(|(link, _)| cell(link.from)));
    }

    /// Takes the header of a batch.
    pub(super) fn take(&mut self, header: &Header) {
        self.receivers
            .extend(header.consumed.iter().filter_map(|call| cell(call.from)));
    }

    /// Takes what a base part learns about its cell part.
    pub(super) fn take_of_base(&mut self, entity: EntityId, body: &Body) {
        match body {
            Body::Placed(Some(_)) => self.placed.insert(entity),
            Body::Placed(None) | Body::Destroyed => self.placed.remove(&entity),
            _ => false,
        };
    }

    /// Whether a cell part existed before the horizon and has ended; `has_ended` if at the horizon the notification of
    /// its home was pending.
    pub(super) fn show_an_end(&self, entity: EntityId, has_ended: bool) -> bool {
        let has = |parts: &BTreeSet<EntityId>| parts.contains(&entity);
        let has_lived = has(&self.called) || (has(&self.callers) && (has(&self.receivers) || has_ended));
        has_lived && (has_ended || !has(&self.placed))
    }
}

fn cell(address: Address) -> Option<EntityId> {
    match address.entity() {
        Some((entity, Part::Cell)) => Some(entity),
        _ => None,
    }
}
