//! Crowds. The full-size version is the subject `balance` of `tests/bench`.

use crate::balance::realm::{Realm, Shape};

/// Time until all have arrived, seconds.
const RUNS: u64 = 60;

fn crowded(shape: Shape, radius: f32) -> Realm {
    let mut realm = Realm::new(shape);
    realm.run(20);
    realm.crowd(0.3, [700.0, -900.0], radius);
    realm.run(RUNS);
    realm
}

#[test]
fn after_a_flash_crowd_every_cell_has_its_share_again() {
    for seed in 0..3 {
        let shape = Shape {
            seed,
            entities: 5_000,
            ..Shape::default()
        };
        let mut realm = crowded(shape, 400.0);
        let there = realm.tick;
        while realm.worst() > 0.1 {
            realm.run(1);
            assert!(
                realm.tick - there < 1_200,
                "seed {seed}: after two minutes {}",
                realm.worst()
            );
        }
        println!(
            "seed {seed}: within a tenth after {} s, {} handed over",
            (realm.tick - there) / 10,
            realm.handed
        );
        for _ in 0..30 {
            realm.run(2);
            assert!(
                realm.worst() < 0.13,
                "seed {seed}: it was in balance, and is off by {}",
                realm.worst()
            );
        }
    }
}

#[test]
fn an_indivisible_crowd_causes_no_further_moves() {
    let shape = Shape {
        entities: 2_000,
        cells: 8,
        owners: 8,
        walks: false,
        ..Shape::default()
    };
    let mut realm = crowded(shape, 3.0);
    realm.run(120);
    let (moves, handed) = (realm.moves, realm.handed);
    realm.run(300);
    let (moves, handed) = (realm.moves - moves, realm.handed - handed);
    println!("{moves} moves, {handed} handed over, worst {:.2}", realm.worst());
    assert!(moves <= 4 && handed <= 40, "boundaries hunt");
}

#[test]
fn the_same_seed_makes_the_same_run() {
    let run = || {
        let shape = Shape {
            seed: 5,
            entities: 1_000,
            ..Shape::default()
        };
        let realm = crowded(shape, 200.0);
        (realm.handed, realm.moves, realm.map.as_ref().clone())
    };
    assert_eq!(run(), run());
}
