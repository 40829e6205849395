//! The compiled model: all that a realm knows about its entity types, in final order and immutable.
//!
//! Inheritance, interfaces, components and aliases are resolved. A component's members are members of the entity named
//! `component.member`. The [`Schema::fingerprint`] depends on the meaning of the files, not on their spelling;
//! [`Schema::encode`] and [`Schema::decode`] convert a schema to bytes and back.

mod account;
mod client_face;
mod encoding;
mod entity;
mod ledger_names;
mod member;

use std::{
    collections::BTreeMap,
    sync::{Arc, OnceLock},
};

use annals_ids::{EntityId, Hash, ServiceSlot, TypeId};
use sha2::{Digest, Sha256};

pub use account::{AccountView, Holding};
pub use encoding::{SchemaDecodeError, SchemaProblem};
pub use entity::{DetailedPosition, EntityType, LodLevel, Parts, Reach, Volatile};
pub use ledger_names::LedgerNames;
pub use member::{Argument, Distribution, Exposure, Index, MAX_CALLS_PER_MINUTE, Method, Property};

use crate::{data_type::Field, zone::Zones};

/// Maximum entity types: the range of a [`TypeId`].
pub const MAX_TYPES: usize = u16::MAX as usize;

/// Maximum properties, or methods of one kind, of one type: the range of a member id.
pub const MAX_MEMBERS: usize = u16::MAX as usize;

/// Bytes of an identifier that the store's index compares.
pub const INDEXED_BYTES: usize = 255;

/// The compiled schema of a realm.
#[derive(Clone, Debug)]
pub struct Schema {
    types: Vec<EntityType>,
    services: Vec<Service>,
    /// The type of each service's fragments.
    fragments: Vec<EntityType>,
    user_data_objects: Vec<UserDataObject>,
    ledger_names: LedgerNames,
    /// No part of its meaning.
    zones: Arc<Zones>,
    by_name: BTreeMap<String, TypeId>,
    /// Computed on first use: checking definitions does not need it.
    fingerprint: OnceLock<Hash>,
    /// Computed on first use; a base needs it at every hello.
    client_fingerprint: OnceLock<Hash>,
}

/// A service: methods that any of its fragments answers.
#[derive(Clone, Debug, PartialEq)]
pub struct Service {
    /// Its name in `services.xml`.
    pub name: String,
    /// Its methods; indices from 0.
    pub methods: Vec<Method>,
}

impl Service {
    /// Its number in the ids of its fragments: the first bits of the SHA-256 of its name.
    #[must_use]
    pub fn slot(&self) -> ServiceSlot {
        let [first, second, third, fourth, ..]: [u8; 32] = Sha256::digest(self.name.as_bytes()).into();
        ServiceSlot(u32::from_be_bytes([first, second, third, fourth]) >> (u32::BITS - ServiceSlot::BITS))
    }

    /// The type of its fragments: entities with a base part, which has the service's methods and no properties.
    fn fragment(&self) -> EntityType {
        EntityType {
            parts: Parts {
                base: true,
                ..Parts::default()
            },
            persistent: false,
            base_methods: self.methods.clone(),
            ..EntityType::new(&self.name)
        }
    }
}

/// A user data object type: data that an author places in a space, constant at run time.
#[derive(Clone, Debug, PartialEq)]
pub struct UserDataObject {
    /// Its name in `user_data_objects.xml`.
    pub name: String,
    /// Where it is created.
    pub domain: Domain,
    /// Its properties with their defaults.
    pub properties: Vec<Field>,
}

/// Where user data objects of a type are created.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Domain {
    /// On cells.
    Cell,
    /// On bases.
    Base,
    /// On clients.
    Client,
}

