//! The sending end: keeps the states that a client is known to have, and encodes differences from the prediction.

use std::collections::{BTreeMap, VecDeque};

use annals_event::put_number;
use annals_ids::{EntityId, Position, Tick};

use super::{
    Facing, Motion, Packing, Placing,
    entry::{self, EXACT, ORIGIN_UNITS, Origin, Sample, State, Step, TURN_BITS},
    model::{Model, context},
    packed::pack_angle,
    range::{Coder, Encoder, size},
    track::FARTHEST,
};
use crate::client::MAX_DATAGRAM;

/// Maximum number of entities that have a slot at a time. One more takes the slot of the entity with the oldest update.
pub const MAX_SLOTS: usize = 1_024;

/// Maximum number of unacknowledged states that are kept per entity. Beyond that the client's acknowledged state is
/// taken to be forgotten, so the client may discard older states.
pub(super) const KEPT: usize = 32;

/// Ticks in one acknowledgement: the newest, and this many before it.
pub(super) const ACK_BITS: u64 = 16;

/// Number of sent ticks that are kept to interpret acknowledgements. Later acknowledgements are ignored.
const SENT_KEPT: usize = 128;

/// The first byte of a datagram of this kind.
pub const KIND: u8 = 2;

/// Sends a client the positions of entities.
///
/// Each tick [`VolatileWriter::write`] makes at most one datagram; [`VolatileWriter::acknowledge`] takes the client's
/// acknowledgements. [`VolatileWriter::forget`] frees the slot of an entity.
#[derive(Debug)]
pub struct VolatileWriter {
    view: u64,
    packing: Packing,
    slots: Vec<Slot>,
    by_entity: BTreeMap<EntityId, usize>,
    /// Ticks of the newest datagrams, ascending.
    sent: VecDeque<u64>,
    /// The newest of them that the client has acknowledged.
    newest_acked: Option<u64>,
}

/// The states of an entity that the client has, or may have.
#[derive(Debug, Default)]
struct Slot {
    entity: Option<EntityId>,
    /// The acknowledged state.
    acked: Option<State>,
    /// The states sent since, in order.
    sent: VecDeque<State>,
    /// The tick of the last update.
    at: u64,
}

/// The result of a write.
#[derive(Clone, Debug, PartialEq)]
pub struct Sent {
    /// The datagram; none if there was nothing to send, or nothing fits.
    pub datagram: Option<Vec<u8>>,
    /// Number of movements in it, counted from the first.
    pub movements: usize,
}

/// One movement on its way into a datagram.
struct QueuedMovement {
    slot: usize,
    sample: Sample,
}

impl VolatileWriter {
    /// A writer for a view that has just started.
    #[must_use]
    pub fn new(view: u64, packing: Packing) -> Self {
        Self {
            view,
            packing,
            slots: Vec::new(),
            by_entity: BTreeMap::new(),
            sent: VecDeque::new(),
            newest_acked: None,
        }
    }

    /// Makes a datagram of at most `limit` bytes with as many of the first movements as fit, each of a different
    /// entity. `observer` is the position of the client's entity: steps grow with the distance from it.
    ///
    /// # Panics
    /// When the tick is not above the previous one, a movement is not sound, or two are of the same entity.
    pub fn write(&mut self, tick: Tick, observer: Position, motions: &[Motion], limit: usize) -> Sent {
        let newest = self.sent.back();
        assert!(
            newest.is_none_or(|&newest| newest < tick.0),
            "one datagram a tick, and ticks ascend"
        );
        let most = motions.len().min(MAX_SLOTS);
        let letters: Vec<QueuedMovement> = motions[..most]
            .iter()
            .map(|motion| QueuedMovement {
                slot: self.slot(motion.entity, tick.0),
                sample: self.sample(observer, motion),
            })
            .collect();
        let origin = [observer.x, observer.z, observer.y];
        let origin = std::array::from_fn(|axis| {
            self.steps(axis, origin[axis], 0)
                .map_or(0, |units| units / ORIGIN_UNITS)
        });
        let limit = limit.min(MAX_DATAGRAM);
        if most == 0 {
            return Sent {
                datagram: None,
                movements: 0,
            };
        }
        let attempt = |count: usize| self.attempt(tick.0, &origin, &letters[..count]);
        // Nearly always all of them fit. Otherwise the maximum is found in a few steps.
        let (mut fits, mut best, mut too_many) = (0, None, most + 1);
        let mut next = most;
        while fits + 1 < too_many {
            let (bytes, states) = attempt(next);
            let size = bytes.len();
            if size <= limit {
                (fits, best) = (next, Some((bytes, states)));
            } else {
                too_many = next;
            }
            let guess = next * limit / size.max(1);
            next = guess.clamp(fits + 1, (too_many - 1).max(fits + 1));
        }
        let Some((datagram, states)) = best else {
            return Sent {
                datagram: None,
                movements: 0,
            };
        };
        self.keep(tick.0, states);
        Sent {
            datagram: Some(datagram),
            movements: fits,
        }
    }

