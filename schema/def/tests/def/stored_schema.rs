//! The stored form of a schema: exact, deterministic, and safe to decode from untrusted bytes.

use std::sync::Arc;

use annals_def::{
    AccountView, Argument, DataType, DetailedPosition, Dice, Distribution, Domain, EntityType, Exposure, Field,
    FixedDict, Holding, Index, LedgerNames, LodLevel, Method, Property, Reach, Schema, SchemaProblem, Sequence,
    Service, UserDataObject, generate, generate_type, split_mix,
};
use annals_ids::{AssetKind, Slot, TypeId};

fn random_schema(dice: &mut Dice<'_>) -> Schema {
    let count = 1 + dice() % 4;
    let types = (0..count).map(|i| random_entity_type(i, count, dice)).collect();
    let services = vec![Service {
        name: "Notes".into(),
        methods: random_methods(dice),
    }];
    let objects = vec![UserDataObject {
        name: "PatrolNode".into(),
        domain: Domain::Cell,
        properties: vec![Field::of("next", DataType::UdoRef)],
    }];
    Schema::new(types, services, objects).with_ledger_names(random_names(dice))
}

/// Names of some kinds and slots; sometimes none.
fn random_names(dice: &mut Dice<'_>) -> LedgerNames {
    let kinds = (0..dice() % 4).map(|i| (AssetKind(dice() as u32), format!("kind{i}")));
    let kinds = kinds.collect();
    let slots = (0..dice() % 3).map(|i| (Slot(dice() as u16), format!("slot{i}")));
    let slots = slots.collect();
    LedgerNames::new(kinds, slots)
}

fn random_entity_type(i: u64, count: u64, dice: &mut Dice<'_>) -> EntityType {
    let mut entity_type = EntityType::new(format!("Type{i}"));
    entity_type.client_type = dice().is_multiple_of(2).then(|| TypeId((dice() % count) as u16));
    entity_type.lod_levels = vec![LodLevel {
        label: "NEAR".into(),
        radius: 20.0,
        hysteresis: 4.0,
    }];
    entity_type.volatile.position = Reach::Always;
    entity_type.volatile.yaw = Reach::Within(30.0);
    entity_type.detailed_position = Some(DetailedPosition { latest_only: true });
    entity_type.temp_properties = vec!["socket".into()];
    entity_type.properties = (0..dice() % 8).map(|i| random_property(i, dice)).collect();
    entity_type.base_methods = random_methods(dice);
    entity_type.cell_methods = random_methods(dice);
    entity_type.client_methods = random_methods(dice);
    entity_type
}

fn random_property(i: u64, dice: &mut Dice<'_>) -> Property {
    let data_type = generate_type(3, dice);
    let distribution = Distribution::ALL[dice() as usize % Distribution::ALL.len()];
    let mut property = Property::new(format!("property{i}"), data_type, distribution);
    property.default = generate(&property.data_type, dice);
    property.persistent = dice().is_multiple_of(2);
    property.indexed = [Index::None, Index::Plain, Index::Unique][dice() as usize % 3];
    property.identifier = dice().is_multiple_of(5);
    property.detail_level = dice().is_multiple_of(3).then_some(0);
    property.database_length = dice().is_multiple_of(3).then_some(255);
    property.protocol_id = dice().is_multiple_of(3).then_some(41_001);
    property.reliable = dice().is_multiple_of(2);
    property.header_size = 1 + (dice() % 4) as u8;
    if dice().is_multiple_of(4) {
        view(property.name, dice)
    } else if dice().is_multiple_of(4) {
        personal(property.name, dice)
    } else {
        property
    }
}

/// A property that is personal.
fn personal(name: String, dice: &mut Dice<'_>) -> Property {
    let mut property = Property::new(name, DataType::Blob, Distribution::Base);
    property.persistent = true;
    property.database_length = dice().is_multiple_of(3).then_some(255);
    let sealed = property.sealed(generate_type(3, dice));
    sealed.expect("nothing stands against it")
}

