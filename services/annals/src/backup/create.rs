//! Making a backup of the store of a running or stopped realm.
//!
//! The size of the archive is read first, so all rows that are read afterwards belong to those leaves or to later ones.
//! Leaves that are not sealed yet are sealed for the backup only.

use std::collections::BTreeMap;

use annals_db::{horizon_of, leaf, read_unlogged};
use annals_event::Header;
use annals_host::process::FIRST_SHARD;
use annals_ids::{Hash, LeafIndex, WallTime};
use annals_proof::Frontier;
use annals_store::{
    Store, StoreError, Transaction, archive,
    layout::{
        archive::{Tree, tree_key},
        director::{Realm, realm_key},
    },
    segment::{self, Leaf, SEGMENT_BYTES, SEGMENT_LEAVES, Segment, sha256},
};
use thiserror::Error;

use super::{
    content::{self, ContentError},
    manifest::{Manifest, RowsPiece, Sealed, SegmentPiece},
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
    #[error("leaf {0} is missing from the archive; `annals log verify` names its owner")]
    Lost(LeafIndex),
    /// The leaves do not hash to the stored tree.
    #[error(
        "the archive does not match its Merkle tree ({leaves} leaves, root {found}, stored {stored}): nothing was \
         backed up; see `annals log verify`"
    )]
    Tree {
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
    let (tree, began) = read_start(store).await?;
    let mut making = Making {
        target,
        held: target.list("segments").await?,
        tree: Frontier::new(),
        created: Created {
            manifest: Manifest::begin(realm.to_owned(), began, now),
            written: 0,
            bytes: 0,
            reused: 0,
        },
    };
    making.created.manifest.leaves = tree.size;
    making.adopt(store, realm).await?;
    while making.tree.size() < tree.size {
        making.take_next(store, tree.size).await?;
    }
    let stored = Frontier::resume(tree.size, tree.peaks).unwrap_or_default().root();
    let found = making.tree.root();
    if found != stored {
        let leaves = tree.size;
        return Err(CreateError::Tree { leaves, found, stored });
    }
    making.created.manifest.root = stored.to_string();
    making.write_rows(store).await?;
    making.created.manifest.write(target).await?;
    Ok(making.created)
}

/// The tree, and the time at which the realm began.
async fn read_start(store: &Store) -> Result<(Tree, WallTime), CreateError> {
    let read = |transaction: Transaction| async move {
        let tree = Tree::decode(transaction.get(&tree_key(FIRST_SHARD)).await?.as_deref())?;
        let realm = transaction.get(&realm_key()).await?;
        Ok::<_, StoreError>((tree, realm.map(|value| Realm::decode(&value)).transpose()?))
    };
    let (tree, realm) = store.read(read).await?;
    Ok((tree, realm.ok_or(CreateError::NoRealm)?.began))
}

/// A backup in progress.
struct Making<'a> {
    target: &'a Target,
    /// Segments at the target, with their sizes.
    held: BTreeMap<String, u64>,
    /// The tree over the leaves in the backup.
    tree: Frontier,
    created: Created,
}

