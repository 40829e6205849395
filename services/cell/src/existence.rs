//! Creates and destroys cell parts, and notifies their homes.

use annals_event::{Body, Call, CellCreation, ClientLink, Image, Place, Subject};
use annals_ids::{Address, EntityId, OwnerId, Part};
use annals_node::{Caller, OwnerContext};

use crate::role::CellRole;

impl CellRole {
    /// Creates a cell part. One that cannot be created begins and ends at once, so that its home is notified.
    pub(crate) fn create(&mut self, cx: &mut OwnerContext, mut creation: CellCreation) {
        let (entity, place) = (creation.entity, creation.place);
        // The former cell part of the entity may still be departing: it arrived elsewhere, and ended there.
        let is_further = creation.former.is_some();
        let leaving = cx.state().departing.values().any(|(leaving, _)| *leaving == entity);
        if cx.image(entity).is_some() || (leaving && !is_further) {
            return;
        }
        let given = std::mem::take(&mut creation.properties);
        let sound = place.is_sound() && !cx.is_gone(place.space);
        let has_part = cx.type_of(creation.type_id).is_some_and(|found| found.parts.cell);
        let properties = cx.initial(creation.type_id, Part::Cell, given);
        match properties {
            Ok(properties) if has_part && sound && !self.closing => {
                begin(cx, CellCreation { properties, ..creation });
                notify_home(cx, entity, Some(cx.owner()));
                cx.run(entity, &self.known, |behaviour, context| {
                    behaviour.created(context);
                });
            }
            denied => {
                self.counters.denied += 1;
                // They return to the base part.
                let properties = denied.unwrap_or_default();
                let place = Place {
                    space: place.space,
                    ..Place::default()
                };
                let client = None;
                begin(
                    cx,
                    CellCreation {
                        place,
                        client,
                        properties,
                        ..creation
                    },
                );
                notify_home(cx, entity, None);
                cx.end_cell(entity);
            }
        }
    }

    /// Destroys a cell part that is real here.
    pub(crate) fn destroy(&mut self, cx: &mut OwnerContext, entity: EntityId) {
        if cx.image(entity).is_none() {
            return;
        }
        cx.run(entity, &self.known, |behaviour, context| {
            behaviour.destroyed(context);
        });
        notify_home(cx, entity, None);
        cx.end_cell(entity);
    }

    /// Notifies entities of an earlier life of their space that the space is gone, and ends their cell parts. An entity
    /// that then asks for a teleport to another space stays until that is done, or has failed.
    pub(crate) fn leave_gone(&mut self, cx: &mut OwnerContext) {
        for entity in self.known.spaces.left_over(cx) {
            if cx.needs(0).is_err() {
                return;
            }
            if self.known.spaces.notify(entity) {
                cx.run(entity, &self.known, |behaviour, context| {
                    behaviour.space_gone(context);
                });
                if cx.has_requests(entity) {
                    continue;
                }
            }
            self.destroy(cx, entity);
        }
    }

    /// Sets the client of an entity.
    pub(crate) fn attach(&mut self, cx: &mut OwnerContext, entity: EntityId, client: Option<ClientLink>) {
        if cx.image(entity).is_some_and(|image| image.client != client) {
            cx.record_for(entity, false, Body::ClientSet(client));
        }
    }

    /// Records, as its home, the holder of a cell part without a base. This owner itself is not recorded.
    pub(crate) fn placed(&mut self, cx: &mut OwnerContext, caller: &Caller, at: Option<OwnerId>) {
        let Address::Cell(entity) = caller.link.from else {
            return;
        };
        if at != Some(cx.owner()) && cx.state().placed.get(&entity).copied() != at {
            cx.record(Subject::Entity(entity, Part::Cell), false, Body::Placed(at));
        }
    }
}

fn begin(cx: &mut OwnerContext, creation: CellCreation) {
    let subject = Subject::Entity(creation.entity, Part::Cell);
    cx.record(subject, false, Body::CellCreated(Box::new(creation)));
}

/// Notifies an entity's home where its cell part is, on the entity's own link, so that later places follow earlier ones
/// (H6).
pub(crate) fn notify_home(cx: &mut OwnerContext, entity: EntityId, at: Option<OwnerId>) {
    let Some(image) = cx.image(entity) else { return };
    let (home, based) = (image.home, is_based(image));
    let to = if based {
        Address::Base(entity)
    } else {
        Address::Owner(home)
    };
    cx.call(Address::Cell(entity), to, home, Call::Placed(at));
}

/// Whether an entity has a base part, at its home.
pub(crate) fn is_based(image: &Image) -> bool {
    image.cell().is_some_and(|cell| cell.based)
}

/// Calls the base part of an entity to store it.
pub(crate) fn store(cx: &mut OwnerContext, entity: EntityId) {
    let Some(image) = cx.image(entity) else { return };
    let (from, to, home) = (Address::Cell(entity), Address::Base(entity), image.home);
    cx.call(from, to, home, Call::Store);
}