/// A property that is the view of an account.
fn view(name: String, dice: &mut Dice<'_>) -> Property {
    let sequence = |of: DataType| {
        let element_default = of.default_value();
        DataType::Array(Arc::new(Sequence {
            of,
            size: None,
            element_default,
            persist_as_blob: false,
        }))
    };
    let kind = AssetKind(dice() as u32);
    let pair = |what: &str| {
        let fields = vec![Field::of("kind", DataType::UInt32), Field::of(what, DataType::UInt64)];
        DataType::FixedDict(Arc::new(FixedDict {
            fields,
            allow_none: false,
            implemented_by: None,
        }))
    };
    let (data_type, shows) = match dice() % 4 {
        0 => (DataType::UInt64, Holding::Units(kind)),
        1 => (sequence(DataType::UInt64), Holding::Serials(kind)),
        2 => (sequence(pair("units")), Holding::Balances),
        _ => (sequence(pair("serial")), Holding::Items),
    };
    let slot = Slot(dice() as u16);
    Property {
        account: Some(AccountView { slot, shows }),
        ..Property::new(name, data_type, Distribution::BaseAndClient)
    }
}

fn random_methods(dice: &mut Dice<'_>) -> Vec<Method> {
    (0..dice() % 5)
        .map(|i| {
            let args = (0..dice() % 3).map(|i| Argument::new(format!("arg{i}"), generate_type(2, dice)));
            let mut method = Method::new(format!("method{i}"), args.collect());
            method.exposed = [Exposure::No, Exposure::OwnClient, Exposure::AllClients][dice() as usize % 3];
            let is_limited = method.exposed != Exposure::No && dice().is_multiple_of(2);
            method.calls_per_minute = is_limited.then_some(1 + dice() as u32 % 30_000);
            method.detail_distance = dice().is_multiple_of(2).then_some(30.0);
            method.header_size = 1 + (dice() % 4) as u8;
            method.returns = vec![Argument::new("ok", DataType::UInt8)];
            method
        })
        .collect()
}

#[test]
fn a_schema_round_trips_through_its_stored_form() {
    for seed in 0..300 {
        let schema = random_schema(&mut split_mix(seed));
        let bytes = schema.encode();
        let loaded = Schema::decode(&bytes).expect("own bytes");
        assert_eq!(loaded.types(), schema.types(), "seed {seed}");
        assert_eq!(loaded.services()[0].name, schema.services()[0].name, "seed {seed}");
        assert_eq!(loaded.user_data_objects(), schema.user_data_objects(), "seed {seed}");
        assert_eq!(loaded.ledger_names(), schema.ledger_names(), "seed {seed}");
        assert_eq!(
            LedgerNames::of_stored(&bytes).as_ref(),
            Ok(schema.ledger_names()),
            "seed {seed}"
        );
        assert_eq!(loaded.fingerprint(), schema.fingerprint(), "seed {seed}");
        assert_eq!(loaded.encode(), bytes, "seed {seed}");
    }
}

#[test]
fn every_flipped_bit_changes_the_fingerprint_or_is_refused() {
    let schema = random_schema(&mut split_mix(7));
    let bytes = schema.encode();
    for at in 0..bytes.len() {
        for bit in 0..8 {
            let mut damaged = bytes.clone();
            damaged[at] ^= 1 << bit;
            if let Ok(other) = Schema::decode(&damaged) {
                assert_ne!(other.fingerprint(), schema.fingerprint(), "byte {at}, bit {bit}");
                assert_eq!(other.encode(), damaged, "byte {at}, bit {bit}");
            }
        }
    }
}

