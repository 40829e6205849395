//! The result of verifying a realm's log.

use std::{collections::BTreeMap, fmt};

use annals_event::{Adoption, Impossible, Subject};
use annals_ids::{
    Address, BatchNumber, CallNumber, EntityId, Epoch, EventNumber, Hash, HistoryNumber, LeafIndex, LogPosition,
    OwnerId, OwnerKind, Part, Shard, WallTime,
};

use annals_db::adopting::{AdoptionRecord, AdoptionStage};

use crate::archive::Fault;

use super::{numbers::Taken, spans::Occurrence};

/// Maximum findings that are listed; the rest are counted.
pub const MAX_NAMED: usize = 100;

/// Entity parts of a damaged batch that are named.
const MAX_SUBJECTS: usize = 8;

/// A fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Finding {
    /// A faulty batch of the archive.
    Batch {
        /// Its position.
        at: LogPosition,
        fault: Fault,
        /// The subjects of its events, as far as they can be decoded.
        subjects: Vec<Subject>,
    },
    /// Events that are in no intact batch.
    EventsLost {
        /// The owner of the log.
        owner: OwnerId,
        /// The batches in which they should be, the last included.
        batches: (BatchNumber, BatchNumber),
        /// The events, the last included.
        events: (EventNumber, EventNumber),
    },
    /// A batch contradicts the store's record of its epoch's opening.
    Opening {
        /// The position of the batch.
        at: LogPosition,
        epoch: Epoch,
        fault: OpeningFault,
    },
    /// A batch contains something that cannot have happened.
    Impossible {
        /// The position of the batch.
        at: LogPosition,
        /// The contradiction.
        why: Impossible,
    },
    /// The cursor names another end of the archive.
    Cursor {
        /// The end of the archive.
        at: LogPosition,
    },
    /// The state recovered from the newest snapshot differs from the replay of the whole log.
    Snapshot {
        /// The position.
        at: LogPosition,
    },
    /// The floor, the state that stands for deleted events, differs from the log.
    Floor {
        /// The position.
        at: LogPosition,
    },
    /// The owner cannot be taken over.
    Unrecoverable {
        owner: OwnerId,
        /// The cause.
        why: String,
    },
    /// The state of the running realm differs from the replay of its log.
    Holder {
        /// The position.
        at: LogPosition,
    },
    /// The log beyond the archive does not continue it.
    Beyond {
        /// The owner of the log.
        owner: OwnerId,
        /// The cause.
        why: String,
    },
    /// A hole that was not filled, as db recorded it (rule F4).
    NamedHole {
        /// The owner of the log.
        owner: OwnerId,
        /// The first missing batch.
        first: BatchNumber,
        /// The first batch after the hole.
        until: BatchNumber,
    },
    /// History numbers are missing.
    HistoryHole {
        entity: EntityId,
        part: Part,
        /// The first missing number.
        first: HistoryNumber,
        /// The first number after the hole.
        until: HistoryNumber,
    },
    /// A history number has two events.
    HistoryTwice {
        entity: EntityId,
        part: Part,
        number: HistoryNumber,
        /// The batch with the second.
        at: LogPosition,
        /// The place of the first.
        before: Occurrence,
    },
    /// A call was taken, and no batch made it (rule F5).
    Unmade(Taken),
    /// A call was made, and its receiver waits for it no longer (rule C2): it was taken in a batch that is void.
    Skipped {
        /// The call.
        number: CallNumber,
        /// The event that skips it.
        at: Taken,
    },
    /// A call was taken twice.
    TakenTwice {
        /// The second taking.
        taken: Taken,
        /// The place of the first time.
        before: Occurrence,
    },
    /// A call's number was used twice.
    MadeTwice {
        /// The second call with the number.
        made: Taken,
        /// The place of the first time.
        before: Occurrence,
    },
    /// Two batches have the same leaf.
    LeafTwice {
        shard: Shard,
        leaf: LeafIndex,
        /// The second batch.
        at: LogPosition,
    },
    /// A leaf is in no log.
    LeafMissing {
        shard: Shard,
        /// The first such leaf.
        leaf: LeafIndex,
        /// Size of the tree in leaves.
        leaves: u64,
    },
    /// An owner's log replays to another state than at a checkpoint.
    Otherwise {
        /// The position.
        at: LogPosition,
    },
    /// The tree up to a checkpoint has changed since.
    Rewritten {
        shard: Shard,
        /// Number of leaves.
        leaves: u64,
    },
    /// A stored tile differs from the leaves.
    Tile {
        shard: Shard,
        /// The tile's level; 0 for hashes of leaves.
        level: u8,
        /// The tile's index in its level.
        index: u64,
        fault: TileFault,
    },
    /// A stored signed checkpoint is faulty.
    Checkpoint {
        /// The shard of the tree.
        shard: Shard,
        /// Its size in leaves.
        size: u64,
        fault: CheckpointFault,
    },
    /// A signed checkpoint that was kept outside does not match.
    Kept {
        /// The shard of the tree.
        shard: Shard,
        /// Its size in leaves.
        size: u64,
        fault: CheckpointFault,
    },
    /// A record besides the batches cannot be read.
    Stored {
        /// The cause.
        why: String,
    },
    /// A piece of the archive cannot be read.
    Piece {
        shard: Shard,
        /// Its first leaf.
        leaf: LeafIndex,
        /// The cause.
        why: String,
    },
    /// The stored edge of the tree differs from the leaves.
    Edge {
        shard: Shard,
        /// Size of the tree in leaves.
        leaves: u64,
    },
}

