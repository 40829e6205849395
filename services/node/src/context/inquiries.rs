//! Database queries of a base part, and delivery of their results.

use annals_def::Value;
use annals_event::{Awaiting, Body};
use annals_ids::{CallNumber, DatabaseId, EntityId, WorldTime};

use super::{Context, Denied, properties::fits};
use crate::{
    around::Around,
    inquiry::{Answer, Answered, DATABASE, Inquiry, Learned, NotLearned, Wanted},
    output::Output,
    owner_context::OwnerContext,
};

impl Context<'_> {
    /// As [`Context::store`]; calls [`Behaviour::learned`](crate::Behaviour::learned) with `then` and `note` once the
    /// entity is in the database, with the unique properties whose values another entity has (`writeToDB` with a
    /// callback).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_account(|own| {
    /// const SAVED: u32 = 1;
    /// own.context.store_then(5_000, (SAVED, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # let called = scene.called();
    /// # assert!(called.iter().any(|hook| hook.starts_with("learned 1 Ok(Written")), "{called:?}");
    /// ```
    ///
    /// # Errors
    /// As [`Context::store`].
    pub fn store_then(&mut self, timeout_ms: u64, (then, note): (u32, Vec<u8>)) -> Result<DatabaseId, Denied> {
        self.needs_base("store_then")?;
        self.cx.needs(note.len())?;
        let database = self.store()?;
        let inquiry = Inquiry::Written {
            database,
            batch: self.cx.journal.label(),
        };
        self.inquire(inquiry, timeout_ms, (then, note))?;
        Ok(database)
    }

    /// Finds the entities of a type with a value in an indexed property, such as an identifier, and their activation
    /// state: at most [`NAMED_AT_ONCE`](crate::inquiry::NAMED_AT_ONCE), after `after`. It is answered from the
    /// database, so events that are not folded yet may be missing.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_account(|own| { own.set_town("Rome".to_owned())?; own.context.store() });
    /// # scene.pass(500);
    /// # scene.on_account(|own| {
    /// const ROMANS: u32 = 1;
    /// let rome = Value::Unicode("Rome".to_owned());
    /// own.context.find_stored(("Account", "town"), (rome, DatabaseId(0)), 5_000, (ROMANS, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # let called = scene.called();
    /// # assert!(called.iter().any(|hook| hook.starts_with("learned 1 Ok(Found([Known")), "{called:?}");
    /// # scene.on_cell(|own| {
    /// # let rome = Value::Unicode("Rome".to_owned());
    /// # own.context.find_stored(("Account", "town"), (rome, DatabaseId(0)), 5_000, (2, Vec::new()))
    /// # });
    /// # scene.pass(500);
    /// # let called = scene.called();
    /// # assert!(called.iter().any(|hook| hook.starts_with("learned 2 Ok(Found([Known")), "{called:?}");
    /// ```
    ///
    /// Both parts can ask. The answer is lost if a cell part moves to another cell meanwhile: ask again after
    /// [`NotLearned::Late`].
    ///
    /// # Errors
    /// [`Denied::Unknown`] without such a stored property with an index; [`Denied::Mismatch`] if the value does not fit
    /// it.
    pub fn find_stored(
        &mut self,
        (entity_type, property): (&str, &str),
        (value, after): (Value, DatabaseId),
        timeout_ms: u64,
        (then, note): (u32, Vec<u8>),
    ) -> Result<(), Denied> {
        let named = || Denied::Unknown {
            entity_type: entity_type.to_owned(),
            what: format!("stored property {property} with an index"),
        };
        let found = self.cx.schema.type_named(entity_type).ok_or_else(named)?;
        let indexed = found.property_named(property).ok_or_else(named)?;
        if !indexed.persistent || indexed.indexed == annals_def::Index::None {
            return Err(named());
        }
        check_value(&format!("{entity_type}.{property}"), &indexed.data_type, &value)?;
        let inquiry = Inquiry::Find {
            type_id: found.id,
            property: property.to_owned(),
            value,
            after,
        };
        self.inquire(inquiry, timeout_ms, (then, note))
    }

    /// Activates a stored entity: on this owner, unless it is active elsewhere already (`createBaseFromDBID`,
    /// `createBaseFromDB`). There is never more than one activation of it, even with concurrent requests.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let database = scene.on_account(|own| { own.set_name("Ann".to_owned())?; own.context.store() });
    /// # scene.pass(500);
    /// # scene.on_base(move |own| {
    /// const ANN: u32 = 1;
    /// let ann = Wanted::Named { type_id: account::TYPE, identifier: Value::Unicode("Ann".to_owned()) };
    /// own.context.begin_stored(ann, 5_000, (ANN, Vec::new()))?;
    /// // By its id:
    /// own.context.begin_stored(Wanted::Id(database), 5_000, (ANN, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called().iter().filter(|hook| hook.starts_with("learned 1 Ok(Begun")).count(), 2);
    /// ```
    ///
    /// # Errors
    /// [`Denied::BaseOnly`] on the cell part; [`Denied::Unknown`] if the type has no identifier; [`Denied::Mismatch`]
    /// if the value does not fit it.
    pub fn begin_stored(
        &mut self,
        wanted: Wanted,
        timeout_ms: u64,
        (then, note): (u32, Vec<u8>),
    ) -> Result<(), Denied> {
        self.needs_base("begin_stored")?;
        if let Wanted::Named { type_id, identifier } = &wanted {
            let found = self.cx.type_of(*type_id);
            let property = found.and_then(|found| found.identifier());
            let property = property.ok_or_else(|| Denied::Unknown {
                entity_type: found.map_or_else(|| format!("type {type_id}"), |found| found.name.clone()),
                what: "identifier".to_owned(),
            })?;
            check_value(&property.name, &property.data_type, identifier)?;
        }
        self.inquire(Inquiry::Begin(wanted), timeout_ms, (then, note))
    }

    pub(super) fn needs_base(&self, what: &'static str) -> Result<(), Denied> {
        match self.image().base() {
            Some(_) => Ok(()),
            None => Err(Denied::BaseOnly { what }),
        }
    }

    /// Records the wait, and queues the query at the gate.
    pub(super) fn inquire(
        &mut self,
        inquiry: Inquiry,
        timeout_ms: u64,
        (then, note): (u32, Vec<u8>),
    ) -> Result<(), Denied> {
        let number = self.await_answer(timeout_ms, (then, note))?;
        let entity = self.entity();
        self.cx.emit(Output::Inquire {
            entity,
            number,
            inquiry,
        });
        Ok(())
    }

    /// Records the wait for the answer to an inquiry, and returns its number.
    pub(super) fn await_answer(&mut self, timeout_ms: u64, (then, note): (u32, Vec<u8>)) -> Result<CallNumber, Denied> {
        self.cx.needs(note.len())?;
        // Like an entity id the number is never reused, so that a late answer cannot match another wait.
        let number = CallNumber(self.cx.new_entity().ok_or(Denied::NoIds)?.0);
        let deadline = WorldTime(self.now().0.saturating_add(timeout_ms));
        let awaiting = Awaiting { deadline, then, note };
        let body = Body::Awaits {
            to: DATABASE,
            number,
            awaiting,
        };
        self.cx.record_for(self.entity, false, body);
        Ok(number)
    }
}

