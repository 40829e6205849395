//! Balance: how the spaces of a realm are divided among its cell owners, and what becomes of that as loads change.
//! Pure: time is an input.
//!
//! The shell tells what owners say of their loads ([`Balance::hear`]), and asks for the map at each beat
//! ([`Balance::draw`]). A new map is to be stored, together with [`Balance::trees`], before anybody hears of it: what is
//! stored is the truth, and the next director goes on from there ([`Balance::resume`]) with nothing else.

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

/// Least time between two maps: every cell has heard of the one before by then, and says how much is on it by that.
pub const MAP_PERIOD: Duration = Duration::from_secs(1);

/// What a space is like, beside its division.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SpacePlan {
    /// Which space.
    pub space: SpaceId,
    /// Within how many metres of the origin it is divided evenly at first. It has no end.
    pub extent: f32,
    /// Half the side of the square within which a witness sees others, metres.
    pub aoi_radius: f32,
    /// How much further out somebody in view must be to leave it, metres.
    pub aoi_hysteresis: f32,
    /// How far witnesses of which behaviour says how far they see can see, metres, with hysteresis; nothing beyond the two above
    /// if it is less.
    pub horizon: f32,
    /// How many cells it has at first, and never less.
    pub cells: usize,
}

#[derive(Clone, Debug)]
struct Divided {
    division: Division,
    momenta: BTreeMap<CutId, Momentum>,
    scaling: CellScaling,
    /// When the area of a cell was changed, if that was since this director leads.
    moved: BTreeMap<OwnerId, Duration>,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Balance {
    plans: Vec<SpacePlan>,
    pace: Pace,
    spaces: BTreeMap<SpaceId, Divided>,
    loads: Loads,
    /// When the cuts were looked at.
    stepped: Option<Duration>,
    changes: Vec<(SpaceId, Change)>,
}

impl SpacePlan {
    /// How far from another cell's area an entity has a ghost there: as far as anybody sees who is on that cell, which may be
    /// somebody who stands as deep in the entity's own area as hand-over lets it.
    #[must_use]
    pub fn ghost_distance(&self) -> f32 {
        (self.aoi_radius + self.aoi_hysteresis).max(self.horizon) + HANDOVER_DEPTH
    }

    /// The least side of a cell. Around each cell lies a rim as wide as the ghost distance, of which it holds ghosts: the
    /// smaller the cell, the more of what it does is done for those. And on a narrower one hardly anybody would come as deep
    /// as hand-over wants.
    #[must_use]
    pub fn least_side(&self) -> f32 {
        (self.ghost_distance() / 4.0).max(HANDOVER_DEPTH * 4.0)
    }
}

impl Balance {
    /// Of a realm whose spaces are not divided yet.
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

    /// Goes on at `now` from what was stored: the map, and the trees by which it was divided. Where there is no tree, it is
    /// found from the areas.
    ///
    /// # Errors
    /// When a tree is none; or there is no tree, and none fits the areas.
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

    /// An owner says how much is on it.
    pub fn hear(&mut self, now: Duration, owner: OwnerId, load: Load) {
        self.loads.hear(now, owner, load);
    }

    /// The next map, if there is to be one: not before [`MAP_PERIOD`] after the one before. `live` are the cell owners whose
    /// holders live, in their order; spaces are first divided when there are `enough` of them.
    pub fn draw(&mut self, now: Duration, live: &[OwnerId], enough: usize, before: &SpaceMap) -> Option<SpaceMap> {
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
            // A space that is in the settings no more stays as it was: there may be somebody in it.
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

    /// What the last [`Balance::draw`] changed about the numbers of cells.
    #[must_use]
    pub fn changes(&self) -> &[(SpaceId, Change)] {
        &self.changes
    }

    /// The trees by which the spaces are divided, to be stored with the map.
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

    /// All cells as they are at `now`, for an operator.
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

    /// Notes whose areas another map changes.
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

    /// Divides the spaces that are not divided yet, each evenly among those who have the fewest cells.
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

    /// One step in one space.
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
