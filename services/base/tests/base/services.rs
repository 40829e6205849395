//! Services: the fragments of a base owner.

use std::sync::Arc;

use annals_base::BaseInput;
use annals_def::{Argument, DataType, Method, Schema, Service, Value};
use annals_event::{Body, Call, GlobalScope, Link, Subject};
use annals_ids::{Address, CallNumber, EntityId, Epoch, Mailbox, MemberId, OwnerId, Part};
use annals_node::{Context, Denied, Request};
use annals_wire::{
    SpaceMap,
    bus::{CallMessage, Envelope, Message},
};

use crate::{
    game::{self, Game, MADE},
    host::{BASE, Host, OTHER, map},
};

const RUN_ERRAND: MemberId = MemberId(17);
const SERVICE: &str = "Adviser";
const CALLER: EntityId = EntityId(70);

fn service(name: &str) -> Service {
    Service {
        name: name.into(),
        methods: vec![Method::new("advise", vec![Argument::new("number", DataType::UInt32)])],
    }
}

fn schema(services: &[&str]) -> Arc<Schema> {
    let types = game::schema().types().to_vec();
    let services = services.iter().map(|name| service(name)).collect();
    Arc::new(Schema::new(types, services, Vec::new()))
}

fn host(errand: fn(&mut Context<'_>)) -> Host {
    let game = Game {
        errand: Some(errand),
        ..Game::default()
    };
    Host::of_schema(schema(&["Mint", SERVICE]), game)
}

fn fragment(name: &str, owner: OwnerId) -> EntityId {
    EntityId::of_fragment(owner, service(name).slot())
}

fn fragments(host: &Host) -> Vec<EntityId> {
    let entities = host.owner.cx().state().entities.keys().copied();
    entities.filter(|entity| entity.fragment().is_some()).collect()
}

/// A call of an entity on the other base.
fn advise(host: &mut Host, to: EntityId, number: u64) {
    let call = CallMessage {
        link: Link {
            from: Address::Base(CALLER),
            to: Address::Base(to),
        },
        from_home: OTHER,
        to_home: BASE,
        number: CallNumber(number),
        is_oldest: true,
        trace: [0; 16],
        call: Call::Method {
            method: MemberId(0),
            args: vec![Value::UInt(number)],
            wants_reply: false,
        },
    };
    host.receive(Envelope {
        from: OTHER,
        epoch: Epoch(1),
        message: Message::Call(call),
    });
    host.settle();
}

fn advised(host: &Host) -> Option<Value> {
    let data = host.owner.cx().global_data(GlobalScope::Bases)?;
    data.get("advised").cloned()
}

/// Begins an account, and runs the errand.
fn run_errand(host: &mut Host) -> EntityId {
    let entity = host.begin_account(5);
    host.call(entity, RUN_ERRAND);
    host.settle();
    entity
}

#[test]
fn a_base_owner_has_one_fragment_of_each_service() {
    let mut host = host(|_| {});
    assert_eq!(fragments(&host), []);
    host.role(BaseInput::Map(map()));
    host.settle();
    let mut expected = vec![fragment("Mint", BASE), fragment(SERVICE, BASE)];
    expected.sort();
    assert_eq!(fragments(&host), expected);
    host.role(BaseInput::Map(SpaceMap { version: 2, ..map() }));
    host.settle();
    host.crash();
    assert_eq!(fragments(&host), expected, "also after a take-over");
    let begun = host.batches().flat_map(|batch| batch.events);
    let begun = begun.filter(|event| matches!(event.body, Body::BaseCreated(_))).count();
    assert_eq!(begun, expected.len(), "each began once");
    let schema = Arc::clone(&host.schema);
    let of_type = schema.fragments_of(SERVICE).expect("it has one");
    assert_eq!(host.image(fragment(SERVICE, BASE)).type_id, of_type.id);
    assert_eq!(of_type.name, SERVICE);
}

#[test]
fn a_fragment_executes_a_call_once_even_before_the_map() {
    let mut host = host(|_| {});
    let called = fragment(SERVICE, BASE);
    advise(&mut host, called, 1);
    assert_eq!(advised(&host), Some(Value::UInt(1)));
    assert_eq!(fragments(&host), [called], "only the one that was called has begun");
    advise(&mut host, called, 2);
    assert_eq!(advised(&host), Some(Value::UInt(2)));
    host.crash();
    host.settle();
    let (before, last) = (host.batches().count(), advised(&host));
    for repeated in [1, 2] {
        advise(&mut host, called, repeated);
    }
    assert_eq!(advised(&host), last);
    assert_eq!(host.batches().count(), before, "a repeated call is not executed again");
    assert_eq!(host.folded().entities, host.owner.cx().state().entities);
}

#[test]
fn calls_to_what_is_no_fragment_here_are_answered_as_lost() {
    let mut host = host(|_| {});
    for to in [fragment("Unlisted", BASE), fragment(SERVICE, OTHER)] {
        host.sent.clear();
        advise(&mut host, to, 1);
        let gone =
            |(to, envelope): &(OwnerId, Envelope)| *to == OTHER && matches!(envelope.message, Message::Gone { .. });
        assert_eq!(host.sent.iter().filter(|sent| gone(sent)).count(), 1);
    }
    assert_eq!(fragments(&host), []);
}

#[test]
fn parts_of_a_base_owner_use_its_own_fragment() {
    let mut host = host(|context| {
        for _ in 0..20 {
            let found = context.service(SERVICE).unwrap();
            assert_eq!((found.entity, found.home), (fragment(SERVICE, BASE), BASE));
        }
        let found = context.service(SERVICE).unwrap();
        context.call(found, "advise", vec![Value::UInt(7)]).unwrap();
        let unknown = context.service("Account");
        assert!(matches!(unknown, Err(Denied::NoService { .. })), "{unknown:?}");
    });
    host.role(BaseInput::Map(SpaceMap {
        bases: [BASE, OTHER].into(),
        ..map()
    }));
    run_errand(&mut host);
    assert_eq!(advised(&host), Some(Value::UInt(7)));
}

/// The first fragment that is created calls the other one, which is created for that.
#[test]
fn fragments_may_call_each_other_when_they_are_created() {
    let mut host = host(|_| {});
    host.role(BaseInput::Map(map()));
    host.settle();
    assert_eq!(advised(&host), Some(Value::UInt(5)));
    let begun = host.batches().flat_map(|batch| batch.events);
    let begun = begun.filter(|event| matches!(event.body, Body::BaseCreated(_))).count();
    assert_eq!(begun, 2, "each began once");
}

#[test]
fn a_fragment_can_neither_be_created_nor_ended_by_behaviour() {
    let mut host = host(|context| {
        let created = context.create_base(SERVICE, Vec::new());
        assert!(matches!(created, Err(Denied::Unknown { .. })), "{created:?}");
        let elsewhere = context.create_base_anywhere(SERVICE, Vec::new(), 1_000, (MADE, Vec::new()));
        assert!(matches!(elsewhere, Err(Denied::Unknown { .. })), "{elsewhere:?}");
        let entity = fragment(SERVICE, BASE);
        let from = context.entity();
        let to = Mailbox {
            entity,
            ..context.mailbox(Part::Base)
        };
        for request in [Request::Destroy { entity }, Request::GiveClient { from, to }] {
            let denied = context.request(request);
            assert!(matches!(denied, Err(Denied::Fragment { .. })), "{denied:?}");
        }
        let place = crate::game::PLACE;
        let type_id = context.service(SERVICE).unwrap().type_id;
        let alone = context.create_cell_only(type_id, place, Vec::new());
        assert!(matches!(alone, Err(Denied::CellOnly { .. })), "{alone:?}");
    });
    host.role(BaseInput::Map(map()));
    run_errand(&mut host);
    assert!(fragments(&host).contains(&fragment(SERVICE, BASE)));
}

#[test]
fn nothing_of_a_fragment_has_a_history_number() {
    let mut host = host(|_| {});
    host.role(BaseInput::Map(map()));
    advise(&mut host, fragment(SERVICE, BASE), 1);
    let events = host.batches().flat_map(|batch| batch.events);
    let of_fragments = events.filter(|event| match event.subject {
        Subject::Entity(entity, Part::Base) => entity.fragment().is_some(),
        _ => false,
    });
    // A service that is removed and added again has fragments with the same ids.
    let of_fragments: Vec<_> = of_fragments.collect();
    assert!(of_fragments.len() >= 2, "both have begun");
    assert!(of_fragments.iter().all(|event| event.history.is_none()));
}
