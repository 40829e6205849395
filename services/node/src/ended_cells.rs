//! Cell parts that have ended return their state to their base parts (rule C17).

use annals_event::{Body, Call, FormerCell, Image, Subject};
use annals_ids::{Address, EntityId, Part};

use crate::{owner_context::OwnerContext, trouble::OwnerError};

impl OwnerContext {
    /// Records the end of a cell part. If it has a base part, its state returns there once its calls are confirmed.
    pub fn end_cell(&mut self, entity: EntityId) {
        let cell = self.image(entity).and_then(Image::cell);
        if cell.is_some_and(|cell| cell.based) {
            self.record_for(entity, false, Body::CellEnding);
        }
        self.record_for(entity, false, Body::Destroyed);
        self.adopt_ended(entity);
    }

    /// Tracks the outbound calls of a cell part that has ended, and notes whether all its calls are confirmed.
    pub(crate) fn adopt_ended(&mut self, entity: EntityId) {
        if let Some(image) = self.journal.state().ending.get(&entity) {
            self.schedule.adopt(entity, image);
        }
        self.note_ended_cell(entity);
    }

    /// Notes whether all calls of a cell part that has ended are confirmed, and it waits for no answer.
    pub(crate) fn note_ended_cell(&mut self, entity: EntityId) {
        let ended = self.state().ending.get(&entity);
        if ended.is_some_and(|image| image.links.is_settled() && image.links.awaiting.is_empty()) {
            self.ended_cells.insert(entity);
        }
    }

    /// Whether the state of a cell part can return to its base part.
    pub(crate) fn has_ended_cell(&self) -> bool {
        !self.ended_cells.is_empty()
    }

    /// Returns the state of the next cell part whose calls are confirmed to its base part. Returns whether there was one.
    pub(crate) fn return_ended_cell(&mut self) -> bool {
        let Some(entity) = self.ended_cells.pop_first() else {
            return false;
        };
        let Some(image) = self.state().ending.get(&entity).cloned() else {
            return true;
        };
        let former = Box::new(FormerCell {
            history: image.history,
            links: image.links,
        });
        let mut call = Call::CellEnded {
            entity,
            type_id: image.type_id,
            former,
            properties: image.properties,
        };
        let mut bytes = Vec::new();
        call.write(&mut bytes);
        if self.needs(bytes.len()).is_err()
            && let Call::CellEnded { properties, .. } = &mut call
        {
            properties.clear();
            let bytes = bytes.len();
            self.report(OwnerError::CellTooLarge { entity, bytes });
        }
        // Called by its owner (rule C12).
        let (from, to) = (Address::Owner(self.owner()), Address::Owner(image.home));
        self.call(from, to, image.home, call);
        true
    }

    /// The cell part that an event may leave without unconfirmed calls and waits.
    pub(crate) fn ended_cell_of(subject: Subject, body: &Body) -> Option<EntityId> {
        match (subject, body) {
            (Subject::Entity(entity, Part::Cell), Body::Confirmed { .. } | Body::Resumed { .. } | Body::Destroyed) => {
                Some(entity)
            }
            _ => None,
        }
    }
}
