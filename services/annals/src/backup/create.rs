//! Making a backup of the store of a running or stopped realm.
//!
//! The sizes of the archives of all shards are read first, in one transaction, so all rows that are read afterwards belong
//! to those leaves or to later ones. Leaves that are not sealed yet are sealed for the backup only.

use std::collections::BTreeMap;

use annals_db::{Row, horizon_of, leaf, read_unlogged};
use annals_event::Header;
use annals_ids::{Hash, LeafIndex, Shard, WallTime};
use annals_proof::Frontier;
use annals_store::{
    Store, StoreError, Transaction, archive,
    layout::{
        archive::{Tree, tree_key},
        director::{Realm, realm_key},
        shards,
    },
    segment::{self, Leaf, SEGMENT_BYTES, SEGMENT_LEAVES, Segment, sha256},
};
use thiserror::Error;

use super::{
    content::{self, ContentError},
    manifest::{ArchiveOfShard, Manifest, RowsPiece, Sealed, SegmentPiece},
    target::{Target, TargetError},
};

/// Bytes of leaves read per transaction.
const READ_BYTES: usize = 1 << 20;

/// Why no backup was made.
#[derive(Debug, Error)]
pub enum CreateError {
    /// Error of the store.
    #[error("the realm's store cannot be read")]
    Store(#[from] StoreError),
    /// Error of the target.
    #[error("the target cannot be written")]
    Target(#[from] TargetError),
    /// The store contains no realm.
    #[error("the store contains no realm: start the realm first")]
    NoRealm,
    /// A leaf is missing.
    #[error("leaf {1} is missing from the archive of shard {0}; `annals log verify` names its owner")]
    Lost(Shard, LeafIndex),
    /// The leaves do not hash to the stored tree.
    #[error(
        "the archive of shard {shard} does not match its Merkle tree ({leaves} leaves, root {found}, stored {stored}): \
         nothing was backed up; see `annals log verify`"
    )]
    Tree {
        shard: Shard,
        /// Number of leaves.
        leaves: u64,
        /// The root over the leaves found.
        found: Hash,
        /// The stored root.
        stored: Hash,
    },
    /// Retention deleted what was being backed up.
    #[error("retention deleted everything in this backup before it was complete: run the backup again")]
    Overtaken,
    /// An earlier piece is damaged.
    #[error("a piece of an earlier backup cannot be used")]
    Content(#[from] ContentError),
    /// Compression failed.
    #[error("the rows cannot be compressed")]
    Compress(#[from] std::io::Error),
}

/// The result of making a backup.
#[derive(Clone, Debug)]
pub struct Created {
    /// The backup.
    pub manifest: Manifest,
    /// Pieces that were written.
    pub written: u64,
    /// Their size in bytes.
    pub bytes: u64,
    /// Pieces that existed already.
    pub reused: u64,
}

/// Backs up a realm's store. `realm` is its name.
///
/// # Errors
/// When the store cannot be read or the target not written. There is then no new backup; the pieces written are reused
/// by the next.
pub async fn create(store: &Store, realm: &str, now: WallTime, target: &Target) -> Result<Created, CreateError> {
    let (trees, began) = read_start(store).await?;
    let mut making = Making {
        target,
        held: target.list("segments").await?,
        created: Created {
            manifest: Manifest::begin(realm.to_owned(), began, now),
            written: 0,
            bytes: 0,
            reused: 0,
        },
    };
    let before = read_newest(target, realm).await?;
    for (shard, tree) in (0..).map(Shard).zip(trees) {
        let former = before
            .as_ref()
            .and_then(|before| before.shards.get(usize::from(shard.0)));
        let archive = making.copy(store, (shard, &tree), former).await?;
        making.created.manifest.shards.push(archive);
    }
    making.write_rows(store).await?;
    making.created.manifest.write(target).await?;
    Ok(making.created)
}

/// The tree of each shard, all at one moment, and the time at which the realm began.
async fn read_start(store: &Store) -> Result<(Vec<Tree>, WallTime), CreateError> {
    let read = |transaction: Transaction| async move {
        let mut trees = Vec::new();
        for shard in shards::all(shards::read_count(&transaction).await?) {
            trees.push(Tree::decode(transaction.get(&tree_key(shard)).await?.as_deref())?);
        }
        let realm = transaction.get(&realm_key()).await?;
        Ok::<_, StoreError>((trees, realm.map(|value| Realm::decode(&value)).transpose()?))
    };
    let (trees, realm) = store.read(read).await?;
    Ok((trees, realm.ok_or(CreateError::NoRealm)?.began))
}

/// The realm's newest backup, if it can be used: otherwise everything is read.
async fn read_newest(target: &Target, realm: &str) -> Result<Option<Manifest>, CreateError> {
    let names = Manifest::names(target).await?;
    let of_realm = |name: &&String| name.rsplit_once('-').is_some_and(|(of, _)| of == realm);
    let Some(name) = names.iter().rev().find(of_realm) else {
        return Ok(None);
    };
    Ok(Manifest::read(target, Some(name)).await.ok())
}

/// A backup in progress.
struct Making<'a> {
    target: &'a Target,
    /// Segments at the target, with their sizes.
    held: BTreeMap<String, u64>,
    created: Created,
}

/// A shard's archive in progress.
struct Copying {
    shard: Shard,
    /// The tree over the leaves in the backup.
    tree: Frontier,
    archive: ArchiveOfShard,
}

impl Making<'_> {
    /// Copies the archive of a shard up to this tree. `former` is that of the realm's newest backup.
    async fn copy(
        &mut self,
        store: &Store,
        (shard, tree): (Shard, &Tree),
        former: Option<&ArchiveOfShard>,
    ) -> Result<ArchiveOfShard, CreateError> {
        let archive = ArchiveOfShard {
            leaves: tree.size,
            ..ArchiveOfShard::default()
        };
        let mut copying = Copying {
            shard,
            tree: Frontier::new(),
            archive,
        };
        if let Some(former) = former {
            self.adopt(store, &mut copying, former).await?;
        }
        while copying.tree.size() < tree.size {
            self.take_next(store, &mut copying).await?;
        }
        let stored = Frontier::resume(tree.size, tree.peaks.clone())
            .unwrap_or_default()
            .root();
        let found = copying.tree.root();
        if found != stored {
            return Err(CreateError::Tree {
                shard,
                leaves: tree.size,
                found,
                stored,
            });
        }
        copying.archive.root = stored.to_string();
        Ok(copying.archive)
    }

