//! Verifies hashes, numbers, seals, chains, the tree, tiles and checkpoints of an archive without folding it: as fast
//! as it can be read and hashed.
//!
//! Pieces of the archive (a segment, or some leaves that are not sealed) are read and hashed in parallel, one per
//! processor; their results are combined in the archive's order. It ends with the first fault. Between two pieces it
//! can be stopped and resumed.

use std::{collections::BTreeMap, fmt, sync::Arc, thread::available_parallelism};

use annals_db::read_archived;
use annals_director::read_owners;
use annals_event::{Batch, Header, Malformed, Tail, Thinned};
use annals_host::{log_source::read_openings, signer::KEPT};
use annals_ids::{BatchNumber, Epoch, Hash, LeafIndex, LogPosition, OwnerId, Shard};
use annals_store::{
    ArchivedBatch, Store, StoreError, Transaction,
    archive::{find_segment, read_block, read_loose},
    layout::owners::OpeningRecord,
    segment::{Leaf, Segment},
};
use futures::{StreamExt, stream};
use tokio::task::JoinHandle;

use crate::{
    Floors,
    archive::{Fault, of_recovery, read_tree},
};

use super::{
    VerifyError,
    prefix::VerifiedPrefix,
    report::{Finding, OpeningFault},
    tree::root_at,
};

/// Bytes of unsealed leaves in one piece.
const LOOSE_BYTES: usize = 1 << 20;

/// Maximum attempts to read a segment that is replaced meanwhile, as retention does.
const READINGS: usize = 5;

/// The result of a sweep.
#[derive(Clone, Debug)]
pub struct Swept {
    /// The prefix in which everything is intact.
    pub prefix: VerifiedPrefix,
    /// Leaves verified by this sweep.
    pub leaves: u64,
    /// Their size in bytes.
    pub bytes: u64,
    pub events: u64,
    /// The findings, the first in the order of the archive first.
    pub findings: Vec<Finding>,
}

impl fmt::Display for Swept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let VerifiedPrefix { shard, tree, .. } = &self.prefix;
        let (leaves, root) = (tree.tree().size(), tree.tree().root());
        writeln!(f, "shard {shard}: {leaves} leaves, root {root}")?;
        for finding in &self.findings {
            writeln!(f, "WRONG: {finding}")?;
        }
        for size in self.prefix.tree.absent() {
            writeln!(
                f,
                "NOTE: the kept checkpoint of {size} leaves is not in the store, though fewer than {KEPT} newer ones \
                 are: it was deleted there, or the realm was restored since"
            )?;
        }
        let before = leaves - self.leaves;
        write!(
            f,
            "{} batches, {} events and {} bytes verified",
            self.leaves, self.events, self.bytes
        )?;
        if before > 0 {
            write!(f, " behind {before} batches that were verified before")?;
        }
        match self.findings.len() {
            0 => f.write_str(": nothing is wrong"),
            _ => {
                f.write_str(": the first thing that is WRONG is named; `annals log verify` without --hashes finds all")
            }
        }
    }
}

/// Progress of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepProgress {
    /// Leaves verified.
    pub leaves: u64,
    /// Total number of leaves.
    pub of: u64,
    /// Bytes verified by this sweep.
    pub bytes: u64,
}

/// A leaf that was checked against its own hashes.
struct Checked {
    leaf: LeafIndex,
    /// The batch that belongs there; `None` if only its own header names it, and that cannot be read.
    at: Option<LogPosition>,
    bytes: u64,
    header: Result<(Header, Hash), Malformed>,
    is_thinned: bool,
}

type Piece = Result<Vec<Checked>, StoreError>;

/// Verifies an archive beyond a prefix: an empty one, or that of an earlier sweep. `reached` is called with the
/// progress after each piece.
///
/// # Errors
/// When the archive cannot be read, or is not the one in which `from` was reached; faults are in the result.
pub async fn sweep(
    store: &Store,
    from: VerifiedPrefix,
    reached: impl FnMut(&VerifiedPrefix, SweepProgress) -> Result<(), VerifyError>,
) -> Result<Swept, VerifyError> {
    let begun = from.clone();
    match go(store, from, reached).await {
        Err(VerifyError::Store(StoreError::Corrupt(why))) => Ok(Swept {
            prefix: begun,
            leaves: 0,
            bytes: 0,
            events: 0,
            findings: vec![Finding::Stored { why: why.to_string() }],
        }),
        swept => swept,
    }
}

