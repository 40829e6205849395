//! At constant load boundaries come to rest.

use crate::balance::realm::{Realm, Shape};

const SEEDS: u64 = 5;

/// Time for boundaries to settle, and then to be observed, seconds.
const SETTLES: u64 = 180;
const LOOKS: u64 = 300;

/// Moves once a realm has settled: of boundaries, and of entities from cell to cell.
fn settled(realm: &mut Realm, seed: u64) -> (u64, u64) {
    realm.run(SETTLES);
    let (moves, handed) = (realm.moves, realm.handed);
    realm.run(LOOKS);
    let (moves, handed) = (realm.moves - moves, realm.handed - handed);
    println!(
        "seed {seed}: {moves} moves, {handed} handed over, worst {:.3}",
        realm.worst()
    );
    (moves, handed)
}

#[test]
fn without_movement_boundaries_and_entities_stay() {
    for seed in 0..SEEDS {
        let shape = Shape {
            seed,
            entities: 2_000,
            cells: 8,
            owners: 8,
            heaps: 1 + seed as usize % 5,
            walks: false,
            ..Shape::default()
        };
        let mut realm = Realm::new(shape);
        let (moves, handed) = settled(&mut realm, seed);
        assert!(moves <= 4, "seed {seed}: {moves} moves in {LOOKS} s");
        assert!(
            handed <= 40,
            "seed {seed}: {handed} of {} handed over in {LOOKS} s",
            shape.entities
        );
    }
}

#[test]
fn random_walks_cause_few_hand_overs_beyond_crossings() {
    for seed in 0..2 {
        let shape = Shape {
            seed,
            entities: 3_000,
            cells: 8,
            owners: 8,
            heaps: 3,
            ..Shape::default()
        };
        let mut realm = Realm::new(shape);
        let (moves, _) = settled(&mut realm, seed);
        // Seven boundaries, five minutes.
        assert!(moves <= 40, "seed {seed}: {moves} moves in {LOOKS} s");
        assert!(realm.worst() < 0.1, "seed {seed}: worst {}", realm.worst());
    }
}
