//! Services: how behaviour finds a fragment, and how a base owner gets its fragments.
//!
//! A fragment is an entity with a base part. Each base owner has one of each service, whose id follows from owner and
//! service ([`EntityId::of_fragment`]). So every owner that knows the base owners can call the fragments on them.

use std::sync::Arc;

use annals_event::BaseCreation;
use annals_ids::{Address, DatabaseId, EntityId, Mailbox, OwnerId, OwnerKind, Part, TypeId};
use annals_wire::SpaceMap;

use super::{Context, Denied};
use crate::owner_context::OwnerContext;

impl Context<'_> {
    /// A fragment of a service (`BigWorld.services[name]`), to call as any base part: on a base, the one of this owner;
    /// on a cell, one that is chosen at random. A fragment is skipped while this owner has to resend a call to it,
    /// which it does when the call was not confirmed for 500 ms, if there is another.
    ///
    /// A call that was made to a fragment stays with it: if its process dies, the call is executed when another one has
    /// taken over its owner.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// let notes = own.context.service("NoteStore")?;
    /// own.context.call(notes, "addNote", vec![Value::Unicode("It rains.".to_owned())])?;
    /// // The same, by generated code:
    /// note_store::BaseMailbox::any(own.context)?.add_note(own.context, "It rains.".to_owned())?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called(), ["add_note It rains.", "add_note It rains."]);
    /// ```
    ///
    /// # Errors
    /// [`Denied::NoService`] if the definitions have no such service; [`Denied::NoFragment`] on a cell, before it has
    /// received the map, as in `restored`.
    pub fn service(&mut self, name: &str) -> Result<Mailbox, Denied> {
        let found = self.cx.schema().fragment_types().find(|(_, of)| of.name == name);
        let found = found.map(|(slot, of)| (slot, of.id));
        let (slot, type_id) = found.ok_or_else(|| Denied::NoService { service: name.into() })?;
        let fragment = |home: OwnerId| Mailbox {
            entity: EntityId::of_fragment(home, slot),
            home,
            type_id,
            part: Part::Base,
        };
        if self.cx.state().kind == OwnerKind::Base {
            return Ok(fragment(self.cx.owner()));
        }
        let all: Vec<Mailbox> = self.cx.bases.iter().map(|owner| fragment(*owner)).collect();
        let answers = |one: &&Mailbox| !self.cx.call_links.is_overdue(Address::Base(one.entity));
        let answering: Vec<Mailbox> = all.iter().filter(answers).copied().collect();
        let candidates = if answering.is_empty() { all } else { answering };
        let roll = self.cx.roll();
        let count = candidates.len() as u64;
        let chosen = roll
            .checked_rem(count)
            .and_then(|at| candidates.get(usize::try_from(at).ok()?));
        chosen
            .copied()
            .ok_or_else(|| Denied::NoFragment { service: name.into() })
    }
}

impl OwnerContext {
    /// Applies a newer map.
    pub(crate) fn learn_bases(&mut self, map: &SpaceMap) {
        self.bases.clone_from(&map.bases);
    }

    /// Creates the fragments that this base owner lacks: of all services when the realm begins, later of those that the
    /// definitions gained.
    pub fn begin_fragments(&mut self, map: &SpaceMap) {
        self.learn_bases(map);
        let schema = Arc::clone(self.schema());
        for (slot, fragment) in schema.fragment_types() {
            self.begin_fragment(EntityId::of_fragment(self.owner(), slot), fragment.id);
        }
    }

    /// Creates a fragment of this base owner that is called before the owner has created all of them. Returns whether
    /// the address is that of a fragment here.
    pub(crate) fn begin_called_fragment(&mut self, called: Address) -> bool {
        let Address::Base(entity) = called else {
            return false;
        };
        let is_own = entity.fragment().is_some_and(|(owner, _)| owner == self.owner());
        if !is_own || self.state().kind != OwnerKind::Base {
            return false;
        }
        let fragment = self.schema().fragment_with_id(entity).map(|found| found.id);
        if let Some(fragment) = fragment {
            self.begin_fragment(entity, fragment);
        }
        fragment.is_some()
    }

    fn begin_fragment(&mut self, entity: EntityId, type_id: TypeId) {
        if self.image(entity).is_some() {
            return;
        }
        let creation = BaseCreation {
            type_id,
            database: DatabaseId(0),
            checkout: 0,
            properties: Vec::new(),
            cell_properties: Vec::new(),
        };
        self.begin_base(entity, creation);
    }
}
