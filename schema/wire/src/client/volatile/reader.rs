//! The receiving end: keeps the last states of each entity, and decodes new datagrams with them.

use std::collections::{BTreeMap, VecDeque};

use annals_event::{Malformed, Reader};
use annals_ids::{Position, Tick};
use thiserror::Error;

use super::{
    Facing, Motion, Packing, Placing,
    entry::{self, EXACT, FULL, GROUND, Origin, Sample, State, TURN_BITS},
    model::{Model, context},
    packed::unpack_angle,
    range::{Coder, Decoder, size},
    writer::{ACK_BITS, KEPT, KIND, LONGEST_MEMORY, MAX_SLOTS, unit},
};

/// Decodes the datagrams of a [`super::VolatileWriter`] for one view. It keeps a bounded number of states of a bounded
/// number of entities, whatever it receives.
#[derive(Clone, Debug)]
pub struct VolatileReader {
    view: u64,
    packing: Packing,
    slots: BTreeMap<usize, VecDeque<State>>,
    newest: Option<u64>,
    /// Which ticks before the newest were read, the nearest in the lowest bit.
    before: u64,
}

/// Movements of one tick.
#[derive(Clone, Debug, PartialEq)]
pub struct VolatileUpdate {
    /// The tick. Updates older than the known state of an entity can be ignored.
    pub tick: Tick,
    /// The motions, ascending by the entities' slots.
    pub motions: Vec<Motion>,
}

/// A client's acknowledgement ([`super::VolatileWriter::acknowledge`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MovementAck {
    /// The low bits of the newest tick.
    pub tick: u16,
    /// Which of the ticks before it were received.
    pub before: u16,
}

/// Why a datagram cannot be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Unreadable {
    /// No writer makes such a datagram.
    #[error(transparent)]
    Malformed(#[from] Malformed),
    /// It is of another view.
    #[error("the datagram belongs to another view")]
    OtherView,
    /// It builds on a state that is no longer kept here, or is a duplicate. It counts as lost.
    #[error("the datagram is late or a duplicate")]
    Late,
}

impl VolatileReader {
    /// A reader for a view that has just started.
    #[must_use]
    pub fn new(view: u64, packing: Packing) -> Self {
        Self {
            view,
            packing,
            slots: BTreeMap::new(),
            newest: None,
            before: 0,
        }
    }

    /// Reads a datagram. `now` is a tick at most an hour from its own: that of any frame or datagram of the view.
    ///
    /// # Errors
    /// When it is malformed, or no longer of use. The state is then unchanged.
    pub fn read(&mut self, bytes: &[u8], now: Tick) -> Result<VolatileUpdate, Unreadable> {
        let reader = &mut Reader::new(bytes);
        let wrong = reader.malformed("movements");
        if reader.byte("movements")? != KIND {
            return Err(wrong.into());
        }
        if reader.number("view")? != self.view {
            return Err(Unreadable::OtherView);
        }
        let low = u16::from_le_bytes(reader.array("tick")?);
        let base = u64::from(reader.byte("acknowledged tick")?);
        let wrong = reader.malformed("movements");
        let tick = nearest(low, self.newest.map_or(now.0, |newest| newest.max(now.0)));
        let count: usize = reader.narrow("movements")?;
        let body = reader.take(reader.remaining(), "movements")?;
        if count == 0 || count > MAX_SLOTS || base > tick {
            return Err(wrong.into());
        }
        if self.has_read(tick) {
            return Err(Unreadable::Late);
        }
        let mut coder = Decoder::new(body);
        let base = (base > 0).then_some(tick - base);
        let entries = self.entries(&mut coder, (tick, base), count, wrong)?;
        if !coder.is_whole() {
            return Err(wrong.into());
        }
        let motions: Vec<Motion> = entries.iter().map(|(_, sample, _)| self.motion(sample)).collect();
        if !motions.iter().all(Motion::is_sound) {
            return Err(wrong.into());
        }
        for (slot, _, state) in entries {
            self.keep(slot, state);
        }
        self.note(tick);
        Ok(VolatileUpdate {
            tick: Tick(tick),
            motions,
        })
    }

    /// The acknowledgement to send, which lets the writer send less; `None` before any datagram was read.
    #[must_use]
    pub fn ack(&self) -> Option<MovementAck> {
        let newest = self.newest?;
        Some(MovementAck {
            tick: newest as u16,
            before: (self.before & ((1 << ACK_BITS) - 1)) as u16,
        })
    }

