//! The ids an epoch may give away.

use std::ops::Range;

use annals_ids::EntityId;

/// How many ids the director grants at a time: 2^20 of them.
pub const BLOCK: u64 = 1 << 20;

/// Below this many ids left, more are asked for.
const LOW: u64 = 1 << 16;

/// Ids that belong to one epoch alone. What an earlier epoch left unused is never given away, so that an id that stands
/// in a void batch stands for nothing else.
#[derive(Clone, Debug)]
pub struct IdBlocks {
    blocks: Vec<Range<u64>>,
    asked: bool,
}

impl IdBlocks {
    /// Those granted with the epoch.
    #[must_use]
    pub fn new(granted: Range<u64>) -> Self {
        Self {
            blocks: vec![granted],
            asked: false,
        }
    }

    /// Adds a block that was asked for.
    pub fn add(&mut self, granted: Range<u64>) {
        self.blocks.push(granted);
        self.asked = false;
    }

    /// An id that was never given away; `None` when the block is used up and no other has come.
    pub fn take(&mut self) -> Option<EntityId> {
        self.blocks.iter_mut().find_map(Iterator::next).map(EntityId)
    }

    /// Whether it is time to ask for more; says so once per block.
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
