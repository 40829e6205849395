//! Answers to calls of clients: shown to the client that called, wherever it sees the entity from.

use annals_def::Value;
use annals_event::{Body, CallError, Link, Outcome};
use annals_ids::{Address, CallNumber, EntityId, SessionId};
use annals_node::Caller;
use annals_wire::client::{Reply, Shown};

use crate::{
    game::AVATAR,
    oracle::{check_logs, check_shown, check_view},
    world::{HOME, MIDDLE, WEST, World, have},
};

/// Answers a call of a session.
fn answer(world: &mut World, entity: EntityId, session: u64, call: u64, outcome: Outcome) {
    let entity_type = &world.cx(WEST).schema().types()[usize::from(AVATAR.0)];
    let method = entity_type.cell_method_named("inspect").map(|method| method.index);
    let link = Link {
        from: Address::Client(SessionId(session)),
        to: Address::Cell(entity),
    };
    let caller = Caller {
        link,
        home: HOME,
        number: CallNumber(call),
        wants_reply: true,
        method,
    };
    have(world, entity, move |context| context.answer(&caller, outcome));
}

/// The answers that a client was shown on an entity.
fn answered(world: &World, session: u64, entity: EntityId) -> Vec<(u64, Outcome)> {
    let shown = world.client(session).shown.iter();
    let replies = shown.filter_map(|(of, _, shown)| match shown {
        Shown::Reply(Reply { call, outcome, .. }) if *of == entity => Some((call.0, outcome.clone())),
        _ => None,
    });
    replies.collect()
}

#[test]
fn the_calling_client_alone_is_shown_the_answer() {
    let mut world = World::new(601);
    let own = world.spawn(AVATAR, -10.0, Some(1));
    let other = world.spawn(AVATAR, 10.0, Some(2));
    world.spawn(AVATAR, -15.0, Some(3));
    world.run(1_000);
    assert_eq!((world.holders(own), world.holders(other)), (vec![WEST], vec![MIDDLE]));
    let (mood, poor): (Outcome, Outcome) = (
        Ok(vec![Value::Int(-3)]),
        Err(CallError::Custom("Poor".into(), "no mood".into())),
    );
    answer(&mut world, own, 1, 4, mood.clone());
    answer(&mut world, own, 2, 7, poor.clone());
    // Nobody has this session any more.
    answer(&mut world, own, 9, 1, mood.clone());
    answer(&mut world, other, 1, 2, mood.clone());
    world.run(1_000);
    assert_eq!(answered(&world, 1, own), [(4, mood.clone())]);
    assert_eq!(answered(&world, 2, own), [(7, poor)], "it sees a ghost");
    assert_eq!(answered(&world, 1, other), [(2, mood)], "it sees a ghost");
    assert_eq!(answered(&world, 2, other), []);
    assert_eq!(answered(&world, 3, own), []);
    for client in world.clients.values() {
        check_view(&world, client);
        check_shown(&world, client);
    }
    check_logs(&world);
}

/// The values are not those that the method declares, so that no client could read them.
#[test]
fn other_values_than_declared_are_an_error() {
    let mut world = World::new(602);
    let own = world.spawn(AVATAR, -10.0, Some(1));
    world.run(1_000);
    answer(&mut world, own, 1, 1, Ok(vec![Value::Unicode("merry".into())]));
    answer(&mut world, own, 1, 2, Ok(Vec::new()));
    let long = "\u{20ac}".repeat(1_000);
    answer(&mut world, own, 1, 3, Err(CallError::InvalidArgs(long.clone())));
    world.run(1_000);
    let wrong = Err(CallError::Internal("the reason is not sent to clients".into()));
    let short = Err(CallError::InvalidArgs(long.chars().take(341).collect()));
    assert_eq!(
        answered(&world, 1, own),
        [(1, wrong.clone()), (2, wrong), (3, short)],
        "a text of an error is at most 1,024 bytes"
    );
    let events = world.cells.values().flat_map(crate::process::Process::events);
    let logged = events.filter(|event| matches!(event.body, Body::Replied { .. }));
    assert_eq!(logged.count(), 3);
}
