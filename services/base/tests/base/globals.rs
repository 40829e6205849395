//! Global data and global bases, as one base owner handles them (rules R1 to R4).

use annals_base::BaseInput;
use annals_def::Value;
use annals_event::{
    Body, Call, GLOBAL_KEY_BYTES, GLOBAL_KEYS, GLOBAL_VALUE_BYTES, GlobalData, GlobalEntry, GlobalScope, GlobalVersion,
    Link, Registration, latest::value::MAX_DEPTH,
};
use annals_ids::{Address, CallNumber, EntityId, Epoch, Mailbox, MemberId, OwnerId, Part};
use annals_node::{Caller, Context, Denied, Request};
use annals_wire::{
    SpaceMap,
    bus::{Envelope, GlobalMessage, Message},
};

use crate::{
    game::{ACCOUNT, Game, MADE, NOTE, TIMEOUT_MS},
    host::{BASE, CELL, Host, OTHER, call_of_other, map},
    lifecycle::trail,
};

const LEAVE: MemberId = MemberId(3);
const RUN_ERRAND: MemberId = MemberId(17);
const NEST: &str = "nest";

fn register(context: &mut Context<'_>) {
    let asked = context.register_globally(NEST, TIMEOUT_MS, (MADE, NOTE.to_vec()));
    asked.unwrap();
}

fn write(context: &mut Context<'_>) {
    context.set_global(GlobalScope::Realm, "season", Value::Int(4)).unwrap();
    assert_eq!(context.global(GlobalScope::Realm, "season"), Some(&Value::Int(4)));
    context.set_global(GlobalScope::Bases, "shards", Value::Int(2)).unwrap();
}

/// A map with another base, on which the realm began.
fn with_other(version: u64) -> SpaceMap {
    SpaceMap {
        version,
        bootstrap: Some(OTHER),
        bases: [BASE, OTHER].into(),
        ..map()
    }
}

