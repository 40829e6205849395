//! The first event of an archive that differs from the original, as far as it can be determined.
//!
//! A verification reports that something is wrong. Which event was changed first is another question: the chain breaks
//! after a changed batch, and a root kept elsewhere covers all leaves at once. Here everything left of the archive is
//! read, whatever its faults, and the original leaves are reconstructed: each batch names the hash of its predecessor
//! in its log, so the original hash of a changed batch is usually still known, and a kept root proves it. This gives
//! the batch, and its events; which event of the batch was changed can be derived only in part from the batch's own
//! tree.
//!
//! Memory per batch is about two hundred bytes.

mod batch;
mod locate;
mod logs;
mod originals;
mod reading;
mod said;

use annals_ids::{EventNumber, Hash, LeafIndex, LogPosition, Shard};
use annals_proof::{Frontier, TreeHead};
use annals_store::{Store, StoreError};
use async_recursion::async_recursion as boxed;
use thiserror::Error;

use reading::Reading;

/// What cannot be known of an archive, however well it verifies, if nothing was kept of it elsewhere.
pub const UNANCHORED: &str = "NOT KNOWN without a checkpoint kept elsewhere (--checkpoint): whether a party with \
    the key or the files rewrote the archive from some batch on, or rolled it back";

/// Stands for a batch's last event if its number is unknown.
pub const MANY: EventNumber = EventNumber(u64::MAX);

/// Trusted data that was kept outside the realm.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Ordered by size.
    heads: Vec<TreeHead>,
    /// The hashes of the first leaves.
    leaves: Vec<Hash>,
}

/// Kept hashes of leaves do not belong to a kept checkpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the {leaves} kept leaf hashes do not match a kept checkpoint")]
pub struct StrayLeaves {
    /// Number of hashes.
    pub leaves: usize,
}

impl Kept {
    /// Kept checkpoints only.
    #[must_use]
    pub fn new(mut heads: Vec<TreeHead>) -> Self {
        heads.sort_by_key(|head| head.size);
        let leaves = Vec::new();
        Self { heads, leaves }
    }

    /// Adds the hashes of all leaves of one of the checkpoints.
    ///
    /// # Errors
    /// When there is no such checkpoint.
    pub fn with_leaves(mut self, leaves: Vec<Hash>) -> Result<Self, StrayLeaves> {
        let mut tree = Frontier::new();
        leaves.iter().for_each(|leaf| tree.push(*leaf));
        let (size, root) = (tree.size(), tree.root());
        if !self.heads.contains(&TreeHead { size, root }) {
            return Err(StrayLeaves { leaves: leaves.len() });
        }
        self.leaves = leaves;
        Ok(self)
    }

    /// The checkpoints, ordered by size.
    #[must_use]
    pub fn heads(&self) -> &[TreeHead] {
        &self.heads
    }

    /// Size of the largest checkpoint, in leaves.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.heads.last().map_or(0, |head| head.size)
    }
}

/// What is known of the first change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The first event that differs from the original; `None` if none is known.
    pub first: Option<First>,
    /// The first leaf whose hash in a stored tile is not that of the batch archived there.
    pub tile: Option<LeafIndex>,
    /// Size of the largest kept checkpoint, in batches; 0 if there was none.
    pub kept: u64,
    /// Number of leaves of the archive.
    pub leaves: u64,
}

/// The place of the first event that differs from the original.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// The leaves among which it is, or was; the last is included.
    pub leaves: (LeafIndex, LeafIndex),
    /// Its batch, if known.
    pub batch: Option<LogPosition>,
    /// The events of that batch's log among which it is, the last included; [`MANY`] if the number of events in the
    /// batch is unknown. `None` if the batch had none, or is not known.
    pub events: Option<(EventNumber, EventNumber)>,
    /// The kind of change.
    pub what: What,
    /// Number of first batches covered by a checkpoint in the store that is signed by a key of the log: for anyone who
    /// trusts the key, and not only what was kept, none of these batches is changed. 0 if the key has signed something
    /// that contradicts what was kept.
    pub signed: u64,
    /// Whether a kept checkpoint proves it. Otherwise it rests on the logs of the archive, which are worth nothing if
    /// all of them were rewritten.
    pub is_proven: bool,
}

/// How the first differing batch was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is missing, or cannot be read.
    Gone,
    /// Its header differs, and with it its time, or any of its events.
    Changed,
    /// Its header is original, and its events differ.
    Events,
    /// Its header is original, and its events are reordered.
    Reordered,
    /// Its header is original, and an event was inserted.
    PutIn,
    /// The batch was inserted.
    Inserted,
    /// The batch was moved to another place.
    Moved,
    /// The batch and all later ones were rewritten: only the root of the original is known.
    Rewritten,
    /// The archive was truncated, and may have been rewritten before that: only the root of the original is known.
    Cut,
}

impl Traced {
    /// The event, if it is known which.
    #[must_use]
    pub fn event(&self) -> Option<(LogPosition, EventNumber)> {
        let first = self.first.as_ref()?;
        let (event, last) = first.events?;
        Some((first.batch?, event)).filter(|_| event == last)
    }
}

/// Reads everything left of an archive, and returns what is known of the first event that differs from the original.
///
/// # Errors
/// When the store does not answer. Its content may be arbitrary.
#[boxed]
pub async fn find_first(store: &Store, shard: Shard, kept: &Kept) -> Result<Traced, StoreError> {
    Ok(locate::trace(&Reading::read(store, shard).await?, kept))
}