/// A contradiction between a batch and the store about an opening.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpeningFault {
    /// The batch opens an epoch, and the store has no opening of it.
    Unrecorded,
    /// The store has another opening of that epoch.
    Other,
    /// The batch is of an epoch that no earlier batch opened, or that had ended.
    Unopened,
    /// The store has an opening at this batch, which is not one.
    Absent,
}

/// The fault of a tile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TileFault {
    /// It is missing, or shorter than it must be.
    Missing,
    /// It has other hashes.
    Other,
}

/// The fault of a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CheckpointFault {
    /// The leaves have another root.
    Root,
    /// It covers more leaves than there are.
    Beyond,
    /// It is stored under another size than its own.
    Misplaced,
    /// No key of the log has signed it, or it is not a checkpoint.
    Untrusted(String),
}

/// The result for one owner.
#[derive(Clone, Debug)]
pub struct OwnerReport {
    pub kind: OwnerKind,
    /// Intact batches in the archive.
    pub batches: u64,
    /// Events in them.
    pub events: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Batches beyond the archive.
    pub beyond: u64,
    /// Epochs that were opened.
    pub epochs: u64,
    /// The batches at which a hole was accepted (rule F4): the original batches there and after them are lost.
    pub accepted: Vec<BatchNumber>,
    /// The state to which the log replays, and the batch; `None` if a fault prevents that.
    pub state: Option<(BatchNumber, Hash)>,
    /// Whether the state of the owner's holder was compared.
    pub compared: bool,
    /// The last batch whose events retention has deleted.
    pub deleted: Option<BatchNumber>,
    /// The latest wall time up to which retention has deleted events in the owner's shard.
    pub horizon: Option<WallTime>,
}

/// The result of a verification. Clean if there are no findings.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// By owner.
    pub owners: BTreeMap<OwnerId, OwnerReport>,
    /// Leaves of all shards.
    pub leaves: u64,
    /// By shard, the size of its tree and its root, if that is the root of the leaves.
    pub roots: BTreeMap<Shard, (u64, Hash)>,
    /// Logs that an operator adopted or gave up because the store did not know them (rule F17), oldest first.
    pub adoptions: Vec<AdoptionRecord>,
    /// Number of entity parts with visible events.
    pub parts: u64,
    /// The first findings.
    pub findings: Vec<Finding>,
    /// The total number of findings.
    pub count: u64,
}

impl VerifyReport {
    /// Whether there are no findings.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.count == 0
    }

    pub(super) fn find(&mut self, finding: Finding) {
        self.count += 1;
        if self.findings.len() < MAX_NAMED {
            self.findings.push(finding);
        }
    }
}

impl fmt::Display for VerifyReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (owner, report) in &self.owners {
            writeln!(f, "owner {owner}: {report}")?;
        }
        for (shard, (leaves, root)) in &self.roots {
            writeln!(f, "shard {shard}: {leaves} leaves, root {root}")?;
        }
        for adoption in &self.adoptions {
            write_adoption(f, adoption)?;
        }
        for finding in &self.findings {
            writeln!(f, "WRONG: {finding}")?;
        }
        if self.count > self.findings.len() as u64 {
            writeln!(f, "and {} more", self.count - self.findings.len() as u64)?;
        }
        let total = |figure: fn(&OwnerReport) -> u64| self.owners.values().map(figure).sum::<u64>();
        write!(
            f,
            "{} logs, {} batches and {} events archived, {} batches beyond, {} entity parts that others may see: ",
            self.owners.len(),
            total(|owner| owner.batches),
            total(|owner| owner.events),
            total(|owner| owner.beyond),
            self.parts,
        )?;
        match self.count {
            0 => f.write_str("nothing is wrong"),
            1 => f.write_str("1 thing is WRONG"),
            count => write!(f, "{count} things are WRONG"),
        }
    }
}

