//! Entity ids that an epoch may allocate.

use std::ops::Range;

use annals_ids::EntityId;

/// Ids in one block that the director grants: 2^20.
pub const BLOCK: u64 = 1 << 20;

/// Below this many remaining ids, another block is requested.
const LOW: u64 = 1 << 16;

/// Ids that belong to one epoch alone. Ids that an earlier epoch left unused are never allocated again, so that an id
/// in a void batch refers to nothing else.
#[derive(Clone, Debug)]
pub struct IdBlocks {
    blocks: Vec<Range<u64>>,
    asked: bool,
}

impl IdBlocks {
    /// The block granted with the epoch.
    #[must_use]
    pub fn new(granted: Range<u64>) -> Self {
        Self {
            blocks: vec![granted],
            asked: false,
        }
    }

    /// Adds a requested block.
    pub fn add(&mut self, granted: Range<u64>) {
        self.blocks.push(granted);
        self.asked = false;
    }

    /// Allocates an id that was never used; `None` when the block is used up and no other has arrived.
    pub fn take(&mut self) -> Option<EntityId> {
        self.blocks.iter_mut().find_map(Iterator::next).map(EntityId)
    }

    /// Whether to request another block; true once per block.
    pub fn wants_more(&mut self) -> bool {
        let left: u64 = self
            .blocks
            .iter()
            .map(|block| block.end.saturating_sub(block.start))
            .fold(0, u64::saturating_add);
        let ask = left < LOW && !self.asked;
        self.asked |= ask;
        ask
    }
}