/// A host whose game does this on request, and two accounts there.
fn host_with(errand: fn(&mut Context<'_>), map: SpaceMap) -> (Host, [EntityId; 2]) {
    let mut host = Host::of(Game {
        errand: Some(errand),
        follows: true,
        ..Game::default()
    });
    host.role(BaseInput::Map(map));
    let entities = [5, 6].map(|database| host.begin_account(database));
    (host, entities)
}

fn account(entity: EntityId, home: OwnerId) -> Mailbox {
    Mailbox {
        entity,
        home,
        type_id: ACCOUNT,
        part: Part::Base,
    }
}

fn from_other(message: Message) -> Envelope {
    Envelope {
        from: OTHER,
        epoch: Epoch(1),
        message,
    }
}

/// The calls that left for the other base.
fn calls(host: &mut Host) -> Vec<Call> {
    let sent = host.sent.drain(..).filter(|(to, _)| *to == OTHER);
    let calls = sent.filter_map(|(_, envelope)| match envelope.message {
        Message::Call(message) => Some(message.call),
        _ => None,
    });
    calls.collect()
}

/// The messages about global data that were sent, with their receivers.
fn exchanged(host: &mut Host) -> Vec<(OwnerId, GlobalScope, GlobalMessage)> {
    let sent = host.sent.drain(..);
    let messages = sent.filter_map(|(to, envelope)| match envelope.message {
        Message::Global(scope, message) => Some((to, scope, message)),
        _ => None,
    });
    messages.collect()
}

fn entry(key: &str, stamp: u64, value: Option<Value>) -> GlobalEntry {
    GlobalEntry {
        key: key.to_owned(),
        version: GlobalVersion { stamp, by: OTHER },
        value,
    }
}

fn data(host: &Host, scope: GlobalScope) -> GlobalData {
    host.owner.cx().global_data(scope).cloned().unwrap_or_default()
}

#[test]
fn one_entity_at_a_time_is_registered_under_a_key() {
    let (mut host, [first, second]) = host_with(register, map());
    host.call(first, RUN_ERRAND);
    host.settle();
    host.call_numbered(second, RUN_ERRAND, CallNumber(1));
    host.settle();
    // Both follow: each sees the registration.
    assert_eq!(trail(&host, first), "bGv");
    assert_eq!(trail(&host, second), "bvX");
    assert_eq!(
        data(&host, GlobalScope::Registry).mailbox(NEST),
        Some(account(first, BASE))
    );

    // The same entity again.
    host.call_again(first, RUN_ERRAND);
    host.settle();
    assert!(trail(&host, first).ends_with('G'));

    host.crash();
    assert_eq!(
        data(&host, GlobalScope::Registry).mailbox(NEST),
        Some(account(first, BASE))
    );
    host.call_numbered(first, LEAVE, CallNumber(3));
    host.settle();
    assert_eq!(data(&host, GlobalScope::Registry).mailbox(NEST), None);
    host.call_again(second, RUN_ERRAND);
    host.settle();
    assert_eq!(
        data(&host, GlobalScope::Registry).mailbox(NEST),
        Some(account(second, BASE))
    );
    assert!(trail(&host, second).ends_with("vGv"));
    assert_eq!(host.folded().globals, host.owner.state().globals);
}

#[test]
fn the_owner_on_which_the_realm_began_keeps_the_registry() {
    let (mut host, [entity, _]) = host_with(register, with_other(1));
    host.call(entity, RUN_ERRAND);
    host.settle();
    let sent = calls(&mut host);
    let [Call::Register { by, of, key, type_id }] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!((*by, key.as_str(), *type_id), (entity, NEST, ACCOUNT));

    let value = Value::Mailbox(Some(account(entity, BASE)));
    let outcome = Registration::Done(entry(NEST, 7, Some(value)));
    let (by, of) = (*by, *of);
    host.receive(call_of_other(1, Call::Registered { by, of, outcome }));
    host.settle();
    assert_eq!(trail(&host, entity), "bGv");
    assert_eq!(
        data(&host, GlobalScope::Registry).mailbox(NEST),
        Some(account(entity, BASE))
    );

    host.sent.clear();
    host.call_again(entity, LEAVE);
    host.settle();
    let ended = Call::Deregister {
        entity,
        key: NEST.to_owned(),
    };
    assert_eq!(calls(&mut host), std::slice::from_ref(&ended));
    // It is asked once, whatever time passes, and again by the next process.
    host.pass(3_000);
    let events = |host: &Host| host.batches().flat_map(|batch| batch.events).collect::<Vec<_>>();
    let asked = |host: &Host| {
        let events = events(host).into_iter();
        events
            .filter(|event| matches!(&event.body, Body::Called { call, .. } if *call == ended))
            .count()
    };
    assert_eq!(asked(&host), 1);
    host.receive(from_other(Message::Global(
        GlobalScope::Registry,
        GlobalMessage::Entries(vec![entry(NEST, 8, None)]),
    )));
    host.pass(3_000);
    assert_eq!(asked(&host), 1);
    assert_eq!(data(&host, GlobalScope::Registry).mailbox(NEST), None);
}

#[test]
fn a_follower_that_was_just_created_is_notified_of_the_next_change() {
    let create_between = |context: &mut Context<'_>| {
        write(context);
        context.create_base("Account", Vec::new()).unwrap();
        context.remove_global(GlobalScope::Realm, "season").unwrap();
    };
    let (mut host, [entity, _]) = host_with(create_between, map());
    host.call(entity, RUN_ERRAND);
    host.settle();
    let newest = host.owner.state().entities.keys().next_back().copied().unwrap();
    assert_eq!(trail(&host, entity), "bvvv");
    // Notices are given after behaviour has run.
    assert_eq!(trail(&host, newest), "bvvv");
}

