//! The index: how far the archives of a realm's shards are verified, and positions in them.

use async_recursion::async_recursion as boxed;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use annals_event::{Batch, Body};
use annals_evidence::{About, ShardLeaf};
use annals_ids::{EntryNumber, Hash, LeafIndex, LogPosition, OwnerId, Shard};
use annals_proof::{Frontier, TreeHead};
use annals_store::{
    ArchivedBatch, KeyRange, ScanOrder, Store, StoreError, Transaction,
    archive::{self, ArchiveReader},
    embedded::{EmbeddedStore, OpenError},
    key_after,
    layout::archive::Tree,
};

use crate::{
    answer::AuditError,
    archive::read_trees,
    floors::Floors,
    intake::Intake,
    rows::{self, EntryPosition, LogEnd, Reached, Seat, Where},
};

/// Rows per read.
const PAGE: usize = 512;

/// Bytes of rows per write: far below the limit of a transaction, including the overhead of rows.
const WRITTEN_BYTES: usize = 1 << 20;

/// Bytes of unsealed batches per read.
const LOOSE_BYTES: usize = 1 << 20;

/// Maximum attempts to look up leaves that were sealed, or whose segment was replaced, while they were read.
const READINGS: usize = 5;

/// An index in its own files, outside of any realm. The auditing process keeps it, and may delete it at any time. It
/// has no data that the archive does not have, and is as confidential.
/// ```text
/// Index::open -> catch_up (as often as the archive has grown) -> item, trade, owned
/// ```
pub struct Index {
    rows: Store,
    reached: Reached,
    ends: BTreeMap<OwnerId, LogEnd>,
}

/// The verified part of the archives of a realm's shards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The tree over the verified batches of each shard.
    pub trees: BTreeMap<Shard, TreeHead>,
    /// The newest entry of the ledger in them.
    pub entry: EntryNumber,
}

impl Extent {
    /// Number of batches of all shards.
    #[must_use]
    pub fn leaves(&self) -> u64 {
        self.trees.values().map(|tree| tree.size).sum()
    }
}

/// Progress of taking in the archives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Number of verified batches.
    pub leaves: u64,
    /// Number of all batches.
    pub of: u64,
}

impl Index {
    /// Opens the index of a realm's archives in a folder, which is created if missing. An index of an older form is
    /// cleared.
    ///
    /// # Errors
    /// When the folder cannot be used, or its files cannot be read.
    #[boxed]
    pub async fn open(folder: &Path) -> Result<Self, IndexError> {
        Ok(Self::over(EmbeddedStore::open(folder)?.store()).await?)
    }

    /// As [`Self::open`], in an otherwise empty store.
    ///
    /// # Errors
    /// When the store cannot be read.
    #[boxed]
    pub async fn over(rows: Store) -> Result<Self, StoreError> {
        let value = read_value(&rows, rows::reached_key()).await?;
        let reached = value.map(|value| Reached::decode(&value)).transpose()?;
        let reached = match reached {
            Some(None) => {
                clear(&rows).await?;
                Reached::default()
            }
            Some(Some(reached)) => reached,
            None => Reached::default(),
        };
        let mut ends = BTreeMap::new();
        for (key, value) in read_rows(&rows, rows::tails(), usize::MAX).await? {
            ends.insert(rows::owner_of(&key)?, LogEnd::decode(&value)?);
        }
        Ok(Self { rows, reached, ends })
    }

    /// The verified part of the archives.
    ///
    /// # Errors
    /// When the index is corrupt.
    pub fn extent(&self) -> Result<Extent, AuditError> {
        let mut trees = BTreeMap::new();
        for (&shard, reached) in &self.reached.shards {
            let tree = Frontier::resume(reached.leaves, reached.peaks.clone());
            let tree = tree.ok_or_else(|| AuditError::Index(rows::damaged()))?;
            let (size, root) = (reached.leaves, tree.root());
            trees.insert(shard, TreeHead { size, root });
        }
        let entry = self.reached.entry;
        Ok(Extent { trees, entry })
    }

