//! TypeScript for clients: interfaces of entities in view, of client methods and of calls, and tables with their ids
//! and encodings.
//!
//! Types are erased when TypeScript runs, so a client library encodes and decodes by the tables: `WORLD` has every type
//! with its members in the order of their client numbers, and each member's encoding as data. 64-bit integers are
//! `bigint`. There is no executable code: that is the client library's, `services/client-ts`.

use annals_def::{Argument, DataType, EntityType, Exposure, Form, LedgerNames, Method, Property, Schema, encode};
use annals_ids::MemberId;

use super::{
    MARK, Model,
    naming::{Scope, pascal},
    shapes::{Shape, Shapes},
    text::Text,
};
use crate::codegen::CodeParts;

/// Names that TypeScript, or the imports of every file, reserve.
const RESERVED: [&str; 19] = [
    "Array",
    "BigInt",
    "Boolean",
    "DataView",
    "Date",
    "Error",
    "Function",
    "Map",
    "Number",
    "Object",
    "Promise",
    "Readonly",
    "Record",
    "Set",
    "String",
    "Symbol",
    "TypeDescription",
    "Uint8Array",
    "Vector",
];

/// A type with the prefix of its interfaces' names.
struct Named<'s> {
    entity_type: &'s EntityType,
    name: String,
}

/// The whole file.
pub(super) fn file(model: &Model) -> String {
    let Model { schema, aliases } = model;
    let mut reserved = RESERVED.to_vec();
    reserved.extend(["World", "WORLD", "CLIENT_SCHEMA", "TypeId"]);
    reserved.extend(Some("Kind").filter(|_| !schema.ledger_names().kinds().is_empty()));
    reserved.extend(Some("Slot").filter(|_| !schema.ledger_names().slots().is_empty()));
    let shapes = Shapes::of(schema, aliases, Scope::with(&reserved));
    let types = named(schema, &shapes);
    let mut text = Text::with_unit("  ");
    text.line(&format!("// {MARK}."));
    text.gap();
    text.line("import type { TypeDescription } from \"annals-client\";");
    text.gap();
    text.line("/** The fingerprint of what clients see of the definitions that this was generated from. */");
    text.line(&format!(
        "export const CLIENT_SCHEMA = \"{}\";",
        schema.client_fingerprint()
    ));
    let used = shapes.used(schema, CodeParts::CLIENT);
    for shape in shapes.all().filter(|shape| used.contains(shape.name.as_str())) {
        interface(&mut text, shape, &shapes);
    }
    text.gap();
    text.block_doc("The types by their ids.");
    let type_ids = types
        .iter()
        .map(|named| (named.name.as_str(), usize::from(named.entity_type.id.0)));
    numbers(&mut text, "TypeId", type_ids);
    ledger_names(&mut text, schema.ledger_names());
    for named in &types {
        write_type(&mut text, named, &shapes);
    }
    write_world(&mut text, &types);
    text.gap();
    text.block_doc("Every type that clients see.");
    text.open("export const WORLD: readonly TypeDescription[] = [");
    for named in &types {
        describe(&mut text, named);
    }
    text.close("];");
    text.finish()
}

/// The names of kinds and slots by their numbers.
fn ledger_names(text: &mut Text, names: &LedgerNames) {
    let kinds = names.kinds().iter();
    let kinds: Vec<_> = kinds.map(|(kind, name)| (name.as_str(), kind.0 as usize)).collect();
    let slots = names.slots().iter();
    let slots: Vec<_> = slots.map(|(slot, name)| (name.as_str(), usize::from(slot.0))).collect();
    for (name, said, named) in [
        ("Kind", "Kinds of assets that have a name, by their numbers.", kinds),
        ("Slot", "Slots of accounts that have a name, by their numbers.", slots),
    ] {
        if !named.is_empty() {
            text.gap();
            text.block_doc(said);
            numbers(text, name, named.into_iter());
        }
    }
}

