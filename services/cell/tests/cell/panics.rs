//! Panics of behaviour: the owner reports them and continues, and its state still agrees with its log.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::Ordering;

use annals_def::Value;
use annals_event::CallError;
use annals_ids::{EntityId, Epoch, HistoryNumber, Mailbox, MemberId, OwnerId, Part};
use annals_node::{OwnerError, panics};

use crate::{
    game::{ACT, AVATAR, BREAK, CREATURE, DEFECT, ERRAND, PANIC},
    oracle::{check, check_logs},
    world::{EAST, HOME, MIDDLE, WEST, World, have},
};

/// Property `title` of an avatar.
const TITLE: MemberId = MemberId(2);

fn world(seed: u64) -> World {
    let mut world = World::new(seed);
    world.report_panics();
    world
}

fn epochs(world: &World) -> Vec<Epoch> {
    world.cells.values().map(|cell| cell.epoch).collect()
}

fn troubles(world: &mut World, id: OwnerId) -> Vec<OwnerError> {
    let cell = world.cells.get_mut(&id).expect("there is such a cell");
    let owner = cell.owner.as_mut().expect("it is up");
    std::iter::from_fn(|| owner.poll_trouble()).collect()
}

fn panicked(entity: EntityId, entity_type: &str) -> OwnerError {
    OwnerError::Panicked {
        entity,
        part: Part::Cell,
        entity_type: entity_type.to_owned(),
        message: DEFECT.to_owned(),
    }
}

fn title(world: &World, entity: EntityId) -> Value {
    world.real(entity).properties[&TITLE].clone()
}

/// The newest history number of an entity, once it is not between two cells.
fn history(world: &mut World, entity: EntityId) -> HistoryNumber {
    for _ in 0..100 {
        if !world.holders(entity).is_empty() {
            break;
        }
        world.run(10);
    }
    world.real(entity).history
}

/// The caller gets an error, what the method did is shown and logged, and later calls run.
#[test]
fn a_method_that_panics_fails_its_call_and_keeps_what_it_did() {
    let mut world = world(1);
    let one = world.spawn(AVATAR, 5.0, Some(1));
    let other = world.spawn(AVATAR, -5.0, Some(2));
    world.run(2_000);
    let (before, began) = (title(&world, other), epochs(&world));
    have(&mut world, one, move |context| {
        let to = Mailbox {
            entity: other,
            home: HOME,
            type_id: AVATAR,
            part: Part::Cell,
        };
        for (then, what) in [(1, PANIC), (2, 0)] {
            let asked = context.ask(to, "act", vec![Value::UInt(what)], 9_000, (then, Vec::new()));
            asked.expect("it has this method");
        }
    });
    world.run(2_000);
    let replies = world.game.replies.lock().expect("nobody panics").clone();
    let failed = CallError::Internal("the method panicked".to_owned());
    assert_eq!(replies, [(one, 1, Err(failed)), (one, 2, Ok(Vec::new()))]);
    assert_ne!(title(&world, other), before);
    assert_eq!(troubles(&mut world, WEST), [panicked(other, "Avatar")]);
    assert_eq!(epochs(&world), began, "no owner was taken over");
    check_logs(&world);
    let after = title(&world, other);
    world.crash(WEST);
    world.start(WEST);
    world.run(5_000);
    assert_eq!(title(&world, other), after, "what it did is in the log");
    check_logs(&world);
}

/// Creations, timers, movements of clients, and changes of ghosts, on all cells.
#[test]
fn entities_continue_when_their_hooks_stop_panicking() {
    for seed in 0..20 {
        let mut world = world(seed);
        world.set_lively(true);
        let mut entities: Vec<EntityId> = (0_u8..6)
            .map(|nth| {
                world.spawn(
                    AVATAR,
                    f32::from(nth) * 40.0 - 100.0,
                    (nth < 3).then_some(1 + u64::from(nth)),
                )
            })
            .collect();
        world.run(2_000);
        let began = epochs(&world);
        world.game.panicky.store(true, Ordering::Relaxed);
        entities.extend((0_u8..3).map(|nth| world.spawn(CREATURE, f32::from(nth) * 60.0 - 60.0, None)));
        let mut reported = Vec::new();
        for step in 0_u8..50 {
            world.walk(1, -100.0 + f32::from(step) / 10.0, 0.0);
            world.run(100);
            for id in [WEST, MIDDLE, EAST] {
                reported.extend(troubles(&mut world, id));
            }
        }
        world.game.panicky.store(false, Ordering::Relaxed);
        println!("seed {seed}: {} panics", reported.len());
        let mut hooks = BTreeMap::new();
        let mut of_timers = BTreeSet::new();
        for error in reported {
            let OwnerError::Panicked { entity, message, .. } = error else {
                panic!("{error}");
            };
            let hook = message.strip_prefix(DEFECT).and_then(|rest| rest.strip_prefix(" in "));
            let hook = hook.expect("it is that of the game").to_owned();
            if hook == "timer" {
                of_timers.insert(entity);
            }
            *hooks.entry(hook).or_insert(0) += 1;
        }
        let seen: Vec<&str> = hooks.keys().map(String::as_str).collect();
        assert_eq!(seen, ["client_moves", "created", "ghost_changed", "timer"], "{hooks:?}");
        assert!(entities.iter().all(|entity| of_timers.contains(entity)));
        assert_eq!(epochs(&world), began, "no owner was taken over");
        let histories: Vec<_> = entities.iter().map(|entity| history(&mut world, *entity)).collect();
        world.run(5_000);
        for (entity, before) in entities.iter().zip(histories) {
            assert!(history(&mut world, *entity) > before, "the timers of {entity} fire");
        }
        world.set_lively(false);
        world.run(20_000);
        check(&world);
    }
}

/// The message of the panic with which an owner ends.
fn ends(world: &mut World) -> String {
    let ended = catch_unwind(AssertUnwindSafe(|| world.run(2_000)));
    let payload = ended.expect_err("the panic leaves the owner");
    panics::message(payload.as_ref()).to_owned()
}

/// Its memory may be wrong, so it must not continue.
#[test]
fn an_owner_ends_with_an_assertion_of_its_core() {
    let mut world = world(3);
    let avatar = world.spawn(AVATAR, -100.0, None);
    world.run(2_000);
    world.call(avatar, ACT, vec![Value::UInt(BREAK)]);
    assert_eq!(ends(&mut world), "invariant: it never breaks");
}

/// The event may be in the state and not in the log.
#[test]
fn an_owner_ends_with_a_panic_while_it_records() {
    let mut world = world(4);
    let avatar = world.spawn(AVATAR, -100.0, None);
    world.run(2_000);
    world.game.undecided.store(true, Ordering::Relaxed);
    *world.game.errand.lock().expect("the lock is not poisoned") = Some(Box::new(|context| {
        let place = context.place().expect("a cell part is somewhere");
        let created = context.create_cell_only(CREATURE, place, Vec::new());
        created.expect("there is room");
    }));
    world.call(avatar, ACT, vec![Value::UInt(ERRAND)]);
    assert_eq!(ends(&mut world), DEFECT);
}
