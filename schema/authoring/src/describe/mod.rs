//! Description of a schema: what it costs, and who sees what of it, as plain data for display or for programs.
//!
//! [`describe`] needs only the compiled schema; [`Description::of_survey`] adds what only the files contain: the place
//! of each declaration, the text of its type, its documentation and advice.

mod json;
pub(crate) mod marks;
mod page;
mod storage;
mod surveyed;
mod table;

use std::collections::BTreeMap;

use annals_def::{
    AccountView, AliasOrigin, Ancestor, Argument, DefinitionOrigin, DetailedPosition, Diagnostic, Distribution, Domain,
    EntityType, Exposure, Ids, LedgerNames, LodLevel, MemberOrigin, Method, Parts, Property, Schema, Size, TypeOrigin,
    Value, Volatile,
};
use annals_ids::{Hash, MemberId, Part, TypeId};

pub use json::to_json as description_to_json;
pub use page::to_page;
pub use storage::{Storage, StoredIndex};
pub use table::to_table;

/// A schema with its costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Description {
    /// The fingerprint of the schema.
    pub fingerprint: Hash,
    /// The entity types in the order of their ids.
    pub types: Vec<TypeDescription>,
    /// The services in their declared order.
    pub services: Vec<ServiceDescription>,
    /// The user data object types in their declared order.
    pub user_data_objects: Vec<ObjectDescription>,
    /// The names of kinds of assets and slots of accounts.
    pub ledger_names: LedgerNames,
    /// The aliases, if the files are known.
    pub aliases: Vec<AliasOrigin>,
    /// The parents, interfaces and components of types, if the files are known.
    pub definitions: Vec<DefinitionOrigin>,
}

/// An entity type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypeDescription {
    /// Its number.
    pub id: TypeId,
    pub name: String,
    pub parts: Parts,
    /// The type as which clients see it, if another.
    pub client_type: Option<String>,
    /// Whether its entities can be stored.
    pub persistent: bool,
    /// The parts of position and direction that are volatile, with their distances.
    pub volatile: Volatile,
    /// Its levels of detail, the nearest first.
    pub lod_levels: Vec<LodLevel>,
    /// How its exact position is sent, if it is.
    pub detailed_position: Option<DetailedPosition>,
    /// Metres around it within which it attracts areas of interest.
    pub appeal_radius: f32,
    /// Clients see it only if behaviour says so.
    pub manual_aoi: bool,
    /// Members that are neither backed up nor handed over.
    pub temp_properties: Vec<String>,
    /// All its properties, in declared order.
    pub properties: Vec<PropertyDescription>,
    /// The methods of its base part, in declared order.
    pub base_methods: Vec<MethodDescription>,
    /// The methods of its cell part, in declared order.
    pub cell_methods: Vec<MethodDescription>,
    /// The methods of its clients, in declared order.
    pub client_methods: Vec<MethodDescription>,
    /// The properties that clients see, in the order of their ids.
    pub client_properties: Ids,
    /// The base methods that clients may call, in the order of their ids.
    pub exposed_base_methods: Ids,
    /// The cell methods that clients may call, in the order of their ids.
    pub exposed_cell_methods: Ids,
    /// The client methods, in the order of their ids.
    pub client_method_ids: Ids,
    /// The size of a whole entity.
    pub totals: Totals,
    /// Its declaration, if the files are known.
    pub origin: Option<TypeOrigin>,
    /// Warnings and advice, if the files are known.
    pub advice: Vec<Diagnostic>,
}

