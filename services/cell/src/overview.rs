//! The overview: the real entities of this owner in a region, counted, and some of them with their positions. Made on
//! request only, by one iteration over all entities.

use annals_ids::{EntityId, SpaceId};
use annals_node::OwnerContext;
use annals_wire::overview::{Overview, OverviewEntity, OverviewRequest};

use crate::clients::Clients;

/// Makes an overview.
pub(crate) fn take(cx: &OwnerContext, clients: &Clients, asked: &OverviewRequest) -> Overview {
    let space = SpaceId(asked.space);
    let is_inside = |(_, place): &(EntityId, annals_event::Place)| {
        place.space == space && asked.contains(place.position.x, place.position.z)
    };
    let mut found: Vec<_> = cx.places().filter(is_inside).collect();
    let with_client = found.iter().filter(|(entity, _)| clients.has(*entity)).count();
    let mut overview = Overview {
        schema: cx.schema().fingerprint(),
        entities: found.len() as u64,
        clients: with_client as u64,
        sample: Vec::new(),
    };
    let limit = asked.limit();
    if limit < found.len() {
        found.select_nth_unstable_by_key(limit, |(entity, _)| scattered(*entity));
        found.truncate(limit);
        found.sort_unstable_by_key(|(entity, _)| *entity);
    }
    overview.sample = found
        .into_iter()
        .filter_map(|(entity, place)| {
            Some(OverviewEntity {
                entity,
                type_id: cx.state().entities.get(&entity)?.type_id,
                x: place.position.x,
                z: place.position.z,
                has_client: clients.has(entity),
            })
        })
        .collect();
    overview
}

/// An order of entities that is independent of their ages, by which a sample is chosen.
fn scattered(entity: EntityId) -> u64 {
    entity.0.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29)
}
