//! Creation and destruction of base entities and their cell parts.

use std::collections::BTreeMap;

use annals_def::Value;
use annals_event::{Body, Call, CellCreation, ClientLink, FormerCell, Image, Link, Place, Subject};
use annals_ids::{Address, CallNumber, EntityId, MemberId, OwnerId, Part, SessionId, TypeId};
use annals_node::{Bootstrap, Denied, Nowhere, OwnerContext, OwnerError, Request, Stored, inquiry::NotLearned};
use annals_wire::{
    SpaceMap,
    client::{CloseReason, ToClient},
};

use crate::{internal_waits::InternalWait, role::BaseRole, view::OwnView};

impl BaseRole {
    /// Applies a newer map: creates the fragments that are missing here, and the realm's first entity if the map names
    /// this owner for it.
    pub(crate) fn redraw(&mut self, cx: &mut OwnerContext, map: SpaceMap) {
        if self.map.as_ref().is_none_or(|known| known.version < map.version) {
            let begins_here = map.bootstrap == Some(cx.owner());
            cx.begin_fragments(&map);
            self.map = Some(map);
            if begins_here && cx.state().bootstrap.is_none() {
                self.bootstrap(cx);
            }
        }
    }

    /// Creates the realm's first entity. That it was created is recorded in the same input, and so in the same batch:
    /// an owner that is taken over has both or neither.
    fn bootstrap(&mut self, cx: &mut OwnerContext) {
        let Some(Bootstrap { type_id, properties }) = cx.bootstrap() else {
            return;
        };
        match cx.create_base(type_id, properties, Stored::default()) {
            Ok(entity) => cx.record(Subject::Owner, false, Body::Bootstrapped { entity }),
            Err(denied) => {
                self.counters.denied += 1;
                cx.report(OwnerError::NotBootstrapped { type_id, denied });
            }
        }
    }

    /// Requests the cell part of an entity. Its behaviour learns by `cell_gained` that there is one, and by `cell_lost` if
    /// the cell owner has denied it.
    ///
    /// # Errors
    /// When it has one, can have none there, or is no longer here.
    pub(crate) fn create_cell(
        &mut self,
        cx: &mut OwnerContext,
        entity: EntityId,
        place: Place,
        properties: &[(MemberId, Value)],
    ) -> Result<(), Denied> {
        let NewCell {
            type_id,
            client,
            properties,
        } = new_cell(cx, entity, place, properties)?;
        let map = self.map.as_ref();
        let owner = map.and_then(|map| map.owner_at(place.space, place.position));
        let owner = owner.ok_or(Denied::NoSpace(place.space))?;
        end_calls(cx, entity);
        let former = cx.image(entity).and_then(|image| former_cell(image, entity));
        let creation = CellCreation {
            entity,
            type_id,
            home: cx.owner(),
            based: true,
            place,
            properties,
            client,
            former,
        };
        // Called by its owner (rule C12).
        let (from, to) = (Address::Owner(cx.owner()), Address::Owner(owner));
        cx.call(from, to, owner, Call::CreateCell(Box::new(creation)));
        InternalWait::CellBegins.set(cx, entity);
        cx.record_for(entity, false, Body::Placed(Some(owner)));
        Ok(())
    }

    /// Asks the owner that is responsible for a place to open its space. A cell part that is then requested there for
    /// the entity goes over the same link, and is so created after the space.
    ///
    /// # Errors
    /// When no owner is responsible for the place, or the entity is no longer here.
    pub(crate) fn open_space(&mut self, cx: &mut OwnerContext, entity: EntityId, place: Place) -> Result<(), Denied> {
        let what = "open a space";
        cx.image(entity).ok_or(Denied::Elsewhere { entity, what })?;
        let map = self.map.as_ref();
        let owner = map.and_then(|map| map.owner_at(place.space, place.position));
        let owner = owner.ok_or(Denied::NoSpace(place.space))?;
        let (from, to) = (Address::Owner(cx.owner()), Address::Owner(owner));
        cx.call(from, to, owner, Call::OpenSpace(place.space));
        Ok(())
    }

    /// Calls the keeper of the registry, the owner on which the realm began, to register an entity as a global base.
    pub(crate) fn register(&self, cx: &mut OwnerContext, (entity, number): (EntityId, CallNumber), key: String) {
        match self.map.as_ref().and_then(|map| map.bootstrap) {
            Some(registry) => cx.request_registration((entity, number), key, registry),
            None => {
                let why = Denied::NoRegistry.to_string();
                cx.inform(&Nowhere, (entity, number), &Err(NotLearned::Refused(why)));
            }
        }
    }

    /// Calls the keeper of the registry to end a registration of an entity.
    ///
    /// # Errors
    /// When the realm has not begun, as far as is known here.
    pub(crate) fn deregister(&self, cx: &mut OwnerContext, entity: EntityId, key: &str) -> Result<(), Denied> {
        let registry = self.map.as_ref().and_then(|map| map.bootstrap);
        cx.deregister(entity, key.to_owned(), registry.ok_or(Denied::NoRegistry)?);
        Ok(())
    }

