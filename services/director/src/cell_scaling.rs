//! Cell scaling: the number of cells of a space. A cell is added where the load is high and an owner is free, and
//! retired where the load is low enough for fewer cells. The gap between the two limits is larger than the effect of
//! one cell, so that neither undoes the other.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use annals_ids::OwnerId;

use crate::{
    balancing::{levels, most_at_once, share_beyond},
    division::{Axis, Bounds, Division, Side},
    loads::Weight,
};

/// A cell is added when the average load is above this, in cores.
const ADD_ABOVE: f64 = 0.5;

/// A cell is retired when the average load of the others, including its load, would be below this.
const RETIRE_BELOW: f64 = 0.2;

/// Its retirement is cancelled when that average has risen above this.
const KEEP_ABOVE: f64 = 0.3;

const _: () = assert!(2.0 * RETIRE_BELOW < ADD_ABOVE && RETIRE_BELOW < KEEP_ABOVE && KEEP_ABOVE < ADD_ABOVE);

/// An owner is free for a cell if its load in other spaces is below this part of the average load.
const FREE_BELOW: f64 = 0.5;

/// Maximum units left on a cell when it is removed: what one tick hands over.
const LEFT: f64 = 32.0;

/// Limits how quickly the number of cells changes.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Minimum time between two changes: the effect of a change must be measured before the next.
    pub between: Duration,
    /// Minimum age of a cell that is retired.
    pub life: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            between: Duration::from_secs(15),
            life: Duration::from_secs(120),
        }
    }
}

/// State of one space.
#[derive(Clone, Debug, Default)]
pub(crate) struct CellScaling {
    /// The owner whose cell is being retired.
    pub(crate) retiring: Option<OwnerId>,
    /// When the number of cells last changed.
    changed: Duration,
    /// When each cell was added, where that is known.
    born: BTreeMap<OwnerId, Duration>,
}

/// Inputs of cell scaling.
pub(crate) struct Scene<'a> {
    pub(crate) now: Duration,
    pub(crate) pace: Pace,
    /// Weights of the owners that have a cell here, as far as they have reported.
    pub(crate) weights: &'a BTreeMap<OwnerId, Weight<'a>>,
    /// Live owners without a cell here, with their load elsewhere.
    pub(crate) others: &'a [(OwnerId, f64)],
    /// Minimum side of a cell, metres.
    pub(crate) least_side: f32,
    /// Minimum number of cells.
    pub(crate) least_cells: usize,
}

/// A change to the number of cells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// An owner got a cell.
    Added(OwnerId),
    /// An owner's cell is being retired.
    Retires(OwnerId),
    /// Its retirement is cancelled.
    Stays(OwnerId),
    /// Its retirement is complete: it has handed everything over and has no cell any more.
    Retired(OwnerId),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Change::Added(owner) => write!(f, "owner {owner} gets a cell"),
            Change::Retires(owner) => write!(f, "owner {owner} retires its cell"),
            Change::Stays(owner) => write!(f, "owner {owner} keeps its cell"),
            Change::Retired(owner) => write!(f, "owner {owner} has retired its cell"),
        }
    }
}

impl CellScaling {
    pub(crate) fn new(now: Duration) -> Self {
        Self {
            changed: now,
            ..Self::default()
        }
    }

    /// Changes the number of cells by at most one, if it is time.
    pub(crate) fn review(&mut self, scene: &Scene<'_>, division: &mut Division) -> Option<Change> {
        let owners = division.owners();
        let known = owners.iter().all(|owner| scene.weights.contains_key(owner));
        let total: f64 = scene.weights.values().map(|weight| weight.load).sum();
        if let Some(owner) = self.retiring {
            let others = total / (owners.len().saturating_sub(1).max(1)) as f64;
            return self.retire(scene, (owner, others), division);
        }
        if !known || scene.now.saturating_sub(self.changed) < scene.pace.between {
            return None;
        }
        let average = total / owners.len() as f64;
        if average > ADD_ABOVE {
            return self.add(scene, average, division);
        }
        let fewer = owners
            .len()
            .checked_sub(1)
            .filter(|fewer| *fewer >= scene.least_cells.max(1))?;
        if total / fewer as f64 >= RETIRE_BELOW {
            return None;
        }
        let age = |owner: &OwnerId| scene.now.saturating_sub(*self.born.get(owner).unwrap_or(&self.changed));
        let old = scene
            .weights
            .iter()
            .filter(|(owner, weight)| weight.current && age(owner) >= scene.pace.life);
        let (owner, _) = old.min_by(|one, other| one.1.load.total_cmp(&other.1.load))?;
        self.retiring = Some(*owner);
        Some(Change::Retires(*owner))
    }

