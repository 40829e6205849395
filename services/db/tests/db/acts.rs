//! Actions of entities, one event each.

use annals_def::{Located, Value};
use annals_event::{BaseCreation, Body, CellCreation, FormerCell, Place};
use annals_ids::{DatabaseId, EntityId, OwnerId, Part, Position, SpaceId};

use crate::{game, realm::Realm};

/// Begins the base part of an entity: of stored entity `database`, in the activation with this check-out, if those are
/// not 0.
pub(crate) fn begin_base(
    realm: &mut Realm,
    owner: OwnerId,
    entity: EntityId,
    name: &str,
    (database, checkout): (u64, u64),
) {
    let creation = BaseCreation {
        type_id: game::avatar().id,
        database: DatabaseId(database),
        checkout,
        properties: game::properties(Part::Base, &[("name", Value::Unicode(name.to_owned()))]),
        cell_properties: Vec::new(),
    };
    let created = Body::BaseCreated(Box::new(creation));
    realm.scribe(owner).record(entity, false, created);
}

/// Begins the cell part of an entity with a base: the next one, if it had one before.
pub(crate) fn begin_cell(realm: &mut Realm, owner: OwnerId, entity: EntityId, home: OwnerId) {
    let former = realm.former.get(&entity).map(|history| {
        Box::new(FormerCell {
            history: *history,
            ..FormerCell::default()
        })
    });
    begin_cell_of(realm, owner, (entity, home), former);
}

/// Begins a further cell part of an entity.
pub(crate) fn begin_further_cell(
    realm: &mut Realm,
    owner: OwnerId,
    entity: EntityId,
    home: OwnerId,
    former: FormerCell,
) {
    begin_cell_of(realm, owner, (entity, home), Some(Box::new(former)));
}

fn begin_cell_of(
    realm: &mut Realm,
    owner: OwnerId,
    (entity, home): (EntityId, OwnerId),
    former: Option<Box<FormerCell>>,
) {
    let creation = CellCreation {
        entity,
        type_id: game::avatar().id,
        home,
        based: true,
        place: place(1),
        properties: game::properties(Part::Cell, &[("hp", Value::Int(100))]),
        client: None,
        former,
    };
    let created = Body::CellCreated(Box::new(creation));
    realm.scribe(owner).record_created(entity, created);
}

/// Sets a property.
pub(crate) fn set(realm: &mut Realm, owner: OwnerId, entity: EntityId, name: &str, value: Value) {
    let changed = Body::Changed {
        member: game::member(name),
        change: Located::whole(value),
    };
    realm.scribe(owner).record(entity, true, changed);
}

/// Requests that the entity is written to the database.
pub(crate) fn store(realm: &mut Realm, owner: OwnerId, entity: EntityId, database: u64) {
    let database = DatabaseId(database);
    realm.scribe(owner).record(entity, false, Body::Stored { database });
}

/// Ends a part of an entity.
pub(crate) fn end(realm: &mut Realm, owner: OwnerId, entity: EntityId) {
    let image = realm.scribe(owner).state.entities.get(&entity);
    let cell = image.filter(|image| image.cell().is_some()).map(|image| image.history);
    realm.former.extend(cell.map(|history| (entity, history)));
    realm.scribe(owner).record(entity, false, Body::Destroyed);
}

/// Notifies the base of its cell part's location.
pub(crate) fn placed(realm: &mut Realm, owner: OwnerId, entity: EntityId, at: Option<OwnerId>) {
    realm.scribe(owner).record(entity, false, Body::Placed(at));
}

/// A place in the only space.
pub(crate) fn place(at: usize) -> Place {
    let position = Position {
        x: at as f32,
        ..Position::default()
    };
    Place {
        space: SpaceId(1),
        position,
        ..Place::default()
    }
}
