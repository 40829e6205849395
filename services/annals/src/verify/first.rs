//! The first event of an archive that is not as it was, as far as that can be known.
//!
//! A verification says that something is wrong. What was changed first is another question: the chain breaks behind a batch that
//! was changed, and a root that was kept elsewhere covers all leaves at once. Here all that is left of the archive is read,
//! whatever is wrong with it, and what the leaves were is worked out again: each batch names the hash of the one before it in its
//! log, so that what a changed batch was is mostly still known, and a kept root proves that it was this. From there the batch
//! follows, and its events; which event of a batch it was, the batch's own tree tells only in part.
//!
//! What is remembered of each batch meanwhile is some two hundred bytes.

mod batch;
mod locate;
mod logs;
mod originals;
mod reading;
mod said;

use annals_ids::{EventNumber, Hash, LeafIndex, LogPosition, Shard};
use annals_proof::{Frontier, TreeHead};
use annals_store::{Store, StoreError};
use thiserror::Error;

use reading::Reading;

/// What is not known of an archive, however well it verifies, where nothing was kept of it elsewhere.
pub const UNANCHORED: &str = "NOT KNOWN without a checkpoint that was kept elsewhere (--checkpoint): whether the archive was written \
    anew from some batch on by whoever has its key or can do without, or cut back to what it was earlier";

/// In the place of a batch's last event: nobody knows which that was.
pub const MANY: EventNumber = EventNumber(u64::MAX);

/// What was kept outside of the realm, and is believed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// By size.
    heads: Vec<TreeHead>,
    /// The hashes of the first leaves.
    leaves: Vec<Hash>,
}

/// Hashes of leaves that were kept do not belong to a checkpoint that was kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the {leaves} hashes of leaves that were kept are not those of a checkpoint that was kept")]
pub struct StrayLeaves {
    /// How many they are.
    pub leaves: usize,
}

impl Kept {
    /// Checkpoints.
    #[must_use]
    pub fn new(mut heads: Vec<TreeHead>) -> Self {
        heads.sort_by_key(|head| head.size);
        let leaves = Vec::new();
        Self { heads, leaves }
    }

    /// With the hashes of all leaves that one of the checkpoints has.
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

    /// The checkpoints, by size.
    #[must_use]
    pub fn heads(&self) -> &[TreeHead] {
        &self.heads
    }

    /// Of how many leaves the largest is.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.heads.last().map_or(0, |head| head.size)
    }
}

/// What is known of the first change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traced {
    /// The first event that is not as it was; `None` if no event is known to be another.
    pub first: Option<First>,
    /// The first leaf whose hash in a stored tile is not that of the batch which was archived there.
    pub tile: Option<LeafIndex>,
    /// Of how many batches the largest checkpoint is that was kept; 0 if there was none.
    pub kept: u64,
    /// How many leaves the archive has.
    pub leaves: u64,
}

/// Where the first event lies that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct First {
    /// The leaves among which it is, or was, the last included.
    pub leaves: (LeafIndex, LeafIndex),
    /// Its batch, if that is known.
    pub batch: Option<LogPosition>,
    /// The events of that batch's log among which it is, the last included; [`MANY`] where nobody knows how many the
    /// batch had. `None` if the batch had none, or is not known.
    pub events: Option<(EventNumber, EventNumber)>,
    /// What became of it.
    pub what: What,
    /// How many of the first batches are those of a checkpoint in the store, signed by a key of the log: whoever believes the key,
    /// and not only what was kept, knows that none of these is another. 0 where the key has signed what contradicts what was kept.
    pub signed: u64,
    /// Whether a checkpoint that was kept proves it; else the logs of the archive say so, which whoever writes all of them anew
    /// can have say anything.
    pub is_proven: bool,
}

/// What became of the first batch that is not as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is not there, or cannot be read.
    Gone,
    /// Its header is another, and with it its time, or any of its events.
    Changed,
    /// Its header is what it was, and its events are others.
    Events,
    /// Its header is what it was, and its events have changed places.
    Reordered,
    /// Its header is what it was, and an event was put in.
    PutIn,
    /// It was put in: there was none.
    Inserted,
    /// It is in another place.
    Moved,
    /// It was written anew, as was what follows: only the root is known of what it was.
    Rewritten,
    /// The archive was cut back, and may have been written anew before that: only the root is known of what it was.
    Cut,
}

impl Traced {
    /// Whether it is known which batch it is.
    #[must_use]
    pub fn names_batch(&self) -> bool {
        self.first.as_ref().is_some_and(|first| first.batch.is_some())
    }

    /// The event, if it is known which.
    #[must_use]
    pub fn event(&self) -> Option<(LogPosition, EventNumber)> {
        let first = self.first.as_ref()?;
        let (event, last) = first.events?;
        Some((first.batch?, event)).filter(|_| event == last)
    }
}

/// Reads all that is left of an archive, and says what is known of the first event that is not as it was.
///
/// # Errors
/// When the store does not answer; what it holds may be anything.
pub async fn find_first(store: &Store, shard: Shard, kept: &Kept) -> Result<Traced, StoreError> {
    Ok(locate::trace(&Reading::read(store, shard).await?, kept))
}
