//! The bits that encode one entity's motion: one description for both writer and reader.

use annals_ids::EntityId;

use super::{
    Facing,
    model::{Model, context},
    range::{Coder, signed},
    track::{FARTHEST, Track, Turn},
};

/// Number of the `Placing` that gives a position in steps.
pub(super) const FULL: u8 = 0;
pub(super) const GROUND: u8 = 1;
pub(super) const EXACT: u8 = 3;

/// East, north and up: the order in which coordinates are encoded.
pub(super) const AXES: usize = 3;
const UP: usize = 2;

/// Bits of the steps of yaw, pitch and roll. Pitch has twice as many steps as a byte has values, to be as precise as an
/// encoding in which half a turn has 254.
pub(super) const TURN_BITS: [u32; 3] = [8, 9, 8];

/// The encoded motion of an entity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) entity: EntityId,
    /// Numbers of the placing and the facing.
    pub(super) placing: u8,
    pub(super) facing: u8,
    /// In steps: the step's power of two of units, and the number of steps from zero.
    pub(super) axes: [Step; AXES],
    /// Exact bits.
    pub(super) exact: [u32; AXES],
    /// In steps.
    pub(super) angles: [i64; 3],
}

/// A coordinate in steps.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Step {
    pub(super) exponent: u8,
    pub(super) steps: i64,
}

/// The state of an entity that both ends have after an update.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct State {
    pub(super) tick: u64,
    pub(super) entity: EntityId,
    placing: u8,
    facing: u8,
    axes: [Option<Track>; AXES],
    angles: [Option<Turn>; 3],
}

/// Origin of coordinates that have no known state: east, north and up, in [`ORIGIN_UNITS`].
pub(super) type Origin = [i64; AXES];

/// Units per step of an origin.
pub(super) const ORIGIN_UNITS: i64 = 128;

impl Sample {
    /// Whether it contains a coordinate that `before` lacks.
    pub(super) fn needs_origin(&self, before: Option<&State>) -> bool {
        (0..axes_sent(self.placing)).any(|axis| before.is_none_or(|before| before.axes[axis].is_none()))
    }
}

/// Number of coordinates that a placing gives in steps.
pub(super) fn axes_sent(placing: u8) -> usize {
    match placing {
        FULL => 3,
        GROUND => 2,
        _ => 0,
    }
}

/// Codes the origin of coordinates that have no known state.
pub(super) fn origin(coder: &mut impl Coder, model: &mut Model, origin: Origin) -> Origin {
    origin.map(|value| signed(coder, model, context::ORIGIN, value))
}

/// Codes the update of an entity at a tick, and returns the state that both ends have then. `before` is their common
/// earlier state; without one, the entity's id is included.
pub(super) fn code(
    coder: &mut impl Coder,
    model: &mut Model,
    (tick, before, origin): (u64, Option<&State>, Option<&Origin>),
    sample: &Sample,
) -> Result<(Sample, State), &'static str> {
    let mut found = Sample {
        entity: match before {
            Some(before) => before.entity,
            None => name(coder, sample.entity),
        },
        ..Sample::default()
    };
    (found.placing, found.facing) = parts(coder, model, before, sample)?;
    let ticks = before.map_or(1, |before| (tick - before.tick).cast_signed());
    let mut state = State {
        tick,
        entity: found.entity,
        placing: found.placing,
        facing: found.facing,
        axes: [None; AXES],
        angles: [None; 3],
    };
    let mut surprise = 0;
    for axis in 0..axes_sent(found.placing) {
        let known = before.and_then(|before| before.axes[axis]);
        let (step, track) = match known {
            Some(track) => go_on(coder, model, (axis, ticks, &track, &mut surprise), sample.axes[axis])?,
            None => begin(coder, model, (axis, origin), sample.axes[axis])?,
        };
        found.axes[axis] = step;
        state.axes[axis] = Some(track);
    }
    if found.placing == EXACT {
        for (bits, value) in found.exact.iter_mut().zip(sample.exact) {
            *bits = even(coder, 32, value.into()) as u32;
        }
    }
    for (angle, &bits) in TURN_BITS.iter().enumerate().take(Facing::angles(found.facing)) {
        let known = before.and_then(|before| before.angles[angle]);
        let value = sample.angles[angle];
        let (step, turn) = match known {
            Some(turn) => turn_on(coder, model, (angle, ticks, &turn), value),
            None => {
                let step = even(coder, bits, value.cast_unsigned()).cast_signed();
                (step, Turn::begin(step, bits))
            }
        };
        found.angles[angle] = step;
        state.angles[angle] = Some(turn);
    }
    Ok((found, state))
}

