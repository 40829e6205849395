//! Operations that roles perform on behalf of behaviour: creating entities, running behaviour.

use std::collections::BTreeMap;

use annals_def::{Value, check};
use annals_event::{Body, CallError, Place, Subject};
use annals_ids::{DatabaseId, EntityId, MemberId, Part, TypeId};

use super::{Context, Denied, properties::fits};
use crate::{
    around::{Around, Nowhere},
    behaviour::Bootstrap,
    owner_context::OwnerContext,
    panics::Panic,
    trouble::OwnerError,
};

/// Database state of an entity to be created; the default is that of an entity that is not stored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// Its database id; 0 if none.
    pub database: DatabaseId,
    /// The check-out of this activation.
    pub checkout: u64,
    /// Properties of its future cell part.
    pub cell_properties: Vec<(MemberId, Value)>,
}

impl OwnerContext {
    /// The game's bootstrap entity.
    #[must_use]
    pub fn bootstrap(&self) -> Option<Bootstrap> {
        self.behaviour.bootstrap()
    }

    /// Checks that the present input may record so many more bytes of values, with the overhead of an event.
    ///
    /// # Errors
    /// If it may not.
    pub fn needs(&self, bytes: usize) -> Result<(), Denied> {
        /// An event's subject, cause, numbers and addresses.
        const AROUND: usize = 128;
        let (bytes, room) = (bytes.saturating_add(AROUND), self.room());
        if bytes > room {
            Err(Denied::Spent { bytes, room })
        } else {
            Ok(())
        }
    }

    /// Creates a base entity with these properties and defaults for the others.
    ///
    /// # Errors
    /// If a value does not fit, or no entity id is left.
    pub fn create_base(
        &mut self,
        type_id: TypeId,
        properties: Vec<(MemberId, Value)>,
        stored: Stored,
    ) -> Result<EntityId, Denied> {
        let properties = self.initial(type_id, Part::Base, properties)?;
        self.needs(size(&properties).saturating_add(size(&stored.cell_properties)))?;
        let entity = self.new_entity().ok_or(Denied::NoIds)?;
        let creation = annals_event::BaseCreation {
            type_id,
            database: stored.database,
            checkout: stored.checkout,
            properties,
            cell_properties: stored.cell_properties,
        };
        self.begin_base(entity, creation);
        Ok(entity)
    }

    /// Records that a base part begins, and notifies it.
    pub(super) fn begin_base(&mut self, entity: EntityId, creation: annals_event::BaseCreation) {
        let subject = Subject::Entity(entity, Part::Base);
        self.record(subject, false, Body::BaseCreated(Box::new(creation)));
        self.run(entity, &Nowhere, |behaviour, context| behaviour.created(context));
    }

    /// Creates an entity that has only a cell part.
    ///
    /// # Errors
    /// If a value does not fit, a coordinate is not a number, the space is gone, or no entity id is left.
    pub fn create_cell_only(
        &mut self,
        type_id: TypeId,
        place: Place,
        properties: Vec<(MemberId, Value)>,
        around: &dyn Around,
    ) -> Result<EntityId, Denied> {
        if !place.is_sound() {
            return Err(Denied::Place);
        }
        if self.is_gone(place.space) {
            return Err(Denied::SpaceGone);
        }
        let properties = self.initial(type_id, Part::Cell, properties)?;
        let entity = self.new_entity().ok_or(Denied::NoIds)?;
        let home = self.owner();
        let creation = annals_event::CellCreation {
            entity,
            type_id,
            home,
            based: false,
            place,
            properties,
            client: None,
            former: None,
        };
        self.record(
            Subject::Entity(entity, Part::Cell),
            false,
            Body::CellCreated(Box::new(creation)),
        );
        self.run(entity, around, |behaviour, context| behaviour.created(context));
        Ok(entity)
    }

