//! Single cases of migration plans: what they contain and what they reject.

use std::{collections::BTreeMap, sync::Arc};

use annals_def::{
    Argument, DataType, Distribution, EntityType, Field, FixedDict, Method, MethodKind, MigrationError, Plan, Property,
    Rename, RenameError, Renames, Schema, Sequence, Service, Value,
};
use annals_ids::{EntityId, Mailbox, MemberId, OwnerId, Part, TypeId};

fn property(name: &str, data_type: DataType) -> Property {
    let mut property = Property::new(name, data_type, Distribution::Base);
    property.persistent = true;
    property
}

fn avatar(properties: Vec<Property>) -> EntityType {
    let mut avatar = EntityType::new("Avatar");
    avatar.properties = properties;
    avatar
}

fn schema(types: Vec<EntityType>) -> Schema {
    Schema::new(types, Vec::new(), Vec::new())
}

/// A plan between schemas of an avatar whose one property changes its type.
fn retyped(from: DataType, to: DataType) -> Plan {
    let [old, new] = [from, to].map(|data_type| schema(vec![avatar(vec![property("bag", data_type)])]));
    Plan::new(&old, &new, &Renames::default())
}

fn row(name: &str, value: Value) -> BTreeMap<String, Value> {
    BTreeMap::from([(name.to_owned(), value)])
}

fn renames(old: &Schema, new: &Schema, all: &[&str]) -> Result<Renames, RenameError> {
    let all: Result<Vec<Rename>, RenameError> = all.iter().map(|text| text.parse()).collect();
    Renames::new(old, new, all?)
}

#[test]
fn a_value_without_a_counterpart_is_named_with_its_path() {
    let item = |count| FixedDict::of(vec![Field::of("item", DataType::UInt32), Field::of("count", count)]);
    let bag = |count| DataType::Array(Arc::new(Sequence::of(DataType::FixedDict(Arc::new(item(count))))));
    let plan = retyped(bag(DataType::UInt16), bag(DataType::UInt8));
    let holding = |count| Value::Sequence(vec![Value::Dict(vec![Value::UInt(1), Value::UInt(count)])]);
    let fits = plan.convert_stored("Avatar", &row("bag", holding(255)));
    assert_eq!(fits, Ok(("Avatar".to_owned(), row("bag", holding(255)))));
    let error = plan
        .convert_stored("Avatar", &row("bag", holding(256)))
        .expect_err("256 is too much");
    let said = error.to_string();
    for part in ["Avatar.bag", "[0].count", "256 does not fit UINT8"] {
        assert!(said.contains(part), "no {part} in {said}");
    }
}

#[test]
fn data_not_of_the_old_definitions_is_refused() {
    let plan = retyped(DataType::UInt8, DataType::UInt16);
    let error = plan
        .convert_stored("Avatar", &row("bag", Value::UInt(300)))
        .expect_err("no UINT8");
    assert!(
        error.to_string().contains("not written under the old definitions"),
        "{error}"
    );
    let unknown = plan.convert_stored("Monster", &BTreeMap::new());
    assert_eq!(unknown, Err(MigrationError::UnknownType("Monster".into())));
    let held = BTreeMap::from([(MemberId(1), Value::UInt(3))]);
    let unknown = plan.convert_held(TypeId(0), Part::Base, &held);
    assert!(matches!(unknown, Err(MigrationError::UnknownMember { .. })));
    let call = plan.convert_call(TypeId(0), MethodKind::Cell, MemberId(0), &[]);
    assert!(matches!(call, Err(MigrationError::UnknownMember { .. })));
}

#[test]
fn row_data_of_earlier_releases_is_dropped() {
    let plan = retyped(DataType::UInt8, DataType::UInt16);
    let mut row = row("bag", Value::UInt(3));
    row.insert("of long ago".into(), Value::UInt(4));
    let (_, converted) = plan.convert_stored("Avatar", &row).expect("it fits");
    assert_eq!(converted.keys().collect::<Vec<_>>(), ["bag"]);
}

#[test]
fn a_sequence_of_zero_size_elements_can_be_shortened() {
    let element = |persistent| {
        let field = Field {
            persistent,
            ..Field::of("a", DataType::UInt8)
        };
        DataType::Array(Arc::new(Sequence::of(DataType::FixedDict(Arc::new(FixedDict::of(
            vec![field],
        ))))))
    };
    let plan = retyped(element(true), element(false));
    let of = |count| row("bag", Value::Sequence(vec![Value::Dict(vec![Value::UInt(1)]); count]));
    assert!(plan.convert_stored("Avatar", &of(1_024)).is_ok());
    assert!(plan.convert_stored("Avatar", &of(1_025)).is_err());
}

