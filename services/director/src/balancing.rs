//! Balancing: moves the boundaries of one space, a bounded step at a time, so that the loads of its cells become equal.
//!
//! At each cut the average load of the cells on one side is compared with the average of all that it divides. A cut moves
//! into the side that has more, as far as it takes to give the difference away, and no further than what hand-over gets done
//! in a short while; and not at all while much of what was given before is still under way.

use std::collections::BTreeMap;

use annals_ids::OwnerId;
use annals_wire::{HANDOVER_DEPTH, load::Levels};

use crate::{
    division::{Axis, Bounds, Cut, CutId, Node, Side},
    loads::Weight,
};

/// A boundary moves only if the difference of loads times its aggression is as large.
const LEAST_DIFFERENCE: f64 = 0.001_25;

/// A boundary moves only if the difference is as large a part of the average: walking to and fro is not to be followed.
const LEAST_PART: f64 = 0.015;

/// Bounds of aggression. At rest it is the greatest.
const AGGRESSION: (f64, f64) = (0.0625, 1.0);

/// By what aggression grows in a step in which the difference has not changed sides: the tenth root of 2.
const GROWTH: f64 = 1.071_773_462_536_293_1;

/// Which part of what stands on an owner may go over at once, in units at least and at most: what hand-over gets done in a
/// few seconds (`AT_ONCE` of `services/cell/src/handover.rs`).
const PART_AT_ONCE: f64 = 0.125;
const AT_ONCE: (f64, f64) = (32.0, 1_024.0);

/// What may go over beyond the difference, as a part of it, where load cannot be divided better: still an improvement.
const EXCESS: f64 = 1.25;

/// A boundary that would move by less stays, metres.
const LEAST_MOVE: f32 = 0.25;

/// Boundaries stand on multiples of this, metres.
const GRAIN: f32 = 1.0 / 64.0;

/// How much is left of a cell that is given up, metres: less than the depth of hand-over, so that nobody enters it.
const REMAINDER: f32 = 1.0;

/// Halvings in looking for a position: enough to come from the whole range of positions to the last bit.
const HALVINGS: u32 = 64;

/// How decidedly a cut moves.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Momentum {
    aggression: f64,
    /// The side that had more when the difference last mattered.
    heavier: Option<Side>,
}

impl Default for Momentum {
    fn default() -> Self {
        Self {
            aggression: AGGRESSION.1,
            heavier: None,
        }
    }
}

/// One step over the cuts of a space.
pub(crate) struct Balancing<'a> {
    /// The loads, which change as boundaries do.
    pub(crate) weights: BTreeMap<OwnerId, Weight<'a>>,
    pub(crate) momenta: &'a mut BTreeMap<CutId, Momentum>,
    /// The owner whose cell is to be given up.
    pub(crate) retiring: Option<OwnerId>,
    /// The least side of a cell, metres.
    pub(crate) least: f32,
}

/// What a side of a cut is to give away.
#[derive(Clone, Copy, Debug)]
struct Wish {
    from: Side,
    /// What is wanted now, and what would make both sides equal.
    load: f64,
    whole: f64,
}