/// A property.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyDescription {
    /// Its position among the properties of its type.
    pub index: MemberId,
    /// Its client number.
    pub id: Option<u16>,
    pub name: String,
    /// Its type with all aliases resolved, in the notation of the language.
    pub data_type: String,
    /// The bytes of its value.
    pub size: Size,
    /// The parts and clients that have it.
    pub distribution: Distribution,
    /// The level of detail within which its changes are sent to other clients; `None`: at any distance.
    pub level: Option<LodLevel>,
    /// Whether it is personal, that is sealed. Its type is then that of the sealed value.
    pub personal: bool,
    /// The account that it shows, if it is a view.
    pub account: Option<AccountView>,
    /// Only the newest change is kept for an observer.
    pub latest_only: bool,
    /// Changes are sent again when lost.
    pub reliable: bool,
    /// World editors offer it.
    pub editable: bool,
    /// The id that its author fixed for a foreign wire.
    pub protocol_id: Option<u16>,
    /// It is neither backed up nor handed over.
    pub temporary: bool,
    /// Its initial value.
    pub default: Value,
    /// How it is stored, if it is.
    pub storage: Option<Storage>,
    /// Its declaration, if the files are known.
    pub origin: Option<MemberOrigin>,
    /// Warnings and advice, if the files are known.
    pub advice: Vec<Diagnostic>,
}

/// A method.
#[derive(Clone, Debug, PartialEq)]
pub struct MethodDescription {
    /// Its position among the methods of its part.
    pub index: MemberId,
    /// Its client number, if clients know it.
    pub id: Option<u16>,
    pub name: String,
    /// Its arguments.
    pub args: Vec<ArgumentDescription>,
    /// Its return values.
    pub returns: Vec<ArgumentDescription>,
    /// The bytes of its arguments.
    pub size: Size,
    /// Which clients may call it.
    pub exposed: Exposure,
    /// Calls of one client in a minute.
    pub calls_per_minute: Option<u32>,
    /// Other clients farther away than this many metres do not receive it.
    pub detail_distance: Option<f32>,
    /// Only the newest call is kept for an observer.
    pub latest_only: bool,
    /// A lost call is sent again.
    pub reliable: bool,
    /// The id that its author fixed for a foreign wire.
    pub protocol_id: Option<u16>,
    /// Its declaration, if the files are known.
    pub origin: Option<MemberOrigin>,
    /// Warnings and advice, if the files are known.
    pub advice: Vec<Diagnostic>,
}

/// An argument, a returned value, or a property of a user data object.
#[derive(Clone, Debug, PartialEq)]
pub struct ArgumentDescription {
    pub name: String,
    /// Its type with all aliases resolved.
    pub data_type: String,
    /// The bytes of its value.
    pub size: Size,
}

/// A service.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceDescription {
    pub name: String,
    pub methods: Vec<MethodDescription>,
    /// Its declaration, if the files are known.
    pub origin: Option<TypeOrigin>,
    /// Warnings and advice, if the files are known.
    pub advice: Vec<Diagnostic>,
}

/// A user data object type.
#[derive(Clone, Debug, PartialEq)]
pub struct ObjectDescription {
    pub name: String,
    /// Where it is created.
    pub domain: Domain,
    /// Its properties and their initial values.
    pub properties: Vec<(ArgumentDescription, Value)>,
    /// Its declaration, if the files are known.
    pub origin: Option<TypeOrigin>,
    /// Warnings and advice, if the files are known.
    pub advice: Vec<Diagnostic>,
}

/// The size of a whole entity, in bytes of values, without ids and lengths of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Sent to its own client when it enters the view.
    pub own_client: Sum,
    /// Sent to another client when it enters the view.
    pub other_clients: Sum,
    /// Sent to a neighbouring cell.
    pub ghosts: Sum,
    /// Stored, including the type's name.
    pub stored: Sum,
}

/// A sum of sizes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sum {
    /// Number of members.
    pub members: usize,
    /// Their minimum bytes.
    pub least: usize,
    /// Their bytes while each has its default.
    pub of_defaults: usize,
    /// Whether the size is always the minimum.
    pub is_fixed: bool,
}

/// Describes a schema.
#[must_use]
pub fn describe(schema: &Schema) -> Description {
    Description {
        fingerprint: schema.fingerprint(),
        types: schema.types().iter().map(|one| describe_type(schema, one)).collect(),
        services: schema
            .services()
            .iter()
            .map(|service| ServiceDescription {
                name: service.name.clone(),
                methods: service.methods.iter().map(MethodDescription::of).collect(),
                origin: None,
                advice: Vec::new(),
            })
            .collect(),
        user_data_objects: schema
            .user_data_objects()
            .iter()
            .map(|object| ObjectDescription {
                name: object.name.clone(),
                domain: object.domain,
                properties: object
                    .properties
                    .iter()
                    .map(|field| {
                        let size = Size::of_value(&field.data_type, &field.default);
                        let data_type = field.data_type.to_string();
                        let name = field.name.clone();
                        (ArgumentDescription { name, data_type, size }, field.default.clone())
                    })
                    .collect(),
                origin: None,
                advice: Vec::new(),
            })
            .collect(),
        ledger_names: schema.ledger_names().clone(),
        aliases: Vec::new(),
        definitions: Vec::new(),
    }
}

