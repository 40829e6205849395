//! Balancing: moves the boundaries of one space, in bounded steps, so that the loads of its cells become equal.
//!
//! At each cut the average load of the cells on one side is compared with the average of all cells that it divides. A
//! cut moves into the side that has more: as far as it takes to give the difference away, but no further than hand-over
//! can process in a short while; and not at all while much of an earlier move is still in progress.

use std::collections::BTreeMap;

use annals_ids::OwnerId;
use annals_wire::{HANDOVER_DEPTH, load::Levels};

use crate::{
    division::{Axis, Bounds, Cut, CutId, Node, Side},
    loads::Weight,
};

/// Minimum difference of loads, times the cut's aggression, for which a boundary moves.
const LEAST_DIFFERENCE: f64 = 0.001_25;

/// Minimum difference, as a part of the average, for which a boundary moves: entities that walk to and fro are ignored.
const LEAST_PART: f64 = 0.015;

/// Bounds of aggression. It starts at the maximum, and returns there at rest.
const AGGRESSION: (f64, f64) = (0.0625, 1.0);

/// Factor by which aggression grows in a step in which the heavier side has not changed: the tenth root of 2.
const GROWTH: f64 = 1.071_773_462_536_293_1;

/// Part of an owner's units that may be handed over at once, and its minimum and maximum in units: what hand-over
/// processes in a few seconds (`AT_ONCE` of `services/cell/src/handover.rs`).
const PART_AT_ONCE: f64 = 0.125;
const AT_ONCE: (f64, f64) = (32.0, 1_024.0);

/// Maximum load given, as a multiple of the difference, where it cannot be divided more finely: still an improvement.
const EXCESS: f64 = 1.25;

/// Minimum move of a boundary, metres.
const LEAST_MOVE: f32 = 0.25;

/// Boundaries lie on multiples of this, metres.
const GRAIN: f32 = 1.0 / 64.0;

/// Width left to a cell that is being retired, metres: less than the depth of hand-over, so that no entity enters it.
const REMAINDER: f32 = 1.0;

/// Bisections when searching for a position: enough to narrow the whole range of positions to the last bit.
const HALVINGS: u32 = 64;

/// Damping state of a cut.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Momentum {
    aggression: f64,
    /// The side that had more when the difference was last significant.
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

/// One balancing step over the cuts of a space.
pub(crate) struct Balancing<'a> {
    /// The loads, updated as boundaries move.
    pub(crate) weights: BTreeMap<OwnerId, Weight<'a>>,
    pub(crate) momenta: &'a mut BTreeMap<CutId, Momentum>,
    /// The owner whose cell is being retired.
    pub(crate) retiring: Option<OwnerId>,
    /// Minimum side of a cell, metres.
    pub(crate) least: f32,
}

/// Load that one side of a cut is to give away.
#[derive(Clone, Copy, Debug)]
struct LoadTransfer {
    from: Side,
    /// Load wanted in this step, and the load that would make both sides equal.
    load: f64,
    whole: f64,
}

impl Balancing<'_> {
    /// Moves the cuts below a node, outermost first.
    pub(crate) fn settle(&mut self, node: &mut Node, bounds: Bounds) {
        let Node::Cut(cut) = node else { return };
        if let Some(transfer) = self.transfer(cut)
            && let Some(at) = self.place(cut, &bounds, transfer)
        {
            self.give(cut, &bounds, transfer.from, at);
            cut.at = at;
        }
        let [low, high] = [Side::Low, Side::High].map(|side| cut.beside(&bounds, side));
        self.settle(&mut cut.low, low);
        self.settle(&mut cut.high, high);
    }

    /// The side that should give load away, if the difference is significant.
    fn transfer(&mut self, cut: &Cut) -> Option<LoadTransfer> {
        let [(low, lows), (high, highs)] = [self.weigh(&cut.low)?, self.weigh(&cut.high)?];
        if lows == 0 || highs == 0 {
            let from = if lows == 0 { Side::Low } else { Side::High };
            let (load, whole) = (f64::INFINITY, f64::INFINITY);
            return (lows + highs > 0).then_some(LoadTransfer { from, load, whole });
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
        (difference * momentum.aggression >= LEAST_DIFFERENCE).then_some(LoadTransfer { from, load, whole })
    }

    /// Total load of a node's cells, and how many of them are not being retired; `None` if the load of one is unknown.
    fn weigh(&self, node: &Node) -> Option<(f64, usize)> {
        let mut sum = (0.0, 0);
        for (owner, _) in node.leaves(Bounds::PLANE) {
            sum.0 += self.weights.get(&owner)?.load;
            sum.1 += usize::from(self.retiring != Some(owner));
        }
        Some(sum)
    }

    /// New position of the cut, if it is to move.
    fn place(&self, cut: &Cut, bounds: &Bounds, transfer: LoadTransfer) -> Option<f32> {
        let givers = Givers::of(self, cut, bounds, transfer.from)?;
        let most: f64 = givers.all.iter().map(|giver| giver.most()).sum();
        let want = transfer.load.min(most);
        let far = givers.far(self.least)?;
        let improves = |given: f64| given <= transfer.whole * EXCESS;
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
        let inwards = match transfer.from {
            Side::Low => cut.at - at,
            Side::High => at - cut.at,
        };
        (inwards >= LEAST_MOVE).then_some(at)
    }

    /// Updates the weights for the load that a moved cut hands over.
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

/// The cells that lose area if a cut moves into them.
struct Givers<'a> {
    from: Side,
    at: f32,
    all: Vec<Giver<'a>>,
}

struct Giver<'a> {
    /// The far edge of its cell.
    end: f32,
    units: f64,
    rate: f64,
    levels: Option<&'a Levels>,
    retires: bool,
}

impl<'a> Givers<'a> {
    /// `None` if the cut must not move now: an owner on either side is silent or reports an older map, or much of an
    /// earlier move is still in progress.
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

    /// Load that is handed over if the cut moves to a position.
    fn given(&self, at: f32) -> f64 {
        let given = |giver: &Giver<'_>| {
            let share = giver.levels.map_or(0.0, |levels| share_beyond(levels, self.from, at));
            giver.rate * giver.units * share
        };
        self.all.iter().map(given).sum()
    }

    /// Limit of the cut's move: each cell keeps the minimum side, and an unbounded cell keeps the part where anything
    /// stands. `None` where all cells are unbounded and have nothing to give.
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

    /// Direction in which the cut moves: west or south (-1), or east or north (1).
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

/// Maximum units that an owner may hand over at once.
pub(crate) fn most_at_once(units: f64) -> f64 {
    (units * PART_AT_ONCE).clamp(AT_ONCE.0, AT_ONCE.1)
}

/// Share of an owner's units that is handed over if the cut moves to a position: those beyond it by more than the depth
/// at which hand-over leaves entities where they are.
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