#[test]
fn names_are_stored_once_in_order_or_refused() {
    let stored = |kinds: &[(u32, &str)], slots: &[(u16, &str)]| {
        let mut bytes = vec![2];
        bytes.extend((kinds.len() as u32).to_le_bytes());
        for (kind, name) in kinds {
            bytes.extend(kind.to_le_bytes());
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        bytes.extend((slots.len() as u32).to_le_bytes());
        for (slot, name) in slots {
            bytes.extend(slot.to_le_bytes());
            bytes.extend((name.len() as u32).to_le_bytes());
            bytes.extend(name.as_bytes());
        }
        // No type, no service, no user data object.
        bytes.extend([0; 12]);
        Schema::decode(&bytes)
    };
    let named = stored(&[(1, "gold"), (7, "sword")], &[(0, "inventory"), (9, "gold")]).expect("names");
    assert_eq!(named.ledger_names().kind(AssetKind(7)), Some("sword"));
    assert_eq!(named.ledger_names().slot_named("gold"), Some(Slot(9)));
    assert_eq!(named.ledger_names().kind_named("inventory"), None);
    for (kinds, slots) in [
        (&[][..], &[][..]),
        (&[(2, "gold"), (1, "sword")], &[]),
        (&[(1, "gold"), (1, "sword")], &[]),
        (&[(1, "gold"), (2, "gold")], &[]),
        (&[(1, "iron ore")], &[]),
        (&[(1, "a\nb")], &[]),
        (&[(1, "")], &[]),
        (&[], &[(1, "bank"), (0, "bank2")]),
    ] {
        let error = stored(kinds, slots).expect_err("not as it is written");
        assert_eq!(error.problem, SchemaProblem::LedgerNames, "{kinds:?} {slots:?}");
    }
}

#[test]
fn invalid_distances_are_refused_everywhere() {
    let set: [fn(&mut EntityType, f32); 8] = [
        |entity_type, metres| entity_type.appeal_radius = metres,
        |entity_type, metres| entity_type.lod_levels[0].radius = metres,
        |entity_type, metres| entity_type.lod_levels[0].hysteresis = metres,
        |entity_type, metres| entity_type.volatile.position = Reach::Within(metres),
        |entity_type, metres| entity_type.volatile.yaw = Reach::Within(metres),
        |entity_type, metres| entity_type.volatile.pitch = Reach::Within(metres),
        |entity_type, metres| entity_type.volatile.roll = Reach::Within(metres),
        |entity_type, metres| {
            let mut method = Method::new("wave", Vec::new());
            method.detail_distance = Some(metres);
            entity_type.client_methods.push(method);
        },
    ];
    for (place, set) in set.iter().enumerate() {
        let decoded = |metres: f32| {
            let mut entity_type = random_entity_type(0, 1, &mut split_mix(3));
            set(&mut entity_type, metres);
            Schema::decode(&Schema::new(vec![entity_type], Vec::new(), Vec::new()).encode())
        };
        for metres in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, -0.001] {
            let problem = decoded(metres).expect_err("no distance");
            assert!(
                matches!(problem.problem, SchemaProblem::Distance(..)),
                "place {place}, {metres}: {problem}"
            );
        }
        for metres in [0.0, 17.5, f32::MAX] {
            assert!(decoded(metres).is_ok(), "place {place}, {metres}");
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    let bytes = random_schema(&mut split_mix(11)).encode();
    for length in 0..bytes.len() {
        let error = Schema::decode(&bytes[..length]).expect_err("bytes are missing");
        assert!(!error.to_string().is_empty());
    }
    let mut longer = bytes;
    longer.push(0);
    assert!(Schema::decode(&longer).is_err());
}

#[test]
fn random_bytes_are_refused_quickly() {
    for seed in 0..2_000 {
        let mut dice = split_mix(seed);
        let mut bytes = vec![1 + (seed % 2) as u8];
        bytes.extend((0..dice() % 200).map(|_| dice() as u8 % 24));
        if let Ok(schema) = Schema::decode(&bytes) {
            assert_eq!(schema.encode(), bytes, "seed {seed}");
        }
    }
}

#[test]
fn client_ids_are_ordered_by_stream_size_then_declaration() {
    let mut avatar = EntityType::new("Avatar");
    for (name, data_type, distribution) in [
        ("title", DataType::Unicode, Distribution::AllClients),
        ("gold", DataType::UInt32, Distribution::OwnClient),
        ("threat", DataType::UInt8, Distribution::CellPublic),
        ("level", DataType::UInt8, Distribution::AllClients),
        ("name", DataType::String, Distribution::BaseAndClient),
        ("mood", DataType::UInt8, Distribution::OtherClients),
    ] {
        avatar.properties.push(Property::new(name, data_type, distribution));
    }
    let mut exposed = Method::new("emote", vec![Argument::new("id", DataType::UInt16)]);
    exposed.exposed = Exposure::AllClients;
    let mut say = Method::new("say", vec![Argument::new("text", DataType::Unicode)]);
    say.exposed = Exposure::AllClients;
    avatar.cell_methods = vec![Method::new("tick", Vec::new()), say, exposed];

    let schema = Schema::new(vec![avatar], Vec::new(), Vec::new());
    let avatar = schema.type_named("Avatar").expect("declared");
    let names: Vec<_> = avatar
        .client_properties()
        .iter()
        .map(|&id| avatar.property(id).expect("listed").name.as_str())
        .collect();
    assert_eq!(names, ["level", "mood", "gold", "title", "name"]);
    let level = avatar.property_named("level").expect("declared");
    assert_eq!((level.index.0, level.client_id), (3, Some(0)));
    assert_eq!(avatar.property_named("threat").expect("declared").client_id, None);
    let methods: Vec<_> = avatar.exposed_cell_methods().iter().map(|&id| id.0).collect();
    assert_eq!(methods, [2, 1]);
}
