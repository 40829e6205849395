//! How calls without a result end: with the error of the receiver or of its home, delivered once, whichever side dies.

use std::collections::BTreeMap;

use annals_def::Value;
use annals_event::{CallError, Outcome};
use annals_ids::{Address, EntityId, Mailbox, Part};
use annals_node::Context;

use crate::{
    game::{AVATAR, DELAY, FAIL, FORBID, forbidden, poor},
    world::{HOME, MIDDLE, WEST, World, have},
};

/// An entity that never existed.
const NOBODY: EntityId = EntityId(77);

/// Time-out of calls, milliseconds: longer than a receiver's process is down here.
const TIMEOUT: u64 = 9_000;

fn mailbox(entity: EntityId, part: Part) -> Mailbox {
    Mailbox {
        entity,
        home: HOME,
        type_id: AVATAR,
        part,
    }
}

/// Makes one call for each way to end, and returns how each must end.
fn ask_all(context: &mut Context<'_>, other: EntityId) {
    let cell = mailbox(other, Part::Cell);
    let asks = [
        (1, cell, vec![Value::UInt(FAIL)]),
        (2, cell, vec![Value::UInt(FORBID)]),
        (3, cell, vec![Value::UInt(DELAY)]),
        (4, mailbox(NOBODY, Part::Cell), vec![Value::UInt(1)]),
        (5, mailbox(NOBODY, Part::Base), Vec::new()),
        (6, cell, vec![Value::UInt(1)]),
        (7, mailbox(other, Part::Base), Vec::new()),
    ];
    for (then, to, args) in asks {
        let method = if to.part == Part::Cell { "act" } else { "greet" };
        let asked = context.ask(to, method, args, TIMEOUT, (then, Vec::new()));
        asked.expect("it has this method");
    }
}

fn expected() -> BTreeMap<u32, Outcome> {
    [
        (1, Err(poor())),
        (2, Err(forbidden())),
        (3, Err(CallError::NoReply)),
        (4, Err(CallError::NoSuchCellEntity)),
        (5, Err(CallError::NoSuchEntity)),
        (6, Ok(Vec::new())),
        (7, Ok(Vec::new())),
    ]
    .into()
}

/// The outcomes that an entity recorded, in its own state.
fn notes(world: &World, entity: EntityId) -> Vec<i64> {
    let Value::Sequence(notes) = &world.real(entity).properties[&annals_ids::MemberId(5)] else {
        panic!("it is a sequence");
    };
    let mut notes: Vec<i64> = notes
        .iter()
        .map(|value| match value {
            Value::Int(then) => *then,
            other => panic!("{other:?}"),
        })
        .collect();
    notes.sort_unstable();
    notes
}

fn all() -> Vec<i64> {
    expected().into_keys().map(i64::from).collect()
}

#[test]
fn each_call_without_a_result_ends_with_its_error() {
    let mut world = World::new(601);
    let (one, other) = (world.spawn(AVATAR, -5.0, None), world.spawn(AVATAR, 5.0, None));
    world.run(1_000);
    assert_eq!((world.holders(one), world.holders(other)), (vec![WEST], vec![MIDDLE]));
    have(&mut world, one, move |context| ask_all(context, other));
    world.run(TIMEOUT - 1_000);
    let replies = |world: &World| world.game.replies.lock().expect("nobody panics").clone();
    assert!(
        replies(&world).iter().all(|(_, then, _)| *then != 3),
        "its deadline has not come"
    );
    world.run(2_000);
    let replies = replies(&world);
    assert!(replies.iter().all(|(who, ..)| *who == one));
    assert_eq!(replies.len(), expected().len(), "each once: {replies:?}");
    let replies: BTreeMap<u32, Outcome> = replies.into_iter().map(|(_, then, outcome)| (then, outcome)).collect();
    assert_eq!(replies, expected());
    assert_eq!(notes(&world, one), all());
    let links = &world.real(one).links;
    assert!(links.awaiting.is_empty(), "nothing is waited for: {:?}", links.awaiting);
    assert!(links.sent.values().all(|sent| sent.unconfirmed.is_empty()));
    let lost = world.game.lost.lock().expect("nobody panics").clone();
    assert!(lost.is_empty(), "answers were waited for: {lost:?}");
}

/// The process of either side dies at any moment: every call ends, once.
#[test]
fn an_error_is_reported_once_despite_crashes() {
    let mut asked = 0;
    for (seed, after) in (0..120).step_by(8).enumerate() {
        for victim in [WEST, MIDDLE, HOME] {
            let mut world = World::new(seed as u64);
            let (one, other) = (world.spawn(AVATAR, -5.0, None), world.spawn(AVATAR, 5.0, None));
            world.run(1_000);
            have(&mut world, one, move |context| ask_all(context, other));
            world.run(after);
            world.crash(victim);
            world.run(700);
            if victim == HOME {
                world.start_home();
            } else {
                world.start(victim);
            }
            world.run(20_000);
            println!("seed {seed}, after {after} ms, victim {victim}");
            let notes = notes(&world, one);
            assert!(notes.is_empty() || notes == all(), "{notes:?}");
            assert!(world.real(one).links.awaiting.is_empty());
            let replies = world.game.replies.lock().expect("nobody panics").clone();
            for (_, then, outcome) in replies {
                assert_eq!(Some(&outcome), expected().get(&then), "ask {then}");
            }
            asked += usize::from(!notes.is_empty());
        }
    }
    // A call is lost with a process that had not logged it.
    assert!(asked > 30, "only {asked} were asked");
}

#[test]
fn one_way_calls_to_an_ended_entity_are_reported_as_lost() {
    let mut world = World::new(603);
    let one = world.spawn(AVATAR, -5.0, None);
    let gone = world.spawn(AVATAR, -9.0, None);
    world.run(1_000);
    world.send_to_home(crate::home::HomeInput::DestroyCell(gone));
    world.run(1_000);
    have(&mut world, one, move |context| {
        for number in 0..3 {
            let note = vec![Value::Int(number)];
            context
                .call(mailbox(gone, Part::Cell), "note", note)
                .expect("the method exists");
        }
        let base = mailbox(NOBODY, Part::Base);
        context.call(base, "greet", Vec::new()).expect("the method exists");
    });
    world.run(10_000);
    let mut lost = world.game.lost.lock().expect("nobody panics").clone();
    lost.sort_unstable();
    assert_eq!(lost, [(one, Address::Base(NOBODY)), (one, Address::Cell(gone))]);
    let links = &world.real(one).links;
    assert!(links.sent.values().all(|sent| sent.unconfirmed.is_empty()));
    // Lost calls stay lost: a crash does not restore any.
    world.crash(WEST);
    world.run(300);
    world.start(WEST);
    world.run(10_000);
    assert_eq!(world.game.lost.lock().expect("nobody panics").len(), 2);
}
