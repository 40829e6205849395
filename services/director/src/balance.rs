//! Balance: the division of a realm's spaces among its cell owners, and its changes as loads change. Pure: time is an
//! input.
//!
//! The shell passes in the owners' load reports ([`Balance::receive`]) and asks for the map at each beat
//! ([`Balance::draw`]). Store a new map, together with [`Balance::trees`], before any process receives it: the stored
//! map is authoritative, and the next director continues from it ([`Balance::resume`]) with nothing else.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use annals_ids::{OwnerId, SpaceId};
use annals_wire::{
    HANDOVER_DEPTH, Space, SpaceMap,
    cells::CellReport,
    control::{WireMap, WireTree},
    load::{Load, SpaceSurvey},
};

use crate::{
    balancing::{Balancing, Momentum},
    cell_scaling::{CellScaling, Change, Pace, Scene},
    division::{Bounds, CutId, Division, NotATree},
    loads::Loads,
};

/// Minimum time between two maps: by then every cell has received the previous one and reported its load under it.
pub const MAP_PERIOD: Duration = Duration::from_secs(1);

/// Settings of a space, other than its division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpacePlan {
    pub space: SpaceId,
    /// Distance from the origin (m) within which it is divided evenly at first. The space itself is unbounded.
    pub extent: f32,
    /// Half the side of the square within which a witness sees other entities, metres.
    pub aoi_radius: f32,
    /// How much further out an entity in view must be to leave the view, metres.
    pub aoi_hysteresis: f32,
    /// Maximum view distance of witnesses whose behaviour sets its own, metres, with hysteresis. Has no effect if it is
    /// less than the two above together.
    pub horizon: f32,
    /// Number of cells at first, and the minimum later.
    pub cells: usize,
}

#[derive(Clone, Debug)]
struct Divided {
    division: Division,
    momenta: BTreeMap<CutId, Momentum>,
    scaling: CellScaling,
    /// When the area of each cell last changed, if that was under this director.
    moved: BTreeMap<OwnerId, Duration>,
}

/// Division of a realm's spaces among its cell owners.
#[derive(Clone, Debug)]
pub struct Balance {
    plans: Vec<SpacePlan>,
    pace: Pace,
    spaces: BTreeMap<SpaceId, Divided>,
    loads: Loads,
    /// When the cuts were last reviewed.
    stepped: Option<Duration>,
    changes: Vec<(SpaceId, Change)>,
}

impl SpacePlan {
    /// Distance from another cell's area within which an entity has a ghost there: the maximum view distance of
    /// witnesses on that cell, which may stand inside the entity's own area up to the depth at which hand-over moves
    /// them.
    #[must_use]
    pub fn ghost_distance(&self) -> f32 {
        (self.aoi_radius + self.aoi_hysteresis).max(self.horizon) + HANDOVER_DEPTH
    }

    /// Minimum side of a cell. A cell holds ghosts in a rim around it as wide as the ghost distance: the smaller the
    /// cell, the larger the part of its work that is spent on ghosts. And on a narrower cell hardly any entity would
    /// come as deep as hand-over requires.
    #[must_use]
    pub fn least_side(&self) -> f32 {
        (self.ghost_distance() / 4.0).max(HANDOVER_DEPTH * 4.0)
    }
}

impl Balance {
    /// For a realm whose spaces are not divided yet.
    #[must_use]
    pub fn new(plans: Vec<SpacePlan>, pace: Pace) -> Self {
        Self {
            plans,
            pace,
            spaces: BTreeMap::new(),
            loads: Loads::default(),
            stepped: None,
            changes: Vec::new(),
        }
    }

    /// Continues at `now` from the stored map and trees. Where a tree is missing, it is reconstructed from the areas.
    ///
    /// # Errors
    /// When a stored tree is invalid; or there is no tree, and none fits the areas.
    pub fn resume(&mut self, now: Duration, stored: &WireMap, map: &SpaceMap) -> Result<(), NotATree> {
        for (id, space) in &map.spaces {
            let tree = stored.trees.iter().find(|tree| tree.space == id.0);
            let division = match tree {
                Some(tree) => Division::read(tree)?,
                None => Division::of_areas(&space.cells).ok_or(NotATree::Shape)?,
            };
            self.spaces.insert(*id, Divided::new(now, division));
        }
        Ok(())
    }

    /// Applies an owner's load report.
    pub fn receive(&mut self, now: Duration, owner: OwnerId, load: Load) {
        self.loads.receive(now, owner, load);
    }

    /// The next map, if it differs: not before [`MAP_PERIOD`] after the previous one. `live` are the cell owners with
    /// live holders, in order; spaces are first divided when there are `enough` of them.
    pub fn next_map(&mut self, now: Duration, live: &[OwnerId], enough: usize, before: &SpaceMap) -> Option<SpaceMap> {
        self.changes.clear();
        if self
            .stepped
            .is_some_and(|stepped| now.saturating_sub(stepped) < MAP_PERIOD)
        {
            return None;
        }
        if live.len() >= enough.max(1) {
            self.found(now, live);
        }
        if self.spaces.is_empty() {
            return None;
        }
        self.stepped = Some(now);
        for plan in self.plans.clone() {
            self.step(now, &plan, live, before.version);
        }
        let mut map = before.clone();
        for (id, divided) in &self.spaces {
            let known = map.spaces.get(id);
            let plan = self.plans.iter().find(|plan| plan.space == *id);
            // A space that is no longer in the settings stays as it was: entities may stand in it.
            let (radius, hysteresis, ghost_distance) = match (plan, known) {
                (Some(plan), _) => (plan.aoi_radius, plan.aoi_hysteresis, plan.ghost_distance()),
                (None, Some(known)) => (known.aoi_radius, known.aoi_hysteresis, known.ghost_distance),
                (None, None) => continue,
            };
            let space = Space {
                cells: divided.division.areas(),
                aoi_radius: radius,
                aoi_hysteresis: hysteresis,
                ghost_distance,
            };
            map.spaces.insert(*id, space);
        }
        if map.spaces == before.spaces {
            return None;
        }
        map.version += 1;
        self.note_moves(now, before, &map);
        Some(map)
    }