fn write_adoption(f: &mut fmt::Formatter<'_>, adoption: &AdoptionRecord) -> fmt::Result {
    let AdoptionRecord { adoption, stage } = adoption;
    let Adoption {
        number: _,
        at,
        leaves,
        operator,
        reason,
        adopted,
        events,
        discarded,
    } = adoption;
    let state = match stage {
        AdoptionStage::Unfinished => ", UNFINISHED",
        AdoptionStage::Finished => ", not in the log yet",
        AdoptionStage::Logged => "",
    };
    writeln!(
        f,
        "adopted after leaf {leaves}: {adopted} batches with {events} events unknown to the store, {discarded} given \
         up; by {operator} at {at} ms since 1970: {reason:?}{state}"
    )
}

impl fmt::Display for OwnerReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            batches,
            events,
            bytes,
            beyond,
            epochs,
            accepted,
            ..
        } = self;
        write!(
            f,
            "{kind}, {batches} batches, {events} events, {bytes} bytes, {epochs} epochs"
        )?;
        if *beyond > 0 {
            write!(f, ", {beyond} batches beyond the archive")?;
        }
        for first in accepted {
            write!(f, ", a hole accepted at batch {first}")?;
        }
        if let (Some(last), Some(wall)) = (self.deleted, self.horizon) {
            let seconds = wall.0 / 1_000;
            write!(
                f,
                "; batches 1 to {last} were deleted by retention, none of them closed after @{seconds} since 1970: \
                 headers, hashes and calls are verified, and the state from {last} on is the floor's"
            )?;
        }
        match self.state {
            Some((batch, hash)) => write!(f, "; state at batch {batch}: {hash}")?,
            None => f.write_str("; does not replay")?,
        }
        if self.compared {
            f.write_str(", equal to its holder's")?;
        }
        Ok(())
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch { at, fault, subjects } => {
                write!(f, "batch {} of owner {} {fault}", at.batch, at.owner)?;
                subjects_of(f, subjects)
            }
            Self::EventsLost { owner, batches, events } => write!(
                f,
                "events {} to {} of owner {owner} are in no intact batch ({} to {}); restore these from a backup",
                events.0, events.1, batches.0, batches.1
            ),
            Self::Opening { at, epoch, fault } => {
                write!(f, "batch {} of owner {}, epoch {epoch}: {fault}", at.batch, at.owner)
            }
            Self::Floor { at } => write!(
                f,
                "the floor of owner {} differs from its state at batch {}; restore the realm from a backup made \
                 before the damage",
                at.owner, at.batch
            ),
            Self::Impossible { at, why } => write!(
                f,
                "batch {} of owner {} is impossible: {why}; it was edited, or this is a defect",
                at.batch, at.owner
            ),
            Self::Cursor { at } => write!(
                f,
                "the archive of owner {} ends with batch {}, and its cursor names another hash, event or epoch there; \
                 the batch or the cursor was edited",
                at.owner, at.batch
            ),
            Self::Snapshot { at } => write!(
                f,
                "the state of owner {} at batch {}, rebuilt from its snapshot, differs from the replay of the whole \
                 log; the snapshot was edited, or this is a defect",
                at.owner, at.batch
            ),
            Self::Unrecoverable { owner, why } => write!(f, "owner {owner} cannot be taken over: {why}"),
            Self::Holder { at } => write!(
                f,
                "the holder of owner {} at batch {} has a state that differs from the replay of its log; keep the \
                 log, kill the process so that another takes over, and report this defect",
                at.owner, at.batch
            ),
            Self::Beyond { owner, why } => write!(
                f,
                "the log of owner {owner} beyond its archive: {why}; verify again in a minute, db may still archive it"
            ),
            Self::NamedHole { owner, first, until } => write!(
                f,
                "batches {first} to {} of owner {owner} are lost, and no holder has them; `annals log accept-hole \
                 {owner}@{first}` gives them up with everything after them",
                until.0.saturating_sub(1)
            ),
            _ => self.fmt_across(f),
        }
    }
}

/// The first leaf below a tile, and the number of leaves below it when it is full.
fn leaves_of(level: u8, index: u64) -> (u64, u64) {
    let count = 1_u64.checked_shl(8 * (u32::from(level) + 1)).unwrap_or(u64::MAX);
    (index.saturating_mul(count), count)
}

impl fmt::Display for CheckpointFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str(
                "has another root than those leaves: the archive was changed since, or the signature is fraudulent",
            ),
            Self::Beyond => f.write_str("has more leaves than the archive: the archive was truncated"),
            Self::Misplaced => f.write_str("has another size"),
            Self::Untrusted(why) => write!(f, "is not signed by a key of the log: {why}"),
        }
    }
}