    /// Continues a retirement. Balancing moves the cell's boundaries until little or nothing stands on it.
    fn retire(
        &mut self,
        scene: &Scene<'_>,
        (owner, others): (OwnerId, f64),
        division: &mut Division,
    ) -> Option<Change> {
        if others > KEEP_ABOVE {
            self.end(scene.now);
            return Some(Change::Stays(owner));
        }
        let weight = scene.weights.get(&owner).filter(|weight| weight.current)?;
        let is_out = weight.units() + weight.leaving <= LEFT;
        if !is_out || !division.remove(owner) {
            return None;
        }
        self.end(scene.now);
        self.born.remove(&owner);
        Some(Change::Retired(owner))
    }

    fn end(&mut self, now: Duration) {
        self.retiring = None;
        self.changed = now;
    }

    fn add(&mut self, scene: &Scene<'_>, average: f64, division: &mut Division) -> Option<Change> {
        let free = scene.others.iter().filter(|(_, load)| *load < average * FREE_BELOW);
        let (newcomer, _) = free.min_by(|one, other| one.1.total_cmp(&other.1).then(one.0.cmp(&other.0)))?;
        let mut cells: Vec<(OwnerId, Bounds)> = division.cells();
        let load = |owner: &OwnerId| scene.weights.get(owner).map_or(0.0, |weight| weight.load);
        cells.sort_by(|one, other| load(&other.0).total_cmp(&load(&one.0)));
        let (owner, cut, side) = cells.iter().find_map(|(owner, bounds)| {
            let weight = scene.weights.get(owner).filter(|weight| weight.current)?;
            let (cut, side) = slice(weight, bounds, scene.least_side)?;
            Some((*owner, cut, side))
        })?;
        if !division.split(owner, cut, side, *newcomer) {
            return None;
        }
        self.changed = scene.now;
        self.born.insert(*newcomer, scene.now);
        Some(Change::Added(*newcomer))
    }
}

/// The cut that gives a new cell a slice with no more units than may be handed over at once, or else as few as
/// possible. The rest follows as for any cell: balancing moves the boundary step by step.
fn slice(weight: &Weight<'_>, bounds: &Bounds, least: f32) -> Option<((Axis, f32), Side)> {
    let survey = weight.survey?;
    let most = most_at_once(weight.units()) / weight.units().max(1.0);
    let mut best: Option<(f64, (Axis, f32), Side)> = None;
    for axis in [Axis::X, Axis::Z] {
        let levels = levels(survey, axis);
        let (low, high) = levels.ends()?;
        for side in [Side::High, Side::Low] {
            let (from, inwards) = match side {
                Side::High => (Side::Low, -1.0),
                Side::Low => (Side::High, 1.0),
            };
            let (near, far) = (bounds.edge(axis, side), bounds.edge(axis, from));
            // From where the slice has the minimum side of a cell, to where the rest has it.
            let start = if side == Side::High {
                near.min(high)
            } else {
                near.max(low)
            };
            let start = if near.is_finite() {
                near + inwards * least
            } else {
                start
            };
            let room = (far - start) * inwards;
            if room < least {
                continue;
            }
            let end = if far.is_finite() {
                far - inwards * least
            } else {
                start + inwards * (high - low)
            };
            let mut at = start;
            for step in 1..=STEPS {
                let next = start + (end - start) * (step as f32 / STEPS as f32);
                if share_beyond(levels, from, next) > most {
                    break;
                }
                at = next;
            }
            let over = (share_beyond(levels, from, at) - most).max(0.0);
            let is_within = bounds.edge(axis, Side::Low) < at && at < bounds.edge(axis, Side::High);
            if is_within && best.is_none_or(|(least_over, ..)| over < least_over) {
                best = Some((over, (axis, at), side));
            }
        }
    }
    best.map(|(_, cut, side)| (cut, side))
}

/// Number of widths tried for the slice of a new cell.
const STEPS: u32 = 64;