    /// Initial properties of a part: the given ones, checked, and defaults for the others.
    ///
    /// # Errors
    /// If a value does not fit, belongs to the other part or to the view of an account, or the total exceeds what the
    /// present input may record.
    pub fn initial(
        &self,
        type_id: TypeId,
        part: Part,
        given: Vec<(MemberId, Value)>,
    ) -> Result<Vec<(MemberId, Value)>, Denied> {
        let unknown = |what: String| Denied::Unknown {
            entity_type: format!("type {type_id}"),
            what,
        };
        let entity_type = self
            .type_of(type_id)
            .filter(|_| !self.schema().is_fragment(type_id))
            .ok_or_else(|| unknown("entry in the schema".into()))?;
        let mut properties: BTreeMap<MemberId, Value> = entity_type
            .properties
            .iter()
            .filter(|property| property.is_held_by(part))
            .map(|property| (property.index, property.default.clone()))
            .collect();
        for (member, value) in given {
            let property = entity_type
                .property(member)
                .ok_or_else(|| unknown(format!("property {member}")))?;
            let name = format!("{}.{}", entity_type.name, property.name);
            if let Some(account) = property.account {
                return Err(Denied::Account { member: name, account });
            }
            if property.personal.is_some() && !is_sealed(&value) {
                return Err(Denied::Personal { member: name });
            }
            let held = properties.get_mut(&member).ok_or_else(|| Denied::OtherPart {
                entity_type: entity_type.name.clone(),
                property: property.name.clone(),
                flag: property.distribution.flag(),
                part,
            })?;
            check(&property.data_type, &value).map_err(|source| Denied::Mismatch {
                member: name.clone(),
                source: Box::new(source),
            })?;
            fits(&value).map_err(|bytes| Denied::TooLarge { member: name, bytes })?;
            *held = value;
        }
        let properties: Vec<(MemberId, Value)> = properties.into_iter().collect();
        self.needs(size(&properties))?;
        Ok(properties)
    }

    /// About how many bytes the creation of a part records, with its events.
    ///
    /// # Errors
    /// As [`Self::initial`].
    pub(super) fn initial_bytes(
        &self,
        type_id: TypeId,
        part: Part,
        given: Vec<(MemberId, Value)>,
    ) -> Result<usize, Denied> {
        /// Its creation, the call that leads to it, and what its owner remembers of that.
        const AROUND: usize = 512;
        Ok(size(&self.initial(type_id, part, given)?) + AROUND)
    }

    /// Runs behaviour for an entity that is real here, and lends it the surroundings. `None` if the entity is not real
    /// here, or behaviour panicked, which is reported.
    pub fn run<T>(
        &mut self,
        entity: EntityId,
        around: &dyn Around,
        what: impl FnOnce(&dyn crate::Behaviour, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let behaviour = std::sync::Arc::clone(&self.behaviour);
        let type_id = self.image(entity)?.type_id;
        let panics = self.panics();
        let mut context = Context::new(self, around, entity)?;
        match panics.run(|| what(behaviour.as_ref(), &mut context)) {
            Ok(result) => Some(result),
            Err(panic) if self.is_recording() => panic.resume(),
            Err(Panic { message }) => {
                self.report(OwnerError::Panicked {
                    entity,
                    part: self.journal.part(),
                    entity_type: self
                        .type_of(type_id)
                        .map_or_else(String::new, |found| found.name.clone()),
                    message,
                });
                None
            }
        }
    }

    /// Converts a denial to the error of a call.
    pub(crate) fn denied(denied: &Denied) -> CallError {
        CallError::InvalidArgs(denied.to_string())
    }
}

/// Whether a value may be stored in a personal member: loaded values are sealed, or empty.
fn is_sealed(value: &Value) -> bool {
    match value {
        Value::Bytes(bytes) => bytes.is_empty() || annals_personal::sealed_with(bytes).is_some(),
        _ => false,
    }
}

/// Encoded size of a part's initial properties.
fn size(properties: &[(MemberId, Value)]) -> usize {
    let mut bytes = Vec::new();
    annals_event::latest::call::put_properties(&mut bytes, properties);
    bytes.len()
}
