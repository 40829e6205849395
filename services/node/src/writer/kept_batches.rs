//! The writer's own copy of its chain, from the archive on.

use std::collections::VecDeque;

use annals_event::FrozenBatch;
use annals_ids::{BatchNumber, Hash};

use crate::{time::Mono, writer::Tip};

/// Memory that a kept batch takes beside its bytes: its fields, the allocation, the slot in the queue.
const OVERHEAD: usize = 256;

/// A dense run of batches, each naming the hash of the previous one; the first names the base.
#[derive(Debug)]
pub(super) struct KeptBatches {
    base: Tip,
    batches: VecDeque<KeptBatch>,
    cost: usize,
}

#[derive(Debug)]
pub(super) struct KeptBatch {
    pub(super) batch: FrozenBatch,
    /// When this writer first sent it; `None` for a batch that it took over, until it is sent again.
    pub(super) first_sent: Option<Mono>,
}

/// How a batch found on the subject relates to the kept ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ChainStatus {
    /// At the base or before: archived, so it will not be folded again, whatever it is.
    Archived,
    /// The kept batch of that number.
    Kept,
    /// Not on the chain.
    Elsewhere,
}

impl KeptBatches {
    pub(super) fn new(base: Tip) -> Self {
        Self {
            base,
            batches: VecDeque::new(),
            cost: 0,
        }
    }

    /// The batch before the oldest kept one.
    pub(super) fn base(&self) -> Tip {
        self.base
    }

    /// The end of the chain.
    pub(super) fn tip(&self) -> Tip {
        self.batches.back().map_or(self.base, |newest| Tip {
            number: newest.batch.number,
            hash: newest.batch.hash,
        })
    }

    /// Number of the oldest kept batch, or of the next one if none is kept.
    pub(super) fn oldest(&self) -> BatchNumber {
        self.base.number.next()
    }

    /// Whether `batch` continues the chain.
    pub(super) fn is_next(&self, batch: &FrozenBatch) -> bool {
        let tip = self.tip();
        batch.number == tip.number.next() && batch.previous == tip.hash
    }

    /// # Panics
    /// If the batch does not continue the chain.
    pub(super) fn push(&mut self, batch: FrozenBatch) {
        assert!(
            self.is_next(&batch),
            "batch {} does not continue the chain at {}",
            batch.number,
            self.tip().number
        );
        self.cost += cost(&batch);
        self.batches.push_back(KeptBatch {
            batch,
            first_sent: None,
        });
    }

    pub(super) fn get(&self, number: BatchNumber) -> Option<&KeptBatch> {
        self.batches.get(self.index(number)?)
    }

    pub(super) fn get_mut(&mut self, number: BatchNumber) -> Option<&mut KeptBatch> {
        let index = self.index(number)?;
        self.batches.get_mut(index)
    }

    fn index(&self, number: BatchNumber) -> Option<usize> {
        usize::try_from(number.0.checked_sub(self.oldest().0)?).ok()
    }

    /// The hash at `number`, if it is still kept.
    pub(super) fn hash(&self, number: BatchNumber) -> Option<Hash> {
        if number == self.base.number {
            return Some(self.base.hash);
        }
        self.get(number).map(|kept| kept.batch.hash)
    }

    pub(super) fn status_of(&self, number: BatchNumber, hash: Hash) -> ChainStatus {
        if number <= self.base.number {
            ChainStatus::Archived
        } else if self.hash(number) == Some(hash) {
            ChainStatus::Kept
        } else {
            ChainStatus::Elsewhere
        }
    }

    /// Drops the batches up to and including `upto`.
    pub(super) fn forget(&mut self, upto: BatchNumber) {
        while let Some(oldest) = self.batches.front()
            && oldest.batch.number <= upto
        {
            self.base = Tip {
                number: oldest.batch.number,
                hash: oldest.batch.hash,
            };
            self.cost -= cost(&oldest.batch);
            self.batches.pop_front();
        }
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &FrozenBatch> {
        self.batches.iter().map(|kept| &kept.batch)
    }

    /// Memory held, in bytes.
    pub(super) fn cost(&self) -> usize {
        self.cost
    }
}

fn cost(batch: &FrozenBatch) -> usize {
    batch.bytes.len() + OVERHEAD
}
