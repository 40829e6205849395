//! Rules that each show in one step: points that stand still, owners that report exactly what stands on them, and a
//! director that draws one map.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_director::{Balance, Change, NOMINAL_RATE, Pace, SpacePlan, division::Axis};
use annals_ids::{OwnerId, Position, SpaceId};
use annals_wire::{
    CellArea, HANDOVER_DEPTH, SpaceMap,
    load::{ENTITY_UNITS, Levels, Load, SpaceSurvey, Survey},
};

use crate::balance::{dice::Dice, owners};

const SPACE: SpaceId = SpaceId(1);
const EXTENT: f32 = 200.0;
const SEEDS: u64 = 40;

/// Maximum units that an owner may hand over at once: `docs/balance.md`.
fn at_once(units: usize) -> f64 {
    (units as f64 / 8.0).clamp(32.0, 1_024.0)
}

/// A realm of points that stand still.
struct Still {
    balance: Balance,
    map: SpaceMap,
    now: Duration,
    live: Vec<OwnerId>,
    points: Vec<[f32; 2]>,
    /// Cost of a point on each owner, as a load.
    costs: BTreeMap<OwnerId, f64>,
}

impl Still {
    /// Divided evenly among this many of the live owners.
    fn new(cells: usize, live: u32, points: Vec<[f32; 2]>) -> Self {
        let plan = SpacePlan {
            space: SPACE,
            extent: EXTENT,
            aoi_radius: 20.0,
            aoi_hysteresis: 5.0,
            horizon: 0.0,
            cells,
        };
        let pace = Pace {
            between: Duration::from_secs(3),
            life: Duration::from_secs(10),
        };
        let mut still = Self {
            balance: Balance::new(vec![plan], pace),
            map: SpaceMap::default(),
            now: Duration::ZERO,
            live: owners(live),
            points,
            costs: owners(live).into_iter().map(|owner| (owner, NOMINAL_RATE)).collect(),
        };
        assert!(still.draw(), "it is divided");
        still
    }

    fn areas(&self) -> Vec<CellArea> {
        self.map.spaces[&SPACE].cells.clone()
    }

    fn on(&self, area: &CellArea) -> Vec<[f32; 2]> {
        let points = self.points.iter().filter(|at| area.contains(position(**at)));
        points.copied().collect()
    }

    /// Every owner reports what stands on it, as if all hand-overs were complete.
    fn say(&mut self) {
        for area in self.areas() {
            let points = self.on(&area);
            let levels = |axis: usize| Levels::of(points.iter().map(|at| (at[axis], ENTITY_UNITS)).collect());
            let space = SpaceSurvey {
                entities: points.len() as u64,
                units: points.len() as f64 * ENTITY_UNITS,
                x: levels(0),
                z: levels(1),
                ..SpaceSurvey::default()
            };
            let load = Load {
                busy: points.len() as f64 * self.costs[&area.owner],
                survey: Survey {
                    map: self.map.version,
                    spaces: [(SPACE, space)].into(),
                },
            };
            self.balance.receive(self.now, area.owner, load);
        }
    }

    /// Whether there is another map a second later.
    fn draw(&mut self) -> bool {
        self.now += Duration::from_secs(1);
        let drawn = self.balance.next_map(self.now, &self.live, self.live.len(), &self.map);
        drawn.map(|map| self.map = map).is_some()
    }

    /// Number of points in an area that are to be handed over now that its owner has another area.
    fn leaving(&self, before: &CellArea) -> usize {
        let areas = self.areas();
        let after = areas.iter().find(|area| area.owner == before.owner);
        let leaves = |at: &&[f32; 2]| after.is_none_or(|after| after.distance(position(**at)) > HANDOVER_DEPTH);
        self.on(before).iter().filter(leaves).count()
    }
}

fn position([x, z]: [f32; 2]) -> Position {
    Position { x, y: 0.0, z }
}

fn spread(count: u64, [west, east]: [f32; 2], [south, north]: [f32; 2], dice: &mut Dice) -> Vec<[f32; 2]> {
    let point = |_| [dice.between(west, east), dice.between(south, north)];
    (0..count).map(point).collect()
}