/// The types that clients see, each with a prefix that makes the names of its interfaces unique.
fn named<'s>(schema: &'s Schema, shapes: &Shapes) -> Vec<Named<'s>> {
    let mut scope = shapes.scope().clone();
    let seen = schema
        .types()
        .iter()
        .filter(|found| found.parts.client && found.client_type.is_none());
    let name = |entity_type: &'s EntityType| {
        let wanted = pascal(&entity_type.name);
        let mut number = 1_u32;
        let name = loop {
            let name = if number == 1 {
                wanted.clone()
            } else {
                format!("{wanted}{number}")
            };
            let all = [
                "",
                "View",
                "Methods",
                "BaseCalls",
                "CellCalls",
                "PropertyId",
                "MethodId",
            ];
            if all.iter().all(|end| scope.is_free(&format!("{name}{end}"))) {
                for end in all {
                    scope.pascal(&format!("{name}{end}"));
                }
                break name;
            }
            number += 1;
        };
        Named { entity_type, name }
    };
    seen.map(name).collect()
}

fn interface(text: &mut Text, shape: &Shape, shapes: &Shapes) {
    text.gap();
    text.block_doc(&format!("`{}`", shape.origin));
    text.open(&format!("export interface {} {{", shape.name));
    for field in &shape.dict.fields {
        text.line(&format!("{}: {};", key(&field.name), spelled(&field.data_type, shapes)));
    }
    text.close("}");
}

fn write_type(text: &mut Text, named: &Named<'_>, shapes: &Shapes) {
    let Named { entity_type, name } = named;
    let properties = properties(entity_type);
    text.gap();
    text.block_doc(&format!("The properties of a `{}` that clients see.", entity_type.name));
    text.open(&format!("export interface {name}View {{"));
    for (property, member) in &properties {
        let view = property
            .account
            .map(|account| format!(", a view of the ledger: {account}"));
        let view = view.unwrap_or_default();
        text.block_doc(&format!("`{}`: {}{view}", property.name, property.distribution));
        text.line(&format!("readonly {member}: {};", spelled(&property.data_type, shapes)));
    }
    text.close("}");
    let methods = methods(&entity_type.client_methods, entity_type.client_method_ids());
    ids(
        text,
        &format!("{name}PropertyId"),
        properties.iter().map(|(_, member)| member.as_str()),
    );
    ids(
        text,
        &format!("{name}MethodId"),
        methods.iter().map(|(_, member)| member.as_str()),
    );
    text.gap();
    text.block_doc("Calls that clients receive from the server: client methods.");
    text.open(&format!("export interface {name}Methods {{"));
    for (method, member) in &methods {
        text.line(&format!("{member}({}): void;", arguments(&method.args, shapes)));
    }
    text.close("}");
    for (part, list, exposed) in [
        ("Base", &entity_type.base_methods, entity_type.exposed_base_methods()),
        ("Cell", &entity_type.cell_methods, entity_type.exposed_cell_methods()),
    ] {
        let calls = self::methods(list, exposed);
        text.gap();
        text.block_doc(&format!(
            "What clients can call of the {} part. A call returns its number, or a promise of what the method returns.",
            part.to_ascii_lowercase()
        ));
        text.open(&format!("export interface {name}{part}Calls {{"));
        for (method, member) in &calls {
            let returned = if method.is_two_way() {
                format!("Promise<{}>", returned(&method.returns, shapes))
            } else {
                "bigint".to_owned()
            };
            text.line(&format!("{member}({}): {returned};", arguments(&method.args, shapes)));
        }
        text.close("}");
    }
}

/// What each type is to the compiler, by its name in the definitions.
fn write_world(text: &mut Text, types: &[Named<'_>]) {
    text.gap();
    text.block_doc("What the client library needs to know of each type: `new Types<World>(WORLD)`.");
    text.open("export interface World {");
    for Named { entity_type, name } in types {
        text.open(&format!("readonly {}: {{", key(&entity_type.name)));
        for (member, end) in [
            ("view", "View"),
            ("methods", "Methods"),
            ("baseCalls", "BaseCalls"),
            ("cellCalls", "CellCalls"),
        ] {
            text.line(&format!("readonly {member}: {name}{end};"));
        }
        text.close("};");
    }
    text.close("}");
}

fn ids<'n>(text: &mut Text, name: &str, members: impl Iterator<Item = &'n str>) {
    text.gap();
    numbers(text, name, members.zip(0..));
}