impl Description {
    /// The names of the types, services and user data objects.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let types = self.types.iter().map(|one| one.name.as_str());
        let services = self.services.iter().map(|service| service.name.as_str());
        let objects = self.user_data_objects.iter().map(|object| object.name.as_str());
        types.chain(services).chain(objects).collect()
    }

    /// Removes all types, services and user data objects except those of these names.
    pub fn keep(&mut self, wanted: &[String]) {
        self.types.retain(|one| wanted.contains(&one.name));
        self.services.retain(|service| wanted.contains(&service.name));
        self.user_data_objects.retain(|object| wanted.contains(&object.name));
        self.ledger_names = LedgerNames::default();
    }
}

fn describe_type(schema: &Schema, one: &EntityType) -> TypeDescription {
    let client_type = one.client_type.and_then(|id| schema.entity_type(id));
    let methods = |methods: &[Method]| methods.iter().map(MethodDescription::of).collect();
    let properties: Vec<_> = one
        .properties
        .iter()
        .map(|property| PropertyDescription::of(one, property))
        .collect();
    let (client_properties, client_method_ids) = Ids::shown(one);
    TypeDescription {
        id: one.id,
        name: one.name.clone(),
        parts: one.parts,
        client_type: client_type.map(|client_type| client_type.name.clone()),
        persistent: one.persistent,
        volatile: one.volatile,
        lod_levels: one.lod_levels.clone(),
        detailed_position: one.detailed_position,
        appeal_radius: one.appeal_radius,
        manual_aoi: one.manual_aoi,
        temp_properties: one.temp_properties.clone(),
        base_methods: methods(&one.base_methods),
        cell_methods: methods(&one.cell_methods),
        client_methods: methods(&one.client_methods),
        client_properties,
        exposed_base_methods: Ids::called(one, Part::Base),
        exposed_cell_methods: Ids::called(one, Part::Cell),
        client_method_ids,
        totals: Totals::of(&one.name, one.persistent, &properties),
        properties,
        origin: None,
        advice: Vec::new(),
    }
}

impl PropertyDescription {
    fn of(one: &EntityType, property: &Property) -> Self {
        let level = property
            .detail_level
            .and_then(|level| one.lod_levels.get(usize::from(level)));
        Self {
            index: property.index,
            id: property.client_id,
            name: property.name.clone(),
            data_type: property.personal.as_ref().unwrap_or(&property.data_type).to_string(),
            size: Size::of_value(&property.data_type, &property.default),
            distribution: property.distribution,
            level: level.cloned(),
            personal: property.personal.is_some(),
            account: property.account,
            latest_only: property.latest_only,
            reliable: property.reliable,
            editable: property.editable,
            protocol_id: property.protocol_id,
            temporary: one.temp_properties.contains(&property.name),
            default: property.default.clone(),
            storage: Storage::of(one, property),
            origin: None,
            advice: Vec::new(),
        }
    }

    /// The text of its type in its file; without files, with all aliases resolved.
    #[must_use]
    pub fn written(&self) -> &str {
        let written = self.origin.as_ref().and_then(|origin| origin.written.first());
        written.unwrap_or(&self.data_type)
    }

    /// The words for copies beside the part that owns it, in a fixed order.
    #[must_use]
    pub fn receivers(&self) -> Vec<&'static str> {
        let Self { distribution, .. } = self;
        let receivers = [
            (distribution.on_base(), "base"),
            (distribution.on_cell(), "cell"),
            (distribution.to_ghosts(), "ghosts"),
            (distribution.to_own_client(), "own client"),
            (distribution.to_other_clients(), "other clients"),
        ];
        receivers
            .into_iter()
            .filter(|(has, _)| *has)
            .map(|(_, who)| who)
            .collect()
    }
}