async fn go(
    store: &Store,
    from: VerifiedPrefix,
    mut reached: impl FnMut(&VerifiedPrefix, SweepProgress) -> Result<(), VerifyError>,
) -> Result<Swept, VerifyError> {
    let shard = from.shard;
    hold(store, &from).await?;
    let mut going = Going::begin(store, from).await?;
    // Read after the tiles: these are derived from it.
    let tree = read_tree(store, shard).await?;
    let begun = going.swept.prefix.leaves();
    let at_once = available_parallelism().map_or(1, usize::from);
    let next = LeafIndex(begun);
    let pieces = stream::unfold(Some(next), |next| next_piece(store, shard, next, tree.size));
    let mut pieces = std::pin::pin!(pieces.buffered(at_once + 1));
    while let Some(piece) = pieces.next().await {
        let piece = piece.map_err(|error| StoreError::Corrupt(error.to_string().into()))?;
        if !going.take(piece, tree.size).await? {
            return Ok(going.swept);
        }
        if going.swept.prefix.tree.is_due() {
            going
                .swept
                .prefix
                .tree
                .compare(store, &mut going.swept.findings)
                .await?;
        }
        if !going.swept.findings.is_empty() {
            return Ok(going.swept);
        }
        let progress = SweepProgress {
            leaves: going.swept.prefix.leaves(),
            of: tree.size,
            bytes: going.swept.bytes,
        };
        reached(&going.swept.prefix, progress)?;
    }
    let prefix = &going.swept.prefix;
    if prefix.leaves() < tree.size {
        let (leaf, leaves) = (LeafIndex(prefix.leaves()), tree.size);
        going.swept.findings.push(Finding::LeafMissing { shard, leaf, leaves });
    } else if prefix.tree.tree().peaks() != tree.peaks {
        going.swept.findings.push(Finding::Edge {
            shard,
            leaves: tree.size,
        });
    } else {
        going.finish().await?;
    }
    Ok(going.swept)
}

/// Checks that the archive still is the one in which a prefix was verified: the heads of its logs are present, and its
/// first leaves have that root.
async fn hold(store: &Store, prefix: &VerifiedPrefix) -> Result<(), VerifyError> {
    let tree = prefix.tree.tree();
    if tree.size() == 0 {
        return Ok(());
    }
    if root_at(store, prefix.shard, tree.size()).await? != Some(tree.root()) {
        return Err(VerifyError::Changed { leaves: tree.size() });
    }
    for (&owner, head) in &prefix.heads {
        let before = BatchNumber(head.tail.batch.0 - 1);
        let found = match read_archived(store, prefix.shard, owner, before, 1).await {
            Ok(found) => found,
            Err(error) => match of_recovery(error) {
                StoreError::Corrupt(_) => Vec::new(),
                other => return Err(other.into()),
            },
        };
        let read = found
            .first()
            .and_then(|(_, archived)| Header::read(archived.header()).ok());
        if read.is_none_or(|(header, hash)| header.tail(hash) != head.tail) {
            return Err(VerifyError::Changed { leaves: tree.size() });
        }
    }
    Ok(())
}

/// Starts reading the piece that holds the leaf `next`, and returns where the following piece begins.
async fn next_piece(
    store: &Store,
    shard: Shard,
    next: Option<LeafIndex>,
    size: u64,
) -> Option<(JoinHandle<Piece>, Option<LeafIndex>)> {
    let next = next.filter(|next| next.0 < size)?;
    let find = |transaction: Transaction| async move { find_segment(&transaction, shard, next).await };
    match store.read(find).await {
        Err(error) => Some((tokio::spawn(async move { Err(error) }), None)),
        Ok(Some(segment)) => {
            let behind = LeafIndex(segment.last.0 + 1);
            let store = store.clone();
            Some((tokio::spawn(read_sealed(store, segment, next)), Some(behind)))
        }
        Ok(None) => {
            let read =
                |transaction: Transaction| async move { read_loose(&transaction, shard, next, LOOSE_BYTES).await };
            match store.read(read).await {
                Err(error) => Some((tokio::spawn(async move { Err(error) }), None)),
                Ok(found) => {
                    let behind = found.last().map(|(leaf, _)| LeafIndex(leaf.0 + 1));
                    Some((tokio::task::spawn_blocking(move || Ok(check_loose(&found))), behind))
                }
            }
        }
    }
}

