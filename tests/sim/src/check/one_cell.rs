//! Each observer sees what a single cell would show it, regardless of how many cells there are, how their borders move
//! and which of them crash.
//!
//! The check is per event. The histories of the archive are those that a single cell would have made, since each event
//! of an entity has one number in all logs. What a client is sent of an entity follows that history. It begins with the
//! whole state at some number, with every value as of that number; for an entity that re-enters, it begins where the
//! client's history ended when the entity left. Then each event that the client may see follows in order, none missing,
//! none duplicated. The client may be sent the whole state again at a later number (rule V3), never at an earlier one.
//! At rest it has been sent everything. The [parade](crate::world) checks which entities are in view at rest, and which
//! were all the time.

use std::{collections::BTreeMap, ops::Range};

use annals_client::Event;
use annals_def::{EntityType, Value};
use annals_event::Body;
use annals_ids::{EntityId, Hash, HistoryNumber, MemberId, Part};
use annals_node::{Showing, Viewer};
use annals_wire::client::property_hash;

use crate::{
    archive::Archive,
    world::{SimClient, World},
};

/// Checks each client's updates against the histories of the archive.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = world.parade.wrong.clone();
    for (number, client) in world.clients.iter().enumerate() {
        let found = follow(world, archive, client);
        wrong.extend(found.into_iter().map(|what| format!("client {number} {what}")));
    }
    wrong
}

/// The updates of one client.
struct Follower<'a> {
    world: &'a World,
    archive: &'a Archive,
    own: Option<EntityId>,
    /// History number up to which the client was sent each entity in its view.
    upto: BTreeMap<EntityId, HistoryNumber>,
    /// The same for entities that have left the view, at the time they left.
    left: BTreeMap<EntityId, HistoryNumber>,
    wrong: Vec<String>,
}

fn follow(world: &World, archive: &Archive, client: &SimClient) -> Vec<String> {
    let mut follower = Follower {
        world,
        archive,
        own: None,
        upto: BTreeMap::new(),
        left: BTreeMap::new(),
        wrong: Vec::new(),
    };
    client.events.iter().for_each(|event| follower.follow(event));
    if client.core.is_playing() {
        for (entity, upto) in follower.upto.clone() {
            follower.expect_nothing(entity, upto.0 + 1..u64::MAX, "at rest");
        }
    }
    follower.wrong
}

impl Follower<'_> {
    fn follow(&mut self, event: &Event) {
        match event {
            Event::Connected { entity, .. } | Event::Controls { entity, .. } => {
                self.own = Some(*entity);
                self.upto.clear();
                self.left.clear();
            }
            Event::Entered {
                part: Part::Cell,
                entity,
                upto,
                ..
            } => {
                let left = self.left.remove(entity).filter(|_| *upto != HistoryNumber(0));
                match left {
                    // The numbers in between were events for other observers.
                    Some(left) if left <= *upto => {
                        self.expect_nothing(*entity, left.0 + 1..upto.0 + 1, "before it left");
                    }
                    None if *upto == HistoryNumber(0) => {}
                    _ => self.wrong.push(format!(
                        "has entity {entity} back as of {upto}, and left it as of {left:?}"
                    )),
                }
                self.upto.insert(*entity, *upto);
            }
            Event::Left {
                part: Part::Cell,
                entity,
            } => {
                let upto = self.upto.remove(entity);
                self.left.extend(upto.map(|upto| (*entity, upto)));
            }
            Event::Refreshed {
                part: Part::Cell,
                entity,
                upto,
                properties,
                ..
            } => {
                if self.upto.insert(*entity, *upto).is_none_or(|before| before > *upto) {
                    self.wrong.push(format!(
                        "is given entity {entity} as of {upto}, which it had passed, or did not see"
                    ));
                }
                self.compare(*entity, *upto, properties);
            }
            Event::Shown(showing) if showing.part == Part::Cell => {
                let (entity, number) = (showing.entity, showing.number);
                match self.upto.insert(entity, number) {
                    Some(before) if before < number => {
                        self.expect_nothing(entity, before.0 + 1..number.0, "before the next");
                    }
                    before => self
                        .wrong
                        .push(format!("is shown event {number} of entity {entity} after {before:?}")),
                }
            }
            _ => {}
        }
    }

    /// Checks that no event between the two numbers is visible to the client.
    fn expect_nothing(&mut self, entity: EntityId, between: Range<u64>, when: &str) {
        let viewer = if self.own == Some(entity) {
            Viewer::Own
        } else {
            Viewer::Others
        };
        let showing = self
            .type_of(entity)
            .and_then(|found| Showing::new(&self.world.schema, entity, found.id, viewer));
        let (Some(showing), Some(history)) = (showing, self.archive.histories.get(&(entity, Part::Cell))) else {
            return;
        };
        let between = HistoryNumber(between.start)..HistoryNumber(between.end.max(between.start));
        let missed = history.range(between).filter(|(number, events)| {
            let event = (**number, events.first());
            !showing
                .update(HistoryNumber(number.0 - 1), std::iter::once(event))
                .is_empty()
        });
        let missed: Vec<HistoryNumber> = missed.map(|(number, _)| *number).collect();
        if !missed.is_empty() {
            self.wrong
                .push(format!("was never shown events {missed:?} of entity {entity}, {when}"));
        }
    }

    fn type_of(&self, entity: EntityId) -> Option<&EntityType> {
        self.world.schema.entity_type(self.archive.cells.get(&entity)?.type_id)
    }

    /// Checks that the whole state equals the history folded up to that number.
    fn compare(&mut self, entity: EntityId, upto: HistoryNumber, hashes: &[(MemberId, Hash)]) {
        let (Some(entity_type), Some(held)) = (self.type_of(entity), self.state(entity, upto)) else {
            self.wrong
                .push(format!("is given entity {entity}, which was never created"));
            return;
        };
        let hashes: BTreeMap<MemberId, Hash> = hashes.iter().copied().collect();
        let is_own = self.own == Some(entity);
        let mut other = Vec::new();
        for property in &entity_type.properties {
            let to = property.distribution;
            let is_shown = if is_own {
                to.to_own_client()
            } else {
                to.to_other_clients()
            };
            let (true, Some(value)) = (is_shown, held.get(&property.index)) else {
                continue;
            };
            let same = match hashes.get(&property.index) {
                Some(hash) => property_hash(&property.data_type, value) == Some(*hash),
                None => *value == property.default,
            };
            if !same {
                other.push(property.name.clone());
            }
        }
        if !other.is_empty() {
            self.wrong.push(format!(
                "is given other {other:?} of entity {entity} than it had at {upto}"
            ));
        }
    }

    fn state(&self, entity: EntityId, upto: HistoryNumber) -> Option<BTreeMap<MemberId, Value>> {
        let mut held: BTreeMap<MemberId, Value> = self.archive.cells.get(&entity)?.properties.iter().cloned().collect();
        let history = self.archive.histories.get(&(entity, Part::Cell)).into_iter().flatten();
        for (_, events) in history.take_while(|(number, _)| **number <= upto) {
            if let Some(Body::Changed { member, change }) = events.first().map(|event| &event.body) {
                change.make(held.get_mut(member)?).ok()?;
            }
        }
        Some(held)
    }
}
