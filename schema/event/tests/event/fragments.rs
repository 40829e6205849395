//! Fragments of services when the definitions change: those of a removed service end, and the calls that they made stay.

use annals_def::{EntityType, Method, Plan, Renames, Schema, Service};
use annals_event::{BaseCreation, Body, Call, Cause, Event, Migration, OwnerState, Receivers, Subject};
use annals_ids::{Address, CallNumber, DatabaseId, EntityId, MemberId, OwnerId, Part};

const OWNER: OwnerId = OwnerId(3);
const APE: EntityId = EntityId(9);

fn service(name: &str) -> Service {
    Service {
        name: name.into(),
        methods: vec![Method::new("read", Vec::new()), Method::new("write", Vec::new())],
    }
}

fn schema(services: &[&str]) -> Schema {
    let services = services.iter().map(|name| service(name)).collect();
    Schema::new(vec![EntityType::new("Ape")], services, Vec::new())
}

fn fragment(name: &str) -> EntityId {
    EntityId::of_fragment(OWNER, service(name).slot())
}

fn migration(old: &Schema, new: &Schema, receivers: Receivers) -> Migration {
    Migration {
        from: old.fingerprint(),
        to: new.fingerprint(),
        plan: Plan::new(old, new, &Renames::default()),
        receivers,
    }
}

fn apply(state: &mut OwnerState, entity: EntityId, body: Body) {
    let event = Event {
        subject: Subject::Entity(entity, Part::Base),
        cause: Cause(0),
        history: None,
        body,
    };
    state.apply(&event).expect("it can follow");
}

fn begin(state: &mut OwnerState, schema: &Schema, entity: EntityId) {
    let type_id = schema
        .fragment_with_id(entity)
        .map_or(schema.types()[0].id, |found| found.id);
    let creation = BaseCreation {
        type_id,
        database: DatabaseId(0),
        checkout: 0,
        properties: Vec::new(),
        cell_properties: Vec::new(),
    };
    apply(state, entity, Body::BaseCreated(Box::new(creation)));
}

fn call(state: &mut OwnerState, from: EntityId, to: EntityId) {
    let call = Call::Method {
        method: MemberId(1),
        args: Vec::new(),
        wants_reply: false,
    };
    let called = Body::Called {
        to: Address::Base(to),
        home: OWNER,
        number: CallNumber(1),
        call,
    };
    apply(state, from, called);
}

#[test]
fn fragments_of_a_removed_service_end_and_their_calls_stay() {
    let (old, new) = (schema(&["Bank", "Notes", "Quiet"]), schema(&["Notes"]));
    let mut state = OwnerState::new(OWNER, Part::Base);
    for entity in [fragment("Bank"), fragment("Notes"), fragment("Quiet"), APE] {
        begin(&mut state, &old, entity);
    }
    call(&mut state, fragment("Bank"), fragment("Notes"));
    call(&mut state, APE, fragment("Bank"));
    state.schema = old.fingerprint();
    let receivers = [fragment("Bank"), fragment("Notes")];
    let receivers: Receivers = receivers
        .map(|entity| (entity, old.fragment_with_id(entity).map(|found| found.id)))
        .into();
    let changed = migration(&old, &new, receivers).convert(&mut state);
    changed.expect("everything has a counterpart");

    let mut left: Vec<EntityId> = state.entities.keys().copied().collect();
    left.sort();
    assert_eq!(left, [APE, fragment("Notes")]);
    assert_eq!(
        state.entities[&fragment("Notes")].type_id,
        new.fragments_of("Notes").expect("it is listed").id
    );
    let estates: Vec<EntityId> = state.estates.keys().copied().collect();
    let mut expected = vec![fragment("Bank"), fragment("Quiet")];
    expected.sort();
    assert_eq!(estates, expected);
    let unconfirmed = |links: &annals_event::Links, to| links.sent[&Address::Base(to)].unconfirmed.len();
    assert_eq!(unconfirmed(&state.estates[&fragment("Bank")], fragment("Notes")), 1);
    let ape = &state.entities[&APE].links;
    assert_eq!(unconfirmed(ape, fragment("Bank")), 1, "its home answers it as lost");

    // The call arrives, and the service is added again.
    let confirmed = Body::Confirmed {
        to: Address::Base(fragment("Notes")),
        upto: CallNumber(1),
        lost: false,
    };
    apply(&mut state, fragment("Bank"), confirmed);
    assert!(state.estates.contains_key(&fragment("Bank")), "its numbers are kept");
    let changed = migration(&new, &old, Receivers::new()).convert(&mut state);
    changed.expect("everything has a counterpart");
    begin(&mut state, &old, fragment("Bank"));
    assert!(!state.estates.contains_key(&fragment("Bank")));
    let links = state.links(Address::Base(fragment("Bank"))).expect("it is here");
    let next = links.next_call(Address::Base(fragment("Notes")));
    assert_eq!(next, CallNumber(2), "no number is used twice");
}

#[test]
fn a_call_to_a_fragment_that_no_survey_saw_is_converted_by_the_id_of_the_fragment() {
    let mut changed = service("Notes");
    changed.methods.reverse();
    let old = schema(&["Bank", "Notes"]);
    let new = Schema::new(vec![EntityType::new("Ape")], vec![changed], Vec::new());
    let mut state = OwnerState::new(OWNER, Part::Base);
    begin(&mut state, &old, APE);
    call(&mut state, APE, fragment("Notes"));
    call(&mut state, APE, fragment("Bank"));
    state.schema = old.fingerprint();
    let changed = migration(&old, &new, Receivers::new()).convert(&mut state);
    changed.expect("everything has a counterpart");
    let sent = &state.entities[&APE].links.sent;
    let method = |to| match sent[&Address::Base(to)].unconfirmed[&CallNumber(1)] {
        Call::Method { method, .. } => method,
        ref other => panic!("{other:?}"),
    };
    assert_eq!(method(fragment("Notes")), MemberId(0), "write was the second method");
    assert_eq!(method(fragment("Bank")), MemberId(1), "it is never executed");
}
