//! Recently created, removed or moved entities, for indexes of positions.

use annals_ids::EntityId;

/// Maximum remembered entities until the trail is cleared; an index that has to catch up on more scans all entities.
const LIMIT: usize = 16_384;

/// Recent changes of positions, in order. An entity may occur several times; its present place is read elsewhere.
#[derive(Debug, Default)]
pub struct Trail {
    touched: Vec<EntityId>,
    is_full: bool,
}

impl Trail {
    /// Records that an entity was created, removed or moved.
    pub fn note(&mut self, entity: EntityId) {
        if self.touched.len() < LIMIT {
            self.touched.push(entity);
        } else {
            self.is_full = true;
        }
    }

    /// Current length, an argument for [`since`](Self::since).
    #[must_use]
    pub fn length(&self) -> usize {
        self.touched.len()
    }

    /// Entities touched since the trail had that length; `None` if unknown.
    #[must_use]
    pub fn since(&self, length: usize) -> Option<&[EntityId]> {
        self.touched.get(length..).filter(|_| !self.is_full)
    }

    /// Forgets all entries.
    pub fn clear(&mut self) {
        self.touched.clear();
        self.is_full = false;
    }
}
