//! Entities that are created on other owners, at most once, with one answer.

use annals_base::BaseInput;
use annals_def::Value;
use annals_event::{Body, Call, RequestedBase};
use annals_ids::{CallNumber, EntityId, Mailbox, MemberId, OwnerId, Part, TypeId};
use annals_node::{
    Context, Denied,
    inquiry::{Answer, Inquiry, NewBase},
};

use crate::{
    game::{AVATAR, Game, MADE, NOTE, TIMEOUT_MS},
    host::{BASE, Host, OTHER, call_of_other, map},
    lifecycle::trail,
};

const RUN_ERRAND: MemberId = MemberId(17);
const MOTTO: MemberId = MemberId(2);

fn motto(text: &str) -> Vec<(MemberId, Value)> {
    vec![(MOTTO, Value::Unicode(text.into()))]
}

fn make_anywhere(context: &mut Context<'_>) {
    let made = context.create_base_anywhere("Avatar", motto("made"), TIMEOUT_MS, (MADE, NOTE.to_vec()));
    made.unwrap();
}

fn make_beside(context: &mut Context<'_>) {
    let other = Mailbox {
        entity: EntityId(1),
        home: OTHER,
        type_id: AVATAR,
        part: Part::Base,
    };
    let made = context.create_base_beside(other, "Avatar", motto("made"), TIMEOUT_MS, (MADE, NOTE.to_vec()));
    made.unwrap();
}