impl Making<'_> {
    /// Takes the common prefix of the realm's newest backup and the store without reading it: both name the same
    /// segments, and the target has them. Together with the leaves that follow, it must hash to the store's tree.
    async fn adopt(&mut self, store: &Store, realm: &str) -> Result<(), CreateError> {
        let names = Manifest::names(self.target).await?;
        let of_realm = |name: &&String| name.rsplit_once('-').is_some_and(|(of, _)| of == realm);
        let Some(name) = names.iter().rev().find(of_realm) else {
            return Ok(());
        };
        // If the previous backup is damaged, everything is read.
        let Ok(before) = Manifest::read(self.target, Some(name)).await else {
            return Ok(());
        };
        let (Some(tree), Some(pieces)) = (before.sealed.tree(), before.segments.get(..before.sealed.segments)) else {
            return Ok(());
        };
        let sealed = archive::read_segments(store, FIRST_SHARD).await?;
        let is_held = |(piece, segment): (&SegmentPiece, &Segment)| {
            self.held.get(&piece.name) == Some(&piece.size) && piece.name == segment.name().to_string()
        };
        let ends = pieces.last().map_or(0, |last| last.last + 1);
        let is_whole = pieces.len() <= sealed.len() && ends == tree.size() && ends <= self.created.manifest.leaves;
        if is_whole && pieces.iter().zip(&sealed).all(is_held) {
            self.tree = tree;
            self.created.reused += pieces.len() as u64;
            self.created.manifest.latest = before.sealed.latest;
            self.created.manifest.segments = pieces.to_vec();
            self.created.manifest.sealed = before.sealed;
        }
        Ok(())
    }

    /// Takes the segment that contains the next leaf; `end` is the first leaf that does not belong to the backup.
    async fn take_next(&mut self, store: &Store, end: u64) -> Result<(), CreateError> {
        let next = LeafIndex(self.tree.size());
        let find =
            |transaction: Transaction| async move { archive::find_segment(&transaction, FIRST_SHARD, next).await };
        while let Some(segment) = store.read(find).await? {
            let taken = self.take_sealed(store, &segment, end).await;
            // Retention replaced the segment during the read: the new one is equally valid.
            let is_torn = matches!(
                taken,
                Err(CreateError::Store(StoreError::Corrupt(_)) | CreateError::Lost(_))
            );
            if !is_torn || store.read(find).await?.as_ref() == Some(&segment) {
                return taken;
            }
        }
        let mut loose: Vec<Leaf> = Vec::new();
        let mut bytes = 0;
        while loose.len() < SEGMENT_LEAVES && bytes < SEGMENT_BYTES {
            let from = LeafIndex(next.0 + loose.len() as u64);
            if from.0 >= end {
                break;
            }
            let read = |transaction: Transaction| async move {
                archive::read_loose(&transaction, FIRST_SHARD, from, READ_BYTES).await
            };
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
        if loose.is_empty() {
            return match store.read(find).await? {
                Some(segment) => self.take_sealed(store, &segment, end).await,
                None => Err(CreateError::Lost(next)),
            };
        }
        let (segment, blocks) = segment::seal(FIRST_SHARD, loose)?;
        let leaves = segment.leaves_of(&blocks)?;
        self.take(&segment, &leaves, end);
        self.write_segment(&segment, &blocks).await
    }

    async fn take_sealed(&mut self, store: &Store, segment: &Segment, end: u64) -> Result<(), CreateError> {
        let name = segment.name().to_string();
        if let Some(&size) = self.held.get(&name) {
            // An existing piece was written by an earlier backup; that it is intact is verified by reading it.
            let piece = SegmentPiece::of(segment, size);
            let leaves = content::read_segment(self.target, &piece).await?;
            self.take(segment, &leaves, end);
            self.created.manifest.segments.push(piece);
            self.created.reused += 1;
            self.note_sealed(segment);
            return Ok(());
        }
        let mut blocks = Vec::new();
        for place in 0..segment.blocks.len() {
            let read =
                |transaction: Transaction| async move { archive::read_block(&transaction, segment, place).await };
            let block = store.read(read).await?;
            blocks.push(block.ok_or(CreateError::Lost(segment.first))?);
        }
        let leaves = segment.leaves_of(&blocks)?;
        self.take(segment, &leaves, end);
        self.write_segment(segment, &blocks).await?;
        self.note_sealed(segment);
        Ok(())
    }

    /// Notes the sealed prefix that the next backup will share with this one; it ends at the first segment that was
    /// sealed for this backup only.
    fn note_sealed(&mut self, segment: &Segment) {
        let manifest = &mut self.created.manifest;
        let is_front = manifest.sealed.segments + 1 == manifest.segments.len();
        if is_front && self.tree.size() == segment.last.0 + 1 {
            manifest.sealed = Sealed::of(manifest.segments.len(), &self.tree, manifest.latest);
        }
    }

    /// Appends the next leaves to the tree.
    fn take(&mut self, segment: &Segment, leaves: &[Leaf], end: u64) {
        let latest = &mut self.created.manifest.latest;
        *latest = (*latest).max(segment.latest.0);
        let next = self.tree.size();
        for leaf in leaves.iter().filter(|leaf| (next..end).contains(&leaf.leaf.0)) {
            // A leaf that is no batch changes the root, which is then reported.
            let hash = Header::read(leaf.archived.header()).map_or(Hash::ZERO, |(_, hash)| hash);
            self.tree.push(hash);
        }
    }

    async fn write_segment(&mut self, segment: &Segment, blocks: &[Vec<u8>]) -> Result<(), CreateError> {
        let file = segment.join(blocks);
        let piece = SegmentPiece::of(segment, file.len() as u64);
        if self.held.get(&piece.name) == Some(&piece.size) {
            self.created.reused += 1;
        } else {
            self.write(&piece.path(), file).await?;
            self.held.insert(piece.name.clone(), piece.size);
        }
        self.created.manifest.segments.push(piece);
        Ok(())
    }

    async fn write_rows(&mut self, store: &Store) -> Result<(), CreateError> {
        let held = self.target.list("rows").await?;
        let rows = read_unlogged(store, FIRST_SHARD).await?;
        // Rows older than the leaves that they stand for do not belong to this backup.
        let horizon = horizon_of(&rows, FIRST_SHARD)?;
        if horizon.is_some_and(|horizon| horizon.leaf.0 >= self.created.manifest.leaves) {
            return Err(CreateError::Overtaken);
        }
        for pack in content::pack(&rows)? {
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
