//! What is known of the loads of owners. Pure: time is an input.
//!
//! A load is a share of what one core can do. What an owner measures of itself lags behind what stands on it, and shakes;
//! what stands on it is known exactly. So the measurement is only taken for what a unit costs there, slowly, and a load is
//! units times that: whatever moves from one owner to another is seen at once.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_ids::{OwnerId, SpaceId};
use annals_wire::load::{Load, SpaceSurvey};

use crate::SILENCE;

/// What a unit costs where nothing is measured yet: a ten-thousandth of a core.
pub const NOMINAL_RATE: f64 = 1e-4;

/// So many units count as if they had been measured at [`NOMINAL_RATE`]: what an owner does that holds next to nothing says
/// little about what a unit costs.
const PRIOR: f64 = 20.0;

/// Over what time measured costs are smoothed.
const SMOOTHING: Duration = Duration::from_secs(15);

#[derive(Clone, Debug)]
struct Known {
    load: Load,
    heard: Duration,
    /// What a unit costs.
    rate: f64,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loads {
    known: BTreeMap<OwnerId, Known>,
}

/// The load of an owner with a cell in a space, while a boundary is looked for.
#[derive(Clone, Debug)]
pub(crate) struct Weight<'a> {
    /// All of it, in every space, with what is on its way to it and without what is on its way from it.
    pub(crate) load: f64,
    /// What a unit costs.
    pub(crate) rate: f64,
    /// What is on its way from it in this space, in units.
    pub(crate) leaving: f64,
    /// Whether it speaks of the newest map, and has just done so.
    pub(crate) current: bool,
    /// What stands on it in this space.
    pub(crate) survey: Option<&'a SpaceSurvey>,
}

impl Weight<'_> {
    /// What of it stays in this space, in units.
    pub(crate) fn units(&self) -> f64 {
        self.survey.map_or(0.0, |survey| survey.units)
    }
}

impl Loads {
    /// An owner says how much is on it.
    pub(crate) fn hear(&mut self, now: Duration, owner: OwnerId, load: Load) {
        let all: f64 = load.survey.spaces.values().map(|space| space.units).sum();
        let measured = (load.busy + NOMINAL_RATE * PRIOR) / (all + PRIOR);
        let rate = self.known.get(&owner).map_or(measured, |known| {
            let passed = now.saturating_sub(known.heard).as_secs_f64();
            known.rate + (measured - known.rate) * passed / (passed + SMOOTHING.as_secs_f64())
        });
        let heard = now;
        self.known.insert(owner, Known { load, heard, rate });
    }

    /// The loads of those owners of which any is known. `map` is the newest version of the map.
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
                current: known.load.survey.map >= map && now.saturating_sub(known.heard) < SILENCE,
                survey,
            };
            Some((*owner, weight))
        };
        owners.iter().filter_map(weight).collect()
    }

    /// What an owner said of a space.
    pub(crate) fn survey(&self, owner: OwnerId, space: SpaceId) -> Option<&SpaceSurvey> {
        self.known.get(&owner)?.load.survey.spaces.get(&space)
    }

    /// The load of an owner, in every space, with what is on its way to it; 0 if none is known.
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