/// Names for numbers. Not a `const enum`: compilers that process each file separately cannot read one.
fn numbers<'n>(text: &mut Text, name: &str, members: impl Iterator<Item = (&'n str, usize)>) {
    text.open(&format!("export const {name} = {{"));
    for (member, number) in members {
        text.line(&format!("{member}: {number},"));
    }
    text.close("} as const;");
    text.line(&format!("export type {name} = (typeof {name})[keyof typeof {name}];"));
}

/// The properties that clients see, by client number, with their names.
fn properties(entity_type: &EntityType) -> Vec<(&Property, String)> {
    let mut scope = Scope::default();
    let properties = entity_type.client_properties().iter();
    properties
        .filter_map(|id| entity_type.property(*id))
        .map(|property| (property, scope.camel(&property.name)))
        .collect()
}

/// Methods by client number, with their names.
fn methods<'s>(methods: &'s [Method], ids: &[MemberId]) -> Vec<(&'s Method, String)> {
    let mut scope = Scope::default();
    ids.iter()
        .filter_map(|id| methods.get(usize::from(id.0)))
        .map(|method| (method, scope.camel(&method.name)))
        .collect()
}

fn arguments(arguments: &[Argument], shapes: &Shapes) -> String {
    let mut scope = Scope::with(&KEYWORDS);
    let arguments = arguments.iter();
    let spelled = arguments.map(|argument| {
        let name = scope.camel(&argument.name);
        format!("{name}: {}", spelled(&argument.data_type, shapes))
    });
    spelled.collect::<Vec<_>>().join(", ")
}

/// The values that a method returns, as an object.
fn returned(returns: &[Argument], shapes: &Shapes) -> String {
    let fields = returns.iter().map(|argument| {
        let (name, of) = (key(&argument.name), spelled(&argument.data_type, shapes));
        format!("readonly {name}: {of}")
    });
    format!("{{ {} }}", fields.collect::<Vec<_>>().join("; "))
}

/// Words that cannot be names of parameters.
const KEYWORDS: [&str; 46] = [
    "arguments",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "debugger",
    "default",
    "delete",
    "do",
    "else",
    "enum",
    "eval",
    "export",
    "extends",
    "false",
    "finally",
    "for",
    "function",
    "if",
    "implements",
    "import",
    "in",
    "instanceof",
    "interface",
    "let",
    "new",
    "null",
    "package",
    "private",
    "protected",
    "public",
    "return",
    "static",
    "super",
    "switch",
    "this",
    "throw",
    "true",
    "try",
    "typeof",
    "var",
    "void",
    "while",
];

fn describe(text: &mut Text, named: &Named<'_>) {
    let Named { entity_type, name } = named;
    text.open("{");
    text.line(&format!("id: TypeId.{name},"));
    text.line(&format!("name: {},", quoted(&entity_type.name)));
    text.open("properties: [");
    for (property, member) in properties(entity_type) {
        let part = if property.distribution.on_base() {
            "base"
        } else {
            "cell"
        };
        let (declared, stream) = (quoted(&property.name), stream(&property.data_type));
        let initial = initial(property);
        text.line(&format!(
            "{{ name: {member:?}, declared: {declared}, part: \"{part}\", stream: {stream}, initial: \"{initial}\" }},"
        ));
    }
    text.close("],");
    describe_methods(
        text,
        "methods",
        &entity_type.client_methods,
        entity_type.client_method_ids(),
        false,
    );
    describe_methods(
        text,
        "baseCalls",
        &entity_type.base_methods,
        entity_type.exposed_base_methods(),
        true,
    );
    describe_methods(
        text,
        "cellCalls",
        &entity_type.cell_methods,
        entity_type.exposed_cell_methods(),
        true,
    );
    text.close("},");
}

