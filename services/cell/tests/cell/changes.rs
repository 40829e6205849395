//! Changes of whole properties, parts and slices: of any schema, all the way from behaviour to logs, ghosts and
//! clients.

use std::sync::{Arc, Mutex};

use annals_def::{
    DataType, Dice, Distribution, Edit, Field, FixedDict, Path, Property, Replaced, Schema, Sequence, Value, as_shown,
    generate, generate_type, split_mix,
};
use annals_event::{Body, Event, Subject};
use annals_ids::{EntityId, HistoryNumber, MemberId, Part};
use annals_node::{Context, Denied, MAX_VALUE_BYTES};

use crate::{
    game::{ACT, ALTER, AVATAR, ERRAND, Errand, GhostChange, JUMP, schema_with},
    oracle::check,
    world::{MIDDLE, ROUGH, WEST, World, have},
};

/// The path to all of a property.
const WHOLE: &Path = &Path::WHOLE;

/// The avatars' array of numbers.
const MARKS: MemberId = MemberId(4);

/// Properties of random types that all kinds of observers see, some of them `SendLatestOnly`.
fn random_schema(dice: &mut Dice<'_>) -> Arc<Schema> {
    let distributions = [
        Distribution::AllClients,
        Distribution::AllClients,
        Distribution::OtherClients,
        Distribution::OwnClient,
        Distribution::CellPublicAndOwn,
        Distribution::CellPublic,
        Distribution::CellPrivate,
    ];
    let properties: Vec<Property> = (0..12)
        .map(|i| {
            let data_type = generate_type(4, dice);
            let default = as_shown(generate(&data_type, dice));
            let distribution = distributions[(dice() % distributions.len() as u64) as usize];
            Property {
                default,
                latest_only: dice().is_multiple_of(4),
                ..Property::new(format!("p{i}"), data_type, distribution)
            }
        })
        .collect();
    schema_with(&properties)
}

fn alter(world: &mut World, entity: EntityId) {
    world.call(entity, ACT, vec![Value::UInt(ALTER)]);
}

/// Events logged of the cell part of an entity after this number.
fn changes(world: &World, entity: EntityId, since: Option<HistoryNumber>) -> Vec<Event> {
    let events = world.cells.values().flat_map(crate::process::Process::events);
    let mut events: Vec<Event> = events
        .filter(|event| event.subject == Subject::Entity(entity, Part::Cell) && event.history > since)
        .filter(|event| matches!(event.body, Body::Changed { .. }))
        .collect();
    events.sort_by_key(|event| event.history);
    events
}

#[test]
fn all_copies_are_equal_after_every_change_of_any_schema() {
    let (mut nested, mut slices, mut latest) = (0, 0, 0);
    for seed in 0..12 {
        let mut dice = split_mix(seed);
        let schema = random_schema(&mut dice);
        let mut world = World::of(seed, Arc::clone(&schema));
        let own = world.spawn(AVATAR, 30.0, Some(1));
        world.spawn(AVATAR, 35.0, Some(2));
        world.run(1_500);
        for _ in 0..25 {
            alter(&mut world, own);
            world.run(250);
            check(&world);
        }
        let avatar = schema.entity_type(AVATAR).expect("it exists");
        for event in changes(&world, own, None) {
            let Body::Changed { member, change } = &event.body else {
                continue;
            };
            let property = avatar.property(*member).expect("it exists");
            assert!(
                !property.latest_only || change.change().is_whole(),
                "seed {seed}: {property:?}"
            );
            latest += u64::from(property.latest_only);
            nested += u64::from(!change.change().is_whole());
            slices += u64::from(matches!(change.change().edit, Edit::Splice { .. }));
        }
    }
    assert!(nested > 20 && slices > 10 && latest > 20, "{nested} {slices} {latest}");
}

#[test]
fn all_copies_converge_despite_loss_and_hand_overs() {
    for seed in 100..108 {
        let mut dice = split_mix(seed);
        let mut world = World::of(seed, random_schema(&mut dice));
        let entities = [(30.0, 1), (-5.0, 2), (65.0, 3)].map(|(x, session)| world.spawn(AVATAR, x, Some(session)));
        world.run(1_500);
        world.faults = ROUGH;
        for round in 0..60 {
            for entity in entities {
                alter(&mut world, entity);
            }
            if round % 15 == 7 {
                let x = (dice() % 100) as f32 - 30.0;
                world.call(entities[round % 3], JUMP, vec![Value::Float32(x)]);
            }
            world.run(dice() % 200);
        }
        world.faults = crate::world::CALM;
        world.run(12_000);
        check(&world);
    }
}

