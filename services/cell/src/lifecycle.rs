//! How cell parts begin and end, and whose client they serve.

use annals_event::{Body, Call, CellCreation, ClientLink, Place, Subject};
use annals_ids::{Address, EntityId, OwnerId, Part};
use annals_node::Desk;

use crate::role::CellRole;

impl CellRole {
    /// A base wants its entity to have a cell part here. One that is here or was here on its way elsewhere is not made
    /// again.
    pub(crate) fn create(&mut self, desk: &mut Desk, creation: Box<CellCreation>) {
        let (entity, home, based) = (creation.entity, creation.home, creation.based);
        let known = desk.image(entity).is_some()
            || desk
                .state()
                .departing
                .values()
                .any(|(departing, _)| *departing == entity)
            || desk.type_of(creation.type_id).is_none();
        if known {
            return;
        }
        desk.record(Subject::Entity(entity, Part::Cell), false, Body::CellCreated(creation));
        self.ghosts.remove(entity);
        self.tell_home(desk, entity, home, based);
        desk.run(entity, |behaviour, context| behaviour.created(context));
    }

    /// The part ceases: its behaviour and then its home are told.
    pub(crate) fn destroy(&mut self, desk: &mut Desk, entity: EntityId) {
        desk.run(entity, |behaviour, context| behaviour.destroyed(context));
        let Some(image) = desk.image(entity) else { return };
        let (home, based) = (image.home, image.cell().is_some_and(|cell| cell.based));
        let to = if based {
            Address::Base(entity)
        } else {
            Address::Owner(home)
        };
        if based || home != desk.owner() {
            desk.call(Address::Cell(entity), to, home, Call::Placed(None));
        }
        desk.record_for(entity, false, Body::Destroyed);
    }

    /// Another cell has, or no longer has, the cell part whose home this is.
    pub(crate) fn placed(desk: &mut Desk, entity: EntityId, at: Option<OwnerId>) {
        desk.record(Subject::Entity(entity, Part::Cell), false, Body::Placed(at));
    }

    /// Whose witness the part has from now on.
    pub(crate) fn serve(desk: &mut Desk, entity: EntityId, client: Option<ClientLink>) {
        if desk.image(entity).is_some_and(|image| image.client != client) {
            desk.record_for(entity, false, Body::ClientSet(client));
        }
    }

    /// Puts an entity somewhere else in its space.
    pub(crate) fn teleport(&mut self, desk: &mut Desk, entity: EntityId, place: Place) {
        let here = desk.place(entity).map(|here| here.space);
        let fits = place.position.is_finite() && place.direction.is_finite();
        if here == Some(place.space) && fits && self.map.owner_at(place.space, place.position).is_some() {
            desk.move_to(entity, place);
        }
    }
}