    /// Verifies and takes in what was archived since: every batch's bytes, the chain of each log, the order of the
    /// ledger's entries, and for each shard the tree over all batches from the first on, against the stored one.
    /// Stopping midway loses nothing.
    ///
    /// # Errors
    /// The first deviation from what was written, or that the archive or the index cannot be used. What was verified
    /// before that stays.
    pub async fn catch_up(
        &mut self,
        archive: &Store,
        mut progress: impl FnMut(Progress),
    ) -> Result<Extent, AuditError> {
        // Read together: with a ledger entry, the order that it answers is archived, whichever shard it is on.
        let known = self.shards().collect();
        let trees = read_trees(archive, &known).await.map_err(AuditError::Archive)?;
        for (&shard, stored) in &trees {
            self.continues(archive, shard, stored).await?;
        }
        let lasting = read_lasting(&self.rows).await.map_err(AuditError::Index)?;
        let mut intake = Intake::resume(&self.reached, self.ends.clone(), lasting).map_err(AuditError::Index)?;
        let of = trees.values().map(|tree| tree.size).sum();
        for (&shard, stored) in &trees {
            let before = trees.keys().filter(|other| **other != shard);
            let before: u64 = before.map(|other| intake.leaves(*other)).sum();
            let progress = |leaves| {
                let leaves = before + leaves;
                progress(Progress { leaves, of });
            };
            self.take_in(archive, &mut intake, (shard, stored), progress).await?;
        }
        self.write(&mut intake).await?;
        self.extent()
    }

    /// Checks that the archive of a shard can be the one that was taken in before.
    async fn continues(&self, archive: &Store, shard: Shard, stored: &Tree) -> Result<(), AuditError> {
        let Some(reached) = self.reached.shards.get(&shard) else {
            return Ok(());
        };
        let (before, now) = (reached.leaves, stored.size);
        if now < before {
            return Err(AuditError::Shorter { shard, before, now });
        }
        if before > 0 && reached.first != first_hash(archive, shard).await? {
            return Err(AuditError::Another(shard));
        }
        Ok(())
    }

    /// Takes in the archive of a shard.
    async fn take_in(
        &mut self,
        archive: &Store,
        intake: &mut Intake,
        (shard, stored): (Shard, &Tree),
        mut progress: impl FnMut(u64),
    ) -> Result<(), AuditError> {
        let mut floors = Floors::new(shard);
        let missing = |leaf| AuditError::LeafMissing(ShardLeaf { shard, leaf });
        intake.begin(shard);
        while intake.leaves(shard) < stored.size {
            let next = LeafIndex(intake.leaves(shard));
            let read = read_on(archive, shard, next).await.map_err(AuditError::Archive)?;
            if read.first().map(|(leaf, ..)| *leaf) != Some(next) {
                return Err(missing(next));
            }
            for (leaf, at, archived) in read {
                let next = LeafIndex(intake.leaves(shard));
                if leaf != next {
                    return Err(missing(next));
                }
                if leaf.0 == stored.size {
                    break;
                }
                let is_below =
                    archived.is_thinned() && floors.are_below(archive, at).await.map_err(AuditError::Archive)?;
                intake.take((shard, at), &archived, is_below)?;
                if intake.bytes() >= WRITTEN_BYTES {
                    self.write(intake).await?;
                }
            }
            progress(intake.leaves(shard));
        }
        if intake.peaks(shard) != stored.peaks {
            let leaves = stored.size;
            return Err(AuditError::Tree { shard, leaves });
        }
        Ok(())
    }

    /// Writes the collected rows.
    async fn write(&mut self, intake: &mut Intake) -> Result<(), AuditError> {
        let rows = intake.take_rows();
        let write = |transaction: Transaction| {
            let rows = &rows;
            async move { rows.iter().try_for_each(|(key, value)| transaction.set(key, value)) }
        };
        // Idempotent: a second run writes the same rows.
        self.rows.run_repeatable(write).await.map_err(AuditError::Index)?;
        self.reached = intake.reached();
        self.ends = intake.ends().clone();
        Ok(())
    }

    /// The entries about a subject, ascending.
    pub(crate) async fn entries(&self, about: About) -> Result<Vec<EntryNumber>, AuditError> {
        let rows = self.rows(rows::entries(about), usize::MAX).await?;
        let numbers = rows.iter().map(|(key, _)| rows::entry_of(about, key));
        numbers.collect::<Result<_, _>>().map_err(AuditError::Index)
    }