#[test]
fn mailboxes_keep_their_types_by_name() {
    let types = |names: &[&str]| {
        let mut all: Vec<EntityType> = names.iter().map(|name| EntityType::new(*name)).collect();
        let friends = DataType::Array(Arc::new(Sequence::of(DataType::Mailbox)));
        all.push(avatar(vec![property("friends", friends)]));
        schema(all)
    };
    let plan = Plan::new(
        &types(&["Gone", "Guard"]),
        &types(&["Chest", "Box", "Guard"]),
        &Renames::default(),
    );
    let mailbox = |type_id| {
        Value::Mailbox(Some(Mailbox {
            entity: EntityId(9),
            home: OwnerId(1),
            type_id: TypeId(type_id),
            part: Part::Base,
        }))
    };
    let held = BTreeMap::from([(MemberId(0), Value::Sequence([0, 1, 2].map(mailbox).to_vec()))]);
    let wanted = Value::Sequence(vec![Value::Mailbox(None), mailbox(2), mailbox(3)]);
    let converted = plan.convert_held(TypeId(2), Part::Base, &held);
    assert_eq!(converted, Ok((TypeId(3), BTreeMap::from([(MemberId(0), wanted)]))));
}

#[test]
fn a_new_argument_has_the_default_of_its_type() {
    let with = |args: Vec<Argument>| {
        let mut avatar = avatar(Vec::new());
        avatar.base_methods = vec![Method::new("go", args)];
        schema(vec![avatar])
    };
    let to = || Argument::new("to", DataType::Vector3);
    let old = with(vec![to()]);
    let new = with(vec![Argument::new("fast", DataType::UInt8), to()]);
    let plan = Plan::new(&old, &new, &Renames::default());
    let call = plan.convert_call(TypeId(0), MethodKind::Base, MemberId(0), &[Value::Vector3([1.0; 3])]);
    assert_eq!(call, Ok((MemberId(0), vec![Value::UInt(0), Value::Vector3([1.0; 3])])));
}

#[test]
fn a_call_not_of_the_old_definitions_is_refused() {
    let pair = |fields: &[&str]| {
        let fields = fields.iter().map(|name| Field::of(*name, DataType::UInt8)).collect();
        DataType::FixedDict(Arc::new(FixedDict::of(fields)))
    };
    let with = |args: Vec<Argument>| {
        let mut avatar = avatar(Vec::new());
        avatar.base_methods = vec![Method::new("take", args)];
        schema(vec![avatar])
    };
    let old = with(vec![
        Argument::new("item", pair(&["a", "b"])),
        Argument::new("gone", DataType::UInt8),
    ]);
    let new = with(vec![Argument::new("item", pair(&["b", "a", "c"]))]);
    let plan = Plan::new(&old, &new, &Renames::default());
    let call = |args: &[Value]| plan.convert_call(TypeId(0), MethodKind::Base, MemberId(0), args);
    let item = |values: &[u64]| Value::Dict(values.iter().copied().map(Value::UInt).collect());
    assert_eq!(
        call(&[item(&[1, 2]), Value::UInt(3)]),
        Ok((MemberId(0), vec![item(&[2, 1, 0])]))
    );
    for (args, argument) in [
        ([item(&[1]), Value::UInt(3)], "take(item)"),
        ([item(&[]), Value::UInt(3)], "take(item)"),
        ([item(&[1, 2, 3]), Value::UInt(3)], "take(item)"),
        ([item(&[1, 256]), Value::UInt(3)], "take(item)"),
        ([Value::UInt(1), Value::UInt(3)], "take(item)"),
        ([item(&[1, 2]), Value::UInt(256)], "take(gone)"),
    ] {
        let said = call(&args).expect_err("no such call was made").to_string();
        for part in [argument, "not written under the old definitions"] {
            assert!(said.contains(part), "no {part} in {said}");
        }
    }
}

#[test]
fn two_properties_can_swap_names() {
    let old = schema(vec![avatar(vec![
        property("a", DataType::UInt8),
        property("b", DataType::UInt8),
    ])]);
    let renames = renames(&old, &old, &["Avatar.a=b", "Avatar.b=a"]).expect("each says where it goes");
    let plan = Plan::new(&old, &old, &renames);
    let mut before = row("a", Value::UInt(1));
    before.insert("b".into(), Value::UInt(2));
    let (_, after) = plan.convert_stored("Avatar", &before).expect("it fits");
    assert_eq!((&after["a"], &after["b"]), (&Value::UInt(2), &Value::UInt(1)));
}

