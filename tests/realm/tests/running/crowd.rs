//! A crowd that gathers on one side of a boundary: the boundary moves into it, entities are handed over, and the load
//! is shared. An operator can see all of that.

use std::time::{Duration, Instant};

use annals_host::nats::ServerCount;
use annals_ids::{Direction, EntityId, Position};
use futures::future::join_all;
use serde_json::Value;

use crate::{
    bad_input::annals,
    hands::Hand,
    played::{Played, are_built, run},
};

/// Players of the crowd, besides the bots: they stand in rows, two metres apart.
const CROWD: usize = 24;
const ROW: usize = 6;

/// Their destination, metres: entirely east of the initial boundary.
const DESTINATION: [f32; 2] = [25.0, -5.0];

/// Length of a step, metres, and interval between steps: faster than on foot, slower than a horse.
const STEP: f32 = 1.0;
const STEP_INTERVAL: Duration = Duration::from_millis(100);

/// Maximum time to gather, and for the director to divide the crowd.
const GATHER_TIMEOUT: Duration = Duration::from_secs(60);
const DIVIDE_TIMEOUT: Duration = Duration::from_secs(90);

/// A cell, as `annals realm cells` reports it.
#[derive(Debug)]
pub(crate) struct Cell {
    west: Option<f64>,
    east: Option<f64>,
    load: f64,
    clients: u64,
    moved: Option<f64>,
}

/// All cells, from west to east.
pub(crate) async fn cells(realm: &Played) -> Vec<Cell> {
    let mut command = annals(realm, "annals");
    let (status, said) = run(command.args(["realm", "cells", "--format", "json"])).await;
    assert!(status.success(), "{said}");
    let said: Value = serde_json::from_str(&said).expect("json");
    let cell = |cell: &Value| Cell {
        west: cell["west"].as_f64(),
        east: cell["east"].as_f64(),
        load: cell["load"].as_f64().expect("a load"),
        clients: cell["clients"].as_u64().expect("a number"),
        moved: cell["movedSecondsAgo"].as_f64(),
    };
    said["cells"].as_array().expect("a list").iter().map(cell).collect()
}

/// Position of the boundary between the two cells.
pub(crate) fn boundary(cells: &[Cell]) -> f64 {
    let [west, east] = cells else {
        panic!("two cells: {cells:?}")
    };
    assert_eq!((west.west, east.east), (None, None), "side by side: {cells:?}");
    assert_eq!(west.east, east.west, "{cells:?}");
    west.east.expect("there is one")
}

/// Position of the nth player in the crowd.
fn place(nth: usize) -> [f32; 2] {
    let (row, column) = (nth / ROW, nth % ROW);
    [
        DESTINATION[0] + 2.0 * (row * ROW + column) as f32,
        DESTINATION[1] + 2.0 * column as f32,
    ]
}

/// Takes a step towards a position; returns whether it has been reached.
fn step(hand: &Hand, to: [f32; 2]) -> bool {
    let mut player = hand.look();
    let (entity, _) = player.avatar.expect("it is in the world");
    let seen = player.client.core().entity(entity);
    let Some((at, _)) = seen.and_then(|seen| seen.place) else {
        return false;
    };
    let way = [to[0] - at.x, to[1] - at.z];
    let left = way[0].hypot(way[1]);
    let part = (STEP / left.max(STEP)).min(1.0);
    let next = Position {
        x: at.x + way[0] * part,
        z: at.z + way[1] * part,
        ..at
    };
    player.client.move_to(next, Direction::default());
    left < STEP
}

/// Moves all players to their positions in the crowd.
async fn gather(crowd: &[Hand]) {
    let began = Instant::now();
    loop {
        let arrived = crowd.iter().enumerate().filter(|(nth, hand)| step(hand, place(*nth)));
        if arrived.count() == crowd.len() {
            return println!("gathered after {:.1} s", began.elapsed().as_secs_f32());
        }
        assert!(
            began.elapsed() < GATHER_TIMEOUT,
            "the crowd does not reach its destination"
        );
        tokio::time::sleep(STEP_INTERVAL).await;
    }
}

/// Waits until the boundary has moved into the crowd, and each cell has a share of it.
async fn wait_until_divided(realm: &Played, before: f64) -> Vec<Cell> {
    let began = Instant::now();
    loop {
        let cells = cells(realm).await;
        let has_moved = boundary(&cells) > before + f64::from(annals_wire::HANDOVER_DEPTH);
        if has_moved && cells.iter().all(|cell| cell.clients >= CROWD as u64 / 4) {
            println!("divided {:.1} s after that: {cells:?}", began.elapsed().as_secs_f32());
            return cells;
        }
        assert!(
            began.elapsed() < DIVIDE_TIMEOUT,
            "the boundary did not move into the crowd: {cells:?}"
        );
        tokio::time::sleep(STEP_INTERVAL).await;
    }
}

/// Number of hand-overs of these entities.
async fn hand_overs(realm: &Played, of: &[EntityId]) -> usize {
    let mut command = annals(realm, "annals");
    let (status, said) = run(command.args(["log", "tail", "-n", "100000"])).await;
    assert!(status.success(), "{said}");
    let names: Vec<String> = of
        .iter()
        .map(|entity| format!("Avatar {entity} cell: handed over"))
        .collect();
    let is_one = |line: &&str| names.iter().any(|name| line.contains(name));
    said.lines().filter(is_one).count()
}

/// Checks that every base and cell reports the costs of its properties and methods, and bytes in every direction.
async fn assert_costs_are_reported(realm: &Played) {
    let mut command = annals(realm, "annals");
    let (status, said) = run(command.args(["realm", "costs", "--limit", "1000", "--format", "json"])).await;
    assert!(status.success(), "{said}");
    let costs: Value = serde_json::from_str(&said).expect("json");
    let plan = realm.realm.plan();
    assert_eq!(costs["processes"], plan.bases + plan.cells, "{said}");
    let members = costs["members"].as_array().expect("a list");
    for way in ["changes", "log", "own", "others", "ghosts", "part"] {
        let dearest = members.iter().max_by_key(|member| member[way].as_u64());
        let dearest = dearest.unwrap_or_else(|| panic!("no cost is reported: {said}"));
        println!("{way}: {}.{} {}", dearest["type"], dearest["member"], dearest[way]);
        assert!(dearest[way].as_u64() > Some(0), "{way}: {said}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_crowd_at_one_place_is_rebalanced_without_loss() {
    if !are_built() {
        return;
    }
    let realm = Played::start_timed(ServerCount::One, &[]).await;
    let names = (0..CROWD).map(|nth| &*format!("guest{nth}").leak());
    let crowd = join_all(names.map(|name| Hand::log_in(&realm, name))).await;
    let before = boundary(&cells(&realm).await);
    println!("{CROWD} guests are there; the boundary is at {before} m");
    gather(&crowd).await;
    let cells = wait_until_divided(&realm, before.max(0.0)).await;
    assert!(
        cells.iter().all(|cell| cell.load > 0.0 && cell.moved.is_some()),
        "{cells:?}"
    );
    let entities: Vec<EntityId> = crowd.iter().filter_map(|hand| Some(hand.look().avatar?.0)).collect();
    let handed = hand_overs(&realm, &entities).await;
    println!("{handed} hand-overs of the crowd");
    assert!(handed > 0, "no entity was handed over");
    assert_costs_are_reported(&realm).await;
    for hand in crowd {
        assert!(hand.look().client.core().is_playing(), "it plays on");
        hand.leave().await;
    }
    realm.stop_and_verify().await;
}
