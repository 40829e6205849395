//! The director's decisions under arbitrary input: generated reports that need not be consistent, owners that come, go
//! and fall silent, directors that replace one another.

use std::collections::BTreeMap;
use std::time::Duration;

use annals_director::{
    Balance, Change, MAP_PERIOD, Pace, SpacePlan,
    division::{Axis, CutId},
};
use annals_ids::{OwnerId, SpaceId};
use annals_wire::{
    SpaceMap,
    control::WireMap,
    load::{Levels, Load, SpaceSurvey, Survey},
};

use crate::balance::{check_cover, cuts, dice::Dice, owners};

const SEEDS: u64 = 60;
const STEPS: usize = 150;
const SPACES: [SpaceId; 2] = [SpaceId(1), SpaceId(4)];

fn plans() -> Vec<SpacePlan> {
    let plan = |space, cells| SpacePlan {
        space,
        extent: 400.0,
        aoi_radius: 80.0,
        aoi_hysteresis: 5.0,
        horizon: 0.0,
        cells,
    };
    vec![plan(SPACES[0], 3), plan(SPACES[1], 2)]
}

fn pace() -> Pace {
    Pace {
        between: Duration::from_secs(3),
        life: Duration::from_secs(10),
    }
}

/// An arbitrary load report.
fn any_load(map: u64, heavy: f32, dice: &mut Dice) -> Load {
    let mut load = Load {
        busy: f64::from(dice.share() * heavy),
        survey: Survey {
            map: map.saturating_sub(dice.below(8) / 7),
            ..Survey::default()
        },
    };
    for space in SPACES {
        let centre = [0, 1].map(|_| dice.between(-600.0, 600.0));
        let spread = dice.between(0.0, 300.0);
        let count = if dice.below(4) == 0 { 0 } else { dice.below(200) };
        let mut points = |axis: usize| {
            let points = (0..count).map(|_| (centre[axis] + dice.between(-spread, spread), 1.0));
            Levels::of(points.collect())
        };
        let (x, z) = (points(0), points(1));
        let leaving = (0..dice.below(3)).map(|_| (OwnerId(1 + dice.below(9) as u32), f64::from(dice.share() * 50.0)));
        let leaving = leaving.collect();
        let units = (count * (1 + dice.below(30))) as f64;
        load.survey.spaces.insert(
            space,
            SpaceSurvey {
                entities: count,
                witnesses: 0,
                units,
                leaving,
                x,
                z,
            },
        );
    }
    load
}

struct Director {
    balance: Balance,
    map: SpaceMap,
    now: Duration,
    /// When this director last changed the map.
    drawn: Option<Duration>,
    ever: BTreeMap<(SpaceId, CutId), Axis>,
    /// When this director last changed the area of each cell.
    moved: BTreeMap<(SpaceId, OwnerId), Duration>,
}

impl Director {
    fn draw(&mut self, live: &[OwnerId], dice: &mut Dice, what: &str) {
        let trees = self.balance.trees();
        let Some(map) = self.balance.next_map(self.now, live, 5, &self.map) else {
            assert_eq!(
                self.balance.trees(),
                trees,
                "{what}: a boundary moved without a new map"
            );
            return;
        };
        assert_eq!(map.version, self.map.version + 1, "{what}");
        let is_time = self.drawn.is_none_or(|drawn| self.now - drawn >= MAP_PERIOD);
        assert!(is_time, "{what}: two maps in a second");
        for space in SPACES {
            let cells = &map.spaces[&space].cells;
            check_cover(cells, dice, what);
            let division = self.balance.division(space).expect("it is divided");
            for (id, (axis, _)) in cuts(division) {
                let first = *self.ever.entry((space, id)).or_insert(axis);
                assert_eq!(first, axis, "{what}: {id:?} is another cut now");
            }
            self.check_owners(space, &map, what);
            let old = self.map.spaces.get(&space).map_or(&[][..], |space| &space.cells);
            let changed = cells.iter().filter(|area| !old.contains(area));
            self.moved.extend(changed.map(|area| ((space, area.owner), self.now)));
        }
        (self.map, self.drawn) = (map, Some(self.now));
    }

    /// The operator's report agrees with the map, and with the time of each cell's last change.
    fn check_report(&self, what: &str) {
        let report = self.balance.report(self.now);
        let reported = report.iter().map(|cell| (cell.space, cell.area, cell.unmoved));
        let areas = self
            .map
            .spaces
            .iter()
            .flat_map(|(id, space)| space.cells.iter().map(|area| (*id, *area)));
        let known = areas.map(|(space, area)| {
            let moved = self.moved.get(&(space, area.owner));
            (space, area, moved.map(|moved| self.now - *moved))
        });
        assert!(reported.eq(known), "{what}: {report:?}");
    }

    /// Owners keep their cells unless these are retired in order, and each new owner of a cell is in the changes.
    fn check_owners(&self, space: SpaceId, map: &SpaceMap, what: &str) {
        let Some(before) = self.map.spaces.get(&space) else {
            return;
        };
        let after = &map.spaces[&space];
        let changed = |change| self.balance.changes().contains(&(space, change));
        for cell in &before.cells {
            let stays = after.cells.iter().any(|now| now.owner == cell.owner);
            assert!(
                stays || changed(Change::Retired(cell.owner)),
                "{what}: {} is out",
                cell.owner
            );
        }
        for cell in &after.cells {
            let was = before.cells.iter().any(|old| old.owner == cell.owner);
            assert!(
                was || changed(Change::Added(cell.owner)),
                "{what}: {} is in",
                cell.owner
            );
        }
    }
}

