//! The stored form of a schema; its hash is the fingerprint.
//!
//! ```text
//! schema      = 01 world | 02 list(kind-name) list(slot-name) world      02 if a kind or a slot has a name
//! world       = list(type) list(service) list(udo)
//! kind-name   = kind:u32 name    slot-name = slot:u16 name    by ascending numbers, each name an identifier, and once
//! type        = name parts:u8 option(client_type:u16) persistent:bool list(property)
//!               list(method){3: base, cell, client}
//!               volatile list(level) list(name) option(bool) appeal_radius:f32 manual_aoi:bool
//! volatile    = reach{4: position, yaw, pitch, roll} ground_only:bool
//! reach       = 00 | 01 f32 | 02
//! level       = label:name radius:f32 hysteresis:f32
//! property    = name data_type distribution:u8 default:value flags:u8 index:u8 option(length:u32) option(level:u8)
//!               option(protocol_id:u16) account personal header
//! personal    = data_type if bit 6 of the property's flags is set, else nothing
//! account     = slot:u16 option(kind:u32) if bit 5 of the property's flags is set, else nothing
//! header      = 02 | 03 | 04 if bit 7 of the property's flags is set, else nothing, which is 1
//! method      = name list(argument) list(argument) exposure:u8 option(f32) flags:u8 option(protocol_id:u16) header
//!               (bit 2 of the method's flags) calls
//! calls       = per_minute:u32 if bit 3 of the method's flags is set, else nothing
//! argument    = name data_type
//! service     = name list(method)
//! udo         = name domain:u8 list(field)
//! data_type   = code:u8, then by code: python kind:u8 | user type name | sequence | dict
//! sequence    = data_type option(size:u32) as_blob:bool element_default:value
//! dict        = allow_none:bool option(implemented_by:name) list(field)
//! field       = name data_type default:value persistent:bool option(length:u32)
//! value       = the value's bytes as its type says (see the stream module), everything included
//! list(x)     = count:u32 x{count}     option(x) = 00 | 01 x     name = length:u32 UTF-8     bool = 00 | 01
//! ```
//!
//! Names of kinds and slots come first, so that [`LedgerNames::of_stored`] can read them without decoding the rest.
//!
//! Numbers are little-endian. Indices, ids and lookup tables are derived from the order and are not stored.

mod methods;

use std::{collections::BTreeSet, sync::Arc};

use annals_ids::{AssetKind, Slot, TypeId};

use super::{
    AccountView, DetailedPosition, Distribution, Domain, EntityType, Holding, Index, LedgerNames, LodLevel,
    MAX_MEMBERS, MAX_TYPES, Parts, Property, Reach, Schema, Service, UserDataObject, Volatile,
    entity::{Tables, number_methods},
};
use crate::{
    data_type::{
        DataType, Field, FixedDict, Form, MAX_DEFAULT_VALUES, MAX_TYPE_DEPTH, MAX_TYPE_NODES, PythonKind, Sequence,
    },
    read::is_identifier,
    stream,
    value::Value,
};

use methods::put_method;

/// The version of a schema without names of kinds or slots.
const UNNAMED: u8 = 1;

/// The version of a schema with such names.
const NAMED: u8 = 2;

/// Why bytes are not a stored schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("stored schema: {problem}, {left} bytes before its end")]
pub struct SchemaDecodeError {
    pub problem: SchemaProblem,
    /// Number of bytes not read yet.
    pub left: usize,
}