    /// Changes to the numbers of cells made by the last [`Balance::next_map`].
    #[must_use]
    pub fn changes(&self) -> &[(SpaceId, Change)] {
        &self.changes
    }

    /// The trees that divide the spaces, to be stored with the map.
    #[must_use]
    pub fn trees(&self) -> Vec<WireTree> {
        let trees = self.spaces.iter().map(|(id, divided)| divided.division.flat(*id));
        trees.collect()
    }

    /// The division of a space.
    #[must_use]
    pub fn division(&self, space: SpaceId) -> Option<&Division> {
        self.spaces.get(&space).map(|divided| &divided.division)
    }

    /// All cells at `now`, for an operator.
    #[must_use]
    pub fn report(&self, now: Duration) -> Vec<CellReport> {
        let mut cells = Vec::new();
        for (id, divided) in &self.spaces {
            for area in divided.division.areas() {
                let survey = self.loads.survey(area.owner, *id);
                let moved = divided.moved.get(&area.owner);
                cells.push(CellReport {
                    space: *id,
                    area,
                    load: self.loads.load(area.owner),
                    entities: survey.map_or(0, |survey: &SpaceSurvey| survey.entities),
                    witnesses: survey.map_or(0, |survey| survey.witnesses),
                    retires: divided.scaling.retiring == Some(area.owner),
                    unmoved: moved.map(|moved| now.saturating_sub(*moved)),
                });
            }
        }
        cells
    }

    /// Records the owners whose areas a new map changes.
    fn note_moves(&mut self, now: Duration, before: &SpaceMap, map: &SpaceMap) {
        for (id, divided) in &mut self.spaces {
            let areas = |map: &'_ SpaceMap| map.spaces.get(id).map_or_else(Vec::new, |space| space.cells.clone());
            let (old, new) = (areas(before), areas(map));
            divided
                .moved
                .retain(|owner, _| new.iter().any(|area| area.owner == *owner));
            let changed = new.iter().filter(|area| !old.contains(area));
            divided.moved.extend(changed.map(|area| (area.owner, now)));
        }
    }

    /// Divides the spaces that are not divided yet, each evenly among the owners with the fewest cells.
    fn found(&mut self, now: Duration, live: &[OwnerId]) {
        for plan in self.plans.clone() {
            if self.spaces.contains_key(&plan.space) {
                continue;
            }
            let mut owners: Vec<(usize, OwnerId)> = live.iter().map(|owner| (self.cells_of(*owner), *owner)).collect();
            owners.sort_unstable();
            owners.truncate(plan.cells.max(1));
            let owners: Vec<OwnerId> = owners.into_iter().map(|(_, owner)| owner).collect();
            if let Some(division) = Division::even(&owners, plan.extent) {
                self.spaces.insert(plan.space, Divided::new(now, division));
            }
        }
    }

    fn cells_of(&self, owner: OwnerId) -> usize {
        let divisions = self.spaces.values().map(|divided| divided.division.owners());
        divisions.filter(|owners| owners.contains(&owner)).count()
    }

    /// One step of scaling or balancing in one space.
    fn step(&mut self, now: Duration, plan: &SpacePlan, live: &[OwnerId], map: u64) {
        let Some(divided) = self.spaces.get_mut(&plan.space) else {
            return;
        };
        let owners = divided.division.owners();
        let weights = self.loads.weights(now, plan.space, map, &owners);
        let free = live.iter().filter(|owner| !owners.contains(owner));
        let others: Vec<(OwnerId, f64)> = free.map(|owner| (*owner, self.loads.load(*owner))).collect();
        let scene = Scene {
            now,
            pace: self.pace,
            weights: &weights,
            others: &others,
            least_side: plan.least_side(),
            least_cells: plan.cells,
        };
        let change = divided.scaling.review(&scene, &mut divided.division);
        self.changes.extend(change.map(|change| (plan.space, change)));
        if matches!(change, Some(Change::Added(_) | Change::Retired(_))) {
            let cuts: BTreeSet<CutId> = divided.division.cuts().iter().map(|cut| cut.id).collect();
            divided.momenta.retain(|cut, _| cuts.contains(cut));
            return;
        }
        let mut balancing = Balancing {
            weights,
            momenta: &mut divided.momenta,
            retiring: divided.scaling.retiring,
            least: plan.least_side(),
        };
        balancing.settle(&mut divided.division.root, Bounds::PLANE);
    }
}

impl Divided {
    fn new(now: Duration, division: Division) -> Self {
        Self {
            division,
            momenta: BTreeMap::new(),
            scaling: CellScaling::new(now),
            moved: BTreeMap::new(),
        }
    }
}
