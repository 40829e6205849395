//! Rust generation: the file, and shared helpers.
//!
//! A file has the structs first, then the code that combines the entity types, then a module for each of them, and for
//! each user data object type. Each module imports what its text mentions.

mod behaviour;
mod changed;
mod client;
mod component;
mod dicts;
mod game;
mod ghost;
mod imports;
mod ledger_names;
mod mailbox;
mod objects;
mod own;
mod spelling;

use annals_def::{DataType, EntityType, Exposure, Index, Method, Property, Schema};
use annals_ids::Part;

use super::{CodeParts, MARK, Model, naming::Scope, shapes::Shapes, text::Text};

/// Names that generated modules define themselves.
const LOCAL: [&str; 12] = [
    "Base",
    "BaseBehaviour",
    "BaseMailbox",
    "Cell",
    "CellBehaviour",
    "CellMailbox",
    "Client",
    "ClientBehaviour",
    "Clients",
    "Dispatcher",
    "Game",
    "NewBase",
];

/// Names of the Rust prelude that generated code uses.
const PRELUDE: [&str; 14] = [
    "Box", "Clone", "Default", "Err", "From", "Into", "None", "Ok", "Option", "Result", "Self", "Some", "String", "Vec",
];

/// Number of parameters from which a generated function allows clippy's lint about too many.
const MANY_PARAMETERS: usize = 7;

/// An entity type with its names in code.
struct Named<'s> {
    entity_type: &'s EntityType,
    /// Whether its entities are the fragments of a service.
    is_service: bool,
    /// The name of its module.
    module: String,
    /// The name of each two-way method's answer, by part and index.
    base_replies: Vec<Option<String>>,
    cell_replies: Vec<Option<String>>,
    /// Its components by part and name: the name of the struct, and of the one with setters.
    components: Vec<Components>,
    shapes: &'s Shapes,
}

/// A component of an entity type, with the members that one part holds.
struct Components {
    side: Side,
    /// The prefix of its members' names, before the point.
    slot: String,
    name: String,
    tracked: String,
}

/// The whole file.
pub(super) fn file(model: &Model, parts: CodeParts) -> String {
    let Model { schema, aliases } = model;
    let mut reserved = imports::names();
    reserved.extend(LOCAL);
    reserved.extend([
        "NewCell",
        "BaseCalls",
        "CellCalls",
        "ClientGame",
        "ClientDispatcher",
        "Ghost",
    ]);
    reserved.extend(PRELUDE);
    let shapes = Shapes::of(schema, aliases, Scope::with(&reserved));
    let mut modules = module_names(schema);
    let types = named(schema, &shapes, &mut modules);
    let objects = objects::named(schema, &shapes, &mut modules);
    let mut text = Text::at(0);
    text.line(&format!("//! {MARK}."));
    text.line("//!");
    text.line(&format!("//! From the schema {}.", schema.fingerprint()));
    text.gap();
    let mut body = Text::at(0);
    if parts.is_server() {
        body.doc("The fingerprint of the schema that this was generated from.");
        body.line(&format!("pub const SCHEMA: &str = \"{}\";", schema.fingerprint()));
    }
    ledger_names::write(&mut body, schema.ledger_names(), parts);
    let used = shapes.used(schema, parts);
    for shape in shapes.all().filter(|shape| used.contains(shape.name.as_str())) {
        dicts::write(&mut body, shape, &shapes, parts.is_server());
    }
    if parts.is_server() {
        game::write(&mut body, &types, parts);
    }
    if parts.client {
        body.gap();
        body.doc("The fingerprint of what clients see of that schema.");
        body.line(&format!(
            "pub const CLIENT_SCHEMA: &str = \"{}\";",
            schema.client_fingerprint()
        ));
        client::write_game(&mut body, &types);
    }
    let body = body.finish();
    imports::write(&mut text, &body, &[]);
    text.put(&body);
    for named in &types {
        if !parts.is_server() && !client::is_seen(named) {
            continue;
        }
        write_module(
            &mut text,
            (&named.module, &about(named)),
            &module(named, parts),
            &shapes,
        );
    }
    for object in objects.iter().filter(|_| parts.is_server()) {
        write_module(
            &mut text,
            (&object.module, &object.about()),
            &object.write(&shapes),
            &shapes,
        );
    }
    text.finish()
}

/// Writes a module with its name, its documentation and its content.
fn write_module(text: &mut Text, (name, about): (&str, &str), content: &str, shapes: &Shapes) {
    text.gap();
    text.doc(about);
    text.line(&format!("pub mod {name} {{"));
    let names: Vec<&str> = shapes
        .all()
        .flat_map(|shape| [shape.name.as_str(), shape.edit_name.as_str()])
        .collect();
    let mut inside = Text::at(1);
    imports::write(&mut inside, content, &names);
    text.put(&inside.finish());
    text.put(content);
    text.line("}");
}

/// Documentation of a type's module.
fn about(named: &Named<'_>) -> String {
    let EntityType { name, id, .. } = named.entity_type;
    match named.is_service {
        true => format!("`{name}`, a service; its fragments are of entity type {}.", id.0),
        false => format!("`{name}`, entity type {}.", id.0),
    }
}

