//! Haunts: which neighbours have ghosts of our real entities, and what they are told (rule V2).

use std::collections::{BTreeMap, BTreeSet};

use annals_def::Value;
use annals_event::{Body, Event, Image, Subject};
use annals_ids::{EntityId, HistoryNumber, MemberId, OwnerId};
use annals_node::Desk;
use annals_wire::{
    SpaceMap,
    bus::{GhostImage, GhostMessage, GhostMove, Message, Shown},
};

/// How much farther than it was made a ghost is kept, metres, so that one who walks along the edge is not made again and
/// again.
const KEEP_BEYOND: f32 = 20.0;

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Haunts {
    /// Who has a ghost of each entity.
    haunted: BTreeMap<EntityId, BTreeSet<OwnerId>>,
    /// Counts the movements of each entity that has ghosts.
    moves: BTreeMap<EntityId, u64>,
}

impl Haunts {
    /// The entity is no longer real here.
    pub(crate) fn forget(&mut self, entity: EntityId) {
        self.haunted.remove(&entity);
        self.moves.remove(&entity);
    }

    /// Makes ghosts where entities have come near another cell, and lets those go that have gone far away.
    pub(crate) fn follow(&mut self, desk: &mut Desk, map: &SpaceMap) {
        let places: Vec<_> = desk.places().collect();
        let me = desk.owner();
        for (entity, place) in places {
            let Some(space) = map.spaces.get(&place.space) else {
                continue;
            };
            let held = self.haunted.entry(entity).or_default();
            let mut near = BTreeSet::new();
            for cell in space.cells.iter().filter(|cell| cell.owner != me) {
                let reach = space.ghost_distance + if held.contains(&cell.owner) { KEEP_BEYOND } else { 0.0 };
                if cell.distance(place.position) <= reach {
                    near.insert(cell.owner);
                }
            }
            let new: Vec<OwnerId> = near.difference(held).copied().collect();
            *held = near;
            for neighbour in new {
                send_image(desk, neighbour, entity);
            }
        }
    }

    /// Tells neighbours what was recorded of entities that haunt them.
    pub(crate) fn tell(&self, desk: &mut Desk, recorded: &[Event]) {
        let mut told: BTreeMap<(EntityId, OwnerId), (HistoryNumber, Vec<Shown>)> = BTreeMap::new();
        for event in recorded {
            let (Some(number), Subject::Entity(entity, _)) = (event.history, event.subject) else {
                continue;
            };
            for neighbour in self.haunted.get(&entity).into_iter().flatten() {
                let after = HistoryNumber(number.0 - 1);
                let (_, events) = told.entry((entity, *neighbour)).or_insert_with(|| (after, Vec::new()));
                events.push(as_ghosts_see(desk, entity, event));
            }
        }
        for ((entity, neighbour), (after, events)) in told {
            desk.tell(
                neighbour,
                Message::Ghost(GhostMessage::Events { entity, after, events }),
            );
        }
    }

    /// Tells neighbours where what haunts them has moved.
    pub(crate) fn tell_moves(&mut self, desk: &mut Desk, moved: &BTreeSet<EntityId>) {
        for entity in moved {
            let (Some(place), Some(neighbours)) = (desk.place(*entity), self.haunted.get(entity)) else {
                continue;
            };
            let sequence = self.moves.entry(*entity).or_default();
            *sequence += 1;
            let moved = GhostMove {
                entity: *entity,
                sequence: *sequence,
                place,
            };
            for neighbour in neighbours {
                desk.tell_volatile(*entity, *neighbour, Message::Ghost(GhostMessage::Moves(vec![moved])));
            }
        }
    }

    /// Names to each neighbour all that haunts it, with the newest numbers.
    pub(crate) fn name_heads(&self, desk: &mut Desk, map: &SpaceMap) {
        let me = desk.owner();
        let cells = map
            .spaces
            .values()
            .flat_map(|space| space.cells.iter().map(|cell| cell.owner));
        let mut heads: BTreeMap<OwnerId, Vec<(EntityId, HistoryNumber)>> = cells
            .filter(|owner| *owner != me)
            .map(|owner| (owner, Vec::new()))
            .collect();
        for (entity, neighbours) in &self.haunted {
            let Some(image) = desk.image(*entity) else { continue };
            for neighbour in neighbours {
                heads.entry(*neighbour).or_default().push((*entity, image.history));
            }
        }
        for (neighbour, heads) in heads {
            desk.tell(neighbour, Message::Ghost(GhostMessage::Heads(heads)));
        }
    }

    /// A neighbour lacks something: it gets the events, or all of it where they reach no longer back so far.
    pub(crate) fn repair(
        &mut self,
        desk: &mut Desk,
        neighbour: OwnerId,
        entity: EntityId,
        have: Option<HistoryNumber>,
    ) {
        let Some(image) = desk.image(entity) else { return };
        self.haunted.entry(entity).or_default().insert(neighbour);
        let missing: Option<(HistoryNumber, Vec<Event>)> =
            have.and_then(|have| Some((have, image.history_since(have)?.cloned().collect())));
        match missing {
            None => send_image(desk, neighbour, entity),
            Some((after, events)) => {
                let events = events.iter().map(|event| as_ghosts_see(desk, entity, event)).collect();
                desk.tell(
                    neighbour,
                    Message::Ghost(GhostMessage::Events { entity, after, events }),
                );
            }
        }
    }
}

/// What a ghost of an entity is made of.
pub(crate) fn ghost_image(desk: &Desk, entity: EntityId, image: &Image) -> Option<GhostImage> {
    let entity_type = desk.type_of(image.type_id)?;
    let place = desk.place(entity).or_else(|| image.cell().map(|cell| cell.place))?;
    let copied = |(member, _): &(&MemberId, &Value)| {
        entity_type
            .property(**member)
            .is_some_and(|property| property.distribution.to_ghosts())
    };
    let properties = image
        .properties
        .iter()
        .filter(copied)
        .map(|(member, value)| (*member, value.clone()));
    Some(GhostImage {
        type_id: image.type_id,
        home: image.home,
        session: image.client.map(|client| client.session),
        history: image.history,
        place,
        properties: properties.collect(),
    })
}

fn send_image(desk: &mut Desk, neighbour: OwnerId, entity: EntityId) {
    let image = desk.image(entity).and_then(|image| ghost_image(desk, entity, image));
    if let Some(image) = image.map(Box::new) {
        desk.tell(neighbour, Message::Ghost(GhostMessage::Image { entity, image }));
    }
}

/// Ghosts have no copy of what only the own client sees; they learn that something has happened, and its number.
fn as_ghosts_see(desk: &Desk, entity: EntityId, event: &Event) -> Shown {
    let visible = match &event.body {
        Body::Changed { member, .. } => desk
            .entity_type(entity)
            .and_then(|entity_type| entity_type.property(*member))
            .is_some_and(|property| property.distribution.to_ghosts()),
        Body::Invoked { audience, .. } => *audience != annals_event::Audience::Own,
        _ => false,
    };
    if visible {
        Shown::Event(Box::new(event.clone()))
    } else {
        Shown::Hidden
    }
}