impl Balancing<'_> {
    /// Moves the cuts of a part of the space, from the outermost on.
    pub(crate) fn settle(&mut self, node: &mut Node, bounds: Bounds) {
        let Node::Cut(cut) = node else { return };
        if let Some(wish) = self.wish(cut)
            && let Some(at) = self.place(cut, &bounds, wish)
        {
            self.give(cut, &bounds, wish.from, at);
            cut.at = at;
        }
        let [low, high] = [Side::Low, Side::High].map(|side| cut.beside(&bounds, side));
        self.settle(&mut cut.low, low);
        self.settle(&mut cut.high, high);
    }

    /// Which side is to give something away, if the difference is worth it.
    fn wish(&mut self, cut: &Cut) -> Option<Wish> {
        let [(low, lows), (high, highs)] = [self.weigh(&cut.low)?, self.weigh(&cut.high)?];
        if lows == 0 || highs == 0 {
            let from = if lows == 0 { Side::Low } else { Side::High };
            let (load, whole) = (f64::INFINITY, f64::INFINITY);
            return (lows + highs > 0).then_some(Wish { from, load, whole });
        }
        let average = (low + high) / (lows + highs) as f64;
        let [over_low, over_high] = [low / lows as f64 - average, high / highs as f64 - average];
        let (from, difference, givers) = if over_low > 0.0 {
            (Side::Low, over_low, lows)
        } else {
            (Side::High, over_high, highs)
        };
        let momentum = self.momenta.entry(cut.id).or_default();
        let matters = difference >= average * LEAST_PART;
        if matters && momentum.heavier == Some(from.other()) {
            momentum.aggression /= 2.0;
        } else {
            momentum.aggression *= GROWTH;
        }
        momentum.aggression = momentum.aggression.clamp(AGGRESSION.0, AGGRESSION.1);
        if !matters {
            return None;
        }
        momentum.heavier = Some(from);
        let whole = difference * givers as f64;
        let load = whole * momentum.aggression;
        (difference * momentum.aggression >= LEAST_DIFFERENCE).then_some(Wish { from, load, whole })
    }

    /// The load of all cells of a node, and how many of them are to stay; `None` while nothing is known of one.
    fn weigh(&self, node: &Node) -> Option<(f64, usize)> {
        let mut sum = (0.0, 0);
        for (owner, _) in node.leaves(Bounds::PLANE) {
            sum.0 += self.weights.get(&owner)?.load;
            sum.1 += usize::from(self.retiring != Some(owner));
        }
        Some(sum)
    }

    /// Where the cut is to be, if it is to move.
    fn place(&self, cut: &Cut, bounds: &Bounds, wish: Wish) -> Option<f32> {
        let givers = Givers::of(self, cut, bounds, wish.from)?;
        let most: f64 = givers.all.iter().map(|giver| giver.most()).sum();
        let want = wish.load.min(most);
        let far = givers.far(self.least)?;
        let improves = |given: f64| given <= wish.whole * EXCESS;
        let at = if givers.given(far) <= want {
            far
        } else {
            let (mut less, mut more) = (cut.at, far);
            for _ in 0..HALVINGS {
                let middle = f32::midpoint(less, more);
                if givers.given(middle) < want {
                    less = middle;
                } else {
                    more = middle;
                }
            }
            let candidates = [more, less].map(|at| givers.grained(at));
            let off = |at: &f32| (givers.given(*at) - want).abs();
            let good = candidates.into_iter().filter(|at| improves(givers.given(*at)));
            good.min_by(|one, other| off(one).total_cmp(&off(other)))?
        };
        let inwards = match wish.from {
            Side::Low => cut.at - at,
            Side::High => at - cut.at,
        };
        (inwards >= LEAST_MOVE).then_some(at)
    }

    /// Notes what changes hands when a cut is moved.
    fn give(&mut self, cut: &Cut, bounds: &Bounds, from: Side, at: f32) {
        let cross = cut.axis.other();
        let receivers = cut
            .side(from.other())
            .along(cut.beside(bounds, from.other()), cut.axis, from);
        let givers = cut.side(from).along(cut.beside(bounds, from), cut.axis, from.other());
        for (owner, _) in givers {
            let Some(weight) = self.weights.get_mut(&owner) else {
                continue;
            };
            let Some(survey) = weight.survey else { continue };
            let share = share_beyond(levels(survey, cut.axis), from, at);
            let units = survey.units * share;
            weight.leaving += units;
            weight.load -= units * weight.rate;
            let load = units * weight.rate;
            let across = levels(survey, cross);
            for (receiver, place) in &receivers {
                let part = across.below(place.edge(cross, Side::High)) - across.below(place.edge(cross, Side::Low));
                if let Some(weight) = self.weights.get_mut(receiver) {
                    weight.load += load * part;
                }
            }
        }
    }
}

/// The cells that a cut takes something from if it moves into them.
struct Givers<'a> {
    from: Side,
    at: f32,
    all: Vec<Giver<'a>>,
}

struct Giver<'a> {
    /// Where its cell ends on the other side.
    end: f32,
    units: f64,
    rate: f64,
    levels: Option<&'a Levels>,
    retires: bool,
}