#[test]
fn nothing_is_logged_that_cannot_be_read() {
    let (mut host, [entity, _]) = host_with(
        |context| {
            let entity = context.entity();
            for key in [String::new(), "a".repeat(GLOBAL_KEY_BYTES + 1)] {
                let number = CallNumber(7);
                let deregistration = Request::Deregister {
                    entity,
                    key: key.clone(),
                };
                for request in [Request::Register { entity, number, key }, deregistration] {
                    let denied = context.request(request);
                    assert!(matches!(denied, Err(Denied::GlobalKey { .. })), "{denied:?}");
                }
            }
            // No entity waits under this number.
            let (number, key) = (CallNumber(u64::MAX), NEST.to_owned());
            context.request(Request::Register { entity, number, key }).unwrap();
            let caller = Caller {
                link: Link {
                    from: Address::Base(EntityId(1)),
                    to: Address::Base(entity),
                },
                home: OTHER,
                number: CallNumber(1),
                wants_reply: true,
                method: None,
            };
            let deep = (0..=MAX_DEPTH).fold(Value::Int(1), |inner, _| Value::Sequence(vec![inner]));
            context.answer(&caller, Ok(vec![deep]));
        },
        with_other(1),
    );
    host.call(entity, RUN_ERRAND);
    host.settle();
    let sent = calls(&mut host);
    let [Call::Reply { outcome, .. }] = &sent[..] else {
        panic!("{sent:?}")
    };
    let why = outcome.as_ref().unwrap_err().to_string();
    assert!(why.contains("nested deeper"), "{why}");
    assert_eq!(host.folded().tail, host.owner.state().tail);
}

fn register_and_deregister(context: &mut Context<'_>) {
    register(context);
    context.deregister_globally(NEST).unwrap();
}

#[test]
fn a_registration_is_ended_on_request_before_its_answer_is_known() {
    let (mut host, [entity, _]) = host_with(register_and_deregister, with_other(1));
    host.call(entity, RUN_ERRAND);
    host.settle();
    let sent = calls(&mut host);
    let [Call::Register { .. }, Call::Deregister { entity: ended, key }] = &sent[..] else {
        panic!("{sent:?}")
    };
    assert_eq!((*ended, key.as_str()), (entity, NEST));

    let (mut host, [entity, _]) = host_with(register_and_deregister, map());
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert!(trail(&host, entity).contains('G'), "{}", trail(&host, entity));
    assert_eq!(data(&host, GlobalScope::Registry).mailbox(NEST), None);
}