/// The value of a new entity's property in its encoding, as hexadecimal digits.
fn initial(property: &Property) -> String {
    let mut bytes = Vec::new();
    encode(&property.data_type, &property.default, Form::Shown, &mut bytes)
        .expect("invariant: a default is a value of its property's type");
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn describe_methods(text: &mut Text, name: &str, list: &[Method], ids: &[MemberId], are_calls: bool) {
    text.open(&format!("{name}: ["));
    let mut scope = Scope::default();
    for method in ids.iter().filter_map(|id| list.get(usize::from(id.0))) {
        let member = scope.camel(&method.name);
        let args: Vec<String> = method.args.iter().map(|argument| stream(&argument.data_type)).collect();
        let own = match (are_calls, method.exposed) {
            (false, _) => String::new(),
            (true, exposed) => format!(", ownOnly: {}", exposed == Exposure::OwnClient),
        };
        let returns: Vec<String> = method
            .returns
            .iter()
            .map(|argument| format!("[{}, {}]", quoted(&argument.name), stream(&argument.data_type)))
            .collect();
        let returns = match (are_calls, method.is_two_way()) {
            (true, true) => format!(", returns: [{}]", returns.join(", ")),
            _ => String::new(),
        };
        let (declared, args) = (quoted(&method.name), args.join(", "));
        text.line(&format!(
            "{{ name: {member:?}, declared: {declared}, args: [{args}]{own}{returns} }},"
        ));
    }
    text.close("],");
}

/// The type of a value.
fn spelled(data_type: &DataType, shapes: &Shapes) -> String {
    let simple = match data_type {
        DataType::Int8
        | DataType::Int16
        | DataType::Int32
        | DataType::UInt8
        | DataType::UInt16
        | DataType::UInt32
        | DataType::Float32
        | DataType::Float64 => "number",
        DataType::Int64 | DataType::UInt64 => "bigint",
        DataType::Unicode => "string",
        DataType::String | DataType::Blob | DataType::UdoRef | DataType::Python(_) | DataType::UserType(_) => {
            "Uint8Array"
        }
        DataType::Vector2 => "readonly [number, number]",
        DataType::Vector3 => "readonly [number, number, number]",
        DataType::Vector4 => "readonly [number, number, number, number]",
        // Clients cannot use a mailbox, and are sent none.
        DataType::Mailbox => "null",
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            let of = spelled(&sequence.of, shapes);
            let is_word = of.chars().all(|letter| letter.is_ascii_alphanumeric());
            return if is_word {
                format!("readonly {of}[]")
            } else {
                format!("readonly ({of})[]")
            };
        }
        DataType::FixedDict(dict) => {
            let name = shapes.get(dict).map_or("never", |shape| shape.name.as_str());
            return if dict.allow_none {
                format!("{name} | null")
            } else {
                name.to_owned()
            };
        }
    };
    simple.to_owned()
}

/// The encoding of a value, as data.
fn stream(data_type: &DataType) -> String {
    match data_type {
        DataType::Python(_) | DataType::UserType(_) => "\"OPAQUE\"".to_owned(),
        DataType::Array(sequence) | DataType::Tuple(sequence) => {
            let kind = if matches!(data_type, DataType::Array(_)) {
                "ARRAY"
            } else {
                "TUPLE"
            };
            let size = sequence.size.map_or_else(|| "null".to_owned(), |size| size.to_string());
            format!("{{ kind: \"{kind}\", of: {}, size: {size} }}", stream(&sequence.of))
        }
        DataType::FixedDict(dict) => {
            let fields = dict.fields.iter();
            let fields = fields.map(|field| format!("[{}, {}]", quoted(&field.name), stream(&field.data_type)));
            let fields = fields.collect::<Vec<_>>().join(", ");
            format!(
                "{{ kind: \"FIXED_DICT\", allowNone: {}, fields: [{fields}] }}",
                dict.allow_none
            )
        }
        simple => format!("\"{simple}\""),
    }
}

/// A field's name as a key: values use the names in the definitions.
fn key(name: &str) -> String {
    let is_plain = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || letter == '_');
    if is_plain { name.to_owned() } else { quoted(name) }
}

/// A string literal: JSON strings are valid in TypeScript.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}