impl OwnerContext {
    /// An entity here, if it waits for the answer to an inquiry with this number.
    pub(super) fn awaiting(&self, entity: EntityId, number: CallNumber) -> Option<&annals_event::Image> {
        let image = self.image(entity)?;
        image.links.awaiting.contains_key(&(DATABASE, number)).then_some(image)
    }

    /// Takes the answer to an inquiry. Has no effect if the entity does not wait any more.
    pub(crate) fn take_inquired(&mut self, around: &dyn Around, answered: Answered) {
        let Answered { entity, number, answer } = answered;
        match answer {
            Answer::Result(outcome) => self.inform(around, (entity, number), &outcome),
            Answer::Place { on, new } => self.request_base((entity, number), on, new),
        }
    }

    /// Delivers the result of a query, or its failure, to an entity. Has no effect if the entity does not wait any
    /// more.
    pub fn inform(
        &mut self,
        around: &dyn Around,
        (entity, number): (EntityId, CallNumber),
        outcome: &Result<Learned, NotLearned>,
    ) {
        let image = self.image(entity);
        let awaiting = image.and_then(|image| image.links.awaiting.get(&(DATABASE, number)));
        let Some(awaiting) = awaiting.cloned() else { return };
        self.record_for(entity, false, Body::Resumed { to: DATABASE, number });
        self.run(entity, around, |behaviour, context| {
            behaviour.learned(context, awaiting.then, &awaiting.note, outcome);
        });
    }
}

fn check_value(member: &str, data_type: &annals_def::DataType, value: &Value) -> Result<(), Denied> {
    annals_def::check(data_type, value).map_err(|source| Denied::Mismatch {
        member: member.to_owned(),
        source: Box::new(source),
    })?;
    fits(value).map(|_| ()).map_err(|bytes| Denied::TooLarge {
        member: member.to_owned(),
        bytes,
    })
}