impl Schema {
    /// Builds the schema: numbers types and members by position, and derives client ids. The last step of the compiler;
    /// tests may start here.
    ///
    /// # Panics
    /// If there are more types and services than [`MAX_TYPES`], or more members in a list than [`MAX_MEMBERS`]. A default
    /// that does not fit its type panics in [`Schema::encode`].
    #[must_use]
    pub fn new(mut types: Vec<EntityType>, services: Vec<Service>, user_data_objects: Vec<UserDataObject>) -> Self {
        let mut by_name = BTreeMap::new();
        let mut fragments: Vec<EntityType> = services.iter().map(Service::fragment).collect();
        for (position, entity_type) in types.iter_mut().chain(&mut fragments).enumerate() {
            entity_type.number(TypeId(
                u16::try_from(position).expect("invariant: at most MAX_TYPES types"),
            ));
        }
        for entity_type in &types {
            by_name.insert(entity_type.name.clone(), entity_type.id);
        }
        Self {
            types,
            services,
            fragments,
            user_data_objects,
            ledger_names: LedgerNames::default(),
            zones: Arc::default(),
            by_name,
            fingerprint: OnceLock::new(),
            client_fingerprint: OnceLock::new(),
        }
    }

    /// Sets the names of asset kinds and account slots.
    #[must_use]
    pub fn with_ledger_names(self, ledger_names: LedgerNames) -> Self {
        Self {
            ledger_names,
            fingerprint: OnceLock::new(),
            ..self
        }
    }

    /// Adds what authors have placed. It changes neither the fingerprint nor the bytes of the schema.
    #[must_use]
    pub fn with_zones(self, zones: Zones) -> Self {
        let zones = Arc::new(zones);
        Self { zones, ..self }
    }

    /// What authors have placed. A schema that was read from bytes has no zones.
    #[must_use]
    pub fn zones(&self) -> &Arc<Zones> {
        &self.zones
    }

    /// The entity types in declared order, without those of fragments.
    #[must_use]
    pub fn types(&self) -> &[EntityType] {
        &self.types
    }

    /// The types of fragments with the numbers of their services, in the order of the services.
    pub fn fragment_types(&self) -> impl Iterator<Item = (ServiceSlot, &EntityType)> {
        self.services.iter().map(Service::slot).zip(&self.fragments)
    }

    /// The types of all entities: the declared ones, and then those of fragments. A [`TypeId`] is a position here.
    pub fn all_types(&self) -> impl Iterator<Item = &EntityType> + Clone {
        self.types.iter().chain(&self.fragments)
    }

    /// The entity type with this id.
    #[must_use]
    pub fn entity_type(&self, id: TypeId) -> Option<&EntityType> {
        let at = usize::from(id.0);
        self.types
            .get(at)
            .or_else(|| self.fragments.get(at.checked_sub(self.types.len())?))
    }

    /// The type of the fragments of a service.
    #[must_use]
    pub fn fragments_of(&self, service: &str) -> Option<&EntityType> {
        self.fragments.iter().find(|fragment| fragment.name == service)
    }

    /// Whether entities of this type are fragments of a service.
    #[must_use]
    pub fn is_fragment(&self, id: TypeId) -> bool {
        (self.types.len()..self.types.len() + self.fragments.len()).contains(&usize::from(id.0))
    }

    /// The type of the entity with this id, if it is the id of a fragment of one of the services.
    #[must_use]
    pub fn fragment_with_id(&self, entity: EntityId) -> Option<&EntityType> {
        let (_, slot) = entity.fragment()?;
        let mut fragments = self.fragment_types();
        fragments.find(|(of, _)| *of == slot).map(|(_, fragment)| fragment)
    }

    /// The entity type of this name, if it is a declared one.
    #[must_use]
    pub fn type_named(&self, name: &str) -> Option<&EntityType> {
        self.by_name.get(name).and_then(|&id| self.entity_type(id))
    }

    /// The services in declared order.
    #[must_use]
    pub fn services(&self) -> &[Service] {
        &self.services
    }

    /// The user data object types in declared order.
    #[must_use]
    pub fn user_data_objects(&self) -> &[UserDataObject] {
        &self.user_data_objects
    }

    /// The names of kinds of assets and slots of accounts.
    #[must_use]
    pub fn ledger_names(&self) -> &LedgerNames {
        &self.ledger_names
    }

    /// SHA-256 of [`Schema::encode`]: equal for files of equal meaning, whatever their comments, white space or order.
    /// Computed on first use.
    #[must_use]
    pub fn fingerprint(&self) -> Hash {
        *self
            .fingerprint
            .get_or_init(|| Hash(Sha256::digest(self.encode()).into()))
    }
}

/// Schemas are equal if they have the same meaning.
impl PartialEq for Schema {
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint() == other.fingerprint()
    }
}

impl Eq for Schema {}