    fn entries(
        &self,
        coder: &mut Decoder<'_>,
        (tick, base): (u64, Option<u64>),
        count: usize,
        wrong: Malformed,
    ) -> Result<Vec<(usize, Sample, State)>, Unreadable> {
        let mut model = Model::default();
        let has_origin = coder.bit(&mut model, context::HAS_ORIGIN, false);
        let origin = has_origin.then(|| entry::origin(coder, &mut model, Origin::default()));
        let mut entries = Vec::new();
        let mut next = 0;
        for _ in 0..count {
            let gap = size(coder, &mut model, context::GAP, 1) - 1;
            let slot = usize::try_from(gap).ok().and_then(|gap| gap.checked_add(next));
            let slot = slot.filter(|&slot| slot < MAX_SLOTS).ok_or(wrong)?;
            next = slot + 1;
            let is_new = coder.bit(&mut model, context::IS_NEW, false);
            let before = if is_new {
                None
            } else {
                let age = size(coder, &mut model, context::AGE, 1) - 1;
                let then = base.and_then(|base| base.checked_sub(age)).ok_or(wrong)?;
                if tick - then >= LONGEST_MEMORY {
                    return Err(wrong.into());
                }
                let known = self.slots.get(&slot).and_then(|states| {
                    let at = states.binary_search_by_key(&then, |state| state.tick).ok()?;
                    states.get(at)
                });
                Some(known.ok_or(Unreadable::Late)?)
            };
            let about = (tick, before, origin.as_ref());
            let (sample, state) =
                entry::code(coder, &mut model, about, &Sample::default()).map_err(|what| Malformed {
                    what,
                    offset: wrong.offset,
                })?;
            entries.push((slot, sample, state));
        }
        Ok(entries)
    }

    /// Converts a sample to metres and radians.
    fn motion(&self, sample: &Sample) -> Motion {
        let metres = |axis: usize| {
            let step = sample.axes[axis];
            ((step.steps << step.exponent) as f64 * unit(self.packing, axis)) as f32
        };
        let [x, z, y] = sample.exact.map(f32::from_bits);
        let placing = match sample.placing {
            FULL => Placing::Full(Position {
                x: metres(0),
                y: metres(2),
                z: metres(1),
            }),
            GROUND => Placing::Ground(Position {
                x: metres(0),
                y: 0.0,
                z: metres(1),
            }),
            EXACT => Placing::Exact(Position { x, y, z }),
            _ => Placing::Unsaid,
        };
        let [yaw, pitch, roll] = std::array::from_fn(|angle| radians(sample.angles[angle], TURN_BITS[angle]));
        let facing = match sample.facing {
            0 => Facing::YawPitchRoll(yaw, pitch, roll),
            1 => Facing::YawPitch(yaw, pitch),
            2 => Facing::Yaw(yaw),
            _ => Facing::Unsaid,
        };
        Motion {
            entity: sample.entity,
            placing,
            facing,
        }
    }

    /// Keeps the state of an entity that both ends have now. States older than the one it was built on are no longer
    /// referred to if datagrams arrive in order; if they do not, those that refer to them are of no use.
    fn keep(&mut self, slot: usize, state: State) {
        let states = self.slots.entry(slot).or_default();
        let at = states.partition_point(|kept| kept.tick < state.tick);
        states.insert(at, state);
        if states.len() > KEPT {
            states.pop_front();
        }
    }

    fn has_read(&self, tick: u64) -> bool {
        match self.newest.map(|newest| newest.checked_sub(tick)) {
            Some(Some(0)) => true,
            Some(Some(ago)) => ago > 64 || self.before >> (ago - 1) & 1 == 1,
            Some(None) | None => false,
        }
    }

    fn note(&mut self, tick: u64) {
        let Some(newest) = self.newest else {
            self.newest = Some(tick);
            return;
        };
        if tick > newest {
            let by = tick - newest;
            let moved = if by > 64 {
                0
            } else {
                (u128::from(self.before) << 1 | 1) << (by - 1)
            };
            self.before = moved as u64;
            self.newest = Some(tick);
        } else {
            self.before |= 1 << (newest - tick - 1);
        }
    }
}

/// The tick with these low bits that is nearest to another.
fn nearest(low: u16, to: u64) -> u64 {
    let ahead = low.wrapping_sub(to as u16).cast_signed();
    to.saturating_add_signed(ahead.into())
}

fn radians(steps: i64, bits: u32) -> f32 {
    if bits == 8 {
        return unpack_angle(steps.to_le_bytes()[0]);
    }
    let half = 1 << (bits - 1);
    let signed = (steps + half) % (2 * half) - half;
    (signed as f64 * std::f64::consts::TAU / f64::from(1u32 << bits)) as f32
}
