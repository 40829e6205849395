//! A realm reduced to the positions of entities and the cells that hold them: points that walk, cells that hand them
//! over as real ones do, and a director that gets load reports late and whose maps take effect later still.
//!
//! Modelled on real cells: ten ticks a second; an entity that stands [`HANDOVER_DEPTH`] inside another's area is handed
//! over, at most [`AT_ONCE`] in a tick, and stays for [`STAY`] where it has arrived; load is measured twice a second
//! and goes to the director with a beat, whose answer brings the map.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::Duration;

use annals_director::{Balance, NOMINAL_RATE, Pace, SpacePlan};
use annals_ids::{OwnerId, Position, SpaceId};
use annals_wire::{
    CellArea, HANDOVER_DEPTH, SpaceMap,
    load::{ENTITY_UNITS, Levels, Load, SpaceSurvey, Survey},
};

use super::dice::Dice;

/// The space.
pub(crate) const SPACE: SpaceId = SpaceId(1);

/// Ticks in a second.
pub(crate) const SECOND: u64 = 10;

/// Maximum entities that a cell hands over in a tick.
const AT_ONCE: usize = 32;

/// Ticks for which an entity stays where it has arrived.
const STAY: u64 = SECOND;

/// Ticks between two beats, and between two measurements.
const BEAT: u64 = 3;
const MEASURE: u64 = 5;

/// Parameters of a simulation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    /// Seed of everything.
    pub(crate) seed: u64,
    /// Number of entities.
    pub(crate) entities: usize,
    /// Number of cells at first, and the minimum later.
    pub(crate) cells: usize,
    /// Number of owners.
    pub(crate) owners: usize,
    /// Half the side of the square that the entities are in, metres.
    pub(crate) extent: f32,
    /// Maximum error of the measured load, as a part of it.
    pub(crate) noise: f32,
    /// Whether entities walk.
    pub(crate) walks: bool,
    /// Number of clusters that they stand in; 0 for evenly spread.
    pub(crate) heaps: usize,
    /// Cost of an entity, as a load.
    pub(crate) cost: f64,
}

impl Default for Shape {
    fn default() -> Self {
        Self {
            seed: 1,
            entities: 4_000,
            cells: 16,
            owners: 16,
            extent: 3_200.0,
            noise: 0.1,
            walks: true,
            heaps: 0,
            cost: NOMINAL_RATE,
        }
    }
}

/// An entity that walks.
#[derive(Clone, Copy, Debug)]
struct Walker {
    at: [f32; 2],
    /// Where it goes, and how far in a tick; it stands if that is 0.
    to: [f32; 2],
    pace: f32,
    /// The centre of its walks, and their radius.
    home: [f32; 2],
    range: f32,
    cell: usize,
    /// The tick from which it can be handed over.
    free: u64,
}

/// A cell owner.
struct Cell {
    owner: OwnerId,
    map: Rc<SpaceMap>,
    area: Option<CellArea>,
    members: Vec<u32>,
    load: Load,
    /// It is silent and does nothing.
    is_lost: bool,
}

/// A simulated realm: entities, cells and the director.
pub(crate) struct Realm {
    pub(crate) shape: Shape,
    pub(crate) tick: u64,
    pub(crate) balance: Balance,
    pub(crate) map: Rc<SpaceMap>,
    walkers: Vec<Walker>,
    cells: Vec<Cell>,
    by_owner: BTreeMap<OwnerId, usize>,
    /// Entities in transit, and their destination.
    under_way: Vec<(u32, usize)>,
    dice: Dice,
    /// Entities handed over, and moves of boundaries.
    pub(crate) handed: u64,
    pub(crate) moves: u64,
    pub(crate) maps: u64,
}