    /// Destroys an entity: its cell part first, and then the base part.
    pub(crate) fn destroy(&mut self, cx: &mut OwnerContext, entity: EntityId) {
        if self.waits_for_client(cx, entity) {
            return;
        }
        let Some(image) = cx.image(entity) else { return };
        if image.base().is_none_or(|base| base.cell.is_none()) {
            if is_returning(image, entity) {
                cx.run(entity, &Nowhere, |behaviour, context| behaviour.cell_lost(context));
            }
            return self.finish(cx, entity);
        }
        if InternalWait::CellEnds.is_set(image) {
            return;
        }
        destroy_cell(cx, entity);
        InternalWait::CellEnds.set(cx, entity);
    }

    fn finish(&mut self, cx: &mut OwnerContext, entity: EntityId) {
        if let Some(session) = self.session_of(cx, entity) {
            self.drop_session(cx, session, CloseReason::Ended);
        }
        cx.run(entity, &Nowhere, |behaviour, context| behaviour.destroyed(context));
        store(cx, entity);
        cx.record_for(entity, false, Body::Destroyed);
    }

    /// Records where the cell part of an entity reports to be.
    pub(crate) fn placed(&mut self, cx: &mut OwnerContext, entity: EntityId, at: Option<OwnerId>, home: OwnerId) {
        let Some(before) = cx.image(entity).map(|image| image.base().and_then(|base| base.cell)) else {
            if home == cx.owner() {
                cx.record(Subject::Entity(entity, Part::Cell), false, Body::Placed(at));
            }
            return;
        };
        if before != at {
            cx.record_for(entity, false, Body::Placed(at));
        }
        let begins = InternalWait::CellBegins.clear(cx, entity);
        match at {
            Some(_) => {
                if begins {
                    cx.run(entity, &Nowhere, |behaviour, context| behaviour.cell_gained(context));
                }
                // The new owner does not know what the client has. The client asks by itself, but may have done so
                // before the place was known here, and its request was dropped.
                let session = self.session_of(cx, entity).filter(|_| before != at);
                if let Some(session) = session {
                    let source = Part::Cell;
                    self.send_to_client(cx, session, &ToClient::StampsWanted { source });
                }
            }
            None if InternalWait::CellEnds.clear(cx, entity) => {
                if self.waits_for_client(cx, entity) {
                    return;
                }
                cx.run(entity, &Nowhere, |behaviour, context| behaviour.cell_lost(context));
                self.finish(cx, entity);
            }
            // Behaviour learns of it when the state of the cell part has returned.
            None => {
                if let Some(session) = self.session_of(cx, entity) {
                    self.restart_views(cx, session, entity);
                }
            }
        }
    }

    /// The state of a cell part that has ended returns to its base part. Afterwards the entity may have another cell part.
    pub(crate) fn cell_returned(
        &mut self,
        cx: &mut OwnerContext,
        (from, entity): (OwnerId, EntityId),
        former: Box<FormerCell>,
        properties: BTreeMap<MemberId, Value>,
    ) {
        let base = cx.image(entity).and_then(Image::base);
        // After a hole was accepted, the state of an earlier part may come again.
        if base.is_some_and(|base| base.cell_history.is_some_and(|last| former.history <= last)) {
            return;
        }
        let known = base.and_then(|base| base.cell);
        if known == Some(from) {
            // Its last report was consumed in a batch that is void since the log was cut at a hole (rule F4).
            self.placed(cx, entity, None, cx.owner());
        } else if known.is_some() {
            let what = "a cell part has ended while its entity has another one";
            return cx.report(OwnerError::Impossible { entity, what });
        }
        if cx.image(entity).is_some() {
            cx.record_for(entity, false, Body::CellReturned { former, properties });
            end_calls(cx, entity);
            cx.run(entity, &Nowhere, |behaviour, context| behaviour.cell_lost(context));
        }
    }

    /// Lets a session control an entity, and restarts both views of its client.
    pub(crate) fn restart_views(&mut self, cx: &mut OwnerContext, id: SessionId, entity: EntityId) -> bool {
        let schema = std::sync::Arc::clone(cx.schema());
        let seen = cx
            .image(entity)
            .and_then(|image| OwnView::new(&schema, cx.tally(), entity, image));
        let (Some(seen), Some(session)) = (seen, self.sessions.get_mut(id)) else {
            return false;
        };
        if session.entity != entity {
            session.drop_held();
        }
        session.entity = entity;
        session.end_view(Some(seen.beginning()));
        let type_id = seen.client_type();
        self.send_to_client(cx, id, &ToClient::Reset { entity, type_id });
        true
    }

    /// Sets the client of the witness on the cell part, if there is one.
    pub(crate) fn set_witness(&mut self, cx: &mut OwnerContext, entity: EntityId, client: Option<ClientLink>) {
        let base = cx.image(entity).and_then(Image::base);
        if base.is_some_and(|base| base.cell.is_some()) {
            let (from, to) = (Address::Base(entity), Address::Cell(entity));
            cx.call(from, to, cx.owner(), Call::Witness(client));
        }
    }
}