    /// Takes the client's acknowledgement: the newest tick, and for each tick before it whether it was received, the
    /// nearest in the lowest bit. Ticks are given by their low bits.
    pub fn acknowledge(&mut self, tick: u16, before: u16) {
        let Some(&last) = self.sent.back() else { return };
        let Some(tick) = last.checked_sub((last as u16).wrapping_sub(tick).into()) else {
            return;
        };
        if self.sent.binary_search(&tick).is_err() {
            return;
        }
        self.newest_acked = self.newest_acked.max(Some(tick));
        let is_acked = |sent: u64| match tick.checked_sub(sent) {
            Some(0) => true,
            Some(ago) => ago <= ACK_BITS && before >> (ago - 1) & 1 == 1,
            None => false,
        };
        for slot in &mut self.slots {
            if let Some(at) = slot.sent.iter().rposition(|state| is_acked(state.tick)) {
                slot.acked = Some(slot.sent[at]);
                slot.sent.drain(..=at);
            }
        }
    }

    /// Frees the slot of an entity: the client receives no more updates of it.
    pub fn forget(&mut self, entity: EntityId) {
        if let Some(slot) = self.by_entity.remove(&entity) {
            self.slots[slot] = Slot::default();
        }
    }

    /// The slot of an entity.
    fn slot(&mut self, entity: EntityId, tick: u64) -> usize {
        if let Some(&slot) = self.by_entity.get(&entity) {
            self.slots[slot].at = tick;
            return slot;
        }
        let free = self.slots.iter().position(|slot| slot.entity.is_none());
        let slot = free.unwrap_or_else(|| {
            if self.slots.len() < MAX_SLOTS {
                self.slots.push(Slot::default());
                return self.slots.len() - 1;
            }
            let oldest = (0..MAX_SLOTS).min_by_key(|&slot| self.slots[slot].at);
            oldest.expect("invariant: there are slots")
        });
        if let Some(before) = self.slots[slot].entity {
            self.by_entity.remove(&before);
        }
        self.slots[slot] = Slot {
            entity: Some(entity),
            at: tick,
            ..Slot::default()
        };
        self.by_entity.insert(entity, slot);
        slot
    }

    /// The sample to send, in steps that are as long as permitted.
    fn sample(&self, observer: Position, motion: &Motion) -> Sample {
        assert!(
            motion.is_sound(),
            "a movement that says nothing, or no number: {motion:?}"
        );
        let reference = [observer.x, observer.y, observer.z].map(|metres| metres.round() as i32);
        let placing = self.packing.settled(motion.placing, reference);
        let mut sample = Sample {
            entity: motion.entity,
            placing: placing.number(),
            facing: motion.facing.number(),
            ..Sample::default()
        };
        if let Placing::Full(at) | Placing::Ground(at) = placing {
            let [x, y, z] = reference.map(|metres| metres as f32);
            let exponents = [
                self.packing.ground_step(at.x - x),
                self.packing.ground_step(at.z - z),
                Packing::height_step(at.y - y),
            ];
            let exact = [at.x, at.z, at.y];
            for axis in 0..entry::axes_sent(sample.placing) {
                let exponent = exponents[axis];
                match self.steps(axis, exact[axis], exponent) {
                    Some(steps) => sample.axes[axis] = Step { exponent, steps },
                    None => sample.placing = EXACT,
                }
            }
        }
        if let Placing::Full(at) | Placing::Ground(at) | Placing::Exact(at) = placing {
            sample.exact = [at.x, at.z, at.y].map(f32::to_bits);
        }
        let angles = match motion.facing {
            Facing::YawPitchRoll(yaw, pitch, roll) => [yaw, pitch, roll],
            Facing::YawPitch(yaw, pitch) => [yaw, pitch, 0.0],
            Facing::Yaw(yaw) => [yaw, 0.0, 0.0],
            Facing::Unsaid => [0.0; 3],
        };
        sample.angles = std::array::from_fn(|angle| turn_steps(angles[angle], TURN_BITS[angle]));
        sample
    }