    /// The batch of the ledger's log that contains an entry, its seat, and the event's place in the batch.
    pub(crate) async fn entry_position(
        &self,
        archive: &Store,
        number: EntryNumber,
    ) -> Result<(Seat, Batch, u32), AuditError> {
        let value = read_value(&self.rows, rows::entry_key(number))
            .await
            .map_err(AuditError::Index)?;
        let position = value.ok_or(AuditError::Misled(number))?;
        let EntryPosition { owner, batch, place } = EntryPosition::decode(&position).map_err(AuditError::Index)?;
        let at = LogPosition { owner, batch };
        let (seat, batch) = self.batch(archive, at).await?.ok_or(AuditError::Misled(number))?;
        match batch.events.get(place as usize).map(|event| &event.body) {
            Some(Body::Entered { entry: Some(entry), .. }) if entry.number == number => Ok((seat, batch, place)),
            _ => Err(AuditError::Misled(number)),
        }
    }

    /// Position of a batch; `None` if no such batch was verified.
    pub(crate) async fn lies(&self, at: LogPosition) -> Result<Option<Where>, AuditError> {
        let key = rows::batch_key(at.owner, at.batch);
        let value = read_value(&self.rows, key).await.map_err(AuditError::Index)?;
        value
            .map(|value| Where::decode(&value))
            .transpose()
            .map_err(AuditError::Index)
    }

    /// The end of each log.
    pub(crate) fn log_ends(&self) -> &BTreeMap<OwnerId, LogEnd> {
        &self.ends
    }

    /// The first rows in a range, at most `limit`.
    pub(crate) async fn rows(&self, range: KeyRange, limit: usize) -> Result<Vec<annals_store::Row>, AuditError> {
        let rows = read_rows(&self.rows, range, limit).await;
        rows.map_err(AuditError::Index)
    }

    /// The last rows in a range, at most `limit`, in reverse order.
    pub(crate) async fn last_rows(&self, range: KeyRange, limit: usize) -> Result<Vec<annals_store::Row>, AuditError> {
        let read = |transaction: Transaction| {
            let range = &range;
            async move { transaction.snapshot().get_range(range, limit, ScanOrder::Reverse).await }
        };
        let page: annals_store::Page = self.rows.read(read).await.map_err(AuditError::Index)?;
        Ok(page.rows)
    }

    /// Number of leaves of a shard taken in.
    pub(crate) fn leaves(&self, shard: Shard) -> u64 {
        self.reached.shards.get(&shard).map_or(0, |reached| reached.leaves)
    }

    /// The shards taken in.
    pub(crate) fn shards(&self) -> impl Iterator<Item = Shard> {
        self.reached.shards.keys().copied()
    }

    /// A batch that matches its verified hash; `None` if no such batch was verified.
    pub(crate) async fn batch(&self, archive: &Store, at: LogPosition) -> Result<Option<(Seat, Batch)>, AuditError> {
        let found = self.bytes(archive, at).await?;
        Ok(found.map(|(seat, batch, _)| (seat, batch)))
    }

    /// A batch and its bytes that match its verified hash; `None` if no such batch was verified.
    pub(crate) async fn bytes(
        &self,
        archive: &Store,
        at: LogPosition,
    ) -> Result<Option<(Seat, Batch, Vec<u8>)>, AuditError> {
        let Some(Where { seat, hash }) = self.lies(at).await? else {
            return Ok(None);
        };
        let LogPosition { owner, batch } = at;
        let ShardLeaf { shard, leaf } = seat.leaf;
        let read = |transaction: Transaction| async move {
            ArchiveReader::new(&transaction, shard).batch(leaf, owner, batch).await
        };
        let found = archive.read(read).await.map_err(AuditError::Archive)?;
        let bytes = found.and_then(ArchivedBatch::whole);
        let read = bytes.and_then(|bytes| Some((Batch::read(&bytes).ok()?, bytes)));
        match read.filter(|(batch, _)| batch.hash == hash) {
            Some((batch, bytes)) => Ok(Some((seat, batch, bytes))),
            None => Err(AuditError::Replaced { leaf: seat.leaf, at }),
        }
    }
}