#[test]
fn for_any_reports_maps_cover_the_plane_and_ids_are_stable() {
    let (mut maps, mut added, mut retired, mut moved) = (0, 0, 0, 0);
    for seed in 0..SEEDS {
        let mut dice = Dice::new(seed);
        let mut director = Director {
            balance: Balance::new(plans(), pace()),
            map: SpaceMap::default(),
            now: Duration::ZERO,
            drawn: None,
            ever: BTreeMap::new(),
            moved: BTreeMap::new(),
        };
        let mut heavy = 1.0;
        for step in 0..STEPS {
            let what = format!("seed {seed}, step {step}");
            director.now += Duration::from_millis(100 + dice.below(900));
            if dice.below(40) == 0 {
                heavy = dice.between(-2.0, 2.0).max(0.0);
            }
            if dice.below(60) == 0 && director.map.version > 0 {
                let stored = WireMap {
                    trees: director.balance.trees(),
                    ..WireMap::from(&director.map)
                };
                (director.balance, director.drawn) = (Balance::new(plans(), pace()), None);
                director.moved.clear();
                director
                    .balance
                    .resume(director.now, &stored, &director.map)
                    .expect("what was stored");
            }
            let live: Vec<OwnerId> = owners(8).into_iter().filter(|_| dice.below(12) > 0).collect();
            for owner in &live {
                let load = any_load(director.map.version, heavy, &mut dice);
                director.balance.receive(director.now, *owner, load);
            }
            let before: Vec<_> = SPACES.map(|space| director.balance.division(space).map(cuts)).into();
            director.draw(&live, &mut dice, &what);
            director.check_report(&what);
            for (space, before) in SPACES.iter().zip(before) {
                let after = director.balance.division(*space).map(cuts).unwrap_or_default();
                let is_moved = |(id, cut): (CutId, (Axis, f32))| after.get(&id).is_some_and(|now| *now != cut);
                moved += before
                    .unwrap_or_default()
                    .into_iter()
                    .filter(|cut| is_moved(*cut))
                    .count();
            }
            for (_, change) in director.balance.changes() {
                added += usize::from(matches!(change, Change::Added(_)));
                retired += usize::from(matches!(change, Change::Retired(_)));
            }
        }
        maps += director.map.version;
    }
    println!("{SEEDS} seeds: {maps} maps, {moved} boundaries moved, {added} cells added, {retired} given up");
    assert!(
        maps > 1_000 && moved > 1_000 && added > 20 && retired > 20,
        "hardly anything happened"
    );
}

#[test]
fn spaces_are_spread_over_owners_and_a_single_owner_takes_all() {
    let draw = |live: u32| {
        let mut balance = Balance::new(plans(), pace());
        let map = balance.next_map(Duration::ZERO, &owners(live), live as usize, &SpaceMap::default());
        let map = map.expect("there are owners");
        SPACES.map(|space| {
            map.spaces[&space]
                .cells
                .iter()
                .map(|cell| cell.owner.0)
                .collect::<Vec<_>>()
        })
    };
    assert_eq!(draw(5), [vec![1, 2, 3], vec![4, 5]]);
    assert_eq!(draw(4), [vec![1, 2, 3], vec![4, 1]]);
    assert_eq!(draw(1), [vec![1], vec![1]]);
}

#[test]
fn a_space_waits_for_enough_owners_and_its_distances_follow_the_plan() {
    let mut balance = Balance::new(plans(), pace());
    let none = SpaceMap::default();
    assert_eq!(balance.next_map(Duration::ZERO, &owners(4), 5, &none), None);
    let map = balance.next_map(Duration::ZERO, &owners(5), 5, &none).expect("enough");
    assert_eq!(map.spaces[&SPACES[0]].ghost_distance.to_bits(), 90.0f32.to_bits());

    let stored = WireMap {
        trees: balance.trees(),
        ..WireMap::from(&map)
    };
    let wider = plans().into_iter().map(|plan| SpacePlan {
        aoi_radius: 120.0,
        ..plan
    });
    let mut next = Balance::new(wider.collect(), pace());
    next.resume(Duration::ZERO, &stored, &map).expect("what was stored");
    let redrawn = next.next_map(Duration::ZERO, &[], 5, &map).expect("it sees farther");
    assert_eq!(redrawn.spaces[&SPACES[0]].ghost_distance.to_bits(), 130.0f32.to_bits());
    assert_eq!(redrawn.spaces[&SPACES[0]].cells, map.spaces[&SPACES[0]].cells);

    let mut fewer = Balance::new(plans()[..1].to_vec(), pace());
    fewer.resume(Duration::ZERO, &stored, &map).expect("what was stored");
    assert_eq!(
        fewer.next_map(Duration::ZERO, &[], 5, &map),
        None,
        "a space outlives its setting"
    );

    let mut old = Balance::new(plans(), pace());
    old.resume(Duration::ZERO, &WireMap::from(&map), &map)
        .expect("areas without a tree");
    assert_eq!(old.next_map(Duration::ZERO, &[], 5, &map), None);
}