/// Reads and checks the leaves of a segment from `from` on.
async fn read_sealed(store: Store, mut segment: Segment, from: LeafIndex) -> Piece {
    let mut reading = 1;
    loop {
        let mut blocks = Vec::with_capacity(segment.blocks.len());
        for place in 0..segment.blocks.len() {
            let segment = &segment;
            let read = |transaction: Transaction| async move { read_block(&transaction, segment, place).await };
            blocks.push(store.read(read).await?.unwrap_or_default());
        }
        let shared = Arc::new(segment.clone());
        let opened = tokio::task::spawn_blocking(move || {
            let leaves = shared.leaves_of(&blocks)?;
            Ok(leaves
                .into_iter()
                .filter(|leaf| leaf.leaf >= from)
                .map(|leaf| check_sealed(&leaf))
                .collect())
        });
        let opened: Piece = opened
            .await
            .map_err(|error| StoreError::Corrupt(error.to_string().into()))?;
        match opened {
            Err(StoreError::Corrupt(what)) if reading < READINGS => {
                reading += 1;
                let shard = segment.shard;
                let find = |transaction: Transaction| async move { find_segment(&transaction, shard, from).await };
                match store.read(find).await? {
                    Some(found) if found != segment => segment = found,
                    _ => return Err(StoreError::Corrupt(what)),
                }
            }
            opened => return opened,
        }
    }
}

fn check_loose(found: &[(LeafIndex, ArchivedBatch)]) -> Vec<Checked> {
    let leaves = found.iter().map(|(leaf, archived)| {
        // Only its header names its batch.
        let header = Header::read(archived.header()).ok();
        let at = header.map(|(header, _)| LogPosition {
            owner: header.owner,
            batch: header.number,
        });
        check(*leaf, at, archived)
    });
    leaves.collect()
}

fn check_sealed(leaf: &Leaf) -> Checked {
    let at = LogPosition {
        owner: leaf.owner,
        batch: leaf.batch,
    };
    let mut checked = check(leaf.leaf, Some(at), &leaf.archived);
    // Retention depends on the time at which a batch was closed.
    if let Ok((header, _)) = &checked.header
        && header.wall != leaf.wall
    {
        checked.header = Err(Malformed {
            what: "wall time in its segment",
            offset: 0,
        });
    }
    checked
}

/// Checks a leaf's bytes against its own hashes.
fn check(leaf: LeafIndex, at: Option<LogPosition>, archived: &ArchivedBatch) -> Checked {
    Checked {
        leaf,
        at,
        bytes: archived.size() as u64,
        is_thinned: archived.is_thinned(),
        header: match archived {
            ArchivedBatch::Whole(bytes) => Batch::check(bytes),
            ArchivedBatch::Thinned(bytes) => Thinned::read(bytes).map(|thinned| (thinned.header, thinned.hash)),
        },
    }
}

/// A sweep in progress.
struct Going<'a> {
    store: &'a Store,
    openings: BTreeMap<OwnerId, BTreeMap<Epoch, OpeningRecord>>,
    floors: Floors,
    swept: Swept,
}

impl<'a> Going<'a> {
    async fn begin(store: &'a Store, mut prefix: VerifiedPrefix) -> Result<Self, VerifyError> {
        let shard = prefix.shard;
        let mut findings = Vec::new();
        prefix.tree.refresh(store, &mut findings).await?;
        Ok(Self {
            store,
            openings: BTreeMap::new(),
            floors: Floors::new(shard),
            swept: Swept {
                prefix,
                leaves: 0,
                bytes: 0,
                events: 0,
                findings,
            },
        })
    }