#[test]
fn a_new_boundary_moves_the_wanted_share_at_once() {
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        let count = 400 + dice.below(4_000);
        let width = dice.between(50.0, EXTENT);
        let mut still = Still::new(2, 2, spread(count, [-width, 0.0], [-EXTENT, EXTENT], &mut dice));
        let before = still.areas();
        still.say();
        assert!(still.draw(), "seed {seed}: all stand on one side");
        let (gone, wanted) = (still.leaving(&before[0]) as f64, at_once(count as usize));
        assert!(
            (gone - wanted).abs() <= wanted * 0.05 + 2.0,
            "seed {seed}: {gone} of {count} go, and {wanted} are to"
        );
    }
}

#[test]
fn a_cluster_that_would_only_change_sides_stays() {
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        let (most, least) = (200 + dice.below(2_000), dice.below(100));
        let heap = [dice.between(-150.0, -10.0), dice.between(-100.0, 100.0)];
        let mut points = vec![heap; most as usize];
        points.extend(vec![[-heap[0], heap[1]]; least as usize]);
        let mut still = Still::new(2, 2, points);
        for step in 0..20 {
            still.say();
            assert!(
                !still.draw(),
                "seed {seed}, step {step}: {most} and {least} are moved about"
            );
        }
    }
}

#[test]
fn two_boundaries_of_a_cell_share_its_limit_of_moved_load() {
    let (mut moved, mut twice) = (0, 0);
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        // The first has the west, the others share the east: the second has a boundary with each of them.
        let count = 600 + dice.below(6_000);
        let points = spread(count, [0.0, EXTENT], [-EXTENT, 0.0], &mut dice);
        let mut still = Still::new(3, 3, points);
        let before = still.areas();
        let cuts = |still: &Still| -> BTreeMap<_, _> {
            let division = still.balance.division(SPACE).expect("it is divided");
            division.cuts().iter().map(|cut| (cut.id, (cut.axis, cut.at))).collect()
        };
        let old = cuts(&still);
        assert_eq!(
            old.values().map(|(axis, _)| *axis).collect::<Vec<_>>(),
            [Axis::X, Axis::Z],
            "as it is meant to be"
        );
        still.say();
        still.draw();
        let changed = cuts(&still).iter().filter(|(id, cut)| old[id] != **cut).count();
        moved += changed.min(1);
        twice += changed / 2;
        for area in &before {
            let (gone, most) = (still.leaving(area) as f64, at_once(still.on(area).len()));
            assert!(
                gone <= most * 1.5 + 2.0,
                "seed {seed}: {gone} leave {} at once, and {most} may",
                area.owner
            );
        }
    }
    println!("{moved} of {SEEDS} have moved a boundary, {twice} two");
    assert_eq!(moved as u64, SEEDS);
}

#[test]
fn the_cell_with_the_least_load_is_retired() {
    let mut given_up = Vec::new();
    for seed in 0..SEEDS / 2 {
        let mut dice = Dice::new(seed);
        let points = spread(1_000, [-EXTENT, EXTENT], [-EXTENT, EXTENT], &mut dice);
        let mut still = Still::new(1, 5, points);
        still.costs.values_mut().for_each(|cost| *cost = 2.4e-3);
        for _ in 0..60 {
            still.say();
            still.draw();
        }
        assert!(still.areas().len() >= 4, "seed {seed}: {}", still.areas().len());
        // The cost on each owner changes, and becomes low.
        for cost in still.costs.values_mut() {
            *cost = f64::from(dice.between(0.2, 1.0)) * 4e-4;
        }
        for _ in 0..100 {
            still.now += Duration::from_secs(1);
            still.say();
        }
        let report = still.balance.report(still.now);
        let least = report.iter().min_by(|one, other| one.load.total_cmp(&other.load));
        let least = least.expect("there are cells").area.owner;
        still.draw();
        assert_eq!(
            still.balance.changes(),
            [(SPACE, Change::Retires(least))],
            "seed {seed}: {report:?}"
        );
        given_up.push(least);
    }
    given_up.sort_unstable();
    given_up.dedup();
    assert!(given_up.len() > 2, "it is not always the same: {given_up:?}");
}