    /// Takes the common prefix of the realm's newest backup and the store without reading it: both name the same
    /// segments, and the target has them. Together with the leaves that follow, it must hash to the store's tree.
    async fn adopt(
        &mut self,
        store: &Store,
        copying: &mut Copying,
        before: &ArchiveOfShard,
    ) -> Result<(), CreateError> {
        let (Some(tree), Some(pieces)) = (before.sealed.tree(), before.segments.get(..before.sealed.segments)) else {
            return Ok(());
        };
        let sealed = archive::read_segments(store, copying.shard).await?;
        let is_held = |(piece, segment): (&SegmentPiece, &Segment)| {
            self.held.get(&piece.name) == Some(&piece.size) && piece.name == segment.name().to_string()
        };
        let ends = pieces.last().map_or(0, |last| last.last + 1);
        let is_whole = pieces.len() <= sealed.len() && ends == tree.size() && ends <= copying.archive.leaves;
        if is_whole && pieces.iter().zip(&sealed).all(is_held) {
            copying.tree = tree;
            self.created.reused += pieces.len() as u64;
            copying.archive.latest = before.sealed.latest;
            copying.archive.segments = pieces.to_vec();
            copying.archive.sealed = before.sealed.clone();
        }
        Ok(())
    }

    /// Takes the segment that contains the next leaf.
    async fn take_next(&mut self, store: &Store, copying: &mut Copying) -> Result<(), CreateError> {
        let (shard, next) = (copying.shard, LeafIndex(copying.tree.size()));
        let find = |transaction: Transaction| async move { archive::find_segment(&transaction, shard, next).await };
        while let Some(segment) = store.read(find).await? {
            let taken = self.take_sealed(store, copying, &segment).await;
            // Retention replaced the segment during the read: the new one is equally valid.
            let is_torn = matches!(
                taken,
                Err(CreateError::Store(StoreError::Corrupt(_)) | CreateError::Lost(..))
            );
            if !is_torn || store.read(find).await?.as_ref() == Some(&segment) {
                return taken;
            }
        }
        let loose = read_unsealed(store, (shard, next), copying.archive.leaves).await?;
        if loose.is_empty() {
            return match store.read(find).await? {
                Some(segment) => self.take_sealed(store, copying, &segment).await,
                None => Err(CreateError::Lost(shard, next)),
            };
        }
        let (segment, blocks) = segment::seal(shard, loose)?;
        let leaves = segment.leaves_of(&blocks)?;
        copying.take(&segment, &leaves);
        self.write_segment(copying, &segment, &blocks).await
    }

