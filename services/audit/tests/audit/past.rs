//! Past states of a realm of cells, and of the owners of one entity.

use std::collections::BTreeMap;

use annals_audit::{
    Index,
    past::{Change, Difference, Past},
};
use annals_ids::Part;
use annals_store::MemoryStore;

use crate::{
    game::{Game, player},
    world::World,
};

/// A past of one entity has the owners in whose logs it has events, in their state at that moment.
#[tokio::test]
async fn the_past_of_an_entity_has_its_owners() {
    let game = Game::play(350, 60).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.unwrap();
    let until = index.leaves_until(None).await.unwrap();
    let all = Past::at(&index, &game.store, until).await.unwrap();
    for number in 0..3 {
        let (_, entity, base) = player(number);
        let past = Past::around(&index, &game.store, until, entity).await.unwrap();
        let hashes = |past: &Past| {
            past.owners()
                .iter()
                .map(|(owner, state)| (*owner, state.hash()))
                .collect()
        };
        let (of_entity, of_all): (BTreeMap<_, _>, BTreeMap<_, _>) = (hashes(&past), hashes(&all));
        assert_eq!(of_entity, BTreeMap::from([(base, of_all[&base])]), "player {number}");
        assert!(past.parts().contains_key(&(entity, Part::Base)), "player {number}");
    }
}

/// A part that is with another owner at the later moment was handed over; one that is with the same owner was not.
#[tokio::test]
async fn a_difference_names_exactly_the_parts_that_were_handed_over() {
    let mut world = World::new(MemoryStore::new().store()).await;
    world.create(0);
    world.create(0);
    world.archive().await;
    let mut index = Index::over(MemoryStore::new().store(), crate::world::SHARD)
        .await
        .unwrap();
    index.catch_up(&world.store, |_| {}).await.unwrap();
    let before = index.leaves_until(None).await.unwrap();
    let before = Past::at(&index, &world.store, before).await.unwrap();
    let moved = *world.logs[0].state.entities.keys().next().unwrap();
    world.hand_over(0, moved, 1);
    world.archive().await;
    index.catch_up(&world.store, |_| {}).await.unwrap();
    let mut after = before.clone();
    let until = index.leaves_until(None).await.unwrap();
    after.advance(&index, &world.store, until).await.unwrap();
    let schemas = BTreeMap::from([(world.schema.fingerprint(), (*world.schema).clone())]);
    let expected = Change::HandedOver {
        of: (moved, Part::Cell),
        before: world.logs[0].owner,
        after: world.logs[1].owner,
    };
    assert_eq!(Difference::between(&before, &after, &schemas).changes, [expected]);
}
