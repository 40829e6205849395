//! How entities are made, behaviour is run, and calls are answered: what roles do for behaviour on their own account.

use std::collections::BTreeMap;

use annals_def::{Value, check};
use annals_event::{Body, Call, CallError, Outcome, Place, Subject};
use annals_ids::{Address, DatabaseId, EntityId, MemberId, Part, TypeId};

use super::{Context, Denied, properties::fits};
use crate::{
    around::{Around, Nowhere},
    behaviour::{Bootstrap, Caller},
    owner_context::OwnerContext,
};

/// What the database knows of an entity that begins; of one that it does not know, nothing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Stored {
    /// Which of its entities it is; 0 if none.
    pub database: DatabaseId,
    /// The check-out that this life holds.
    pub checkout: u64,
    /// The properties of its cell part, for when it has one.
    pub cell_properties: Vec<(MemberId, Value)>,
}

impl OwnerContext {
    /// What the game has the realm begin with.
    #[must_use]
    pub fn bootstrap(&self) -> Option<Bootstrap> {
        self.behaviour.bootstrap()
    }

    /// Whether the present input may record so much more, with what an event has beside a value.
    ///
    /// # Errors
    /// When it may not.
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

    /// Makes a base entity with these properties and the defaults of the others.
    ///
    /// # Errors
    /// When a value does not fit, or no entity id is left.
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
        self.record(
            Subject::Entity(entity, Part::Base),
            false,
            Body::BaseCreated(Box::new(creation)),
        );
        self.run(entity, &Nowhere, |behaviour, context| behaviour.created(context));
        Ok(entity)
    }

    /// Makes an entity that has only a cell part.
    ///
    /// # Errors
    /// When a value does not fit, a coordinate is not a number, the space is gone, or no entity id is left.
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
        };
        self.record(
            Subject::Entity(entity, Part::Cell),
            false,
            Body::CellCreated(Box::new(creation)),
        );
        self.run(entity, around, |behaviour, context| behaviour.created(context));
        Ok(entity)
    }

    /// The properties with which a part begins: those given, checked, and the defaults of the others.
    ///
    /// # Errors
    /// When a value does not fit, belongs to the other part or to the view of an account, or all of them are more than the
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

    /// Runs behaviour for an entity that is real here, and lends it what is around.
    pub fn run<T>(
        &mut self,
        entity: EntityId,
        around: &dyn Around,
        what: impl FnOnce(&dyn crate::Behaviour, &mut Context<'_>) -> T,
    ) -> Option<T> {
        let behaviour = std::sync::Arc::clone(&self.behaviour);
        let mut context = Context::new(self, around, entity)?;
        Some(what(behaviour.as_ref(), &mut context))
    }

    /// Sends the answer to a call, if its caller waits for one; an error instead of one that is too large.
    pub fn reply(&mut self, caller: &Caller, outcome: Outcome) {
        if !caller.wants_reply || matches!(caller.link.from, Address::Client(_)) {
            return;
        }
        let of = caller.number;
        let mut call = Call::Reply { of, outcome };
        let mut bytes = Vec::new();
        call.write(&mut bytes);
        if let Err(spent) = self.needs(bytes.len()) {
            let outcome = Err(CallError::Internal(format!("the answer is too large: {spent}")));
            call = Call::Reply { of, outcome };
        }
        if self.state().links(caller.link.to).is_some() {
            self.call(caller.link.to, caller.link.from, caller.home, call);
        } else {
            let owner = Address::Owner(self.owner());
            self.call(owner, caller.link.from, caller.home, call);
        }
    }

    /// The error of a call that was denied.
    pub(crate) fn denied(denied: &Denied) -> CallError {
        CallError::InvalidArgs(denied.to_string())
    }
}

/// Whether it is what a personal member may hold: what is loaded is sealed, or nothing.
fn is_sealed(value: &Value) -> bool {
    match value {
        Value::Bytes(bytes) => bytes.is_empty() || annals_personal::sealed_with(bytes).is_some(),
        _ => false,
    }
}

/// The size of properties as a part begins with them.
fn size(properties: &[(MemberId, Value)]) -> usize {
    let mut bytes = Vec::new();
    annals_event::latest::call::put_properties(&mut bytes, properties);
    bytes.len()
}
