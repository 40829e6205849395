//! The cell's ticks, and the places of its real entities at each.
//!
//! Places are volatile: behaviour and clients change them between ticks. Once per tick they are sampled, and once a
//! second those that changed are logged, so that recovery finds the entity there.

use std::{collections::BTreeMap, time::Duration};

use annals_event::{Body, Place};
use annals_ids::{EntityId, Tick};
use annals_node::{
    OwnerContext,
    time::{Mono, Now},
};

/// Time between two ticks: 10 Hz, as players of this kind of world are used to.
pub const TICK: Duration = Duration::from_millis(100);

/// Milliseconds of game time per tick.
const TICK_MS: u64 = 100;
const _: () = assert!(TICK.as_millis() == TICK_MS as u128);

/// Ticks in a second. A place is logged at most once in as many ticks.
pub(crate) const SECOND: u64 = 10;

/// How many times a place is sent again, once a second, after the entity has come to rest: datagrams get lost, and
/// nothing else would ever correct the last one.
const REPEATS: u64 = 3;

/// A place, and since when the entity is there.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Whereabouts {
    pub(crate) place: Place,
    /// The local tick at which it arrived there.
    pub(crate) since: u64,
}

impl Whereabouts {
    pub(crate) fn note(&mut self, place: Place, local_tick: u64) {
        if self.place != place {
            *self = Self {
                place,
                since: local_tick,
            };
        }
    }

    /// The newest local tick at which there was something to send: its last movement, or a repetition after it.
    pub(crate) fn last_due_tick(&self, local_tick: u64) -> u64 {
        let rest = local_tick.saturating_sub(self.since);
        self.since + (rest / SECOND).min(REPEATS) * SECOND
    }
}

/// Counts ticks, and samples the places of real entities.
#[derive(Debug)]
pub(crate) struct Sampling {
    /// The local tick: number of ticks since this owner was taken over.
    local_tick: u64,
    /// Number of ticks of the realm: tenths of a second of game time. The same on all cells, so that what the next
    /// holder of an entity sends to a client or a ghost is newer than what the last one sent.
    tick: Tick,
    due: Mono,
    reals: BTreeMap<EntityId, Whereabouts>,
}

impl Sampling {
    pub(crate) fn new(tick: Tick, now: Mono) -> Self {
        Self {
            local_tick: 0,
            tick,
            due: now,
            reals: BTreeMap::new(),
        }
    }

    pub(crate) fn local_tick(&self) -> u64 {
        self.local_tick
    }

    pub(crate) fn tick(&self) -> Tick {
        self.tick
    }

    /// When the next tick is due.
    pub(crate) fn due(&self) -> Mono {
        self.due
    }

    /// The next tick is due now.
    pub(crate) fn hasten(&mut self, now: Mono) {
        self.due = self.due.min(now);
    }

    /// Begins a tick, if one is due. A late tick does not make the next ones come faster.
    pub(crate) fn begin(&mut self, now: Now) -> bool {
        if now.mono < self.due {
            return false;
        }
        let next = self.due.after(TICK);
        self.due = if next > now.mono { next } else { now.mono.after(TICK) };
        self.local_tick += 1;
        self.tick = self.tick.next().max(Tick(now.world.0 / TICK_MS));
        true
    }

    /// Samples the places of all real entities, and logs those that changed: each entity once a second, spread over the
    /// ticks.
    pub(crate) fn sample(&mut self, cx: &mut OwnerContext) {
        let places: Vec<(EntityId, Place)> = cx.places().collect();
        self.reals.retain(|entity, _| cx.place(*entity).is_some());
        for (entity, place) in places {
            let known = self.reals.entry(entity);
            known
                .or_insert(Whereabouts {
                    place,
                    since: self.local_tick,
                })
                .note(place, self.local_tick);
            if (self.local_tick.wrapping_add(entity.0)).is_multiple_of(SECOND) {
                log_place(cx, entity);
            }
        }
    }

    /// The place of a real entity at the last tick.
    pub(crate) fn whereabouts(&self, entity: EntityId) -> Option<Whereabouts> {
        self.reals.get(&entity).copied()
    }
}

/// Logs the place of a real entity, if it changed. If the input has no room for it, it is logged another time.
pub(crate) fn log_place(cx: &mut OwnerContext, entity: EntityId) {
    if let Some(place) = cx.place(entity)
        && logged(cx, entity) != Some(place)
        && cx.needs(0).is_ok()
    {
        cx.record_for(entity, false, Body::Moved(place));
    }
}

fn logged(cx: &OwnerContext, entity: EntityId) -> Option<Place> {
    cx.image(entity)?.cell().map(|cell| cell.place)
}