#[test]
fn a_rename_without_effect_is_refused() {
    let old = schema(vec![avatar(vec![
        property("a", DataType::UInt8),
        property("b", DataType::UInt8),
    ])]);
    let new = schema(vec![avatar(vec![
        property("b", DataType::UInt8),
        property("c", DataType::UInt8),
    ])]);
    let refused = |all: &[&str]| renames(&old, &new, all).expect_err("it says nothing").to_string();
    for (all, part) in [
        (&["Avatar.a"][..], "is not a rename"),
        (&["Avatar.a="], "is not a rename"),
        (&["Avatar.=c"], "is not a rename"),
        (&["Avatar.x=c"], "the old definitions have no Avatar.x"),
        (&["Monster.a=c"], "the old definitions have no type Monster"),
        (&["Avatar.a=x"], "the new definitions have no Avatar.x"),
        (&["Avatar=Monster"], "the new definitions have no type Monster"),
        (&["Avatar.a=c", "Avatar.a=b"], "renamed twice"),
        (&["Avatar.a=c", "Avatar.b=c"], "two names become Avatar.c"),
        (&["Avatar.a=b"], "two names become Avatar.b"),
    ] {
        assert!(refused(all).contains(part), "{all:?}: {}", refused(all));
    }
    assert!(renames(&old, &new, &["Avatar.a=c"]).is_ok());
}

/// Services of these names, each with these methods.
fn with_services(types: &[&str], services: &[(&str, &[&str])]) -> Schema {
    let types = types.iter().map(|name| EntityType::new(*name)).collect();
    let service = |(name, methods): &(&str, &[&str])| Service {
        name: (*name).into(),
        methods: methods.iter().map(|name| Method::new(*name, Vec::new())).collect(),
    };
    Schema::new(types, services.iter().map(service).collect(), Vec::new())
}

#[test]
fn fragments_and_calls_to_them_are_converted_by_the_name_of_their_service() {
    // An entity type has the name of a service.
    let old = with_services(&["Ape", "Bank"], &[("Bank", &["pay", "save"]), ("Notes", &[])]);
    let new = with_services(
        &["Ape", "Bank", "Cat"],
        &[("Almanac", &[]), ("Bank", &["lend", "save"])],
    );
    assert_eq!(old.fragments_of("Bank").map(|found| found.id), Some(TypeId(2)));
    assert_eq!(old.type_named("Bank").map(|found| found.id), Some(TypeId(1)));
    let names: Vec<&str> = new.all_types().map(|found| found.name.as_str()).collect();
    assert_eq!(names, ["Ape", "Bank", "Cat", "Almanac", "Bank"]);
    assert_eq!(new.types().len(), 3);
    for (id, one) in new.all_types().enumerate() {
        assert_eq!(usize::from(one.id.0), id);
        assert_eq!(new.entity_type(one.id), Some(one));
        assert_eq!(new.is_fragment(one.id), id >= 3);
    }
    assert_eq!(new.entity_type(TypeId(5)), None);
    let decoded = Schema::decode(&new.encode()).expect("its own bytes");
    assert!(decoded.all_types().eq(new.all_types()));

    let plan = Plan::new(&old, &new, &Renames::default());
    let converted = plan.convert_held(TypeId(2), Part::Base, &BTreeMap::new());
    assert_eq!(converted, Ok((TypeId(4), BTreeMap::new())));
    let save = plan.convert_call(TypeId(2), MethodKind::Base, MemberId(1), &[]);
    assert_eq!(save, Ok((MemberId(1), Vec::new())));
    let pay = plan.convert_call(TypeId(2), MethodKind::Base, MemberId(0), &[]);
    assert!(matches!(pay, Err(MigrationError::MethodRemoved { .. })), "{pay:?}");
    let ended = (0..4).map(|id| plan.ends_fragments(TypeId(id)));
    assert_eq!(ended.collect::<Vec<_>>(), [false, false, false, true]);
}

#[test]
fn a_fragment_has_the_same_id_under_all_definitions() {
    let old = with_services(&["Ape"], &[("Bank", &[]), ("Notes", &["read"])]);
    let new = with_services(&["Ape", "Bee"], &[("Notes", &[])]);
    let slot = |schema: &Schema, name: &str| {
        let service = schema.services().iter().find(|service| service.name == name);
        service.expect("it is listed").slot()
    };
    assert_eq!(slot(&old, "Notes"), slot(&new, "Notes"));
    for owner in [OwnerId(0), OwnerId(7), OwnerId(u32::MAX)] {
        let fragment = EntityId::of_fragment(owner, slot(&old, "Notes"));
        assert_eq!(fragment.fragment(), Some((owner, slot(&old, "Notes"))));
        assert!(fragment.0 < 1 << 53, "exact in JSON");
        assert_eq!(new.fragment_with_id(fragment).map(|found| found.id), Some(TypeId(2)));
        let removed = EntityId::of_fragment(owner, slot(&old, "Bank"));
        assert_eq!(new.fragment_with_id(removed), None);
    }
    for other in [0, 1, (1 << 52) - 1, 1 << 53, u64::MAX] {
        assert_eq!(EntityId(other).fragment(), None);
    }
}
