//! Who has come, gone or moved lately, for whoever keeps an index of where all are.

use annals_ids::EntityId;

/// So many are remembered until the trail is cleared; whoever has to know of more looks at everybody.
const LIMIT: usize = 16_384;

/// See the module. An entity may be named several times, and where it is says the place it is in itself.
#[derive(Debug, Default)]
pub struct Trail {
    touched: Vec<EntityId>,
    is_full: bool,
}

impl Trail {
    /// Something has become of where an entity is.
    pub fn note(&mut self, entity: EntityId) {
        if self.touched.len() < LIMIT {
            self.touched.push(entity);
        } else {
            self.is_full = true;
        }
    }

    /// How long it is, to ask [`since`](Self::since) then.
    #[must_use]
    pub fn length(&self) -> usize {
        self.touched.len()
    }

    /// Who was touched since it was that long; `None` if that is not known.
    #[must_use]
    pub fn since(&self, length: usize) -> Option<&[EntityId]> {
        self.touched.get(length..).filter(|_| !self.is_full)
    }

    /// Forgets everybody.
    pub fn clear(&mut self) {
        self.touched.clear();
        self.is_full = false;
    }
}
