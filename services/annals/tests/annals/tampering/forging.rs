//! Rewriting history: changes one thing and adapts everything else.

use std::collections::BTreeMap;

use annals_def::{Located, Value};
use annals_event::{Batch, Body, Consumed, Event, Gathering, Header, Imprint, Tail};
use annals_ids::{OwnerId, Tick, WallTime};

/// The content of a batch, without what follows from its predecessors.
#[derive(Clone, Debug)]
pub(crate) struct Draft {
    imprint: Imprint,
    consumed: Vec<Consumed>,
    pub(crate) events: Vec<Event>,
    tick: Tick,
    pub(crate) wall: WallTime,
    opens: bool,
}

impl Draft {
    pub(crate) fn of(batch: &Batch) -> Self {
        let header = &batch.header;
        Self {
            imprint: Imprint {
                realm: header.realm.clone(),
                owner: header.owner,
                epoch: header.epoch,
                schema: header.schema,
            },
            consumed: header.consumed.clone(),
            events: batch.events.clone(),
            tick: header.tick,
            wall: header.wall,
            opens: header.opens,
        }
    }

    pub(crate) fn owner(&self) -> OwnerId {
        self.imprint.owner
    }

    /// A forged batch like this one, which opens no epoch.
    pub(crate) fn forged(&self, dice: u64) -> Self {
        let mut forged = self.clone();
        (forged.opens, forged.consumed) = (false, Vec::new());
        forged.wall = WallTime(forged.wall.0 + 1 + dice % 100);
        forged
    }

    /// The batch that this is after `tail`.
    pub(crate) fn freeze(&self, tail: &mut Tail) -> Vec<u8> {
        let mut gathering = Gathering::default();
        for place in 0..=self.events.len() {
            let is_last = place == self.events.len();
            let here =
                |consumed: &&Consumed| consumed.at as usize == place || (is_last && consumed.at as usize > place);
            for consumed in self.consumed.iter().filter(here) {
                gathering.consume(consumed.from, consumed.to, consumed.number, consumed.trace);
            }
            if let Some(event) = self.events.get(place) {
                gathering.record(event);
            }
        }
        gathering
            .freeze(&self.imprint, tail, self.tick, self.wall, self.opens)
            .bytes
    }
}

/// All logs, recomputed.
pub(crate) fn freeze_all(drafts: &[Draft]) -> Vec<Vec<u8>> {
    let mut tails: BTreeMap<OwnerId, Tail> = BTreeMap::new();
    let frozen = drafts
        .iter()
        .map(|draft| draft.freeze(tails.entry(draft.owner()).or_default()));
    frozen.collect()
}

/// The tail that a batch continues.
pub(crate) fn before(batch: &Batch) -> Tail {
    let header = &batch.header;
    Tail {
        batch: annals_ids::BatchNumber(header.number.0 - 1),
        hash: header.previous,
        event: annals_ids::EventNumber(header.first_event.0 - 1),
    }
}

/// The header of one batch with the events of another.
pub(crate) fn graft(header: &[u8], events: &[u8]) -> Vec<u8> {
    let (_, _, own) = Header::split(header).unwrap();
    let (_, _, others) = Header::split(events).unwrap();
    [&header[..header.len() - own.len()], others].concat()
}

/// Another event in the place of one, with different content.
pub(crate) fn other(event: &Event, dice: u64) -> Event {
    let mut other = event.clone();
    match &mut other.body {
        Body::Changed { change, .. } => {
            let value = dice % 200;
            let is_same = *change == Located::whole(Value::UInt(value));
            *change = Located::whole(Value::UInt(value + u64::from(is_same)));
        }
        _ => other.cause.0 += 1,
    }
    assert_ne!(other, *event);
    other
}