    async fn take_sealed(
        &mut self,
        store: &Store,
        copying: &mut Copying,
        segment: &Segment,
    ) -> Result<(), CreateError> {
        let name = segment.name().to_string();
        if let Some(&size) = self.held.get(&name) {
            // An existing piece was written by an earlier backup; that it is intact is verified by reading it.
            let piece = SegmentPiece::of(segment, size);
            let leaves = content::read_segment(self.target, &piece).await?;
            copying.take(segment, &leaves);
            copying.archive.segments.push(piece);
            self.created.reused += 1;
            copying.note_sealed(segment);
            return Ok(());
        }
        let mut blocks = Vec::new();
        for place in 0..segment.blocks.len() {
            let read =
                |transaction: Transaction| async move { archive::read_block(&transaction, segment, place).await };
            let block = store.read(read).await?;
            blocks.push(block.ok_or(CreateError::Lost(copying.shard, segment.first))?);
        }
        let leaves = segment.leaves_of(&blocks)?;
        copying.take(segment, &leaves);
        self.write_segment(copying, segment, &blocks).await?;
        copying.note_sealed(segment);
        Ok(())
    }

    async fn write_segment(
        &mut self,
        copying: &mut Copying,
        segment: &Segment,
        blocks: &[Vec<u8>],
    ) -> Result<(), CreateError> {
        let file = segment.join(blocks);
        let piece = SegmentPiece::of(segment, file.len() as u64);
        if self.held.get(&piece.name) == Some(&piece.size) {
            self.created.reused += 1;
        } else {
            self.write(&piece.path(), file).await?;
            self.held.insert(piece.name.clone(), piece.size);
        }
        copying.archive.segments.push(piece);
        Ok(())
    }

    async fn write_rows(&mut self, store: &Store) -> Result<(), CreateError> {
        let held = self.target.list("rows").await?;
        let rows = read_unlogged(store).await?;
        // Rows older than the leaves that they stand for do not belong to this backup.
        for (shard, archive) in self.created.manifest.archives() {
            let horizon = horizon_of(&rows, shard)?;
            if horizon.is_some_and(|horizon| horizon.leaf.0 >= archive.leaves) {
                return Err(CreateError::Overtaken);
            }
        }
        // The changes of the ledger only become more: most of their packs are there already.
        let changes = shards::changes();
        let (changes, others): (Vec<Row>, Vec<Row>) = rows.into_iter().partition(|(key, _)| changes.contains(key));
        for pack in content::pack(&others)?.into_iter().chain(content::pack(&changes)?) {
            let piece = RowsPiece {
                name: sha256(&pack).to_string(),
                size: pack.len() as u64,
            };
            if held.get(&piece.name) == Some(&piece.size) {
                self.created.reused += 1;
            } else {
                self.write(&piece.path(), pack).await?;
            }
            self.created.manifest.rows.push(piece);
        }
        Ok(())
    }

    async fn write(&mut self, path: &str, bytes: Vec<u8>) -> Result<(), CreateError> {
        self.created.written += 1;
        self.created.bytes += bytes.len() as u64;
        Ok(self.target.write(path, bytes).await?)
    }
}

impl Copying {
    /// Notes the sealed prefix that the next backup will share with this one; it ends at the first segment that was
    /// sealed for this backup only.
    fn note_sealed(&mut self, segment: &Segment) {
        let archive = &mut self.archive;
        let is_front = archive.sealed.segments + 1 == archive.segments.len();
        if is_front && self.tree.size() == segment.last.0 + 1 {
            archive.sealed = Sealed::of(archive.segments.len(), &self.tree, archive.latest);
        }
    }

    /// Appends the next leaves to the tree.
    fn take(&mut self, segment: &Segment, leaves: &[Leaf]) {
        let latest = &mut self.archive.latest;
        *latest = (*latest).max(segment.latest.0);
        let end = self.archive.leaves;
        let next = self.tree.size();
        for leaf in leaves.iter().filter(|leaf| (next..end).contains(&leaf.leaf.0)) {
            // A leaf that is no batch changes the root, which is then reported.
            let hash = Header::read(leaf.archived.header()).map_or(Hash::ZERO, |(_, hash)| hash);
            self.tree.push(hash);
        }
    }
}

/// Reads leaves that are not sealed, from this one on and before `end`: as many as a segment has.
async fn read_unsealed(store: &Store, (shard, next): (Shard, LeafIndex), end: u64) -> Result<Vec<Leaf>, CreateError> {
    let mut loose: Vec<Leaf> = Vec::new();
    let mut bytes = 0;
    while loose.len() < SEGMENT_LEAVES && bytes < SEGMENT_BYTES {
        let from = LeafIndex(next.0 + loose.len() as u64);
        if from.0 >= end {
            break;
        }
        let read =
            |transaction: Transaction| async move { archive::read_loose(&transaction, shard, from, READ_BYTES).await };
        let mut expected = from.0;
        for (index, found) in store.read(read).await? {
            if index.0 != expected || index.0 >= end || loose.len() >= SEGMENT_LEAVES {
                break;
            }
            expected += 1;
            bytes += found.size();
            loose.push(leaf(index, found)?);
        }
        if expected == from.0 {
            // Sealed since the lookup, or missing.
            break;
        }
    }
    Ok(loose)
}