impl Realm {
    /// A realm with its entities spread evenly.
    pub(crate) fn new(shape: Shape) -> Self {
        let mut dice = Dice::new(shape.seed);
        let plan = plan(&shape);
        let anywhere = |dice: &mut Dice| [0, 1].map(|_| dice.between(-shape.extent, shape.extent));
        let heaps: Vec<([f32; 2], f32)> = (0..shape.heaps)
            .map(|_| (anywhere(&mut dice), dice.between(20.0, shape.extent / 2.0)))
            .collect();
        let walkers = (0..shape.entities).map(|_| {
            let heap = heaps.get(dice.below(heaps.len().max(1) as u64) as usize);
            let at = match heap {
                Some((centre, radius)) => dice.within(*centre, *radius),
                None => anywhere(&mut dice),
            };
            Walker::standing(at)
        });
        let walkers = walkers.collect();
        let owners = (1..=shape.owners).map(|number| OwnerId(u32::try_from(number).expect("few owners")));
        let cell = |owner| Cell {
            owner,
            map: Rc::default(),
            area: None,
            members: Vec::new(),
            load: Load::default(),
            is_lost: false,
        };
        let cells: Vec<Cell> = owners.map(cell).collect();
        let by_owner = cells
            .iter()
            .enumerate()
            .map(|(place, cell)| (cell.owner, place))
            .collect();
        let mut realm = Self {
            shape,
            tick: 0,
            balance: Balance::new(vec![plan], pace()),
            map: Rc::default(),
            walkers,
            cells,
            by_owner,
            under_way: Vec::new(),
            dice,
            handed: 0,
            moves: 0,
            maps: 0,
        };
        realm.direct();
        for cell in &mut realm.cells {
            cell.receive(&realm.map);
        }
        for entity in 0..realm.walkers.len() {
            let owner = realm
                .map
                .owner_at(SPACE, position(realm.walkers[entity].at))
                .expect("the map covers the plane");
            let cell = realm.by_owner[&owner];
            realm.walkers[entity].cell = cell;
            realm.cells[cell]
                .members
                .push(u32::try_from(entity).expect("few entities"));
        }
        realm
    }

    /// A share of all entities goes to a disc, each on its way for 30 to 60 s, and stays there.
    pub(crate) fn crowd(&mut self, share: f32, centre: [f32; 2], radius: f32) {
        for entity in 0..self.walkers.len() {
            if self.dice.share() >= share {
                continue;
            }
            let home = self.dice.within(centre, radius);
            let ticks = self.dice.between(300.0, 600.0);
            let walker = &mut self.walkers[entity];
            let way = (home[0] - walker.at[0]).hypot(home[1] - walker.at[1]);
            *walker = Walker {
                to: home,
                pace: way / ticks,
                home,
                range: radius.min(5.0),
                ..*walker
            };
        }
    }

    /// An owner is lost, or is back.
    pub(crate) fn lose(&mut self, cell: usize, is_lost: bool) {
        self.cells[cell].is_lost = is_lost;
    }

    /// Another director takes over, with the stored state only.
    pub(crate) fn succeed(&mut self) {
        let wire = annals_wire::control::WireMap {
            trees: self.balance.trees(),
            ..annals_wire::control::WireMap::from(self.map.as_ref())
        };
        let mut balance = Balance::new(vec![plan(&self.shape)], pace());
        balance.resume(self.now(), &wire, &self.map).expect("what was stored");
        self.balance = balance;
    }

    /// Changes the cost of every entity.
    pub(crate) fn cost(&mut self, cost: f64) {
        self.shape.cost = cost;
    }

    /// Advances time.
    pub(crate) fn run(&mut self, seconds: u64) {
        for _ in 0..seconds * SECOND {
            self.step();
        }
    }

    fn step(&mut self) {
        self.tick += 1;
        for (entity, to) in std::mem::take(&mut self.under_way) {
            let walker = &mut self.walkers[entity as usize];
            (walker.cell, walker.free) = (to, self.tick + STAY);
            self.cells[to].members.push(entity);
        }
        if self.shape.walks || self.walkers.iter().any(|walker| walker.pace > 0.0) {
            for walker in &mut self.walkers {
                walker.walk(self.shape.walks, &mut self.dice);
            }
        }
        for cell in 0..self.cells.len() {
            if !self.cells[cell].is_lost {
                self.hand_over(cell);
                if (self.tick + cell as u64).is_multiple_of(MEASURE) {
                    self.measure(cell);
                }
            }
        }
        for cell in 0..self.cells.len() {
            if (self.tick + cell as u64).is_multiple_of(BEAT) && !self.cells[cell].is_lost {
                let now = self.now();
                let cell_state = &mut self.cells[cell];
                self.balance.receive(now, cell_state.owner, cell_state.load.clone());
                cell_state.receive(&self.map);
            }
        }
        if self.tick.is_multiple_of(BEAT) {
            self.direct();
        }
    }

    pub(crate) fn now(&self) -> Duration {
        Duration::from_millis(100 * self.tick)
    }

    fn direct(&mut self) {
        let live = self.cells.iter().filter(|cell| !cell.is_lost).map(|cell| cell.owner);
        let live: Vec<OwnerId> = live.collect();
        let before = cuts(&self.balance);
        if let Some(map) = self.balance.next_map(self.now(), &live, self.shape.cells, &self.map) {
            let after = cuts(&self.balance);
            self.moves += before
                .iter()
                .filter(|(id, at)| after.get(*id).is_some_and(|now| now != *at))
                .count() as u64;
            self.maps += 1;
            self.map = Rc::new(map);
        }
    }

