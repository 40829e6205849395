//! A log written under one schema and read under another: it folds to the same state whatever the schema is; the
//! meaning of that state is up to a migration plan.

use std::collections::BTreeMap;

use crate::worlds::{Pair, pair, sample};
use annals_authoring::{Audience, ChangeKind, Class, Diff, Subject, diff};
use annals_def::{EntityType, Located, MethodKind, Schema, Value, check, split_mix};
use annals_event::{
    BaseCreation, Body, Call, Cause, Event, Image, OwnerState, PartImage, Reader, Subject as About,
    latest::value::{put_value, take_value},
};
use annals_ids::{DatabaseId, EntityId, MemberId, OwnerId, Part};

/// Number of schema pairs, and maximum number of edits between them.
const PAIRS: u64 = 400;
const EDITS: u64 = 6;

const ENTITY: EntityId = EntityId(7);

fn with_types(test: impl Fn(&str, &Pair, &Diff, &EntityType, &mut dyn FnMut() -> u64)) {
    for seed in 0..PAIRS {
        let mut dice = split_mix(seed);
        let pair = pair(EDITS, &mut dice);
        let found = diff(&pair.old, &pair.new, &pair.renames);
        let about = format!("seed {seed}\n{}", found.to_text());
        for old in pair.old.types() {
            test(&about, &pair, &found, old, &mut dice);
        }
    }
}

fn event(body: Body) -> Event {
    Event {
        subject: About::Entity(ENTITY, Part::Base),
        cause: Cause(0),
        history: None,
        body,
    }
}

fn on_base(entity_type: &EntityType) -> impl Iterator<Item = &annals_def::Property> {
    entity_type
        .properties
        .iter()
        .filter(|property| property.is_held_by(Part::Base))
}

/// The state of a log in which an entity was created and each of its properties was set.
fn lived(old: &EntityType, dice: &mut dyn FnMut() -> u64) -> (OwnerState, BTreeMap<MemberId, Value>) {
    let mut state = OwnerState::new(OwnerId(1), Part::Base);
    let creation = BaseCreation {
        type_id: old.id,
        database: DatabaseId(0),
        checkout: 0,
        properties: on_base(old)
            .map(|property| (property.index, property.default.clone()))
            .collect(),
        cell_properties: Vec::new(),
    };
    let mut events = vec![event(Body::BaseCreated(Box::new(creation)))];
    let mut held = BTreeMap::new();
    for property in on_base(old) {
        let value = sample(&property.data_type, dice);
        held.insert(property.index, value.clone());
        let (member, change) = (property.index, Located::whole(value));
        events.push(event(Body::Changed { member, change }));
    }
    for event in events {
        let mut bytes = Vec::new();
        event.write(&mut bytes);
        let read = Event::read(&bytes).expect("its own bytes");
        state.apply(&read).expect("it can follow");
    }
    (state, held)
}

/// The image after a round trip through a snapshot.
fn kept(state: &OwnerState) -> Image {
    let mut bytes = Vec::new();
    state.entities[&ENTITY].write(&mut bytes);
    Image::read(&mut Reader::new(&bytes)).expect("its own bytes")
}

/// The diff's classification of a type and its properties.
fn class_of(found: &Diff, new: &EntityType) -> Class {
    let concerns = |subject: &Subject, kind: &ChangeKind| match subject {
        Subject::Types => true,
        Subject::Type(name) => {
            *name == new.name
                && matches!(
                    kind,
                    ChangeKind::PropertiesRenumbered { .. } | ChangeKind::PartsChanged { .. }
                )
        }
        Subject::Property(on, _) => *on == new.name,
        _ => false,
    };
    let changes = found
        .changes
        .iter()
        .filter(|change| concerns(&change.subject, &change.kind));
    changes
        .map(|change| change.effects.of(Audience::Log).class)
        .max()
        .unwrap_or(Class::Unaffected)
}

/// Whether every property of the part exists, fits its type, and can be set.
fn lives(schema: &Schema, image: &Image) -> bool {
    let Some(entity_type) = schema.entity_type(image.type_id) else {
        return false;
    };
    let mut state = OwnerState::new(OwnerId(1), Part::Base);
    state.restore(ENTITY, image.clone());
    on_base(entity_type).all(|property| {
        let fits = image
            .properties
            .get(&property.index)
            .is_some_and(|value| check(&property.data_type, value).is_ok());
        let (member, change) = (property.index, Located::whole(property.default.clone()));
        fits && state.apply(&event(Body::Changed { member, change })).is_ok()
    })
}

#[test]
fn folded_state_migrates_by_its_change_class() {
    with_types(|about, pair, found, old, dice| {
        let (state, held) = lived(old, dice);
        let image = kept(&state);
        assert_eq!(image.properties, held, "the log needs no schema: {about}");
        let converted = found.plan.convert_held(image.type_id, Part::Base, &image.properties);
        let Ok((type_id, properties)) = converted else {
            assert_eq!(found.verdict(Audience::Log), Class::Breaking, "{about}");
            return;
        };
        let properties: Vec<_> = properties.into_iter().collect();
        let after = Image::new(
            type_id,
            image.home,
            &properties,
            PartImage::Base(annals_event::BaseImage::default()),
        );
        assert!(lives(&pair.new, &after), "{about}");
        let new = pair.new.entity_type(type_id).expect("it was converted to it");
        if class_of(found, new) <= Class::Compatible {
            assert_eq!(
                (type_id, &after.properties),
                (image.type_id, &image.properties),
                "{about}"
            );
            assert!(lives(&pair.new, &image), "without a plan: {about}");
        }
        let has_added = found.changes.iter().any(|change| {
            matches!((&change.subject, &change.kind), (Subject::Property(on, name), ChangeKind::PropertyAdded)
                if *on == new.name && new.property_named(name).is_some_and(|property| property.is_held_by(Part::Base)))
        });
        // A missing property is detected, unless another was held under its number.
        if has_added && type_id == image.type_id && held.len() < on_base(new).count() {
            assert!(!lives(&pair.new, &image), "without a plan: {about}");
        }
    });
}

#[test]
fn a_call_in_flight_keeps_its_method_and_arguments() {
    with_types(|about, pair, found, old, dice| {
        for method in &old.base_methods {
            let args: Vec<Value> = method.args.iter().map(|arg| sample(&arg.data_type, dice)).collect();
            let call = Call::Method {
                method: method.index,
                args,
                wants_reply: false,
            };
            let mut bytes = Vec::new();
            call.write(&mut bytes);
            let Call::Method { method: id, args, .. } = Call::read(&mut Reader::new(&bytes)).expect("its own bytes")
            else {
                panic!("another call: {about}");
            };
            let Ok((to, converted)) = found.plan.convert_call(old.id, MethodKind::Base, id, &args) else {
                assert!(found.verdict(Audience::Log) >= Class::NeedsMigration, "{about}");
                continue;
            };
            let mut types = pair.new.types().iter();
            let reached = types.find_map(|new| new.base_method_named(&method.name));
            let reached = reached.expect("names are used once");
            assert_eq!(reached.index, to, "{about}");
            assert_eq!(reached.args.len(), converted.len(), "{about}");
        }
    });
}

#[test]
fn logged_values_are_self_describing() {
    with_types(|about, _, _, old, dice| {
        for property in &old.properties {
            let value = sample(&property.data_type, dice);
            let mut bytes = Vec::new();
            put_value(&mut bytes, &value);
            assert_eq!(take_value(&mut Reader::new(&bytes)), Ok(value), "{about}");
        }
    });
}
