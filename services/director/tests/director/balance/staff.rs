//! Cells are added and retired with the load; lost owners keep theirs; directors replace one another.

use crate::balance::realm::{Realm, SPACE, Shape};

/// A small realm with more owners than cells.
fn spare(cost: f64) -> Realm {
    Realm::new(Shape {
        entities: 1_000,
        cells: 2,
        owners: 6,
        extent: 1_000.0,
        cost,
        ..Shape::default()
    })
}

#[test]
fn cells_are_added_at_high_load_and_retired_at_low_load() {
    // 1,000 entities make a load of 1.8: more than half of what two and three cells can do, and less than half of four.
    let mut realm = spare(1.8e-3);
    realm.run(120);
    assert_eq!(realm.counts().len(), 4);
    assert!(realm.worst() < 0.1, "{:?}", realm.counts());
    let maps = realm.maps;
    realm.run(600);
    assert_eq!(realm.counts().len(), 4, "the load is the same");
    println!("{} maps in ten minutes", realm.maps - maps);

    // Now the total is half of what one cell could do, and two are the minimum.
    realm.cost(3e-4);
    realm.run(300);
    assert_eq!(realm.counts().len(), 2);
    assert_eq!(
        realm.counts().iter().sum::<usize>(),
        1_000,
        "no entity is left on an owner without a cell"
    );
    realm.run(120);
    assert_eq!(realm.counts().len(), 2);
}

#[test]
fn a_retirement_is_cancelled_when_the_load_returns() {
    let mut realm = spare(1.8e-3);
    realm.run(120);
    realm.cost(2e-4);
    let mut seconds = 0;
    while realm.balance.report(realm.now()).iter().all(|cell| !cell.retires) {
        realm.run(1);
        seconds += 1;
        assert!(seconds < 300, "no cell is being retired");
    }
    realm.cost(1.8e-3);
    realm.run(240);
    assert_eq!(realm.counts().len(), 4);
    assert!(realm.worst() < 0.1, "{:?}", realm.counts());
}

#[test]
fn a_lost_owner_keeps_its_area_as_it_is() {
    let mut realm = Realm::new(Shape {
        entities: 2_000,
        cells: 4,
        owners: 5,
        ..Shape::default()
    });
    realm.run(30);
    let area = |realm: &Realm| {
        realm.map.spaces[&SPACE]
            .cells
            .iter()
            .find(|cell| cell.owner.0 == 2)
            .copied()
    };
    let before = area(&realm);
    realm.lose(1, true);
    realm.crowd(0.4, [-1_500.0, 1_500.0], 300.0);
    realm.run(5);
    let lost = area(&realm);
    realm.run(120);
    assert_eq!(
        area(&realm),
        lost,
        "a lost owner receives no map and hands nothing over"
    );
    assert!(before.is_some() && lost.is_some());
    realm.lose(1, false);
    realm.run(120);
    assert!(realm.worst() < 0.1, "{:?}", realm.counts());
}

#[test]
fn a_new_director_continues_where_the_last_one_was() {
    let mut realm = Realm::new(Shape {
        entities: 2_000,
        cells: 8,
        owners: 8,
        ..Shape::default()
    });
    realm.run(20);
    realm.crowd(0.3, [700.0, -900.0], 300.0);
    realm.run(40);
    let division = realm.balance.division(SPACE).cloned();
    let trees = realm.balance.trees();
    realm.succeed();
    assert_eq!(realm.balance.division(SPACE), division.as_ref());
    assert_eq!(realm.balance.trees(), trees);
    for _ in 0..8 {
        realm.run(15);
        realm.succeed();
    }
    realm.run(30);
    assert!(realm.worst() < 0.12, "{:?}", realm.counts());
}
