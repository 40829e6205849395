//! The last change of each property with a level of detail, so that a client that comes closer receives only those that
//! changed since it had them.
//!
//! Not in the log: derived from the histories of the entities that are known here. Before the first known history
//! number of an entity, every property counts as changed.

use std::collections::BTreeMap;

use annals_def::Schema;
use annals_event::{Body, Event, Image};
use annals_ids::{EntityId, HistoryNumber, MemberId, TypeId};

/// Last changes, per entity and property.
#[derive(Debug, Default)]
pub(crate) struct PropertyHistory {
    entities: BTreeMap<EntityId, Stamped>,
}

#[derive(Debug)]
struct Stamped {
    /// Changes after this history number are known.
    since: HistoryNumber,
    changed: BTreeMap<MemberId, HistoryNumber>,
}

impl PropertyHistory {
    /// Begins the history of an entity whose whole state is known at a history number.
    pub(crate) fn begin(&mut self, schema: &Schema, (entity, type_id): (EntityId, TypeId), since: HistoryNumber) {
        let has_levels = schema
            .entity_type(type_id)
            .is_some_and(|found| !found.lod_levels.is_empty());
        if has_levels {
            self.entities.insert(entity, Stamped::after(since));
        }
    }

    /// Like [`Self::begin`], for an image that carries its recent events.
    pub(crate) fn begin_with(&mut self, schema: &Schema, entity: EntityId, image: &Image) {
        let first = image.recent.front().and_then(|event| event.history);
        let since = first.map_or(image.history, |first| HistoryNumber(first.0.saturating_sub(1)));
        self.begin(schema, (entity, image.type_id), since);
        for event in &image.recent {
            self.note(schema, (entity, image.type_id), event);
        }
    }

    /// Records an event of an entity.
    pub(crate) fn note(&mut self, schema: &Schema, (entity, type_id): (EntityId, TypeId), event: &Event) {
        let (Body::Changed { member, .. }, Some(number)) = (&event.body, event.history) else {
            return;
        };
        let property = schema.entity_type(type_id).and_then(|found| found.property(*member));
        if property.is_some_and(|property| property.detail_level.is_some()) {
            let before = || Stamped::after(HistoryNumber(number.0.saturating_sub(1)));
            let stamped = self.entities.entry(entity).or_insert_with(before);
            let newest = stamped.changed.entry(*member).or_insert(number);
            *newest = number.max(*newest);
        }
    }

    /// Whether a property may have changed after a history number.
    pub(crate) fn has_changed(&self, entity: EntityId, member: MemberId, after: HistoryNumber) -> bool {
        self.entities.get(&entity).is_none_or(|stamped| {
            let known = stamped.changed.get(&member).copied();
            known.unwrap_or(stamped.since) > after
        })
    }

    /// Drops all entities but those for which `here` holds.
    pub(crate) fn forget(&mut self, here: impl Fn(EntityId) -> bool) {
        self.entities.retain(|entity, _| here(*entity));
    }
}

impl Stamped {
    fn after(since: HistoryNumber) -> Self {
        let changed = BTreeMap::new();
        Self { since, changed }
    }
}
