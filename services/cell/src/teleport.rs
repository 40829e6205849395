//! Teleports: an entity is moved at once to any place, in its space or another one, here or on another owner (rule H9).
//!
//! Within its space, and into a space for which this owner is responsible, the entity is moved at once. If another
//! owner is responsible for that part of its space, an ordinary hand-over follows. Into another owner's space, the
//! hand-over itself moves the entity: the image that is sent has the new place, the one that is kept here the old
//! place. An entity that is refused is therefore back at its old place with all its state.

use annals_event::{Awaiting, Body, Image, PartImage, Place};
use annals_ids::{Address, CallNumber, EntityId, OwnerId, SpaceId, WorldTime};
use annals_node::{Denied, OwnerContext, TeleportFailed};

use crate::{handover::fits, knowledge::Knowledge, role::CellRole, sampling::log_place};

impl CellRole {
    /// Teleports an entity, or notifies behaviour why not.
    ///
    /// # Errors
    /// When the entity is not here any more.
    pub(crate) fn teleport(&mut self, cx: &mut OwnerContext, entity: EntityId, place: Place) -> Result<(), Denied> {
        let what = "teleport";
        let before = cx.place(entity).ok_or(Denied::Elsewhere { entity, what })?;
        if let Err(why) = self.put(cx, entity, (before, place)) {
            self.counters.denied += 1;
            failed(cx, &self.known, entity, &why);
        }
        Ok(())
    }

    fn put(
        &mut self,
        cx: &mut OwnerContext,
        entity: EntityId,
        (before, place): (Place, Place),
    ) -> Result<(), TeleportFailed> {
        if !place.is_sound() {
            return Err(TeleportFailed::NoPlace);
        }
        let to = self.known.territory.owner_at(&place);
        let to = to.ok_or(TeleportFailed::NoSpace(place.space))?;
        if cx.is_gone(place.space) {
            return Err(TeleportFailed::SpaceGone(place.space));
        }
        if place.space == before.space || to == cx.owner() {
            cx.needs(0).map_err(|_| TeleportFailed::TooLarge)?;
            arrive(cx, &self.known, entity, (place, before.space));
            return Ok(());
        }
        if cx.has_requests(entity) {
            // The entity's other pending requests would no longer find it here.
            return Err(TeleportFailed::Superseded);
        }
        if !cx.image(entity).is_some_and(|image| fits(cx, image)) {
            return Err(TeleportFailed::TooLarge);
        }
        cx.log_confirmations();
        log_place(cx, entity);
        self.controllers.log_course(cx, entity);
        let number = cx.next_call(Address::Owner(cx.owner()), Address::Owner(to));
        cx.record_for(entity, false, mark(to, number, before.space));
        self.offload(cx, entity, to, Some(place));
        Ok(())
    }
}

/// Moves the entity to its new place: clients receive it reliably, and behaviour is notified.
fn arrive(cx: &mut OwnerContext, known: &Knowledge, entity: EntityId, (place, before): (Place, SpaceId)) {
    cx.move_to(entity, place);
    cx.record_for(entity, true, Body::Moved(place));
    cx.run(entity, known, |behaviour, context| {
        behaviour.teleported(context, before);
    });
}

fn failed(cx: &mut OwnerContext, known: &Knowledge, entity: EntityId, why: &TeleportFailed) {
    cx.run(entity, known, |behaviour, context| {
        behaviour.teleport_failed(context, why);
    });
}

/// Marks the call that carries the entity as a teleport: a wait in the entity's state, both in the image that is sent
/// and in the one that is kept here.
fn mark(to: OwnerId, number: CallNumber, before: SpaceId) -> Body {
    let awaiting = Awaiting {
        deadline: WorldTime(u64::MAX),
        then: 0,
        note: before.0.to_le_bytes().to_vec(),
    };
    Body::Awaits {
        to: Address::Owner(to),
        number,
        awaiting,
    }
}

/// Whether the call with this number to that owner, which carries the entity, is a teleport; returns the former space.
pub(crate) fn teleport_origin(image: &Image, to: OwnerId, number: CallNumber) -> Option<SpaceId> {
    let mark = image.links.awaiting.get(&(Address::Owner(to), number))?;
    let space = mark.note.as_slice().try_into().ok().map(u32::from_le_bytes)?;
    Some(SpaceId(space))
}

/// The image that is sent of an entity that is teleported to `place`.
pub(crate) fn put_at(mut image: Image, place: Place) -> Image {
    if let PartImage::Cell(cell) = &mut image.part {
        (cell.place, cell.life) = (place, None);
    }
    image
}

/// Completes a teleport by hand-over on the owner that took the entity over.
pub(crate) fn has_arrived(
    cx: &mut OwnerContext,
    known: &Knowledge,
    entity: EntityId,
    (to, number): (OwnerId, CallNumber),
) {
    let Some(before) = cx.image(entity).and_then(|image| teleport_origin(image, to, number)) else {
        return;
    };
    end_mark(cx, entity, (to, number));
    if let Some(place) = cx.place(entity) {
        arrive(cx, known, entity, (place, before));
    }
}

/// Ends a teleport by hand-over that was refused: the entity is real here again, at its old place.
pub(crate) fn has_returned(
    cx: &mut OwnerContext,
    known: &Knowledge,
    entity: EntityId,
    ((to, number), reason): ((OwnerId, CallNumber), String),
) {
    let image = cx.image(entity);
    if image.is_some_and(|image| teleport_origin(image, to, number).is_some()) {
        end_mark(cx, entity, (to, number));
        failed(cx, known, entity, &TeleportFailed::Refused(reason));
    }
}

fn end_mark(cx: &mut OwnerContext, entity: EntityId, (to, number): (OwnerId, CallNumber)) {
    let to = Address::Owner(to);
    cx.record_for(entity, false, Body::Resumed { to, number });
}