impl Finding {
    /// Formats findings that concern more than one log.
    fn fmt_across(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HistoryHole {
                entity,
                part,
                first,
                until,
            } => write!(
                f,
                "event {first} of the history of the {part} of entity {entity} is in no log, but {until} is"
            ),
            Self::HistoryTwice {
                entity,
                part,
                number,
                at,
                before,
            } => write!(
                f,
                "event {number} of the history of the {part} of entity {entity} occurs twice: in batch {} of owner \
                 {} and in {before}",
                at.batch, at.owner
            ),
            Self::Unmade(taken) => write!(
                f,
                "{taken} was received but never sent: the log of {} has lost a batch, or one was inserted",
                taken.link.from
            ),
            Self::Skipped { number, at } => write!(
                f,
                "call {number} from {} to {} has no effect: the log of {} was cut at a hole behind which the call was \
                 received, and batch {} of owner {} continues after it",
                at.link.from, at.link.to, at.link.to, at.at.batch, at.at.owner
            ),
            Self::TakenTwice { taken, before } => write!(f, "{taken} was already received, in {before}"),
            Self::MadeTwice { made, before } => write!(f, "{made} was already sent, in {before}"),
            Self::LeafTwice { shard, leaf, at } => write!(
                f,
                "leaf {leaf} of shard {shard} is assigned to batch {} of owner {} and to another batch",
                at.batch, at.owner
            ),
            Self::LeafMissing { shard, leaf, leaves } => write!(
                f,
                "leaf {leaf} of shard {shard} is in no log, so the tree's edge ({leaves} leaves) cannot be compared"
            ),
            Self::Otherwise { at } => write!(
                f,
                "owner {} at batch {} differs from what was verified there before; its log was edited since, or this \
                 is a defect",
                at.owner, at.batch
            ),
            Self::Rewritten { shard, leaves } => write!(
                f,
                "the first {leaves} leaves of shard {shard} differ from those verified before; the archive was \
                 rewritten"
            ),
            Self::Edge { shard, leaves } => write!(
                f,
                "the tree of shard {shard} ({leaves} leaves) does not match the archived batches; a batch was \
                 replaced with all that follow, or the edge was edited"
            ),
            _ => self.fmt_stored(f),
        }
    }

    /// Formats findings about what is stored besides the logs.
    fn fmt_stored(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tile {
                shard,
                level,
                index,
                fault,
            } => {
                let (first, count) = leaves_of(*level, *index);
                let last = first.saturating_add(count - 1);
                let what = match fault {
                    TileFault::Missing => "is incomplete, though later ones exist",
                    TileFault::Other => "does not match the archived batches",
                };
                write!(
                    f,
                    "tile {index} of level {level} of shard {shard} (leaves {first} to {last}) {what}; it was \
                     edited, and proofs from it are wrong"
                )
            }
            Self::Checkpoint { shard, size, fault } => {
                write!(f, "the signed checkpoint of {size} leaves of shard {shard} {fault}")
            }
            Self::Kept { shard, size, fault } => write!(
                f,
                "the kept checkpoint of {size} leaves of shard {shard} {fault}; if the key holder signed both, the \
                 realm presents another history than before"
            ),
            Self::Stored { why } => write!(
                f,
                "the rows stored with the batches cannot be read: {why}; restore the realm from a backup"
            ),
            Self::Piece { shard, leaf, why } => write!(
                f,
                "the archive of shard {shard} cannot be read from leaf {leaf} on: {why}; restore it from a backup"
            ),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for OpeningFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unrecorded => "it opens the epoch, and the store has no such opening; db must not fold such a batch",
            Self::Other => "the store has another opening of this epoch; one of the two was edited",
            Self::Unopened => "its epoch was not opened before it, or had ended; db must not fold such a batch",
            Self::Absent => {
                "the store has the epoch's opening here, and the batch is not an opening; one of the two \
                was edited"
            }
        })
    }
}

impl fmt::Display for Occurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.batches {
            (first, last) if first == last => write!(f, "batch {first}")?,
            (first, last) => write!(f, "one of the batches {first} to {last}")?,
        }
        write!(f, " of owner {}", self.owner)
    }
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "batch {} of owner {}, event {}: call {} on {}",
            self.at.batch, self.at.owner, self.event, self.number, self.link
        )
    }
}

fn subjects_of(f: &mut fmt::Formatter<'_>, subjects: &[Subject]) -> fmt::Result {
    for (index, subject) in subjects.iter().take(MAX_SUBJECTS).enumerate() {
        f.write_str(if index == 0 {
            "; its readable events concern the "
        } else {
            ", the "
        })?;
        match subject {
            Subject::Owner => f.write_str("owner itself")?,
            Subject::Entity(entity, part) => write!(f, "{}", Address::of(*entity, *part))?,
        }
    }
    match subjects.len().saturating_sub(MAX_SUBJECTS) {
        0 => Ok(()),
        more => write!(f, " and {more} others"),
    }
}