    /// A coordinate in steps, unless it is too far away.
    fn steps(&self, axis: usize, metres: f32, exponent: u8) -> Option<i64> {
        let step = unit(self.packing, axis) * f64::from(1u32 << exponent);
        let steps = (f64::from(metres) / step).round();
        let farthest = FARTHEST >> exponent;
        (steps.abs() <= farthest as f64).then_some(steps as i64)
    }

    /// The datagram with these updates, and the states that the client would have after it.
    fn attempt(&self, tick: u64, origin: &Origin, letters: &[QueuedMovement]) -> (Vec<u8>, Vec<(usize, State)>) {
        let base = self.newest_acked.filter(|acked| tick - acked < 256);
        let acked = |slot: usize| {
            let acked = self.slots[slot].acked.as_ref();
            acked.filter(|state| base.is_some() && tick - state.tick < LONGEST_MEMORY)
        };
        let mut order: Vec<&QueuedMovement> = letters.iter().collect();
        order.sort_unstable_by_key(|letter| letter.slot);
        let (mut coder, mut model) = (Encoder::new(), Model::default());
        let needs = |letter: &&QueuedMovement| letter.sample.needs_origin(acked(letter.slot));
        let origin = order.iter().any(needs).then_some(origin);
        coder.bit(&mut model, context::HAS_ORIGIN, origin.is_some());
        if let Some(origin) = origin {
            entry::origin(&mut coder, &mut model, *origin);
        }
        let mut states = Vec::with_capacity(order.len());
        let mut next = 0;
        for letter in order {
            let before = acked(letter.slot);
            assert!(letter.slot >= next, "two movements of {}", letter.sample.entity);
            size(&mut coder, &mut model, context::GAP, (letter.slot - next) as u64 + 1);
            next = letter.slot + 1;
            coder.bit(&mut model, context::IS_NEW, before.is_none());
            if let Some(before) = before {
                let age = base.map_or(0, |base| base - before.tick);
                size(&mut coder, &mut model, context::AGE, age + 1);
            }
            let coded = entry::code(&mut coder, &mut model, (tick, before, origin), &letter.sample);
            let (_, state) = coded.expect("invariant: what is written is within bounds");
            states.push((letter.slot, state));
        }
        let mut datagram = vec![KIND];
        put_number(&mut datagram, self.view);
        datagram.extend((tick as u16).to_le_bytes());
        datagram.push(base.map_or(0, |base| (tick - base) as u8));
        put_number(&mut datagram, letters.len() as u64);
        datagram.extend(coder.finish());
        (datagram, states)
    }

    /// Keeps the states that the client may have from now on.
    fn keep(&mut self, tick: u64, states: Vec<(usize, State)>) {
        if self.sent.len() == SENT_KEPT {
            self.sent.pop_front();
        }
        self.sent.push_back(tick);
        for (index, state) in states {
            let slot = &mut self.slots[index];
            if slot.sent.len() == KEPT - 1 {
                slot.sent.pop_front();
                slot.acked = None;
            }
            slot.sent.push_back(state);
        }
    }
}

/// A client's state is not referred to after this many ticks.
pub(super) const LONGEST_MEMORY: u64 = 4_096;

/// Metres per unit of a coordinate: the packing's steps around the observer.
pub(super) fn unit(packing: Packing, axis: usize) -> f64 {
    match axis {
        0 | 1 => f64::from(packing.scale()) / 128.0,
        _ => 1.0 / 1_024.0,
    }
}

fn turn_steps(angle: f32, bits: u32) -> i64 {
    if bits == 8 {
        return pack_angle(angle).into();
    }
    let steps = f64::from(angle) / std::f64::consts::TAU * f64::from(1u32 << bits);
    (steps.round() as i64) & ((1 << bits) - 1)
}