impl MethodDescription {
    fn of(method: &Method) -> Self {
        Self {
            index: method.index,
            id: method.client_id,
            name: method.name.clone(),
            args: method.args.iter().map(ArgumentDescription::of).collect(),
            returns: method.returns.iter().map(ArgumentDescription::of).collect(),
            size: method.args.iter().map(|argument| Size::of(&argument.data_type)).sum(),
            exposed: method.exposed,
            calls_per_minute: method.calls_per_minute,
            detail_distance: method.detail_distance,
            latest_only: method.latest_only,
            reliable: method.reliable,
            protocol_id: method.protocol_id,
            origin: None,
            advice: Vec::new(),
        }
    }
}

impl MethodDescription {
    /// The text of its arguments' types in its file; empty without files.
    #[must_use]
    pub fn written(&self) -> &[String] {
        self.origin.as_ref().map_or(&[], |origin| &origin.written)
    }
}

impl ArgumentDescription {
    fn of(argument: &Argument) -> Self {
        Self {
            name: argument.name.clone(),
            data_type: argument.data_type.to_string(),
            size: Size::of(&argument.data_type),
        }
    }
}

impl Totals {
    fn of(type_name: &str, is_stored: bool, properties: &[PropertyDescription]) -> Self {
        let mut totals = Self::default();
        for sum in [
            &mut totals.own_client,
            &mut totals.other_clients,
            &mut totals.ghosts,
            &mut totals.stored,
        ] {
            sum.is_fixed = true;
        }
        for property in properties {
            let seen = [
                (property.distribution.to_own_client(), &mut totals.own_client),
                (property.distribution.to_other_clients(), &mut totals.other_clients),
                (property.distribution.to_ghosts(), &mut totals.ghosts),
            ];
            for (_, sum) in seen.into_iter().filter(|(is_seen, _)| *is_seen) {
                sum.add(property.size);
            }
            if let Some(storage) = &property.storage {
                totals.stored.add(storage.size);
            }
        }
        if is_stored {
            let head = Storage::head(type_name, totals.stored.members);
            totals.stored.least += head;
            totals.stored.of_defaults += head;
        }
        totals
    }
}

impl Sum {
    fn add(&mut self, size: Size) {
        self.members += 1;
        self.least = self.least.saturating_add(size.least());
        self.of_defaults = self.of_defaults.saturating_add(size.of_default());
        self.is_fixed &= size.fixed().is_some();
    }
}

/// Lookup of members by name.
impl TypeDescription {
    /// The property at this position.
    #[must_use]
    pub fn property(&self, id: MemberId) -> &PropertyDescription {
        &self.properties[usize::from(id.0)]
    }

    /// The definitions that it inherits from, without itself.
    #[must_use]
    pub fn ancestors(&self) -> &[Ancestor] {
        self.origin.as_ref().map_or(&[], |origin| &origin.ancestors)
    }

    /// The warnings and the advice on the type and its members.
    pub fn all_advice(&self) -> impl Iterator<Item = &Diagnostic> {
        let methods = [&self.base_methods, &self.cell_methods, &self.client_methods]
            .into_iter()
            .flatten();
        let on_properties = self.properties.iter().flat_map(|property| &property.advice);
        let on_methods = methods.flat_map(|method| &method.advice);
        self.advice.iter().chain(on_properties).chain(on_methods)
    }

    /// The number of members that each definition contributes.
    #[must_use]
    pub fn members_by_origin(&self) -> BTreeMap<&Ancestor, usize> {
        let methods = [&self.base_methods, &self.cell_methods, &self.client_methods]
            .into_iter()
            .flatten();
        let origins = self
            .properties
            .iter()
            .map(|one| &one.origin)
            .chain(methods.map(|one| &one.origin));
        let mut counts = BTreeMap::new();
        for origin in origins.flatten() {
            *counts.entry(&origin.from).or_default() += 1;
        }
        counts
    }
}
