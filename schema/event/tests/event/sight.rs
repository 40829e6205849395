//! What a cell part's client is shown of other entities: transitions and encodings.

use annals_event::{
    AreaOfInterest, Body, Cause, CellCreation, Event, Image, MANUAL_LIMIT, OwnerState, Place, Reader, SightChange,
    Subject,
};
use annals_ids::{EntityId, OwnerId, Part, TypeId};

const WHO: EntityId = EntityId(1);

fn event(body: Body) -> Event {
    Event {
        subject: Subject::Entity(WHO, Part::Cell),
        cause: Cause(0),
        history: None,
        body,
    }
}

fn sighted(change: SightChange) -> Event {
    event(Body::Sighted(change))
}

fn area(radius: f32, hysteresis: f32) -> SightChange {
    SightChange::Area(Some(AreaOfInterest { radius, hysteresis }))
}

fn state() -> OwnerState {
    let mut state = OwnerState::new(OwnerId(7), Part::Cell);
    let creation = CellCreation {
        entity: WHO,
        type_id: TypeId(2),
        home: OwnerId(8),
        based: true,
        place: Place::default(),
        properties: Vec::new(),
        client: None,
        former: None,
    };
    let created = event(Body::CellCreated(Box::new(creation)));
    state.apply(&created).expect("it is the first");
    state
}

fn bytes(state: &OwnerState) -> Vec<u8> {
    let mut bytes = Vec::new();
    state.entities[&WHO].write(&mut bytes);
    bytes
}

#[test]
fn changes_round_trip_and_invalid_ones_are_refused() {
    let read = |change| {
        let event = sighted(change);
        let mut bytes = Vec::new();
        event.write(&mut bytes);
        Event::read(&bytes).map(|read| assert_eq!(read, event))
    };
    let named = EntityId(u64::MAX);
    for sound in [
        area(0.0, 500.0),
        SightChange::Area(None),
        SightChange::Added(named),
        SightChange::Removed(named),
    ] {
        read(sound).expect("the call is permitted");
    }
    for unsound in [
        area(-0.0, 5.0),
        area(-1.0, 5.0),
        area(1.0, f32::INFINITY),
        area(f32::NAN, 0.0),
    ] {
        assert!(read(unsound).is_err(), "{unsound:?}");
    }
}

#[test]
fn manual_views_are_kept_until_removed_and_limited() {
    let mut state = state();
    let plain = bytes(&state);
    let (one, other) = (EntityId(5), EntityId(3));
    for change in [area(30.0, 2.0), SightChange::Added(one), SightChange::Added(other)] {
        state.apply(&sighted(change)).expect("the call is permitted");
    }
    let again = state.clone();
    for impossible in [SightChange::Added(one), SightChange::Removed(EntityId(9))] {
        assert!(state.apply(&sighted(impossible)).is_err(), "{impossible:?}");
        assert_eq!(state.entities, again.entities);
    }
    let sight = &state.entities[&WHO].cell().expect("it is a cell part").sight;
    assert!(sight.manual.iter().eq(&[other, one]));
    let written = bytes(&state);
    let read = Image::read(&mut Reader::new(&written)).expect("what was written");
    assert_eq!(read, state.entities[&WHO]);
    assert_ne!(state.hash(), self::state().hash(), "the hash covers it");
    // Unchanged defaults take no bytes.
    for change in [
        SightChange::Area(None),
        SightChange::Removed(one),
        SightChange::Removed(other),
    ] {
        state.apply(&sighted(change)).expect("the call is permitted");
    }
    assert_eq!(bytes(&state), plain);
    for entity in 0..MANUAL_LIMIT as u64 {
        let added = sighted(SightChange::Added(EntityId(entity + 10)));
        state.apply(&added).expect("there is room");
    }
    assert!(state.apply(&sighted(SightChange::Added(one))).is_err());
    Image::read(&mut Reader::new(&bytes(&state))).expect("the maximum number");
}

#[test]
fn an_image_has_one_encoding() {
    let mut state = state();
    let plain = bytes(&state);
    state
        .apply(&sighted(SightChange::Added(EntityId(5))))
        .expect("the call is permitted");
    let some = bytes(&state);
    let differs = plain.iter().zip(&some).position(|(plain, some)| plain != some);
    let kind = differs.expect("the kind of part");
    assert_eq!((plain[kind], some[kind]), (1, 9));
    // No area, one entity, which is 5.
    assert_eq!(some[plain.len()..], [0, 1, 5]);
    let is_read = |bytes: &[u8]| {
        let mut reader = Reader::new(bytes);
        Image::read(&mut reader).is_ok_and(|_| reader.finish("end").is_ok())
    };
    assert!(is_read(&some));
    let with = |tail: &[u8]| {
        let mut bytes = some[..plain.len()].to_vec();
        bytes.extend(tail);
        bytes
    };
    assert!(is_read(&with(&[0, 2, 3, 5])));
    assert!(!is_read(&with(&[0, 2, 5, 3])), "they ascend");
    assert!(!is_read(&with(&[0, 2, 5, 5])), "each is there once");
    assert!(!is_read(&with(&[0, 0])), "nothing, and the form for something");
}