/// A problem in a stored schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SchemaProblem {
    /// An unknown version.
    #[error("unknown version {0} (this program reads versions {UNNAMED} and {NAMED})")]
    Version(u8),
    /// The bytes end too early.
    #[error("the bytes end too early")]
    Truncated,
    /// An unknown code.
    #[error("unknown code {0} for {1}")]
    Code(u8, &'static str),
    /// A name is not UTF-8.
    #[error("a name is not UTF-8")]
    Name,
    /// Names of kinds or slots are not identifiers, not unique, or not in the order of their numbers.
    #[error("a name of a kind or slot is not an identifier, is repeated, or is not in the order of the numbers")]
    LedgerNames,
    /// A default does not fit its type.
    #[error("a default does not fit its type: {0}")]
    Default(stream::DecodeError),
    /// A list or type exceeds a limit.
    #[error("limit exceeded: {0}")]
    Limit(&'static str),
    /// A type whose values take no bytes: a few bytes could stand for any number of them.
    #[error("{0} without parts")]
    Empty(&'static str),
    /// A reference to a type or level that does not exist.
    #[error("a reference to {0} that does not exist")]
    Dangling(&'static str),
    /// A distance that is NaN, infinite or negative.
    #[error("{0} is not a distance")]
    Distance(&'static str),
    /// Trailing bytes.
    #[error("bytes follow the schema")]
    Trailing,
}

impl Schema {
    /// The stored form. Deterministic: the same schema gives the same bytes.
    ///
    /// # Panics
    /// If a default does not fit its type, which no compiled or decoded schema has.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(self.types.len() * BYTES_PER_TYPE);
        put_ledger_names(&self.ledger_names, &mut out);
        put_list(&self.types, &mut out, put_type);
        put_list(&self.services, &mut out, |service, out| {
            put_name(&service.name, out);
            put_list(&service.methods, out, put_method);
        });
        put_list(&self.user_data_objects, &mut out, |object, out| {
            put_name(&object.name, out);
            out.push(match object.domain {
                Domain::Cell => 0,
                Domain::Base => 1,
                Domain::Client => 2,
            });
            put_list(&object.properties, out, put_field);
        });
        out
    }

    /// Decodes a stored schema. Safe for untrusted bytes.
    ///
    /// # Errors
    /// If the bytes are not the output of [`Schema::encode`].
    pub fn decode(bytes: &[u8]) -> Result<Self, SchemaDecodeError> {
        let mut input = Input(bytes);
        input.schema().map_err(|problem| SchemaDecodeError {
            problem,
            left: input.0.len(),
        })
    }
}

impl LedgerNames {
    /// Decodes only the names of kinds and slots in a stored schema. Safe for untrusted bytes.
    ///
    /// # Errors
    /// If the bytes do not begin as [`Schema::encode`] writes them.
    pub fn of_stored(bytes: &[u8]) -> Result<Self, SchemaDecodeError> {
        let mut input = Input(bytes);
        input.ledger_names().map_err(|problem| SchemaDecodeError {
            problem,
            left: input.0.len(),
        })
    }
}

/// Appends the version, and the names if there are any.
fn put_ledger_names(names: &LedgerNames, out: &mut Vec<u8>) {
    if names.is_empty() {
        out.push(UNNAMED);
        return;
    }
    out.push(NAMED);
    put_count(names.kinds().len(), out);
    for (kind, name) in names.kinds() {
        out.extend(kind.0.to_le_bytes());
        put_name(name, out);
    }
    put_count(names.slots().len(), out);
    for (slot, name) in names.slots() {
        out.extend(slot.0.to_le_bytes());
        put_name(name, out);
    }
}

fn put_type(entity_type: &EntityType, out: &mut Vec<u8>) {
    put_name(&entity_type.name, out);
    let Parts { base, cell, client } = entity_type.parts;
    out.push(u8::from(base) | u8::from(cell) << 1 | u8::from(client) << 2);
    put_option(entity_type.client_type, out, |id, out| {
        out.extend(id.0.to_le_bytes());
    });
    out.push(entity_type.persistent.into());
    put_list(&entity_type.properties, out, put_property);
    put_list(&entity_type.base_methods, out, put_method);
    put_list(&entity_type.cell_methods, out, put_method);
    put_list(&entity_type.client_methods, out, put_method);
    let Volatile {
        position,
        yaw,
        pitch,
        roll,
        ground_only,
    } = entity_type.volatile;
    for reach in [position, yaw, pitch, roll] {
        match reach {
            Reach::Never => out.push(0),
            Reach::Within(metres) => {
                out.push(1);
                out.extend(metres.to_le_bytes());
            }
            Reach::Always => out.push(2),
        }
    }
    out.push(ground_only.into());
    put_list(&entity_type.lod_levels, out, |level, out| {
        put_name(&level.label, out);
        out.extend(level.radius.to_le_bytes());
        out.extend(level.hysteresis.to_le_bytes());
    });
    put_list(&entity_type.temp_properties, out, |name, out| {
        put_name(name, out);
    });
    put_option(entity_type.detailed_position, out, |detailed, out| {
        out.push(detailed.latest_only.into());
    });
    out.extend(entity_type.appeal_radius.to_le_bytes());
    out.push(entity_type.manual_aoi.into());
}

fn put_property(property: &Property, out: &mut Vec<u8>) {
    put_name(&property.name, out);
    put_data_type(&property.data_type, out);
    let code = Distribution::ALL.iter().position(|d| *d == property.distribution);
    out.push(
        code.and_then(|code| u8::try_from(code).ok())
            .expect("invariant: ALL has every one"),
    );
    put_value(&property.data_type, &property.default, out);
    out.push(
        u8::from(property.persistent)
            | u8::from(property.identifier) << 1
            | u8::from(property.latest_only) << 2
            | u8::from(property.reliable) << 3
            | u8::from(property.editable) << 4
            | u8::from(property.account.is_some()) << 5
            | u8::from(property.personal.is_some()) << 6
            | u8::from(property.header_size != NO_HEADER) << 7,
    );
    out.push(match property.indexed {
        Index::None => 0,
        Index::Plain => 1,
        Index::Unique => 2,
    });
    put_option(property.database_length, out, |length, out| {
        out.extend(length.to_le_bytes());
    });
    put_option(property.detail_level, out, |level, out| out.push(level));
    put_option(property.protocol_id, out, |id, out| {
        out.extend(id.to_le_bytes());
    });
    if let Some(AccountView { slot, shows }) = property.account {
        out.extend(slot.0.to_le_bytes());
        put_option(shows.kind(), out, |kind, out| out.extend(kind.0.to_le_bytes()));
    }
    if let Some(data_type) = &property.personal {
        put_data_type(data_type, out);
    }
    put_header(property.header_size, out);
}

/// The header size that is not stored.
const NO_HEADER: u8 = 1;

fn put_header(size: u8, out: &mut Vec<u8>) {
    if size != NO_HEADER {
        out.push(size);
    }
}

fn put_field(field: &Field, out: &mut Vec<u8>) {
    put_name(&field.name, out);
    put_data_type(&field.data_type, out);
    put_value(&field.data_type, &field.default, out);
    out.push(field.persistent.into());
    put_option(field.database_length, out, |length, out| {
        out.extend(length.to_le_bytes());
    });
}

/// Approximate bytes of an entity type, for the initial capacity.
const BYTES_PER_TYPE: usize = 4_096;

// The lower codes are those of `DataType::SIMPLE`.
const PYTHON: u8 = 18;
const USER_TYPE: u8 = 19;
const ARRAY: u8 = 20;
const TUPLE: u8 = 21;
const FIXED_DICT: u8 = 22;

fn put_data_type(data_type: &DataType, out: &mut Vec<u8>) {
    match data_type {
        DataType::Python(kind) => out.extend([
            PYTHON,
            match kind {
                PythonKind::Any => 0,
                PythonKind::Dict => 1,
                PythonKind::List => 2,
                PythonKind::Tuple => 3,
            },
        ]),
        DataType::UserType(name) => {
            out.push(USER_TYPE);
            put_name(name, out);
        }
        DataType::Array(sequence) => {
            out.push(ARRAY);
            put_sequence(sequence, out);
        }
        DataType::Tuple(sequence) => {
            out.push(TUPLE);
            put_sequence(sequence, out);
        }
        DataType::FixedDict(dict) => {
            out.push(FIXED_DICT);
            out.push(dict.allow_none.into());
            put_option(dict.implemented_by.as_ref(), out, |name, out| {
                put_name(name, out);
            });
            put_list(&dict.fields, out, put_field);
        }
        simple => out.push(simple_code(simple)),
    }
}

/// The code of a type without parts.
fn simple_code(simple: &DataType) -> u8 {
    let wanted = std::mem::discriminant(simple);
    let code = DataType::SIMPLE
        .iter()
        .position(|known| std::mem::discriminant(known) == wanted);
    code.and_then(|code| u8::try_from(code).ok())
        .expect("invariant: every simple type is listed")
}

fn put_sequence(sequence: &Sequence, out: &mut Vec<u8>) {
    put_data_type(&sequence.of, out);
    put_option(sequence.size, out, |size, out| {
        out.extend(size.to_le_bytes());
    });
    out.push(sequence.persist_as_blob.into());
    put_value(&sequence.of, &sequence.element_default, out);
}

fn put_value(data_type: &DataType, value: &Value, out: &mut Vec<u8>) {
    stream::encode(data_type, value, Form::Whole, out).expect("invariant: a compiled default fits its type");
}

fn put_list<T>(items: &[T], out: &mut Vec<u8>, put: impl Fn(&T, &mut Vec<u8>)) {
    put_count(items.len(), out);
    items.iter().for_each(|item| put(item, out));
}

fn put_option<T>(option: Option<T>, out: &mut Vec<u8>, put: impl Fn(T, &mut Vec<u8>)) {
    out.push(option.is_some().into());
    if let Some(value) = option {
        put(value, out);
    }
}

fn put_name(name: &str, out: &mut Vec<u8>) {
    put_count(name.len(), out);
    out.extend(name.as_bytes());
}

fn put_count(count: usize, out: &mut Vec<u8>) {
    out.extend(
        u32::try_from(count)
            .expect("invariant: sources are far smaller")
            .to_le_bytes(),
    );
}

/// Maximum named kinds, or slots: the number of slots.
const MAX_LEDGER_NAMES: usize = 1 << 16;

/// Whether the numbers ascend, and the names are unique identifiers.
fn are_names<N: Ord>(numbered: &[(N, String)]) -> bool {
    let mut names = BTreeSet::new();
    numbered.is_sorted_by(|(before, _), (after, _)| before < after)
        && numbered
            .iter()
            .all(|(_, name)| is_identifier(name) && names.insert(name))
}

type Read<T> = Result<T, SchemaProblem>;

/// The bytes not read yet.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn schema(&mut self) -> Read<Schema> {
        let ledger_names = self.ledger_names()?;
        let types = self.list("entity types", MAX_TYPES, Self::entity_type)?;
        let services = self.list("services", MAX_TYPES - types.len(), Self::service)?;
        let objects = self.list("user data objects", MAX_TYPES, Self::user_data_object)?;
        if !self.0.is_empty() {
            return Err(SchemaProblem::Trailing);
        }
        let is_there = |id: TypeId| usize::from(id.0) < types.len();
        if !types
            .iter()
            .filter_map(|entity_type| entity_type.client_type)
            .all(is_there)
        {
            return Err(SchemaProblem::Dangling("an entity type"));
        }
        Ok(Schema::new(types, services, objects).with_ledger_names(ledger_names))
    }

    /// Reads the version, and the names if it has any.
    fn ledger_names(&mut self) -> Read<LedgerNames> {
        match self.u8()? {
            UNNAMED => return Ok(LedgerNames::default()),
            NAMED => {}
            other => return Err(SchemaProblem::Version(other)),
        }
        let kind = |input: &mut Self| Ok((AssetKind(input.u32()?), input.name()?));
        let kinds = self.list("names of kinds", MAX_LEDGER_NAMES, kind)?;
        let slot = |input: &mut Self| Ok((Slot(input.u16()?), input.name()?));
        let slots = self.list("names of slots", MAX_LEDGER_NAMES, slot)?;
        if kinds.is_empty() && slots.is_empty() || !are_names(&kinds) || !are_names(&slots) {
            return Err(SchemaProblem::LedgerNames);
        }
        Ok(LedgerNames::new(
            kinds.into_iter().collect(),
            slots.into_iter().collect(),
        ))
    }

    fn entity_type(&mut self) -> Read<EntityType> {
        let name = self.name()?;
        let parts = match self.u8()? {
            bits @ 0..8 => Parts {
                base: bits & 1 != 0,
                cell: bits & 2 != 0,
                client: bits & 4 != 0,
            },
            other => return Err(SchemaProblem::Code(other, "parts")),
        };
        let client_type = self.option(|input| input.u16().map(TypeId))?;
        let persistent = self.bool()?;
        let properties = self.list("properties", MAX_MEMBERS, Self::property)?;
        let base_methods = self.list("base methods", MAX_MEMBERS, Self::method)?;
        let cell_methods = self.list("cell methods", MAX_MEMBERS, Self::method)?;
        let client_methods = self.list("client methods", MAX_MEMBERS, Self::method)?;
        let volatile = Volatile {
            position: self.reach()?,
            yaw: self.reach()?,
            pitch: self.reach()?,
            roll: self.reach()?,
            ground_only: self.bool()?,
        };
        let lod_levels = self.list("levels of detail", u8::MAX.into(), |input| {
            Ok(LodLevel {
                label: input.name()?,
                radius: input.distance("a level's radius")?,
                hysteresis: input.distance("a level's hysteresis")?,
            })
        })?;
        let has_level = |level: u8| usize::from(level) < lod_levels.len();
        if !properties
            .iter()
            .filter_map(|property| property.detail_level)
            .all(has_level)
        {
            return Err(SchemaProblem::Dangling("a level of detail"));
        }
        Ok(EntityType {
            id: TypeId(0),
            name,
            parts,
            client_type,
            persistent,
            properties,
            base_methods,
            cell_methods,
            client_methods,
            volatile,
            lod_levels,
            temp_properties: self.list("temporary properties", MAX_MEMBERS, Self::name)?,
            detailed_position: self.option(|input| {
                Ok(DetailedPosition {
                    latest_only: input.bool()?,
                })
            })?,
            appeal_radius: self.distance("an appeal radius")?,
            manual_aoi: self.bool()?,
            tables: Tables::default(),
        })
    }

    fn reach(&mut self) -> Read<Reach> {
        match self.u8()? {
            0 => Ok(Reach::Never),
            1 => Ok(Reach::Within(self.distance("a volatile distance")?)),
            2 => Ok(Reach::Always),
            other => Err(SchemaProblem::Code(other, "a volatile distance")),
        }
    }

    fn property(&mut self) -> Read<Property> {
        let name = self.name()?;
        let data_type = self.data_type(MAX_TYPE_DEPTH, &mut 0)?;
        let code = self.u8()?;
        let distribution = *Distribution::ALL
            .get(usize::from(code))
            .ok_or(SchemaProblem::Code(code, "a distribution"))?;
        let default = self.value(&data_type)?;
        let flags = self.u8()?;
        let indexed = match self.u8()? {
            0 => Index::None,
            1 => Index::Plain,
            2 => Index::Unique,
            other => return Err(SchemaProblem::Code(other, "an index")),
        };
        let mut property = Property {
            persistent: flags & 1 != 0,
            indexed,
            identifier: flags & 2 != 0,
            database_length: self.option(Self::u32)?,
            detail_level: self.option(Self::u8)?,
            latest_only: flags & 4 != 0,
            reliable: flags & 8 != 0,
            editable: flags & 16 != 0,
            protocol_id: self.option(Self::u16)?,
            default,
            ..Property::new(name, data_type, distribution)
        };
        if flags & 32 != 0 {
            property.account = Some(self.account(&property)?);
        }
        if flags & 64 != 0 {
            let data_type = self.data_type(MAX_TYPE_DEPTH, &mut 0)?;
            let is_sealed = property.clone().sealed(data_type).is_some_and(|sealed| {
                property.personal.clone_from(&sealed.personal);
                sealed == property
            });
            if !is_sealed {
                return Err(SchemaProblem::Dangling("a personal member"));
            }
        }
        property.header_size = self.header(flags & 128 != 0)?;
        Ok(property)
    }

    /// Reads the account that a property shows; rejects one that definitions cannot declare.
    fn account(&mut self, property: &Property) -> Read<AccountView> {
        let slot = Slot(self.u16()?);
        let kind = self.option(Self::u32)?.map(AssetKind);
        let shows = Holding::of(&property.data_type, kind).filter(|_| {
            let is_of_base = property.distribution.on_base();
            is_of_base && !property.persistent && property.default == property.data_type.default_value()
        });
        let shows = shows.ok_or(SchemaProblem::Dangling("an account"))?;
        Ok(AccountView { slot, shows })
    }

    /// Reads the size of a header, if it is stored.
    fn header(&mut self, is_written: bool) -> Read<u8> {
        if !is_written {
            return Ok(NO_HEADER);
        }
        match self.u8()? {
            size @ 2..=4 => Ok(size),
            other => Err(SchemaProblem::Code(other, "a header size")),
        }
    }

    fn service(&mut self) -> Read<Service> {
        let name = self.name()?;
        let mut methods = self.list("methods", MAX_MEMBERS, Self::method)?;
        number_methods(&mut methods);
        Ok(Service { name, methods })
    }

    fn user_data_object(&mut self) -> Read<UserDataObject> {
        let name = self.name()?;
        let domain = match self.u8()? {
            0 => Domain::Cell,
            1 => Domain::Base,
            2 => Domain::Client,
            other => return Err(SchemaProblem::Code(other, "a domain")),
        };
        let properties = self.list("properties", MAX_MEMBERS, |input| input.field(MAX_TYPE_DEPTH, &mut 0))?;
        Ok(UserDataObject {
            name,
            domain,
            properties,
        })
    }

    /// Reads a type of at most `depth` levels; `nodes` counts the nodes of the whole tree.
    fn data_type(&mut self, depth: usize, nodes: &mut usize) -> Read<DataType> {
        let inner = depth
            .checked_sub(1)
            .ok_or(SchemaProblem::Limit("the depth of a type"))?;
        *nodes += 1;
        if *nodes > MAX_TYPE_NODES {
            return Err(SchemaProblem::Limit("the size of a type"));
        }
        let data_type = match self.u8()? {
            PYTHON => DataType::Python(match self.u8()? {
                0 => PythonKind::Any,
                1 => PythonKind::Dict,
                2 => PythonKind::List,
                3 => PythonKind::Tuple,
                other => return Err(SchemaProblem::Code(other, "an opaque type")),
            }),
            USER_TYPE => DataType::UserType(self.name()?),
            ARRAY => DataType::Array(Arc::new(self.sequence(inner, nodes)?)),
            TUPLE => DataType::Tuple(Arc::new(self.sequence(inner, nodes)?)),
            FIXED_DICT => DataType::FixedDict(Arc::new(self.dict(inner, nodes)?)),
            code => DataType::SIMPLE
                .get(usize::from(code))
                .cloned()
                .ok_or(SchemaProblem::Code(code, "a type"))?,
        };
        match data_type.default_count() {
            Some(count) if count <= MAX_DEFAULT_VALUES => Ok(data_type),
            _ => Err(SchemaProblem::Limit("the size of a default value")),
        }
    }

    fn sequence(&mut self, depth: usize, nodes: &mut usize) -> Read<Sequence> {
        let of = self.data_type(depth, nodes)?;
        let size = self.option(Self::u32)?;
        if size == Some(0) {
            return Err(SchemaProblem::Empty("a sequence"));
        }
        let persist_as_blob = self.bool()?;
        let element_default = self.value(&of)?;
        Ok(Sequence {
            of,
            size,
            element_default,
            persist_as_blob,
        })
    }

    fn dict(&mut self, depth: usize, nodes: &mut usize) -> Read<FixedDict> {
        let dict = FixedDict {
            allow_none: self.bool()?,
            implemented_by: self.option(Self::name)?,
            fields: self.list("fields", MAX_MEMBERS, |input| input.field(depth, nodes))?,
        };
        if dict.fields.is_empty() {
            Err(SchemaProblem::Empty("a FIXED_DICT"))
        } else {
            Ok(dict)
        }
    }

    fn field(&mut self, depth: usize, nodes: &mut usize) -> Read<Field> {
        let name = self.name()?;
        let data_type = self.data_type(depth, nodes)?;
        let default = self.value(&data_type)?;
        Ok(Field {
            name,
            data_type,
            default,
            persistent: self.bool()?,
            database_length: self.option(Self::u32)?,
        })
    }

    fn value(&mut self, data_type: &DataType) -> Read<Value> {
        stream::decode(data_type, Form::Whole, &mut self.0).map_err(SchemaProblem::Default)
    }

    fn list<T>(
        &mut self,
        what: &'static str,
        limit: usize,
        mut item: impl FnMut(&mut Self) -> Read<T>,
    ) -> Read<Vec<T>> {
        let count = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        if count > limit {
            return Err(SchemaProblem::Limit(what));
        }
        // Without initial capacity: each item takes at least a byte, so a false count ends with the bytes.
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    fn option<T>(&mut self, item: impl FnOnce(&mut Self) -> Read<T>) -> Read<Option<T>> {
        if self.bool()? { item(self).map(Some) } else { Ok(None) }
    }

    fn name(&mut self) -> Read<String> {
        let length = usize::try_from(self.u32()?).unwrap_or(usize::MAX);
        let (front, rest) = self.0.split_at_checked(length).ok_or(SchemaProblem::Truncated)?;
        self.0 = rest;
        String::from_utf8(front.to_vec()).map_err(|_| SchemaProblem::Name)
    }

    fn bool(&mut self) -> Read<bool> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            other => Err(SchemaProblem::Code(other, "yes or no")),
        }
    }

    fn u8(&mut self) -> Read<u8> {
        self.take().map(u8::from_le_bytes)
    }

    fn u16(&mut self) -> Read<u16> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Read<u32> {
        self.take().map(u32::from_le_bytes)
    }

    /// A distance in metres, 0 or more.
    fn distance(&mut self, what: &'static str) -> Read<f32> {
        let metres = self.take().map(f32::from_le_bytes)?;
        if metres.is_finite() && metres >= 0.0 {
            Ok(metres)
        } else {
            Err(SchemaProblem::Distance(what))
        }
    }

    fn take<const N: usize>(&mut self) -> Read<[u8; N]> {
        let (front, rest) = self.0.split_first_chunk::<N>().ok_or(SchemaProblem::Truncated)?;
        self.0 = rest;
        Ok(*front)
    }
}
