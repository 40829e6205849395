//! Calls of client methods of other entities that the own client alone is shown.

use annals_def::Value;
use annals_event::{Audience, Body, Event};
use annals_ids::EntityId;
use annals_node::{Context, Denied};
use annals_wire::client::Shown;

use crate::{
    game::AVATAR,
    oracle::{check_logs, check_shown, check_view},
    world::{CALM, MIDDLE, ROUGH, WEST, World, have},
};

/// An entity that never existed.
const NOBODY: EntityId = EntityId(77);

/// Calls of the test under faults.
const CALLS: usize = 20;

fn say(context: &mut Context<'_>, entity: EntityId, text: &str) -> Result<(), Denied> {
    context.invoke_in_view(entity, "say", vec![Value::Unicode(text.into())])
}

/// What a client was shown that an entity said, in order.
fn received(world: &World, session: u64, entity: EntityId) -> Vec<String> {
    let shown = world.client(session).shown.iter();
    let said = shown.filter_map(|(of, _, shown)| match shown {
        Shown::Method { args, .. } if *of == entity => match &args[..] {
            [Value::Unicode(text)] => Some(text.clone()),
            other => panic!("{other:?}"),
        },
        _ => None,
    });
    said.collect()
}

fn check(world: &World) {
    for client in world.clients.values() {
        check_view(world, client);
        check_shown(world, client);
    }
    check_logs(world);
}

/// The directed calls in all logs.
fn directed(world: &World) -> Vec<Event> {
    let events = world.cells.values().flat_map(crate::process::Process::events);
    let is_directed = |event: &Event| {
        matches!(
            event.body,
            Body::Invoked {
                audience: Audience::Of(_),
                ..
            }
        )
    };
    events.filter(is_directed).collect()
}

#[test]
fn the_own_client_alone_is_shown_it() {
    let mut world = World::new(501);
    let own = world.spawn(AVATAR, -10.0, Some(1));
    let ghost = world.spawn(AVATAR, 10.0, Some(2));
    let beside = world.spawn(AVATAR, -15.0, Some(3));
    world.run(1_000);
    assert_eq!((world.holders(own), world.holders(ghost)), (vec![WEST], vec![MIDDLE]));
    have(&mut world, own, move |context| {
        say(context, ghost, "to you").expect("it is a ghost here");
        say(context, beside, "to you too").expect("it is real here");
        say(context, own, "to myself").expect("it is itself");
    });
    world.run(1_000);
    assert_eq!(received(&world, 1, ghost), ["to you"]);
    assert_eq!(received(&world, 1, beside), ["to you too"]);
    assert_eq!(received(&world, 1, own), ["to myself"]);
    for session in [2, 3] {
        for entity in [own, ghost, beside] {
            assert_eq!(
                received(&world, session, entity),
                [""; 0],
                "client {session} and {entity}"
            );
        }
    }
    check(&world);
}

#[test]
fn it_is_dropped_and_counted_if_the_client_does_not_see_the_entity() {
    let mut world = World::new(502);
    let own = world.spawn(AVATAR, -5.0, Some(1));
    let far = world.spawn(AVATAR, -70.0, None);
    let blind = world.spawn(AVATAR, -8.0, None);
    world.run(1_000);
    assert!(!world.client(1).known.contains_key(&far));
    have(&mut world, own, move |context| {
        say(context, far, "too far").expect("it is real here");
        let unknown = say(context, NOBODY, "nobody");
        assert_eq!(unknown, Err(Denied::UnknownHere { entity: NOBODY }));
        let wrong = context.invoke_in_view(far, "say", vec![Value::UInt(1)]);
        assert!(matches!(wrong, Err(Denied::Mismatch { .. })), "{wrong:?}");
        let wrong = context.invoke_in_view(far, "sing", Vec::new());
        assert!(matches!(wrong, Err(Denied::Unknown { .. })), "{wrong:?}");
    });
    have(&mut world, blind, move |context| {
        say(context, own, "without a client").expect("it is real here");
    });
    assert_eq!(world.role(WEST).counters().not_in_view, 2);
    world.run(1_000);
    assert_eq!(directed(&world), []);
    check(&world);
}

/// Makes the calls under faults. Returns what was said, in order.
fn say_all(world: &mut World, own: EntityId, to: EntityId, crashes: bool) -> Vec<String> {
    let mut said = Vec::new();
    for number in 0..CALLS {
        let text = format!("call {number}");
        said.push(text.clone());
        // Calls are made on a bus that works, and delivered on one that does not.
        world.faults = CALM;
        world.run(100);
        have(world, own, move |context| {
            say(context, to, &text).expect("it is a ghost here");
        });
        world.faults = ROUGH;
        world.run(300);
        if crashes && number % 5 == 4 {
            // What it has logged goes on.
            let cell = [WEST, MIDDLE][number % 2];
            world.run(100);
            world.crash(cell);
            world.run(200);
            world.start(cell);
            world.run(8_000);
        }
    }
    world.faults = CALM;
    world.run(15_000);
    said
}

/// Whether the first texts are among the others, in the same order.
fn are_among(few: &[String], all: &[String]) -> bool {
    let mut all = all.iter();
    few.iter().all(|text| all.any(|other| other == text))
}

#[test]
fn each_call_is_shown_once_and_in_order_over_a_bad_bus() {
    for seed in 503..507 {
        let mut world = World::new(seed);
        let own = world.spawn(AVATAR, -10.0, Some(1));
        let ghost = world.spawn(AVATAR, 10.0, Some(2));
        world.run(1_000);
        let said = say_all(&mut world, own, ghost, false);
        let shown = received(&world, 1, ghost);
        assert_eq!(shown.len(), directed(&world).len(), "seed {seed}");
        assert!(are_among(&shown, &said), "seed {seed}: {shown:?}");
        // Some are dropped while a view begins again.
        assert!(shown.len() >= CALLS / 2, "seed {seed}: {shown:?}");
        assert_eq!(received(&world, 2, ghost), [""; 0], "seed {seed}");
        check(&world);
    }
}

/// A client whose cell has lost the history of an entity is sent its whole state, as for calls on all clients.
#[test]
fn no_call_is_shown_twice_or_to_others_over_crashes() {
    for seed in 507..511 {
        let mut world = World::new(seed);
        let own = world.spawn(AVATAR, -10.0, Some(1));
        let ghost = world.spawn(AVATAR, 10.0, Some(2));
        world.run(1_000);
        let said = say_all(&mut world, own, ghost, true);
        let shown = received(&world, 1, ghost);
        assert!(are_among(&shown, &said) && !shown.is_empty(), "seed {seed}: {shown:?}");
        assert_eq!(received(&world, 2, ghost), [""; 0], "seed {seed}");
        check(&world);
    }
}