/// The content of a type's module.
fn module(named: &Named<'_>, parts: CodeParts) -> String {
    let mut text = Text::at(1);
    let entity_type = named.entity_type;
    text.doc("Its number among the entity types.");
    text.line(&format!("pub const TYPE: TypeId = TypeId({});", entity_type.id.0));
    if parts.is_server() {
        for side in named.sides() {
            mailbox::replies(&mut text, named, side);
        }
        for side in named.sides() {
            let wanted = match side {
                Side::Base => parts.base,
                Side::Cell => parts.cell,
            };
            if wanted {
                own::write(&mut text, named, side);
                component::write(&mut text, named, side);
                behaviour::write(&mut text, named, side);
            }
            mailbox::write(&mut text, named, side);
        }
        if named.has_clients() {
            mailbox::clients(&mut text, named);
        }
    }
    if parts.client && client::is_seen(named) {
        client::write(&mut text, named);
    }
    text.finish()
}

/// The names of modules that no type has.
fn module_names(schema: &Schema) -> Scope {
    let mut taken = vec!["client", "node", "typed"];
    taken.extend(Some("kinds").filter(|_| !schema.ledger_names().kinds().is_empty()));
    taken.extend(Some("slots").filter(|_| !schema.ledger_names().slots().is_empty()));
    Scope::with(&taken)
}

fn named<'s>(schema: &'s Schema, shapes: &'s Shapes, modules: &mut Scope) -> Vec<Named<'s>> {
    let name = |entity_type: &'s EntityType| {
        let mut types = shapes.scope().clone();
        let mut replies = |methods: &[Method]| -> Vec<Option<String>> {
            let reply = |method: &Method| {
                method
                    .is_two_way()
                    .then(|| types.pascal(&format!("{}_reply", method.name)))
            };
            methods.iter().map(reply).collect()
        };
        let (base_replies, cell_replies) = (replies(&entity_type.base_methods), replies(&entity_type.cell_methods));
        Named {
            entity_type,
            is_service: schema.is_fragment(entity_type.id),
            base_replies,
            cell_replies,
            module: modules.snake(&entity_type.name),
            components: component::find(entity_type, &mut types),
            shapes,
        }
    };
    schema.all_types().map(name).collect()
}

/// A part of an entity on the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Side {
    Base,
    Cell,
}

impl Side {
    fn part(self) -> Part {
        match self {
            Self::Base => Part::Base,
            Self::Cell => Part::Cell,
        }
    }

    /// The name in the style of types.
    fn name(self) -> &'static str {
        match self {
            Self::Base => "Base",
            Self::Cell => "Cell",
        }
    }

    /// The name in the style of functions and in prose.
    fn word(self) -> &'static str {
        match self {
            Self::Base => "base",
            Self::Cell => "cell",
        }
    }
}

impl Named<'_> {
    /// The parts that the type has on the server.
    fn sides(&self) -> impl Iterator<Item = Side> + use<> {
        let parts = self.entity_type.parts;
        let base = parts.base.then_some(Side::Base);
        base.into_iter().chain(parts.cell.then_some(Side::Cell))
    }

    fn methods(&self, side: Side) -> &[Method] {
        match side {
            Side::Base => &self.entity_type.base_methods,
            Side::Cell => &self.entity_type.cell_methods,
        }
    }

    fn replies(&self, side: Side) -> &[Option<String>] {
        match side {
            Side::Base => &self.base_replies,
            Side::Cell => &self.cell_replies,
        }
    }

    fn properties(&self, side: Side) -> impl Iterator<Item = &Property> {
        let all = self.entity_type.properties.iter();
        all.filter(move |property| property.distribution.on(side.part()))
    }

    fn has_clients(&self) -> bool {
        !self.entity_type.client_methods.is_empty()
    }

    fn spelled(&self, data_type: &DataType) -> String {
        spelling::spelled(data_type, self.shapes)
    }
}

/// Documentation of a property.
fn about_property(property: &Property) -> String {
    let Property {
        name,
        data_type,
        distribution,
        index,
        ..
    } = property;
    let mut about = format!("`{name}`: {}, {distribution}", shortened(data_type));
    if property.persistent {
        about += ", persistent";
    }
    about += match property.indexed {
        Index::None => "",
        Index::Plain => ", indexed",
        Index::Unique => ", unique",
    };
    if property.latest_only {
        about += ", latest only";
    }
    if property.personal.is_some() {
        about += ", personal";
    }
    if let Some(account) = property.account {
        about += &format!(", a view of the ledger: {account}");
    }
    about += &format!("; property {}", index.0);
    if let Some(client_id) = property.client_id {
        about += &format!(", client number {client_id}");
    }
    about + "."
}

/// Documentation of a method.
fn about_method(method: &Method, kind: &str) -> String {
    let mut about = format!("`{}`: {kind} method {}", method.name, method.index.0);
    if let Some(client_id) = method.client_id {
        about += &format!(", client number {client_id}");
    }
    about += match method.exposed {
        Exposure::No => "",
        Exposure::OwnClient => "; the own client may call it",
        Exposure::AllClients => "; clients may call it",
    };
    if let Some(calls) = method.calls_per_minute {
        about += &format!(", {calls} times per minute");
    }
    if let Some(distance) = method.detail_distance {
        about += &format!("; within {distance} m");
    }
    if method.latest_only {
        about += "; latest only";
    }
    about + "."
}

/// A type in words, with large ones shortened.
fn shortened(data_type: &DataType) -> String {
    const LONGEST: usize = 60;
    let whole = data_type.to_string();
    if whole.len() <= LONGEST {
        return whole;
    }
    let kind = whole.split_whitespace().next().unwrap_or_default();
    format!("{kind} …")
}

/// Writes the attribute that allows many parameters, if there are many.
fn allow_many(text: &mut Text, parameters: usize) {
    if parameters >= MANY_PARAMETERS {
        text.line("#[allow(clippy::too_many_arguments, reason = \"as many as are declared\")]");
    }
}
