//! Past states of a realm of cells on one to three shards, and of the owners of one entity.

use std::collections::BTreeMap;

use annals_audit::{
    EntityLog, Index,
    past::{Change, Difference, Past},
};
use annals_event::{Batch, Event, OwnerState, Subject};
use annals_evidence::Cut;
use annals_ids::{EntityId, LogPosition, OwnerId, Part};
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
    let cut = index.cut(None).await.unwrap();
    let all = Past::at(&index, &game.store, &cut).await.unwrap();
    for number in 0..3 {
        let (_, entity, base) = player(number);
        let past = Past::around(&index, &game.store, &cut, entity).await.unwrap();
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
    let mut index = Index::over(MemoryStore::new().store()).await.unwrap();
    index.catch_up(&world.store, |_| {}).await.unwrap();
    let cut = index.cut(None).await.unwrap();
    let before = Past::at(&index, &world.store, &cut).await.unwrap();
    let moved = *world.logs[0].state.entities.keys().next().unwrap();
    world.hand_over(0, moved, 1);
    world.archive().await;
    index.catch_up(&world.store, |_| {}).await.unwrap();
    let mut after = before.clone();
    let cut = index.cut(None).await.unwrap();
    after.advance(&index, &world.store, &cut).await.unwrap();
    let schemas = BTreeMap::from([(world.schema.fingerprint(), (*world.schema).clone())]);
    let expected = Change::HandedOver {
        of: (moved, Part::Cell),
        before: world.logs[0].owner,
        after: world.logs[1].owner,
    };
    assert_eq!(Difference::between(&before, &after, &schemas).changes, [expected]);
}

/// Batches have later and later times here, so the order of the index is that in which they were written.
#[tokio::test]
async fn past_states_and_entities_are_complete_on_any_number_of_shards() {
    for (seed, shards) in (0..6).zip([1, 2, 3].into_iter().cycle()) {
        let mut world = World::on_shards(MemoryStore::new().store(), shards).await;
        world.play(600 + seed, 90).await;
        world.archive().await;
        let mut index = Index::over(MemoryStore::new().store()).await.unwrap();
        let extent = index.catch_up(&world.store, |_| {}).await.unwrap();
        assert_eq!(extent.trees.len(), usize::from(shards));
        assert_eq!(extent.leaves(), world.frozen.len() as u64);
        let mut states: BTreeMap<OwnerId, OwnerState> = BTreeMap::new();
        let mut events: BTreeMap<EntityId, Vec<(LogPosition, Event)>> = BTreeMap::new();
        let mut past = Past::at(&index, &world.store, &Cut::default()).await.unwrap();
        for (place, frozen) in world.frozen.iter().enumerate() {
            let batch = Batch::read(&frozen.bytes).unwrap();
            let (owner, at) = (frozen.owner, frozen.number);
            let state = states
                .entry(owner)
                .or_insert_with(|| OwnerState::new(owner, Part::Cell));
            state.fold(&batch).unwrap();
            let at = LogPosition { owner, batch: at };
            for event in batch.events {
                if let Subject::Entity(entity, _) = event.subject {
                    events.entry(entity).or_default().push((at, event));
                }
            }
            if place % 7 > 0 {
                continue;
            }
            let until = index.until(at).await.unwrap();
            let cut = index.cut(Some(&until)).await.unwrap();
            assert_eq!(cut.batches(), place as u64 + 1, "seed {seed}, up to {at}");
            past.advance(&index, &world.store, &cut).await.unwrap();
            let hashes = |states: &BTreeMap<OwnerId, OwnerState>| -> BTreeMap<_, _> {
                states.iter().map(|(owner, state)| (*owner, state.hash())).collect()
            };
            assert_eq!(hashes(past.owners()), hashes(&states), "seed {seed}, up to {at}");
        }
        for (entity, expected) in events {
            let log = EntityLog::find(&index, &world.store, entity).await.unwrap();
            let found = log.events.into_iter().map(|found| (found.at, found.event));
            assert_eq!(found.collect::<Vec<_>>(), expected, "seed {seed}, entity {entity}");
        }
    }
}
