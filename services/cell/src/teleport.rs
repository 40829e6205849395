//! Teleports: an entity is put somewhere at once, be it in its space, in another one here, or in one of another owner
//! (rule H9).
//!
//! Within its space, and into one for which this owner is responsible, it stands there at once; if another owner is
//! responsible for that part of its space, it is handed over as one that walked there. Into a space of another owner the
//! hand-over itself puts it there: what travels holds the new place, what is kept here the old one, so that who is refused is
//! back where it was, with all that it had.

use annals_event::{Awaiting, Body, Image, PartImage, Place};
use annals_ids::{Address, CallNumber, EntityId, OwnerId, SpaceId, WorldTime};
use annals_node::{Denied, OwnerContext, TeleportFailed};

use crate::{handover::fits, role::CellRole, sampling::log_place, spatial_query::SpatialQuery};

impl CellRole {
    /// Puts an entity somewhere, or tells it why not.
    ///
    /// # Errors
    /// When it is not here any more.
    pub(crate) fn teleport(&mut self, cx: &mut OwnerContext, entity: EntityId, place: Place) -> Result<(), Denied> {
        let what = "be put somewhere";
        let before = cx.place(entity).ok_or(Denied::Elsewhere { entity, what })?;
        if let Err(why) = self.put(cx, entity, (before, place)) {
            self.counters.denied += 1;
            failed(cx, self.spatial_query(), entity, &why);
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
        let to = self.territory.owner_at(&place);
        let to = to.ok_or(TeleportFailed::NoSpace(place.space))?;
        if cx.is_gone(place.space) {
            return Err(TeleportFailed::SpaceGone(place.space));
        }
        if place.space == before.space || to == cx.owner() {
            cx.needs(0).map_err(|_| TeleportFailed::TooLarge)?;
            arrive(cx, self.spatial_query(), entity, (place, before.space));
            return Ok(());
        }
        if cx.has_requests(entity) {
            // What else behaviour has asked for it would find nobody.
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

/// The entity stands there now: everybody who sees it is told for certain, and so is behaviour.
fn arrive(cx: &mut OwnerContext, around: SpatialQuery<'_>, entity: EntityId, (place, before): (Place, SpaceId)) {
    cx.move_to(entity, place);
    cx.record_for(entity, true, Body::Moved(place));
    cx.run(entity, &around, |behaviour, context| {
        behaviour.teleported(context, before);
    });
}

fn failed(cx: &mut OwnerContext, around: SpatialQuery<'_>, entity: EntityId, why: &TeleportFailed) {
    cx.run(entity, &around, |behaviour, context| {
        behaviour.teleport_failed(context, why);
    });
}

/// That the call which carries the entity puts it somewhere is a wait in its state, which travels with it and stays here.
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

/// Whether the call with this number to that owner, which carries the entity, puts it somewhere; then from which space.
pub(crate) fn is_put(image: &Image, to: OwnerId, number: CallNumber) -> Option<SpaceId> {
    let mark = image.links.awaiting.get(&(Address::Owner(to), number))?;
    let space = mark.note.as_slice().try_into().ok().map(u32::from_le_bytes)?;
    Some(SpaceId(space))
}

/// What travels of an entity that is put there.
pub(crate) fn put_at(mut image: Image, place: Place) -> Image {
    if let PartImage::Cell(cell) = &mut image.part {
        (cell.place, cell.life) = (place, None);
    }
    image
}

/// It was taken over by the call that was to put it there.
pub(crate) fn has_arrived(
    cx: &mut OwnerContext,
    around: SpatialQuery<'_>,
    entity: EntityId,
    (to, number): (OwnerId, CallNumber),
) {
    let Some(before) = cx.image(entity).and_then(|image| is_put(image, to, number)) else {
        return;
    };
    end_mark(cx, entity, (to, number));
    if let Some(place) = cx.place(entity) {
        arrive(cx, around, entity, (place, before));
    }
}

/// It was refused there and is real here again, where it was.
pub(crate) fn has_returned(
    cx: &mut OwnerContext,
    around: SpatialQuery<'_>,
    entity: EntityId,
    ((to, number), reason): ((OwnerId, CallNumber), String),
) {
    let image = cx.image(entity);
    if image.is_some_and(|image| is_put(image, to, number).is_some()) {
        end_mark(cx, entity, (to, number));
        failed(cx, around, entity, &TeleportFailed::Refused(reason));
    }
}

fn end_mark(cx: &mut OwnerContext, entity: EntityId, (to, number): (OwnerId, CallNumber)) {
    let to = Address::Owner(to);
    cx.record_for(entity, false, Body::Resumed { to, number });
}