/// Why an index cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum IndexError {
    /// Its files cannot be opened.
    #[error("the index cannot be opened")]
    Open(#[from] OpenError),
    /// Its contents cannot be read.
    #[error("the index cannot be read")]
    Read(#[from] StoreError),
}

/// The hash of the first batch of a shard's archive.
async fn first_hash(archive: &Store, shard: Shard) -> Result<Hash, AuditError> {
    let first = LeafIndex(0);
    let read = read_on(archive, shard, first).await.map_err(AuditError::Archive)?;
    let found = read.first().filter(|(leaf, ..)| *leaf == first);
    let (_, at, archived) = found.ok_or(AuditError::LeafMissing(ShardLeaf { shard, leaf: first }))?;
    let header = annals_event::Header::read(archived.header());
    let changed = |error: annals_event::Malformed| AuditError::Changed {
        leaf: ShardLeaf { shard, leaf: first },
        at: *at,
        what: error.to_string(),
    };
    header.map(|(_, hash)| hash).map_err(changed)
}

type IndexedLeaf = (LeafIndex, LogPosition, ArchivedBatch);

/// Leaves from `next` on: those of its segment, or some unsealed ones.
async fn read_on(archive: &Store, shard: Shard, next: LeafIndex) -> Result<Vec<IndexedLeaf>, StoreError> {
    let mut reading = 1;
    loop {
        let find = |transaction: Transaction| async move { archive::find_segment(&transaction, shard, next).await };
        let Some(segment) = archive.read(find).await? else {
            let loose = read_loose(archive, shard, next).await?;
            // Loose leaves may have been sealed between the two reads.
            let is_there = loose.first().is_some_and(|(leaf, ..)| *leaf == next);
            if is_there || reading == READINGS {
                return Ok(loose);
            }
            reading += 1;
            continue;
        };
        match archive::read_leaves(archive, &segment).await {
            Ok(leaves) => {
                let wanted = leaves.into_iter().filter(|leaf| leaf.leaf >= next);
                let found = |leaf: annals_store::segment::Leaf| {
                    let (owner, batch) = (leaf.owner, leaf.batch);
                    (leaf.leaf, LogPosition { owner, batch }, leaf.archived)
                };
                return Ok(wanted.map(found).collect());
            }
            Err(StoreError::Corrupt(_)) if reading < READINGS => reading += 1,
            Err(error) => return Err(error),
        }
    }
}

async fn read_loose(archive: &Store, shard: Shard, next: LeafIndex) -> Result<Vec<IndexedLeaf>, StoreError> {
    let read =
        |transaction: Transaction| async move { archive::read_loose(&transaction, shard, next, LOOSE_BYTES).await };
    let mut found = Vec::new();
    for (leaf, archived) in archive.read(read).await? {
        // Only its header names the owner.
        let header = annals_event::Header::read(archived.header());
        let (header, _) = header.map_err(|error| StoreError::Corrupt(format!("leaf {leaf}: {error}").into()))?;
        let (owner, batch) = (header.owner, header.number);
        found.push((leaf, LogPosition { owner, batch }, archived));
    }
    Ok(found)
}

async fn read_value(store: &Store, key: Vec<u8>) -> Result<Option<Vec<u8>>, StoreError> {
    let read = |transaction: Transaction| {
        let key = &key;
        async move { transaction.snapshot().get(key).await }
    };
    let value: Option<_> = store.read(read).await?;
    Ok(value.map(|value| value.to_vec()))
}

async fn read_rows(store: &Store, range: KeyRange, limit: usize) -> Result<Vec<annals_store::Row>, StoreError> {
    let mut rows = Vec::new();
    let mut begin = range.begin.clone();
    loop {
        let range = KeyRange::new(begin.clone(), range.end.clone());
        let read = |transaction: Transaction| {
            let range = &range;
            let most = PAGE.min(limit);
            async move { transaction.snapshot().get_range(range, most, ScanOrder::Forward).await }
        };
        let page: annals_store::Page = store.read(read).await?;
        let last = page.rows.last().map(|(key, _)| key_after(key));
        rows.extend(page.rows);
        match last.filter(|_| page.more && rows.len() < limit) {
            Some(next) => begin = next,
            None => return Ok(rows),
        }
    }
}

/// The logs taken in from which retention deletes nothing.
async fn read_lasting(index: &Store) -> Result<BTreeSet<OwnerId>, StoreError> {
    let rows = read_rows(index, rows::lasting(), usize::MAX).await?;
    rows.iter().map(|(key, _)| rows::owner_of(key)).collect()
}

/// Empties an index.
async fn clear(rows: &Store) -> Result<(), StoreError> {
    loop {
        let empty = |transaction: Transaction| async move {
            let page = transaction
                .snapshot()
                .get_range(&rows::all(), PAGE, ScanOrder::Forward)
                .await?;
            for (key, _) in &page.rows {
                transaction.clear(key)?;
            }
            Ok::<bool, StoreError>(page.more)
        };
        let (more, _) = rows.run_repeatable(empty).await?;
        if !more {
            return Ok(());
        }
    }
}
