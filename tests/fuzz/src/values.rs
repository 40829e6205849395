//! Values and their encodings: the stream form, changes, what clients are shown, and the stored schema.

use std::sync::{Arc, LazyLock};

use annals_def::{
    Change, DataType, Distribution, Edit, EntityType, Form, Located, MessageRange, Method, Property, Schema, Sequence,
    Tree, Value, compile, decode, decode_elements, encode, encode_elements, generate, split_mix, unpack_path,
};
use annals_ids::HistoryNumber;
use annals_wire::client::{Shown, ShownReader, ShownWriter, read_properties};

/// A type of every kind, and nested kinds.
const ALIASES: &str = "<root>
    <A0> INT8 </A0> <A1> INT16 </A1> <A2> INT32 </A2> <A3> INT64 </A3>
    <A4> UINT8 </A4> <A5> UINT16 </A5> <A6> UINT32 </A6> <A7> UINT64 </A7>
    <A8> FLOAT32 </A8> <A9> FLOAT64 </A9> <B0> STRING </B0> <B1> UNICODE_STRING </B1> <B2> BLOB </B2>
    <B3> VECTOR2 </B3> <B4> VECTOR3 </B4> <B5> VECTOR4 </B5> <B6> MAILBOX </B6> <B7> UDO_REF </B7> <B8> PYTHON </B8>
    <B9> ARRAY <of> UINT8 </of> </B9>
    <C0> ARRAY <of> UNICODE_STRING </of> <size> 3 </size> </C0>
    <C1> TUPLE <of> ARRAY <of> INT16 </of> </of> </C1>
    <C2> ARRAY <of> ARRAY <of> ARRAY <of> UINT8 </of> </of> </of> <persistAsBlob> true </persistAsBlob> </C2>
    <C3> FIXED_DICT <Properties> <a> <Type> UINT32 </Type> </a> <b> <Type> STRING </Type> <Persistent> false </Persistent> </b>
        </Properties> </C3>
    <C4> FIXED_DICT <AllowNone> true </AllowNone> <Properties> <a> <Type> C3 </Type> </a> <b> <Type> ARRAY <of> C3 </of> </Type> </b>
        </Properties> </C4>
    <C5> ARRAY <of> C4 </of> </C5>
    <C6> FIXED_DICT <Properties> <a> <Type> ARRAY <of> C4 </of> <size> 2 </size> </Type> </a> </Properties> </C6>
    <C7> ARRAY <of> ARRAY <of> UINT8 </of> <size> 0 </size> </of> </C7>
</root>";

/// Types that are never sent to clients.
const NOT_FOR_CLIENTS: [&str; 2] = ["B6", "B8"];

/// A world with a property of each type above, client methods, and methods that answer clients.
static WORLD: LazyLock<Schema> = LazyLock::new(|| {
    let mut tree = Tree::new();
    tree.insert("entities.xml", "<root> <A/> </root>");
    tree.insert("entity_defs/alias.xml", ALIASES);
    let tags = ALIASES
        .split('<')
        .filter_map(|tag| tag.split_once("> ").map(|(name, _)| name));
    let names = tags.filter(|name| name.len() == 2 && name.as_bytes()[1].is_ascii_digit());
    let property = |name: &str| {
        let flags = if NOT_FOR_CLIENTS.contains(&name) {
            "CELL_PRIVATE"
        } else {
            "ALL_CLIENTS"
        };
        format!("<p{name}> <Type> {name} </Type> <Flags> {flags} </Flags> </p{name}>")
    };
    let properties: String = names.map(property).collect();
    let methods = "<m0> <Args> <a> A4 </a> </Args> </m0> <m1> <Args> <a> B1 </a> <b> C4 </b> </Args> </m1> <m2/>";
    let answering =
        "<b0> <Exposed/> <ReturnValues> <a> A6 </a> <b> C5 </b> </ReturnValues> </b0> <b1> <Exposed/> </b1>";
    let definition = format!(
        "<root> <Properties> {properties} </Properties> <ClientMethods> {methods} </ClientMethods> \
         <BaseMethods> {answering} </BaseMethods> </root>"
    );
    tree.insert("entity_defs/A.def", definition);
    let compiled = compile(&tree);
    compiled.schema.unwrap_or_else(|| panic!("{:?}", compiled.diagnostics))
});

/// The types above, in order.
static TYPES: LazyLock<Vec<DataType>> = LazyLock::new(|| {
    let properties = WORLD.types()[0].properties.iter();
    properties.map(|property| property.data_type.clone()).collect()
});

/// A type with so many client properties and methods that some ids take two bytes.
static CROWDED: LazyLock<Schema> = LazyLock::new(|| {
    let mut crowded = EntityType::new("Crowded");
    let kinds = [
        DataType::Int8,
        DataType::Unicode,
        DataType::Array(Arc::new(Sequence::of(DataType::Int16))),
    ];
    let property = |i: usize| {
        let data_type = kinds[i % kinds.len()].clone();
        Property::new(format!("p{i}"), data_type, Distribution::AllClients)
    };
    crowded.properties = (0..320).map(property).collect();
    crowded.client_methods = (0..300).map(|i| Method::new(format!("m{i}"), Vec::new())).collect();
    Schema::new(vec![crowded], Vec::new(), Vec::new())
});

/// What a client is shown of an entity: its properties, or successive events, as the first byte selects.
pub(crate) fn shown(bytes: &[u8]) {
    shown_of(&WORLD.types()[0], bytes);
}

