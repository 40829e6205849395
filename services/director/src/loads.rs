//! Loads of owners, from their own reports. Pure: time is an input.
//!
//! A load is a share of one core. An owner's measurement of itself lags behind the entities on it, and fluctuates; the
//! entities on it are known exactly. So measurements are only used for the cost of a unit on that owner, smoothed, and
//! a load is units times that cost: a move from one owner to another is seen at once.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_ids::{OwnerId, SpaceId};
use annals_wire::load::{Load, SpaceSurvey};

use crate::SILENCE;

/// Cost of a unit where nothing is measured yet: a ten-thousandth of a core.
pub const NOMINAL_RATE: f64 = 1e-4;

/// Weight of [`NOMINAL_RATE`] against a measurement, units: the measurement of an almost empty owner says little about
/// the cost of a unit.
const PRIOR: f64 = 20.0;

/// Time constant for smoothing measured costs.
const SMOOTHING: Duration = Duration::from_secs(15);

#[derive(Clone, Debug)]
struct Known {
    load: Load,
    last_beat: Duration,
    /// Cost of a unit.
    rate: f64,
}

/// The latest reported load of each owner, with its smoothed cost of a unit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loads {
    known: BTreeMap<OwnerId, Known>,
}

/// Load of an owner with a cell in a space, for choosing a boundary.
#[derive(Clone, Debug)]
pub(crate) struct Weight<'a> {
    /// Total load over all spaces, with what is moving to the owner and without what is moving from it.
    pub(crate) load: f64,
    /// Cost of a unit.
    pub(crate) rate: f64,
    /// Units moving from it in this space.
    pub(crate) leaving: f64,
    /// Whether its report is recent and of the newest map.
    pub(crate) current: bool,
    /// Its survey of this space.
    pub(crate) survey: Option<&'a SpaceSurvey>,
}

impl Weight<'_> {
    /// Units that stay on it in this space.
    pub(crate) fn units(&self) -> f64 {
        self.survey.map_or(0.0, |survey| survey.units)
    }
}

impl Loads {
    /// Applies an owner's report.
    pub(crate) fn receive(&mut self, now: Duration, owner: OwnerId, load: Load) {
        let all: f64 = load.survey.spaces.values().map(|space| space.units).sum();
        let measured = (load.busy + NOMINAL_RATE * PRIOR) / (all + PRIOR);
        let rate = self.known.get(&owner).map_or(measured, |known| {
            let passed = now.saturating_sub(known.last_beat).as_secs_f64();
            known.rate + (measured - known.rate) * passed / (passed + SMOOTHING.as_secs_f64())
        });
        let last_beat = now;
        self.known.insert(owner, Known { load, last_beat, rate });
    }

    /// Weights of those owners that have reported. `map` is the newest version of the map.
    pub(crate) fn weights(
        &self,
        now: Duration,
        space: SpaceId,
        map: u64,
        owners: &[OwnerId],
    ) -> BTreeMap<OwnerId, Weight<'_>> {
        let weight = |owner: &OwnerId| {
            let known = self.known.get(owner)?;
            let survey = known.load.survey.spaces.get(&space);
            let weight = Weight {
                load: self.load(*owner),
                rate: known.rate,
                leaving: survey.map_or(0.0, SpaceSurvey::leaving_units),
                current: known.load.survey.map >= map && now.saturating_sub(known.last_beat) < SILENCE,
                survey,
            };
            Some((*owner, weight))
        };
        owners.iter().filter_map(weight).collect()
    }

    /// An owner's survey of a space.
    pub(crate) fn survey(&self, owner: OwnerId, space: SpaceId) -> Option<&SpaceSurvey> {
        self.known.get(&owner)?.load.survey.spaces.get(&space)
    }

    /// Load of an owner over all spaces, with what is moving to it; 0 if none is known.
    pub(crate) fn load(&self, owner: OwnerId) -> f64 {
        let Some(known) = self.known.get(&owner) else {
            return 0.0;
        };
        let spaces = self.known.values().flat_map(|other| other.load.survey.spaces.values());
        let arriving: f64 = spaces.filter_map(|space| space.leaving.get(&owner)).sum();
        let staying: f64 = known.load.survey.spaces.values().map(|space| space.units).sum();
        known.rate * (staying + arriving)
    }
}