#[test]
fn the_game_is_notified_of_changes_on_ghosts_only() {
    let mut depths = [0; 3];
    for seed in 200..206 {
        let mut dice = split_mix(seed);
        let schema = random_schema(&mut dice);
        let avatar = schema.entity_type(AVATAR).expect("it exists").clone();
        let mut world = World::of(seed, Arc::clone(&schema));
        // It is real in the middle, and has a ghost on both sides.
        let entity = world.spawn(AVATAR, 30.0, None);
        world.run(1_500);
        assert_eq!(world.holders(entity), [MIDDLE]);
        for _ in 0..20 {
            let before = world.real(entity).clone();
            alter(&mut world, entity);
            world.run(250);
            let mut wanted: Vec<GhostChange> = Vec::new();
            for event in changes(&world, entity, Some(before.history)) {
                let Body::Changed { member, change } = &event.body else {
                    continue;
                };
                if !avatar.property(*member).expect("it exists").distribution.to_ghosts() {
                    continue;
                }
                let mut held = before.properties[member].clone();
                let replaced = change.make(&mut held).expect("it was made to this");
                depths[match replaced {
                    Replaced::Whole { .. } => 0,
                    Replaced::Nested { .. } => 1,
                    Replaced::Slice { .. } => 2,
                }] += 1;
                wanted.extend(std::iter::repeat_n((entity, *member, replaced, held), 2));
            }
            let notifications =
                std::mem::take(&mut *world.game.ghost_changes.lock().expect("the lock is not poisoned"));
            assert_eq!(notifications, wanted, "seed {seed}");
        }
    }
    assert!(depths.iter().all(|count| *count > 0), "{depths:?}");
}

#[test]
fn a_ghost_that_missed_events_receives_the_differences() {
    let mut world = World::new(300);
    let entity = world.spawn(AVATAR, 30.0, None);
    world.run(1_500);
    world
        .game
        .ghost_changes
        .lock()
        .expect("the lock is not poisoned")
        .clear();
    // More changes than its kept history holds.
    world.cut_off = Some(crate::world::EAST);
    for _ in 0..200 {
        world.call(entity, ACT, vec![Value::UInt(0)]);
        world.run(50);
    }
    let notifications = std::mem::take(&mut *world.game.ghost_changes.lock().expect("the lock is not poisoned"));
    assert!(
        notifications.len() >= 150,
        "the other ghost received {} of them",
        notifications.len()
    );
    world.cut_off = None;
    world.run(5_000);
    let notifications = std::mem::take(&mut *world.game.ghost_changes.lock().expect("the lock is not poisoned"));
    let whole = notifications
        .iter()
        .all(|(_, _, replaced, _)| matches!(replaced, Replaced::Whole { .. }));
    assert!(whole && (1..10).contains(&notifications.len()), "{notifications:?}");
    let strength = &world.real(entity).properties[&MemberId(0)];
    assert_eq!(&notifications.last().expect("an update was sent").3, strength);
    check(&world);
}

/// Runs a closure as behaviour of an entity, and returns its result and the events that it logged.
fn errand<T: Send + 'static>(
    world: &mut World,
    entity: EntityId,
    errand: impl FnOnce(&mut Context<'_>) -> T + Send + 'static,
) -> (T, Vec<Event>) {
    let (result, game) = (Arc::new(Mutex::new(None)), world.game.as_ref());
    let outcome = Arc::clone(&result);
    let errand: Errand =
        Box::new(move |context| *outcome.lock().expect("the lock is not poisoned") = Some(errand(context)));
    *game.errand.lock().expect("the lock is not poisoned") = Some(errand);
    let before = world.real(entity).history;
    world.call(entity, ACT, vec![Value::UInt(ERRAND)]);
    world.run(250);
    let outcome = result.lock().expect("the lock is not poisoned").take();
    (outcome.expect("it was done"), changes(world, entity, Some(before)))
}

fn ints(numbers: &[i64]) -> Vec<Value> {
    numbers.iter().copied().map(Value::Int).collect()
}

#[test]
fn changes_without_effect_are_not_recorded() {
    let mut world = World::new(400);
    let entity = world.spawn(AVATAR, 30.0, None);
    world.run(1_500);
    let (done, logged) = errand(&mut world, entity, |context| {
        context.splice("marks", WHOLE, 0..0, ints(&[1, 2, 3, 4]))?;
        context.append("marks", WHOLE, Value::Int(5))?;
        context.splice("marks", WHOLE, 1..3, Vec::new())?;
        context.splice("marks", WHOLE, 0..1, ints(&[7, 8]))?;
        context.set_at("marks", &Path(vec![0]), Value::Int(6))
    });
    assert_eq!((done, logged.len()), (Ok(()), 5));
    assert_eq!(
        world.real(entity).properties[&MARKS],
        Value::Sequence(ints(&[6, 8, 4, 5]))
    );
    let (done, logged) = errand(&mut world, entity, |context| {
        context.set("marks", Value::Sequence(ints(&[6, 8, 4, 5])))?;
        context.set_at("marks", &Path(vec![1]), Value::Int(8))?;
        context.splice("marks", WHOLE, 2..2, Vec::new())?;
        context.splice("marks", WHOLE, 1..3, ints(&[8, 4]))
    });
    assert_eq!((done, logged), (Ok(()), Vec::new()));
    check(&world);
}