impl<'a> Givers<'a> {
    /// `None` if now is not the time: somebody on either side is not heard, or goes by an older map, or much is still under
    /// way.
    fn of(balancing: &'a Balancing<'_>, cut: &Cut, bounds: &Bounds, from: Side) -> Option<Self> {
        let receivers = cut
            .side(from.other())
            .along(cut.beside(bounds, from.other()), cut.axis, from);
        let ready = |owner: &OwnerId| balancing.weights.get(owner).is_some_and(|weight| weight.current);
        if !receivers
            .iter()
            .all(|(owner, _)| ready(owner) && balancing.retiring != Some(*owner))
        {
            return None;
        }
        let cells = cut.side(from).along(cut.beside(bounds, from), cut.axis, from.other());
        let mut all = Vec::with_capacity(cells.len());
        let (mut leaving, mut most) = (0.0, 0.0);
        for (owner, place) in cells {
            let weight = balancing.weights.get(&owner).filter(|weight| weight.current)?;
            (leaving, most) = (leaving + weight.leaving, most + most_at_once(weight.units()));
            all.push(Giver {
                end: place.edge(cut.axis, from),
                units: weight.units(),
                rate: weight.rate,
                levels: weight.survey.map(|survey| levels(survey, cut.axis)),
                retires: balancing.retiring == Some(owner),
            });
        }
        let at = cut.at;
        (leaving <= most / 2.0).then_some(Self { from, at, all })
    }

    /// The load that goes over if the cut is at a position.
    fn given(&self, at: f32) -> f64 {
        let given = |giver: &Giver<'_>| {
            let share = giver.levels.map_or(0.0, |levels| share_beyond(levels, self.from, at));
            giver.rate * giver.units * share
        };
        self.all.iter().map(given).sum()
    }

    /// How far the cut may go: each cell keeps the least side, and one without end as much of it as anything stands on.
    /// `None` where none of them ends and none has anything to give.
    fn far(&self, least: f32) -> Option<f32> {
        let inwards = self.inwards();
        let limit = |giver: &Giver<'_>| {
            let least = if giver.retires { REMAINDER } else { least };
            if giver.end.is_finite() {
                return Some(giver.end - inwards * least);
            }
            let (low, high) = giver.levels?.ends()?;
            let end = if inwards < 0.0 { low } else { high };
            Some(end + inwards * (HANDOVER_DEPTH + REMAINDER))
        };
        let nearest = |one: f32, other: f32| if inwards < 0.0 { one.max(other) } else { one.min(other) };
        let far = self.all.iter().filter_map(limit).reduce(nearest)?;
        let is_inwards = (far - self.at) * inwards > 0.0;
        is_inwards.then_some(far)
    }

    /// The multiple of the grain next to a position, further inwards.
    fn grained(&self, at: f32) -> f32 {
        let grains = at / GRAIN;
        let grains = if self.inwards() < 0.0 {
            grains.floor()
        } else {
            grains.ceil()
        };
        grains * GRAIN
    }

    /// Whither the cut goes: west or south, or else east or north.
    fn inwards(&self) -> f32 {
        match self.from {
            Side::Low => -1.0,
            Side::High => 1.0,
        }
    }
}

impl Giver<'_> {
    fn most(&self) -> f64 {
        self.rate * most_at_once(self.units)
    }
}

/// What may go over from an owner at once, in units.
pub(crate) fn most_at_once(units: f64) -> f64 {
    (units * PART_AT_ONCE).clamp(AT_ONCE.0, AT_ONCE.1)
}

/// The share of what stands on a side that is handed over if the cut is at a position: what is further beyond it than
/// entities are left where they are.
pub(crate) fn share_beyond(levels: &Levels, from: Side, at: f32) -> f64 {
    match from {
        Side::Low if levels.ends().is_some() => 1.0 - levels.below(at + HANDOVER_DEPTH),
        Side::Low => 0.0,
        Side::High => levels.below(at - HANDOVER_DEPTH),
    }
}

pub(crate) fn levels(survey: &annals_wire::load::SpaceSurvey, axis: Axis) -> &Levels {
    match axis {
        Axis::X => &survey.x,
        Axis::Z => &survey.z,
    }
}