    /// Takes the next piece. Returns whether all of it is intact.
    async fn take(&mut self, piece: Piece, size: u64) -> Result<bool, VerifyError> {
        let (shard, next) = (self.swept.prefix.shard, LeafIndex(self.swept.prefix.leaves()));
        let piece = match piece {
            Ok(piece) => piece,
            Err(StoreError::Corrupt(why)) => {
                let why = why.to_string();
                self.swept.findings.push(Finding::Piece { shard, leaf: next, why });
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        };
        for checked in piece {
            let next = self.swept.prefix.leaves();
            if next == size {
                break;
            }
            if checked.leaf.0 != next {
                let leaf = LeafIndex(next);
                self.swept.findings.push(Finding::LeafMissing {
                    shard,
                    leaf,
                    leaves: size,
                });
                return Ok(false);
            }
            if let Some(finding) = self.follow(checked).await? {
                self.swept.findings.push(finding);
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes the next leaf, and returns its fault, or a fault between it and its predecessor in the log.
    async fn follow(&mut self, checked: Checked) -> Result<Option<Finding>, VerifyError> {
        let Checked { leaf, bytes, .. } = checked;
        let Some(at) = checked.at else {
            let (shard, why) = (self.swept.prefix.shard, "it is not a batch".to_owned());
            return Ok(Some(Finding::Piece { shard, leaf, why }));
        };
        let fault = |fault| {
            Some(Finding::Batch {
                at,
                fault,
                subjects: Vec::new(),
            })
        };
        let (header, hash) = match checked.header {
            Ok(read) => read,
            Err(malformed) => return Ok(fault(Fault::Damaged(malformed.to_string()))),
        };
        if (header.owner, header.number) != (at.owner, at.batch) {
            return Ok(fault(Fault::Misplaced));
        }
        if checked.is_thinned && !self.floors.are_below(self.store, at).await? {
            return Ok(fault(Fault::Deleted));
        }
        let head = self.swept.prefix.heads.get(&at.owner);
        let (tail, epoch) = head.map(|head| (head.tail, head.epoch)).unwrap_or_default();
        let Tail {
            batch,
            hash: before,
            event,
        } = tail;
        if header.number != batch.next() || header.previous != before {
            return Ok(fault(Fault::Unchained));
        }
        let (first, expected) = (header.first_event, event.next());
        if first != expected {
            return Ok(fault(Fault::Misnumbered { first, expected }));
        }
        if let Some(fault) = self.check_opening(&header, hash, epoch).await? {
            let epoch = header.epoch;
            return Ok(Some(Finding::Opening { at, epoch, fault }));
        }
        let swept = &mut self.swept;
        swept.prefix.tree.push(hash);
        let head = swept.prefix.heads.entry(at.owner).or_default();
        head.tail = header.tail(hash);
        head.epoch = header.epoch;
        if header.opens {
            head.opened.insert(header.epoch);
        }
        swept.leaves += 1;
        swept.bytes += bytes;
        swept.events += u64::from(header.events);
        Ok(None)
    }

    /// Rules E5 and F2: an epoch begins with the batch that the store has as its opening.
    async fn check_opening(
        &mut self,
        header: &Header,
        hash: Hash,
        before: Epoch,
    ) -> Result<Option<OpeningFault>, VerifyError> {
        let Header { epoch, number, .. } = *header;
        if !header.opens {
            return Ok((epoch != before).then_some(OpeningFault::Unopened));
        }
        let known = self
            .openings
            .get(&header.owner)
            .is_some_and(|known| known.contains_key(&epoch));
        if !known {
            self.read_openings(header.owner).await?;
        }
        let opening = self.openings.get(&header.owner).and_then(|known| known.get(&epoch));
        Ok(match opening {
            None => Some(OpeningFault::Unrecorded),
            Some(opening) if opening.number != number || opening.hash != hash => Some(OpeningFault::Other),
            Some(_) if epoch <= before => Some(OpeningFault::Unopened),
            Some(_) => None,
        })
    }

    async fn read_openings(&mut self, owner: OwnerId) -> Result<(), VerifyError> {
        let records = read_openings(self.store, owner).await?;
        let records = records.into_iter().map(|opening| (opening.epoch, opening));
        self.openings.insert(owner, records.collect());
        Ok(())
    }

    /// All leaves were read: checks the other records about them.
    async fn finish(&mut self) -> Result<(), VerifyError> {
        let owners = read_owners(self.store).await?;
        for owner in owners.keys() {
            let head = self.swept.prefix.heads.get(owner).cloned().unwrap_or_default();
            let cursor = annals_db::read_cursor(self.store, *owner).await?;
            let at = LogPosition {
                owner: *owner,
                batch: cursor.batch,
            };
            let end = (head.tail.batch, head.tail.hash, head.tail.event, head.epoch);
            let is_other =
                cursor.batch == head.tail.batch && end != (cursor.batch, cursor.hash, cursor.event, cursor.epoch);
            if is_other || cursor.batch < head.tail.batch {
                self.swept.findings.push(Finding::Cursor { at });
            }
            self.read_openings(*owner).await?;
            let openings = self.openings.get(owner).into_iter().flat_map(BTreeMap::values);
            let absent = openings.filter(|opening| {
                opening.number <= head.tail.batch && !head.opened.contains(&opening.epoch) && !opening.closes_a_hole()
            });
            let absent = absent.map(|opening| Finding::Opening {
                at: LogPosition {
                    owner: *owner,
                    batch: opening.number,
                },
                epoch: opening.epoch,
                fault: OpeningFault::Absent,
            });
            self.swept.findings.extend(absent);
        }
        let swept = &mut self.swept;
        swept.prefix.tree.finish(self.store, &mut swept.findings).await?;
        Ok(())
    }
}