#[test]
fn an_invalid_value_is_refused_and_the_old_value_stays() {
    let mut world = World::new(401);
    let entity = world.spawn(AVATAR, 30.0, None);
    world.run(1_500);
    let (done, _) = errand(&mut world, entity, |context| {
        context.splice("marks", WHOLE, 0..0, ints(&[1, 2]))
    });
    assert_eq!(done, Ok(()));
    let (refused, logged) = errand(&mut world, entity, |context| {
        let long = || Value::Unicode("x".repeat(MAX_VALUE_BYTES));
        [
            context.set("strength", Value::Unicode("much".into())),
            context.set_at("marks", &Path(vec![1]), Value::Int(40_000)),
            context.set_at("marks", &Path(vec![2]), Value::Int(1)),
            context.splice("marks", WHOLE, 1..3, Vec::new()),
            #[expect(clippy::reversed_empty_ranges, reason = "it is to be refused")]
            context.splice("marks", WHOLE, 2..1, Vec::new()),
            context.splice("marks", WHOLE, 0..1, vec![Value::Int(1), Value::Unicode("2".into())]),
            context.append("strength", WHOLE, Value::Int(1)),
            context.set("motto", long()),
            context.set("courage", Value::Int(1)),
        ]
        .map(|done| done.expect_err("it does not fit").to_string())
    });
    let expected = [
        "Avatar.strength: expected INT32, found a unicode string",
        "Avatar.marks[1]: 40000 does not fit INT16, which holds -32768 to 32767",
        "Avatar.marks: invalid path [2]: step 0 is beyond the 2 parts there",
        "Avatar.marks: invalid slice from 1 to 3: the array at [] has 2 elements",
        "Avatar.marks: invalid slice from 2 to 1: the array at [] has 2 elements",
        "Avatar.marks: at [1]: expected INT16, found a unicode string",
        "Avatar.strength: invalid path [] for a slice: found INT32, but only elements of an ARRAY can be inserted, \
         removed or replaced",
        "Avatar.motto would take 2097157 bytes; the limit is 2097152: split it, or keep it elsewhere and store a \
         reference",
        "Avatar has no property courage",
    ];
    assert_eq!(refused, expected);
    assert_eq!(logged, Vec::new());
    assert_eq!(world.real(entity).properties[&MARKS], Value::Sequence(ints(&[1, 2])));
}

#[test]
fn small_changes_cannot_exceed_the_size_limit() {
    let texts = DataType::Array(Arc::new(Sequence::of(DataType::String)));
    let item = FixedDict::of(vec![Field::of("texts", texts), Field::of("last", DataType::String)]);
    let log = Property::new("log", DataType::FixedDict(Arc::new(item)), Distribution::AllClients);
    let mut world = World::of(402, schema_with(&[log]));
    let entity = world.spawn(AVATAR, 30.0, None);
    world.run(1_500);
    let text = |length| Value::Bytes(vec![b'x'; length]);
    let (texts, last) = (Path(vec![0]), Path(vec![1]));
    for room in [0, 600_000, 600_000, 600_000] {
        let path = texts.clone();
        let (done, _) = errand(&mut world, entity, move |context| {
            context.append("log", &path, text(room))
        });
        assert_eq!(done, Ok(()));
    }
    let (done, _) = errand(&mut world, entity, move |context| {
        let too_large = |denied: Result<(), Denied>| matches!(denied, Err(Denied::TooLarge { .. }));
        assert!(too_large(context.append("log", &texts, text(400_000))));
        assert!(too_large(context.set_at("log", &last, text(400_000))));
        assert!(too_large(context.splice(
            "log",
            &texts,
            0..1,
            vec![text(200_000), text(200_000)]
        )));
        // There is room for as much as is replaced.
        context.splice("log", &texts, 1..2, vec![text(300_000), text(200_000)])?;
        context.set_at("log", &last, text(90_000))
    });
    assert_eq!(done, Ok(()));
    check(&world);
}