#[test]
fn requests_before_the_first_map_keep_their_order() {
    let mut host = Host::of(Game {
        errand: Some(|context| {
            register_and_deregister(context);
            register(context);
        }),
        ..Game::default()
    });
    let entity = host.begin_account(5);
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert_eq!(calls(&mut host), []);
    host.role(BaseInput::Map(with_other(1)));
    // Before the waiting requests are made.
    host.call_again(entity, RUN_ERRAND);
    host.settle();
    let sent = calls(&mut host);
    let made: String = sent
        .iter()
        .map(|call| match call {
            Call::Register { .. } => 'r',
            Call::Deregister { .. } => 'd',
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(made, "rdrrdr");
}

#[test]
fn a_registration_that_arrives_after_the_end_of_its_entity_is_ended() {
    let (mut host, [entity, _]) = host_with(register, with_other(1));
    host.call(entity, RUN_ERRAND);
    host.call_again(entity, LEAVE);
    host.settle();
    let sent = calls(&mut host);
    let Some(Call::Register { by, of, .. }) = sent.first() else {
        panic!("{sent:?}")
    };
    let value = Value::Mailbox(Some(account(entity, BASE)));
    let outcome = Registration::Done(entry(NEST, 7, Some(value)));
    host.receive(call_of_other(
        1,
        Call::Registered {
            by: *by,
            of: *of,
            outcome,
        },
    ));
    host.settle();
    let ended = calls(&mut host);
    let [Call::Deregister { key, .. }] = &ended[..] else {
        panic!("{ended:?}")
    };
    assert_eq!(key, NEST);
}

#[test]
fn registrations_of_other_owners_are_kept_and_ended_on_request() {
    let (mut host, _) = host_with(register, map());
    let registration = |by: u64, number: u64| {
        call_of_other(
            number,
            Call::Register {
                by: EntityId(by),
                of: CallNumber(33),
                key: NEST.to_owned(),
                type_id: ACCOUNT,
            },
        )
    };
    host.receive(registration(70_000, 1));
    host.receive(registration(80_000, 2));
    host.settle();
    let outcomes: Vec<_> = calls(&mut host)
        .into_iter()
        .filter_map(|call| match call {
            Call::Registered { outcome, .. } => Some(outcome),
            _ => None,
        })
        .collect();
    let holder = account(EntityId(70_000), OTHER);
    let [Registration::Done(done), Registration::Taken(by)] = &outcomes[..] else {
        panic!("{outcomes:?}")
    };
    assert_eq!((done.mailbox(), *by), (Some(holder), holder));

    let end = |entity: u64| Call::Deregister {
        entity: EntityId(entity),
        key: NEST.to_owned(),
    };
    host.receive(call_of_other(3, end(80_000)));
    assert_eq!(data(&host, GlobalScope::Registry).mailbox(NEST), Some(holder));
    host.receive(call_of_other(4, end(70_000)));
    assert_eq!(data(&host, GlobalScope::Registry).mailbox(NEST), None);
    host.receive(registration(80_000, 5));
    let holder = data(&host, GlobalScope::Registry).mailbox(NEST);
    assert_eq!(holder, Some(account(EntityId(80_000), OTHER)));
}

#[test]
fn what_is_written_reaches_the_owners_of_its_scope_at_once() {
    let (mut host, [entity, _]) = host_with(write, with_other(1));
    host.sent.clear();
    host.call(entity, RUN_ERRAND);
    host.settle();
    let sent = exchanged(&mut host);
    let receivers = |scope| {
        let of_scope = sent.iter().filter(move |(_, of, _)| *of == scope);
        let entries = of_scope.filter(|(_, _, message)| matches!(message, GlobalMessage::Entries(_)));
        entries.map(|(to, ..)| *to).collect::<Vec<_>>()
    };
    assert_eq!(receivers(GlobalScope::Realm), [OTHER, CELL]);
    assert_eq!(receivers(GlobalScope::Bases), [OTHER]);
    // The two writes are seen by both followers.
    assert_eq!(trail(&host, entity), "bvv");
}

#[test]
fn copies_are_compared_once_a_second_and_with_new_owners_at_once() {
    let (mut host, [entity, _]) = host_with(write, map());
    assert_eq!(exchanged(&mut host), [], "an empty copy is not compared");
    host.call(entity, RUN_ERRAND);
    host.settle();
    exchanged(&mut host);
    host.role(BaseInput::Map(with_other(2)));
    host.settle();
    let digest = |host: &Host, scope| GlobalMessage::Digest(data(host, scope).digest());
    let (realm, bases) = (digest(&host, GlobalScope::Realm), digest(&host, GlobalScope::Bases));
    let at_once = [
        (OTHER, GlobalScope::Realm, realm.clone()),
        (OTHER, GlobalScope::Bases, bases.clone()),
    ];
    assert_eq!(exchanged(&mut host), at_once);
    host.pass(10_000);
    let sent = exchanged(&mut host);
    let count = |to, scope, message: &GlobalMessage| {
        let equal = sent.iter().filter(|sent| **sent == (to, scope, message.clone()));
        equal.count()
    };
    assert_eq!(count(OTHER, GlobalScope::Bases, &bases), 10);
    assert_eq!(count(OTHER, GlobalScope::Realm, &realm), 5, "in turn");
    assert_eq!(count(CELL, GlobalScope::Realm, &realm), 5, "in turn");
}

#[test]
fn a_copy_that_differs_receives_what_it_lacks() {
    let (mut host, [entity, _]) = host_with(write, with_other(1));
    host.call(entity, RUN_ERRAND);
    host.settle();
    exchanged(&mut host);
    let scope = GlobalScope::Realm;
    let mut theirs = GlobalData::default();
    theirs.take(entry("moon", 1, Some(Value::Int(1))));
    host.receive(from_other(Message::Global(
        scope,
        GlobalMessage::Digest(theirs.digest()),
    )));
    host.settle();
    let versions = |data: &GlobalData, is_answer| GlobalMessage::Versions {
        have: data.versions(),
        is_answer,
    };
    let ours = data(&host, scope);
    let sent = exchanged(&mut host);
    assert!(sent.contains(&(OTHER, scope, versions(&ours, false))), "{sent:?}");

    host.receive(from_other(Message::Global(scope, versions(&theirs, false))));
    host.settle();
    let sent = exchanged(&mut host);
    let lacked = GlobalMessage::Entries(ours.newer_than(&theirs.versions()));
    assert!(sent.contains(&(OTHER, scope, lacked)), "{sent:?}");
    assert!(sent.contains(&(OTHER, scope, versions(&ours, true))), "{sent:?}");

    host.receive(from_other(Message::Global(
        scope,
        GlobalMessage::Entries(theirs.newer_than(&ours.versions())),
    )));
    host.settle();
    assert_eq!(data(&host, scope).get("moon"), Some(&Value::Int(1)));
    let both = data(&host, scope);
    exchanged(&mut host);
    host.receive(from_other(Message::Global(scope, GlobalMessage::Digest(both.digest()))));
    host.settle();
    assert_eq!(exchanged(&mut host), [], "equal copies need nothing");
    // Data of cells is not for a base.
    let foreign = GlobalMessage::Entries(vec![entry("moon", 9, None)]);
    host.receive(from_other(Message::Global(GlobalScope::Cells, foreign)));
    assert!(data(&host, GlobalScope::Cells).is_empty());
}

#[test]
fn the_higher_version_stays() {
    let (mut host, [entity, _]) = host_with(write, with_other(1));
    let scope = GlobalScope::Realm;
    let receive = |host: &mut Host, stamp, value| {
        let entries = vec![entry("season", stamp, value)];
        host.receive(from_other(Message::Global(scope, GlobalMessage::Entries(entries))));
    };
    let far = 1 << 40;
    receive(&mut host, far, Some(Value::Int(9)));
    receive(&mut host, far - 1, Some(Value::Int(8)));
    assert_eq!(data(&host, scope).get("season"), Some(&Value::Int(9)));
    // What is written here is newer than everything known here, even than what a clock far ahead wrote.
    host.call(entity, RUN_ERRAND);
    assert_eq!(data(&host, scope).get("season"), Some(&Value::Int(4)));
    receive(&mut host, far + 2, None);
    assert_eq!(data(&host, scope).get("season"), None);
    assert_eq!(data(&host, scope).values().count(), 0);
    host.settle();
    host.crash();
    assert_eq!(
        data(&host, scope).version("season").map(|version| version.stamp),
        Some(far + 2)
    );
}

#[test]
fn values_and_keys_that_do_not_fit_are_denied() {
    let (mut host, [entity, _]) = host_with(
        |context| {
            let (realm, cells) = (GlobalScope::Realm, GlobalScope::Cells);
            let value = || Value::Int(1);
            let denied = context.set_global(cells, "a", value());
            assert!(matches!(denied, Err(Denied::GlobalScope { .. })), "{denied:?}");
            let denied = context.set_global(GlobalScope::Registry, "a", value());
            assert!(matches!(denied, Err(Denied::GlobalScope { .. })), "{denied:?}");
            let long = "a".repeat(GLOBAL_KEY_BYTES + 1);
            for key in ["", &long] {
                let denied = context.set_global(realm, key, value());
                assert!(matches!(denied, Err(Denied::GlobalKey { .. })), "{denied:?}");
                let denied = context.register_globally(key, TIMEOUT_MS, (MADE, NOTE.to_vec()));
                assert!(matches!(denied, Err(Denied::GlobalKey { .. })), "{denied:?}");
            }
            let denied = context.set_global(realm, "a", Value::Bytes(vec![0; GLOBAL_VALUE_BYTES]));
            assert!(matches!(denied, Err(Denied::GlobalValue { .. })), "{denied:?}");
            // The log could not be read with it.
            let nested = |depth| (0..depth).fold(value(), |inner, _| Value::Sequence(vec![inner]));
            let denied = context.set_global(realm, "a", nested(MAX_DEPTH + 1));
            assert!(matches!(denied, Err(Denied::GlobalDepth { .. })), "{denied:?}");
            context.set_global(realm, "0", nested(MAX_DEPTH)).unwrap();
            for number in 0..GLOBAL_KEYS {
                context.set_global(realm, &number.to_string(), value()).unwrap();
            }
            context.remove_global(realm, "3").unwrap();
            let denied = context.set_global(realm, "a", value());
            assert!(matches!(denied, Err(Denied::GlobalKeys { .. })), "{denied:?}");
            context.set_global(realm, "3", value()).unwrap();
            assert_eq!(context.globals(realm).count(), GLOBAL_KEYS);
        },
        map(),
    );
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert_eq!(data(&host, GlobalScope::Realm).len(), GLOBAL_KEYS);
    assert_eq!(host.folded().globals, host.owner.state().globals);
}