/// Whether an entity had a cell part, and has none now.
pub(crate) fn has_lost_cell(image: &Image, entity: EntityId) -> bool {
    let had_cell = image.links.taken.contains_key(&Address::Cell(entity));
    had_cell && image.base().is_some_and(|base| base.cell.is_none())
}

/// A cell part that is to be created.
pub(crate) struct NewCell {
    type_id: TypeId,
    client: Option<ClientLink>,
    properties: Vec<(MemberId, Value)>,
}

/// The cell part that an entity gets with these properties.
///
/// # Errors
/// When it has or waits for one, can have none there, or is no longer here.
pub(crate) fn new_cell(
    cx: &OwnerContext,
    entity: EntityId,
    place: Place,
    properties: &[(MemberId, Value)],
) -> Result<NewCell, Denied> {
    let what = "create a cell part";
    let image = cx.image(entity).ok_or(Denied::Elsewhere { entity, what })?;
    if image.base().is_some_and(|base| base.cell.is_some()) {
        return Err(Denied::HasCell { entity });
    }
    if is_returning(image, entity) {
        return Err(Denied::CellEnding { entity });
    }
    if InternalWait::SpaceClaimed.is_set(image) {
        return Err(Denied::ClaimsSpace { entity });
    }
    // Requested properties come before stored ones, and these before defaults.
    let base = image.base();
    let stored = base.map(|base| base.cell_properties.clone()).unwrap_or_default();
    let properties = stored.into_iter().chain(properties.iter().cloned()).collect();
    let type_id = image.type_id;
    if !cx.type_of(type_id).is_some_and(|found| found.parts.cell) {
        return Err(Denied::NoCellPart { entity });
    }
    if !place.is_sound() {
        return Err(Denied::Place);
    }
    Ok(NewCell {
        type_id,
        client: image.client,
        properties: cx.initial(type_id, Part::Cell, properties)?,
    })
}

/// Whether the cell part of an entity has ended and its state has not returned (rule C17).
fn is_returning(image: &Image, entity: EntityId) -> bool {
    has_lost_cell(image, entity) && image.base().is_some_and(|base| base.cell_links.is_none())
}

/// Ends the calls of a base part that its former cell part has not taken. Among them may be that it should end, or serve a
/// client: not for the next one.
fn end_calls(cx: &mut OwnerContext, entity: EntityId) {
    let (from, to) = (Address::Base(entity), Address::Cell(entity));
    let base = cx.image(entity).and_then(Image::base);
    if let Some(links) = base.and_then(|base| base.cell_links.as_ref()) {
        let taken = links.taken.get(&from).copied().unwrap_or_default();
        cx.end_link(&Nowhere, Link { from, to }, taken);
    }
}

/// What the next cell part of an entity continues, if it had one before. Calls of the base part to the former one that are
/// still on their way are not for the next one.
fn former_cell(image: &Image, entity: EntityId) -> Option<Box<FormerCell>> {
    let base = image.base()?;
    let (history, mut links) = (base.cell_history?, base.cell_links.clone()?);
    let sent = image.links.sent.get(&Address::Cell(entity));
    let last = sent.map(|sent| sent.last).unwrap_or_default();
    let taken = links.taken.entry(Address::Base(entity)).or_default();
    *taken = last.max(*taken);
    Some(Box::new(FormerCell { history, links }))
}

/// Destroys the cell part of an entity. Both parts are stored while both still exist.
pub(crate) fn destroy_cell(cx: &mut OwnerContext, entity: EntityId) {
    let Some(image) = cx.image(entity) else { return };
    if image.base().is_none_or(|base| base.cell.is_none()) || is_ending(image, entity) {
        return;
    }
    store(cx, entity);
    let (from, to) = (Address::Base(entity), Address::Cell(entity));
    cx.call(from, to, cx.owner(), Call::DestroyCell);
}

/// Whether the cell part has been asked to end and has not acknowledged that yet.
fn is_ending(image: &Image, entity: EntityId) -> bool {
    let sent = image.links.sent.get(&Address::Cell(entity));
    sent.is_some_and(|sent| sent.unconfirmed.values().any(|call| *call == Call::DestroyCell))
}

/// Stores an entity as its cell part requests. An entity that is not stored yet becomes a new stored entity.
pub(crate) fn store_for_cell(cx: &mut OwnerContext, entity: EntityId) {
    if cx.entity_type(entity).is_none_or(|found| !found.persistent) {
        return;
    }
    if let Err(why) = cx.store(entity) {
        cx.deny(entity, &Nowhere, &Request::Store { entity }, &why);
    }
}

/// Records the stored entity for writing, if its type is persistent: an account may be of any type.
pub(crate) fn store(cx: &mut OwnerContext, entity: EntityId) {
    if cx.entity_type(entity).is_none_or(|found| !found.persistent) {
        return;
    }
    let base = cx.image(entity).and_then(Image::base);
    if let Some(database) = base.map(|base| base.database).filter(|database| database.0 != 0) {
        cx.record_for(entity, false, Body::Stored { database });
    }
}