#[test]
fn a_nested_change_of_a_send_latest_only_property_sends_the_whole() {
    let texts = DataType::Array(Arc::new(Sequence::of(DataType::String)));
    let news = Property {
        latest_only: true,
        ..Property::new("news", texts, Distribution::AllClients)
    };
    let mut world = World::of(403, schema_with(&[news]));
    let entity = world.spawn(AVATAR, 30.0, Some(1));
    world.run(1_500);
    let (done, logged) = errand(&mut world, entity, |context| {
        context.append("news", WHOLE, Value::string("first"))?;
        context.append("news", WHOLE, Value::string("second"))?;
        context.set_at("news", &Path(vec![0]), Value::string("1st"))?;
        context.splice("news", WHOLE, 0..1, Vec::new())
    });
    assert_eq!(done, Ok(()));
    let values = logged.iter().map(|event| match &event.body {
        Body::Changed { change, .. } if change.change().is_whole() => change.change().edit.clone(),
        other => panic!("not the whole: {other:?}"),
    });
    let texts = |texts: &[&str]| Edit::Set(Value::Sequence(texts.iter().map(|text| Value::string(text)).collect()));
    assert_eq!(
        values.collect::<Vec<_>>(),
        [
            texts(&["first"]),
            texts(&["first", "second"]),
            texts(&["1st", "second"]),
            texts(&["second"])
        ]
    );
    check(&world);
}

/// A schema whose avatars have a private array `trail` that is temporary, and two properties that are listed as
/// temporary, but stored or shown to others.
fn temporary_schema() -> Arc<Schema> {
    let numbers = || DataType::Array(Arc::new(Sequence::of(DataType::Int16)));
    let stored = Property {
        persistent: true,
        ..Property::new("stored", DataType::Int16, Distribution::CellPrivate)
    };
    let more = [
        Property::new("trail", numbers(), Distribution::CellPrivate),
        Property::new("seen", DataType::Int16, Distribution::CellPublic),
        stored,
    ];
    let mut types = schema_with(&more).types().to_vec();
    types[0].temp_properties = ["trail", "seen", "stored", "socket"].map(str::to_owned).to_vec();
    Arc::new(Schema::new(types, Vec::new(), Vec::new()))
}

#[test]
fn a_temporary_property_is_neither_logged_nor_handed_over_nor_taken_over() {
    let mut world = World::of(404, temporary_schema());
    let entity = world.spawn(AVATAR, -30.0, Some(1));
    world.run(1_500);
    let avatar = temporary_schema().types()[0].clone();
    let logged = |world: &World, name: &str| {
        let index = avatar.property_named(name).expect("it is declared").index;
        let events = world.cells.values().flat_map(crate::process::Process::events);
        let is_of = |event: &Event| matches!(&event.body, Body::Changed { member, .. } if *member == index);
        events.filter(is_of).count()
    };
    let set = |world: &mut World| {
        let (done, _) = errand(world, entity, |context| {
            context.set("trail", Value::Sequence(ints(&[1, 2])))?;
            context.append("trail", WHOLE, Value::Int(3))?;
            context.set_at("trail", &Path(vec![0]), Value::Int(7))?;
            let mismatch = context.set("trail", Value::Int(1));
            assert!(matches!(mismatch, Err(Denied::Mismatch { .. })), "{mismatch:?}");
            context.set("seen", Value::Int(5))?;
            context.set("stored", Value::Int(5))
        });
        assert_eq!(done, Ok(()));
    };
    let trail = |world: &mut World| {
        let read = Arc::new(Mutex::new(Value::None));
        let found = Arc::clone(&read);
        have(world, entity, move |context| {
            *found.lock().expect("not poisoned") = context.get("trail").expect("it is declared").into_owned();
        });
        read.lock().expect("not poisoned").clone()
    };
    let (begins, set_to) = (Value::Sequence(Vec::new()), Value::Sequence(ints(&[7, 2, 3])));

    set(&mut world);
    assert_eq!(trail(&mut world), set_to);
    assert_eq!(
        [
            logged(&world, "trail"),
            logged(&world, "seen"),
            logged(&world, "stored")
        ],
        [0, 1, 1]
    );
    check(&world);

    for (from, towards, cell) in [(-30.0, 1.0, MIDDLE), (30.0, -1.0, WEST)] {
        for step in 0..=60_u8 {
            world.walk(1, from + towards * f32::from(step), 0.0);
            world.run(50);
        }
        assert_eq!(world.holders(entity), [cell]);
        assert_eq!(trail(&mut world), begins, "it was not handed over");
    }
    set(&mut world);
    assert_eq!(trail(&mut world), set_to);
    world.crash(WEST);
    world.run(300);
    world.start(WEST);
    world.run(3_000);
    assert_eq!(trail(&mut world), begins, "it was not taken over");
    assert_eq!(logged(&world, "trail"), 0);
    check(&world);
}