/// A host whose game creates an entity on request, and an account there.
fn host_with(errand: fn(&mut Context<'_>)) -> (Host, EntityId) {
    let mut host = Host::of(Game {
        errand: Some(errand),
        ..Game::default()
    });
    host.role(BaseInput::Map(map()));
    let entity = host.begin_account(5);
    (host, entity)
}

/// The director names an owner for the entity that was asked for.
fn name_owner(host: &mut Host, on: OwnerId) {
    let (entity, number, inquiry) = host.asked.pop_front().expect("the director is asked");
    let Inquiry::Place(new) = inquiry else {
        panic!("{inquiry:?}")
    };
    host.inquired(entity, number, Answer::Place { on, new });
    host.settle();
}

/// The requests that left for the other owner, with the numbers of their calls.
fn requests(host: &mut Host) -> Vec<(CallNumber, RequestedBase)> {
    let calls = host
        .calls_to_other()
        .into_iter()
        .filter_map(|(number, call)| match call {
            Call::CreateBase(wanted) => Some((number, *wanted)),
            _ => None,
        });
    calls.collect()
}

fn created(wanted: &RequestedBase) -> Call {
    Call::Created {
        by: wanted.by,
        of: wanted.of,
        created: Ok((EntityId(70_000), wanted.type_id)),
    }
}

/// The base parts of avatars that were created here, by the log.
fn avatars(host: &Host) -> usize {
    let events = host.batches().flat_map(|batch| batch.events);
    let made = |body: &Body| matches!(body, Body::BaseCreated(creation) if creation.type_id == AVATAR);
    events.filter(|event| made(&event.body)).count()
}

#[test]
fn the_owner_that_the_director_names_is_called_until_it_answers() {
    let (mut host, entity) = host_with(make_anywhere);
    host.call(entity, RUN_ERRAND);
    host.settle();
    name_owner(&mut host, OTHER);
    let first = requests(&mut host);
    let [(number, wanted)] = &first[..] else {
        panic!("{first:?}")
    };
    assert_eq!((wanted.by, wanted.type_id), (entity, AVATAR));
    assert_eq!(wanted.properties, motto("made"));
    // The call survives the process, with its number.
    host.crash();
    let again = requests(&mut host);
    assert!(again.contains(&(*number, wanted.clone())), "{again:?}");
    host.receive(call_of_other(1, created(wanted)));
    host.settle();
    // The answer again, to this process and the next.
    host.receive(call_of_other(1, created(wanted)));
    host.crash();
    host.receive(call_of_other(1, created(wanted)));
    host.pass(2 * TIMEOUT_MS);
    assert_eq!(trail(&host, entity), "brer");
    assert_eq!(avatars(&host), 0);
}

#[test]
fn an_entity_is_created_beside_another_without_the_director() {
    let (mut host, entity) = host_with(make_beside);
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert!(host.asked.is_empty());
    let sent = requests(&mut host);
    let [(_, wanted)] = &sent[..] else { panic!("{sent:?}") };
    let refused = Call::Created {
        by: wanted.by,
        of: wanted.of,
        created: Err("it is a cell".into()),
    };
    host.receive(call_of_other(1, refused));
    host.settle();
    assert_eq!(trail(&host, entity), "bn");
}

#[test]
fn an_entity_is_created_here_if_this_owner_is_named() {
    let (mut host, entity) = host_with(make_anywhere);
    host.call(entity, RUN_ERRAND);
    host.settle();
    name_owner(&mut host, BASE);
    assert_eq!((trail(&host, entity).as_str(), avatars(&host)), ("be", 1));
    host.crash();
    host.pass(2 * TIMEOUT_MS);
    assert_eq!((trail(&host, entity).as_str(), avatars(&host)), ("ber", 1));
}

#[test]
fn a_request_is_executed_once_and_answered() {
    let mut host = Host::new();
    let wanted = RequestedBase {
        by: EntityId(9),
        of: CallNumber(33),
        type_id: AVATAR,
        properties: motto("from afar"),
    };
    let request = || call_of_other(1, Call::CreateBase(Box::new(wanted.clone())));
    host.receive(request());
    host.settle();
    host.receive(request());
    host.crash();
    host.receive(request());
    host.settle();
    assert_eq!(avatars(&host), 1);
    let answers = host.calls_to_other();
    let (number, answer) = answers.first().expect("it is answered");
    // Until it is confirmed, it comes again under its number.
    assert!(answers.iter().all(|other| *other == (*number, answer.clone())));
    let Call::Created { by, of, created } = answer else {
        panic!("{answer:?}")
    };
    assert_eq!((*by, *of), (wanted.by, wanted.of));
    let (entity, type_id) = created.as_ref().expect("it is created");
    assert_eq!(*type_id, AVATAR);
    assert_eq!(host.image(*entity).properties[&MOTTO], motto("from afar")[0].1);

    let unknown = RequestedBase {
        type_id: TypeId(99),
        ..wanted
    };
    host.sent.clear();
    host.receive(call_of_other(2, Call::CreateBase(Box::new(unknown))));
    host.settle();
    let answers = host.calls_to_other();
    let is_refusal = |call: &Call| matches!(call, Call::Created { created: Err(why), .. } if why.contains("99"));
    assert!(answers.iter().any(|(_, call)| is_refusal(call)), "{answers:?}");
}

#[test]
fn a_wait_that_is_over_creates_nothing() {
    let (mut host, entity) = host_with(make_anywhere);
    host.call(entity, RUN_ERRAND);
    host.pass(TIMEOUT_MS + 1_000);
    assert_eq!(trail(&host, entity), "bt");
    name_owner(&mut host, OTHER);
    assert_eq!(requests(&mut host), []);
}

#[test]
fn values_that_do_not_fit_are_denied_at_once() {
    let (mut host, entity) = host_with(|context| {
        let wrong = vec![(MOTTO, Value::UInt(1))];
        let denied = context.create_base_anywhere("Avatar", wrong, TIMEOUT_MS, (MADE, Vec::new()));
        assert!(matches!(denied, Err(Denied::Mismatch { .. })), "{denied:?}");
        let denied = context.create_base_anywhere("Nobody", Vec::new(), TIMEOUT_MS, (MADE, Vec::new()));
        assert!(matches!(denied, Err(Denied::Unknown { .. })), "{denied:?}");
    });
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert!(host.asked.is_empty());
    let new = NewBase {
        type_id: AVATAR,
        properties: Vec::new(),
    };
    let (number, on) = (CallNumber(1), OTHER);
    // An answer that nobody waits for.
    host.inquired(entity, number, Answer::Place { on, new });
    assert_eq!(requests(&mut host), []);
}
