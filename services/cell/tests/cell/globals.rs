//! Global data on cells: parts that follow it are notified, also when they come from an owner that lacked a change.

use std::sync::atomic::Ordering;

use annals_def::Value;
use annals_event::GlobalScope;
use annals_ids::EntityId;
use annals_node::Denied;

use crate::{
    game::{ACT, AVATAR, ERRAND, Errand},
    world::{EAST, MIDDLE, WEST, World},
};

const TIDE: &str = "tide";

/// Has an entity write a value.
fn write(world: &mut World, entity: EntityId, value: i64) {
    let errand: Errand = Box::new(move |context| {
        let foreign = context.set_global(GlobalScope::Bases, TIDE, Value::Int(value));
        assert!(matches!(foreign, Err(Denied::GlobalScope { .. })), "{foreign:?}");
        let written = context.set_global(GlobalScope::Cells, TIDE, Value::Int(value));
        written.expect("it fits");
    });
    *world.game.errand.lock().expect("the lock is not poisoned") = Some(errand);
    world.call(entity, ACT, vec![Value::UInt(ERRAND)]);
}

/// The values of which an entity was notified since the last call.
fn notices(world: &World, entity: EntityId) -> Vec<Option<Value>> {
    let mut all = world.game.notices.lock().expect("the lock is not poisoned");
    let of_entity = all.extract_if(.., |(of, key, _)| *of == entity && key == TIDE);
    of_entity.map(|(_, _, value)| value).collect()
}

#[test]
fn followers_on_all_cells_are_notified_of_a_change() {
    let mut world = World::new(21);
    world.game.follows.store(true, Ordering::Relaxed);
    let entities = [-30.0, 5.0, 60.0].map(|x| world.spawn(AVATAR, x, None));
    world.run(500);
    write(&mut world, entities[0], 3);
    world.run(1_000);
    let known = [WEST, MIDDLE, EAST].map(|owner| {
        let data = world.cx(owner).global_data(GlobalScope::Cells);
        data.and_then(|data| data.get(TIDE)).cloned()
    });
    assert_eq!(known, [const { Some(Value::Int(3)) }; 3]);
    for entity in entities {
        assert_eq!(notices(&world, entity), [Some(Value::Int(3))]);
    }
}

#[test]
fn a_follower_that_arrives_is_notified_of_what_its_new_owner_knows() {
    let mut world = World::new(22);
    world.game.follows.store(true, Ordering::Relaxed);
    let entity = world.spawn(AVATAR, -30.0, Some(1));
    world.run(500);
    write(&mut world, entity, 4);
    world.run(1_000);
    assert_eq!(notices(&world, entity), [Some(Value::Int(4))]);
    for step in 1..=60_u8 {
        world.walk(1, -30.0 + f32::from(step), 0.0);
        world.run(50);
    }
    world.run(1_000);
    assert_eq!(world.holders(entity), [MIDDLE]);
    assert_eq!(notices(&world, entity), [Some(Value::Int(4))], "once more, on arrival");
}