    fn hand_over(&mut self, from: usize) {
        let (cell, walkers, tick) = (&mut self.cells[from], &mut self.walkers, self.tick);
        let (map, area) = (Rc::clone(&cell.map), cell.area);
        let mut gone = Vec::new();
        cell.members.retain(|&entity| {
            let walker = &walkers[entity as usize];
            let at = position(walker.at);
            let outside = area.is_none_or(|area| area.distance(at) > HANDOVER_DEPTH);
            if !outside || walker.free > tick || gone.len() >= AT_ONCE {
                return true;
            }
            let to = map.owner_at(SPACE, at).and_then(|owner| self.by_owner.get(&owner));
            match to {
                Some(&to) if to != from => {
                    gone.push((entity, to));
                    false
                }
                _ => true,
            }
        });
        self.handed += gone.len() as u64;
        self.under_way.extend(gone);
    }

    /// Measures as a cell's `survey` does.
    fn measure(&mut self, cell: usize) {
        let measured = &self.cells[cell];
        let mut space = SpaceSurvey {
            entities: measured.members.len() as u64,
            ..SpaceSurvey::default()
        };
        let (mut x, mut z) = (Vec::new(), Vec::new());
        for &entity in &measured.members {
            let at = position(self.walkers[entity as usize].at);
            let outside = measured.area.is_none_or(|area| area.distance(at) > HANDOVER_DEPTH);
            let to = outside.then(|| measured.map.owner_at(SPACE, at)).flatten();
            match to.filter(|to| *to != measured.owner) {
                Some(to) => *space.leaving.entry(to).or_default() += ENTITY_UNITS,
                None => {
                    space.units += ENTITY_UNITS;
                    x.push((at.x, ENTITY_UNITS));
                    z.push((at.z, ENTITY_UNITS));
                }
            }
        }
        (space.x, space.z) = (Levels::of(x), Levels::of(z));
        let noise = f64::from(self.dice.between(-self.shape.noise, self.shape.noise));
        let load = Load {
            busy: space.entities as f64 * self.shape.cost * (1.0 + noise),
            survey: Survey {
                map: measured.map.version,
                spaces: [(SPACE, space)].into(),
            },
        };
        self.cells[cell].load = load;
    }

    /// Number of entities of each cell with an area.
    pub(crate) fn counts(&self) -> Vec<usize> {
        let mapped = self.cells.iter().filter(|cell| {
            let space = self.map.spaces.get(&SPACE);
            space.is_some_and(|space| space.cells.iter().any(|area| area.owner == cell.owner))
        });
        mapped.map(|cell| cell.members.len()).collect()
    }

    /// Largest deviation of a cell from the average number of entities, as a part of the average.
    pub(crate) fn worst(&self) -> f64 {
        let counts = self.counts();
        let average = counts.iter().sum::<usize>() as f64 / counts.len().max(1) as f64;
        let off = counts.iter().map(|count| (*count as f64 - average).abs() / average);
        off.fold(0.0, f64::max)
    }
}

impl Walker {
    fn standing(at: [f32; 2]) -> Self {
        Self {
            at,
            to: at,
            pace: 0.0,
            home: at,
            range: 30.0,
            cell: 0,
            free: 0,
        }
    }

    fn walk(&mut self, on: bool, dice: &mut Dice) {
        let way = [self.to[0] - self.at[0], self.to[1] - self.at[1]];
        let left = way[0].hypot(way[1]);
        if left > self.pace {
            self.at = [0, 1].map(|axis| self.at[axis] + way[axis] / left * self.pace);
            return;
        }
        self.at = self.to;
        self.pace = 0.0;
        if on && dice.below(50) == 0 {
            self.to = dice.within(self.home, self.range);
            self.pace = dice.between(0.1, 0.6);
        }
    }
}

impl Cell {
    fn receive(&mut self, map: &Rc<SpaceMap>) {
        if self.map.version >= map.version {
            return;
        }
        self.map = Rc::clone(map);
        let areas = map.spaces.get(&SPACE).map_or(&[][..], |space| &space.cells);
        self.area = areas.iter().find(|area| area.owner == self.owner).copied();
    }
}

fn plan(shape: &Shape) -> SpacePlan {
    SpacePlan {
        space: SPACE,
        extent: shape.extent,
        aoi_radius: 80.0,
        aoi_hysteresis: 5.0,
        horizon: 0.0,
        cells: shape.cells,
    }
}

fn pace() -> Pace {
    Pace {
        between: Duration::from_secs(10),
        life: Duration::from_secs(60),
    }
}

fn cuts(balance: &Balance) -> BTreeMap<annals_director::division::CutId, u32> {
    let division = balance.division(SPACE);
    let cuts = division.map(|division| division.cuts().iter().map(|cut| (cut.id, cut.at.to_bits())).collect());
    cuts.unwrap_or_default()
}

fn position([x, z]: [f32; 2]) -> Position {
    Position { x, y: 0.0, z }
}