/// The entity's id: its number of bits, then the bits.
fn name(coder: &mut impl Coder, entity: EntityId) -> EntityId {
    let length = 64 - entity.0.leading_zeros();
    let length = even(coder, 7, length.into()).min(64);
    EntityId(even(coder, length as u32, entity.0))
}

fn parts(
    coder: &mut impl Coder,
    model: &mut Model,
    before: Option<&State>,
    sample: &Sample,
) -> Result<(u8, u8), &'static str> {
    if let Some(before) = before {
        let differ = (before.placing, before.facing) != (sample.placing, sample.facing);
        if !coder.bit(model, context::PARTS_DIFFER, differ) {
            return Ok((before.placing, before.facing));
        }
    }
    let value = u64::from(sample.placing * 4 + sample.facing);
    let parts = tree(coder, model, (context::PARTS, 4), value) as u8;
    let (placing, facing) = (parts / 4, parts % 4);
    let is_new = before.is_none_or(|before| (before.placing, before.facing) != (placing, facing));
    if (placing, facing) == (2, 3) || !is_new {
        return Err("parts of a movement");
    }
    Ok((placing, facing))
}

/// A coordinate without known state.
fn begin(
    coder: &mut impl Coder,
    model: &mut Model,
    (axis, origin): (usize, Option<&Origin>),
    value: Step,
) -> Result<(Step, Track), &'static str> {
    let origin = origin.ok_or("origin of a movement")?[axis].clamp(-FARTHEST, FARTHEST) * ORIGIN_UNITS;
    let exponent = even(coder, 4, value.exponent.into()) as u8;
    let base = origin >> exponent;
    let first = if axis == UP { context::NEW_UP } else { context::NEW };
    let steps = base.saturating_add(signed(coder, model, first, value.steps - base));
    let step = within(Step { exponent, steps })?;
    Ok((step, Track::begin(steps, exponent)))
}

/// A coordinate with known state: the difference from its prediction.
fn go_on(
    coder: &mut impl Coder,
    model: &mut Model,
    (axis, ticks, track, surprise): (usize, i64, &Track, &mut usize),
    value: Step,
) -> Result<(Step, Track), &'static str> {
    let first = if axis == UP {
        context::EXPONENT_UP
    } else {
        context::EXPONENT
    };
    let before = i64::from(track.exponent);
    let exponent = before.saturating_add(signed(coder, model, first, i64::from(value.exponent) - before));
    let exponent = u8::try_from(exponent).ok().filter(|&exponent| exponent < 16);
    let exponent = exponent.ok_or("step of a movement")?;
    let expected = track.expect(ticks, exponent);
    let first = if axis == UP {
        context::missed_up(track.is_still())
    } else {
        context::missed(exponent, track.is_still(), *surprise)
    };
    let missed = signed(coder, model, first, value.steps - expected);
    *surprise = if missed == 0 { 1 } else { 2 };
    let steps = expected.saturating_add(missed);
    let step = within(Step { exponent, steps })?;
    Ok((step, track.follow(ticks, steps, exponent)))
}

fn within(step: Step) -> Result<Step, &'static str> {
    let farthest = FARTHEST >> step.exponent;
    let is_within = (-farthest..=farthest).contains(&step.steps);
    is_within.then_some(step).ok_or("coordinate of a movement")
}

fn turn_on(
    coder: &mut impl Coder,
    model: &mut Model,
    (angle, ticks, turn): (usize, i64, &Turn),
    value: i64,
) -> (i64, Turn) {
    let expected = turn.expect(ticks);
    let first = context::turned(angle, turn.haste());
    let missed = signed(coder, model, first, turn.short(value - expected));
    let step = expected.wrapping_add(missed) & ((1 << TURN_BITS[angle]) - 1);
    (step, turn.follow(ticks, step))
}

/// A number of some bits, each with a context chosen by the bits before it.
fn tree(coder: &mut impl Coder, model: &mut Model, (first, bits): (usize, u32), value: u64) -> u64 {
    let mut node = 1;
    for at in (0..bits).rev() {
        let bit = coder.bit(model, first + node - 1, value >> at & 1 == 1);
        node = node << 1 | usize::from(bit);
    }
    node as u64 - (1 << bits)
}

/// A number of a fixed number of bits, all values equally likely.
pub(super) fn even(coder: &mut impl Coder, bits: u32, value: u64) -> u64 {
    (0..bits)
        .rev()
        .fold(0, |found, at| found << 1 | u64::from(coder.even(value >> at & 1 == 1)))
}
