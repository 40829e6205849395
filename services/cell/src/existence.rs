//! How cell parts begin and end, and how their homes hear of it.

use annals_event::{Body, Call, CellCreation, ClientLink, Image, Place, Subject};
use annals_ids::{Address, EntityId, OwnerId, Part};
use annals_node::{Caller, Desk};

use crate::role::CellRole;

impl CellRole {
    /// Makes a cell part. What cannot be made begins and ends at once, so that its home hears that there is none.
    pub(crate) fn create(&mut self, desk: &mut Desk, mut creation: CellCreation) {
        let (entity, place) = (creation.entity, creation.place);
        let leaving = desk.state().departing.values().any(|(leaving, _)| *leaving == entity);
        if desk.image(entity).is_some() || leaving {
            return;
        }
        let given = std::mem::take(&mut creation.properties);
        let sound = place.is_sound() && !desk.is_gone(place.space);
        let has_part = desk.type_of(creation.type_id).is_some_and(|found| found.parts.cell);
        match desk.initial(creation.type_id, Part::Cell, given) {
            Ok(properties) if has_part && sound && !self.closing => {
                begin(desk, CellCreation { properties, ..creation });
                tell_home(desk, entity, Some(desk.owner()));
                desk.run(entity, &self.surroundings(), |behaviour, context| {
                    behaviour.created(context);
                });
            }
            _ => {
                self.counters.denied += 1;
                let place = Place {
                    space: place.space,
                    ..Place::default()
                };
                let client = None;
                begin(
                    desk,
                    CellCreation {
                        place,
                        client,
                        ..creation
                    },
                );
                tell_home(desk, entity, None);
                desk.record_for(entity, false, Body::Destroyed);
            }
        }
    }

    /// Ends a cell part that is real here.
    pub(crate) fn destroy(&mut self, desk: &mut Desk, entity: EntityId) {
        if desk.image(entity).is_none() {
            return;
        }
        desk.run(entity, &self.surroundings(), |behaviour, context| {
            behaviour.destroyed(context);
        });
        tell_home(desk, entity, None);
        desk.record_for(entity, false, Body::Destroyed);
    }

    /// Notes whose client's entity it is from now on.
    pub(crate) fn attach(&mut self, desk: &mut Desk, entity: EntityId, client: Option<ClientLink>) {
        if desk.image(entity).is_some_and(|image| image.client != client) {
            desk.record_for(entity, false, Body::ClientSet(client));
        }
    }

    /// Notes, as its home, where a cell part without a base is. That it is here needs no note.
    pub(crate) fn placed(&mut self, desk: &mut Desk, caller: &Caller, at: Option<OwnerId>) {
        let Address::Cell(entity) = caller.link.from else {
            return;
        };
        if at != Some(desk.owner()) && desk.state().placed.get(&entity).copied() != at {
            desk.record(Subject::Entity(entity, Part::Cell), false, Body::Placed(at));
        }
    }
}

fn begin(desk: &mut Desk, creation: CellCreation) {
    let subject = Subject::Entity(creation.entity, Part::Cell);
    desk.record(subject, false, Body::CellCreated(Box::new(creation)));
}

/// Tells an entity's home where its cell part is, on the entity's own link, so that later places follow earlier ones (H6).
pub(crate) fn tell_home(desk: &mut Desk, entity: EntityId, at: Option<OwnerId>) {
    let Some(image) = desk.image(entity) else { return };
    let (home, based) = (image.home, is_based(image));
    let to = if based {
        Address::Base(entity)
    } else {
        Address::Owner(home)
    };
    desk.call(Address::Cell(entity), to, home, Call::Placed(at));
}

/// Whether an entity has a base part, at its home.
pub(crate) fn is_based(image: &Image) -> bool {
    image.cell().is_some_and(|cell| cell.based)
}
