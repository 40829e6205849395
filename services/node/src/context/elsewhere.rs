//! Creating base entities on other owners (rule C15), and answers to those that give clients to entities here (rule C20).
//!
//! The waiting entity keeps its wait under the number of an inquiry, so the answer and its absence reach behaviour as
//! those of inquiries do. The request itself is a call between the two owners.

use std::collections::BTreeMap;

use annals_def::Value;
use annals_event::{Call, GivenClient, GivenOutcome, latest::call::RequestedBase};
use annals_ids::{Address, CallNumber, EntityId, Mailbox, MemberId, OwnerId, Part, TypeId};

use super::{Context, Denied, Stored};
use crate::{
    around::Around,
    behaviour::Caller,
    inquiry::{Inquiry, Learned, NewBase, NotLearned},
    owner_context::OwnerContext,
};

impl Context<'_> {
    /// Creates an entity with a base part on the base owner with the fewest entities, which the director names
    /// (`createBaseAnywhere`). [`Behaviour::learned`](crate::Behaviour::learned) is called with `then` and `note`, and
    /// [`Learned::Created`] or the reason why there is none. The entity is created at most once, even if either side
    /// fails.
    ///
    /// After [`NotLearned::Late`] it is not known whether it was created: also where the creator is a cell part that has
    /// moved to another cell meanwhile. Give the entity a property that names its creator, if that matters: its
    /// `created` can call back.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| {
    /// const PET: u32 = 1;
    /// own.context.create_base_anywhere("Hero", Vec::new(), 5_000, (PET, Vec::new()))?;
    /// // The same, by generated code:
    /// hero::BaseMailbox::create_anywhere(own.context, hero::NewBase::default(), Wait::then(PET, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called(), ["learned 1 Created", "learned 1 Created"]);
    /// # scene.on_cell(|own| own.context.create_base_anywhere("Hero", Vec::new(), 5_000, (2, Vec::new())));
    /// # scene.pass(500);
    /// # assert_eq!(scene.called(), ["learned 2 Created"]);
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`], [`Denied::Mismatch`] or [`Denied::OtherPart`] if type or values do not fit.
    pub fn create_base_anywhere(
        &mut self,
        entity_type: &str,
        properties: Vec<(MemberId, Value)>,
        timeout_ms: u64,
        (then, note): (u32, Vec<u8>),
    ) -> Result<(), Denied> {
        let new = self.new_base(entity_type, properties)?;
        self.inquire(Inquiry::Place(new), timeout_ms, (then, note))
    }

    /// Creates an entity with a base part on the owner that another entity has its home on (`createBaseRemotely`), so
    /// that calls between the two stay within one owner. The rest is as with [`Context::create_base_anywhere`]; a home
    /// that is a cell, as of an entity without a base part, refuses.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_base(|own| {
    /// const PET: u32 = 1;
    /// let friend = own.context.mailbox(Part::Base);
    /// own.context.create_base_beside(friend, "Hero", Vec::new(), 5_000, (PET, Vec::new()))?;
    /// // The same, by generated code:
    /// hero::BaseMailbox::create_beside(own.context, friend, hero::NewBase::default(), Wait::then(PET, Vec::new()))?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called(), ["learned 1 Created", "learned 1 Created"]);
    /// ```
    ///
    /// # Errors
    /// As [`Context::create_base_anywhere`].
    pub fn create_base_beside(
        &mut self,
        other: Mailbox,
        entity_type: &str,
        properties: Vec<(MemberId, Value)>,
        timeout_ms: u64,
        (then, note): (u32, Vec<u8>),
    ) -> Result<(), Denied> {
        let new = self.new_base(entity_type, properties)?;
        let number = self.await_answer(timeout_ms, (then, note))?;
        let entity = self.entity();
        self.cx.request_base((entity, number), other.home, new);
        Ok(())
    }

    /// Checks the properties of an entity that is to be created on another owner, as creating it here would.
    fn new_base(&self, entity_type: &str, properties: Vec<(MemberId, Value)>) -> Result<NewBase, Denied> {
        let type_id = self.cx.schema.type_named(entity_type).map(|found| found.id);
        let type_id = type_id.ok_or_else(|| self.unknown(format!("entity type {entity_type} beside it")))?;
        self.cx.initial(type_id, Part::Base, properties.clone())?;
        // In the order in which a call has them.
        let properties: BTreeMap<MemberId, Value> = properties.into_iter().collect();
        let properties = properties.into_iter().collect();
        Ok(NewBase { type_id, properties })
    }
}

impl OwnerContext {
    /// Calls an owner to create the entity for which another one waits under this number. Has no effect if that does
    /// not wait any more.
    pub(crate) fn request_base(&mut self, (by, of): (EntityId, CallNumber), on: OwnerId, new: NewBase) {
        if self.awaiting(by, of).is_none() {
            return;
        }
        let NewBase { type_id, properties } = new;
        let wanted = RequestedBase {
            by,
            of,
            type_id,
            properties,
        };
        let (from, to) = (Address::Owner(self.owner()), Address::Owner(on));
        self.call(from, to, on, Call::CreateBase(Box::new(wanted)));
    }

    /// Creates a base part that an entity on the calling owner wants, and answers.
    pub fn create_requested(&mut self, caller: &Caller, wanted: RequestedBase) {
        let RequestedBase {
            by,
            of,
            type_id,
            properties,
        } = wanted;
        let created = self.create_base(type_id, properties, Stored::default());
        let created = created.map(|entity| (entity, type_id)).map_err(|why| why.to_string());
        self.answer_creation(caller, (by, of), created);
    }

    /// Answers a request for a base part on the link back.
    pub fn answer_creation(
        &mut self,
        caller: &Caller,
        (by, of): (EntityId, CallNumber),
        created: Result<(EntityId, TypeId), String>,
    ) {
        let back = caller.link.back();
        self.call(back.from, back.to, caller.home, Call::Created { by, of, created });
    }

    /// Answers an owner that gives a client to an entity here, on the link back.
    pub fn answer_given(&mut self, caller: &Caller, given: &GivenClient, outcome: GivenOutcome) {
        let back = caller.link.back();
        let GivenClient { from, to, session, .. } = *given;
        let answer = Call::ClientTaken {
            from,
            to,
            session,
            outcome,
        };
        self.call(back.from, back.to, caller.home, answer);
    }

    /// Delivers the answer of the owner that was called to create an entity.
    pub fn take_created(
        &mut self,
        around: &dyn Around,
        caller: &Caller,
        (by, of): (EntityId, CallNumber),
        created: Result<(EntityId, TypeId), String>,
    ) {
        let mailbox = |(entity, type_id)| Mailbox {
            entity,
            home: caller.home,
            type_id,
            part: Part::Base,
        };
        let outcome = created.map(mailbox).map(|mailbox| Learned::Created { mailbox });
        self.inform(around, (by, of), &outcome.map_err(NotLearned::Refused));
    }
}