/// The same for an entity with more members than single bytes can number.
pub(crate) fn shown_crowded(bytes: &[u8]) {
    shown_of(&CROWDED.types()[0], bytes);
}

fn shown_of(entity_type: &EntityType, bytes: &[u8]) {
    let Some((&first, rest)) = bytes.split_first() else {
        return;
    };
    let from = HistoryNumber(u64::from(first >> 1));
    let mut writer = ShownWriter::new(entity_type, from);
    if first & 1 == 0 {
        let Ok(properties) = read_properties(entity_type, rest) else {
            return;
        };
        for (member, value) in &properties {
            writer.property(*member, value).expect("what was read can be written");
        }
    } else {
        let mut reader = ShownReader::new(entity_type, (from, HistoryNumber(u64::MAX)), rest);
        let properties = entity_type.client_properties().iter();
        let mut held: Vec<Value> = properties
            .map(|member| entity_type.properties[usize::from(member.0)].default.clone())
            .collect();
        loop {
            match reader.next_event(&held) {
                Ok(Some((number, Shown::Property { member, change }))) => {
                    let held = &mut held[usize::from(member.0)];
                    let located = Located::new(change, held).expect("the place is there");
                    writer
                        .change(number, member, &located)
                        .expect("what was read can be written");
                    // A change that cannot be applied was not made by a server; its bytes still decode.
                    if located.make(held).is_err() {
                        return;
                    }
                }
                Ok(Some((number, Shown::Method { member, args }))) => {
                    writer
                        .method(number, member, &args)
                        .expect("what was read can be written");
                }
                Ok(Some((number, Shown::Reply(reply)))) => {
                    writer.reply(number, &reply).expect("what was read can be written");
                }
                Ok(None) => break,
                Err(_) => return,
            }
        }
    }
    assert_eq!(writer.finish(), rest);
}

/// An id in a range: first its first slot, the number of slots minus one and the number of members, two bytes,
/// little-endian.
pub(crate) fn message_id(bytes: &[u8]) {
    let [first, slots, low, high, id @ ..] = bytes else {
        return;
    };
    // Slots beyond the values of a byte do not exist.
    let slots = (u16::from(*slots) + 1).min(256 - u16::from(*first));
    let range = MessageRange::new(*first, slots, u16::from_le_bytes([*low, *high]));
    if let Some((member, rest)) = range.take(id) {
        assert!(range.contains(id[0]));
        let mut written = Vec::new();
        range.put(member, &mut written);
        assert_eq!(written, id[..id.len() - rest.len()]);
        assert_eq!(written.len(), range.id_length(member));
    }
}

/// The type that the first byte selects, and the rest.
fn typed(bytes: &[u8]) -> Option<(&'static DataType, &[u8])> {
    let (&first, rest) = bytes.split_first()?;
    Some((&TYPES[usize::from(first) % TYPES.len()], rest))
}

/// A stored schema: its one encoding, or an error.
pub(crate) fn stored_schema(bytes: &[u8]) {
    if let Ok(schema) = Schema::decode(bytes) {
        assert_eq!(schema.encode(), bytes);
        let again = Schema::decode(bytes).map(|again| again.fingerprint());
        assert_eq!(again.ok(), Some(schema.fingerprint()));
    }
}

/// A value in stream form, of the type that the first byte selects, whole or stored.
pub(crate) fn value(bytes: &[u8]) {
    let Some((data_type, rest)) = typed(bytes) else {
        return;
    };
    for form in [Form::Whole, Form::Stored, Form::Shown] {
        let mut left = rest;
        let Ok(value) = decode(data_type, form, &mut left) else {
            continue;
        };
        let taken = &rest[..rest.len() - left.len()];
        let mut encoded = Vec::new();
        encode(data_type, &value, form, &mut encoded).expect("what was decoded can be encoded");
        assert_eq!(encoded, taken, "{data_type} {form:?}");
    }
}

/// A slice of elements of the type that the first byte selects.
pub(crate) fn elements(bytes: &[u8]) {
    let Some((data_type, rest)) = typed(bytes) else {
        return;
    };
    let mut left = rest;
    if let Ok(values) = decode_elements(data_type, Form::Whole, &mut left) {
        let mut encoded = Vec::new();
        encode_elements(data_type, &values, Form::Whole, &mut encoded).expect("what was decoded can be encoded");
        assert_eq!(encoded, rest[..rest.len() - left.len()], "{data_type}");
    }
}

/// Number of properties in [`packed_path`].
const PROPERTIES: u32 = 5;

/// A packed path into a value. The first byte selects the type, the second the value, the third whether it is a slice.
pub(crate) fn packed_path(bytes: &[u8]) {
    let Some((data_type, rest)) = typed(bytes) else {
        return;
    };
    let [seed, is_slice, rest @ ..] = rest else {
        return;
    };
    let value = generate(data_type, &mut split_mix(u64::from(*seed)));
    let mut left = rest;
    let Some(found) = unpack_path(&mut left, is_slice & 1 == 1, PROPERTIES, |property| {
        (property != 3).then_some(&value)
    }) else {
        return;
    };
    let edit = match found.slice {
        Some(slice) => Edit::Splice {
            at: slice.start,
            removed: slice.end - slice.start,
            inserted: Vec::new(),
        },
        None => Edit::Set(Value::None),
    };
    let change = Change { path: found.path, edit };
    let located = Located::new(change, &value).expect("the path leads somewhere in the value");
    let mut packed = Vec::new();
    located.pack((found.property, PROPERTIES), &mut packed);
    assert_eq!(packed, rest[..rest.len() - left.len()]);
}
