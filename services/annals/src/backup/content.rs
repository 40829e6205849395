//! The content of a backup: its leaves in order, and its rows. Everything is checked against its name when it is read.

use std::{collections::VecDeque, slice};

use annals_db::Row;
use annals_ids::{Hash, LeafIndex};
use annals_store::{
    StoreError,
    segment::{Leaf, Segment, sha256},
};
use thiserror::Error;

use super::{
    manifest::{ArchiveOfShard, Manifest, RowsPiece, SegmentPiece},
    target::{Target, TargetError},
};

/// Approximate size of a pack of rows, in bytes; exceeded by at most one row.
pub(super) const PACK_BYTES: usize = 4 << 20;

/// Maximum size of a decompressed pack, in bytes: a full pack and the largest row.
const PACK_CEILING: usize = PACK_BYTES + (1 << 20);

/// Compression level: the default of zstd.
const LEVEL: i32 = 3;

/// Why a piece of a backup cannot be used.
#[derive(Debug, Error)]
pub enum ContentError {
    /// It is missing.
    #[error("{0} is missing")]
    Missing(String),
    /// Its bytes are not those that were written.
    #[error("{piece} is damaged: {why}")]
    Damaged {
        /// The name of the piece.
        piece: String,
        /// The cause.
        why: String,
    },
    /// It cannot be read.
    #[error("a piece of the backup cannot be read")]
    Target(#[from] TargetError),
}

/// Reads a segment's leaves; the backup holds those up to its own end.
///
/// # Errors
/// When the segment is missing, damaged, or cannot be read.
pub async fn read_segment(target: &Target, piece: &SegmentPiece) -> Result<Vec<Leaf>, ContentError> {
    let path = piece.path();
    let bytes = read(target, &path).await?;
    let damaged = |why: String| ContentError::Damaged {
        piece: path.clone(),
        why,
    };
    if bytes.len() as u64 != piece.size {
        return Err(damaged(format!("size is {} B, expected {}", bytes.len(), piece.size)));
    }
    let name: Hash = piece.name.parse().map_err(|error| damaged(format!("{error}")))?;
    let wrong = |error: StoreError| damaged(error.to_string());
    let (segment, blocks) = Segment::split(name, &bytes).map_err(wrong)?;
    if (segment.first.0, segment.last.0) != (piece.first, piece.last) {
        return Err(damaged("its leaves differ from those in the manifest".to_owned()));
    }
    segment.leaves_of(&blocks).map_err(wrong)
}

/// The next leaves of a piece, beginning at `next`, the first unread leaf. Segments of one backup may overlap, if
/// leaves were sealed while it was made.
///
/// # Errors
/// When there is a gap before the piece, or it cannot be read.
async fn read_next(
    target: &Target,
    archive: &ArchiveOfShard,
    piece: &SegmentPiece,
    next: u64,
) -> Result<Vec<Leaf>, ContentError> {
    if piece.first > next {
        return Err(ContentError::Missing(format!(
            "the segment of leaf {next} before {}",
            piece.path()
        )));
    }
    let wanted = LeafIndex(next)..LeafIndex(archive.leaves);
    let leaves = read_segment(target, piece).await?;
    Ok(leaves.into_iter().filter(|leaf| wanted.contains(&leaf.leaf)).collect())
}

/// The leaves of a shard's archive in a backup, in their order.
pub struct Leaves<'a> {
    target: &'a Target,
    archive: &'a ArchiveOfShard,
    /// Segments that are not read yet.
    pieces: slice::Iter<'a, SegmentPiece>,
    /// The first leaf after those that were read.
    next: u64,
    read: VecDeque<Leaf>,
    /// The segment that was read last.
    piece: Option<&'a SegmentPiece>,
    /// Number and size of the segments that were read and are whole.
    used: (u64, u64),
}

impl<'a> Leaves<'a> {
    /// The leaves from the first on.
    #[must_use]
    pub fn new(target: &'a Target, archive: &'a ArchiveOfShard) -> Self {
        Self {
            target,
            archive,
            pieces: archive.segments.iter(),
            next: 0,
            read: VecDeque::new(),
            piece: None,
            used: (0, 0),
        }
    }

    /// Reads the next leaf; `None` at the end. After a piece that cannot be used, its leaves are skipped.
    ///
    /// # Errors
    /// When a piece is missing, damaged, or cannot be read.
    pub async fn next(&mut self) -> Result<Option<Leaf>, ContentError> {
        loop {
            if let Some(leaf) = self.read.pop_front() {
                return Ok(Some(leaf));
            }
            let Some(piece) = self.pieces.next() else {
                let (leaf, leaves) = (self.next, self.archive.leaves);
                // Reported once.
                self.next = leaves;
                return match leaf < leaves {
                    true => Err(ContentError::Missing(format!("the segment of leaf {leaf}"))),
                    false => Ok(None),
                };
            };
            let next = self.next;
            self.next = next.max(piece.last + 1);
            self.piece = Some(piece);
            self.read
                .extend(read_next(self.target, self.archive, piece, next).await?);
            self.used = (self.used.0 + 1, self.used.1 + piece.size);
        }
    }

    /// Number and size (bytes) of the segments that were read and are whole.
    #[must_use]
    pub fn used(&self) -> (u64, u64) {
        self.used
    }

    /// The segment of the leaf that was read last.
    #[must_use]
    pub fn piece(&self) -> Option<&'a SegmentPiece> {
        self.piece
    }
}

/// Reads all rows of a backup.
///
/// # Errors
/// When a pack is missing, damaged, or cannot be read.
pub async fn read_rows(target: &Target, manifest: &Manifest) -> Result<Vec<Row>, ContentError> {
    let mut rows = Vec::new();
    for piece in &manifest.rows {
        rows.extend(read_pack(target, piece).await?);
    }
    Ok(rows)
}

/// Reads one pack of rows.
///
/// # Errors
/// As [`read_rows`].
pub async fn read_pack(target: &Target, piece: &RowsPiece) -> Result<Vec<Row>, ContentError> {
    let path = piece.path();
    let bytes = read(target, &path).await?;
    let damaged = |why: &str| ContentError::Damaged {
        piece: path.clone(),
        why: why.to_owned(),
    };
    if piece.name.parse() != Ok(sha256(&bytes)) {
        return Err(damaged("it is not what was written"));
    }
    let bytes = zstd::bulk::decompress(&bytes, PACK_CEILING).map_err(|_| damaged("it cannot be decompressed"))?;
    unpack(&bytes).ok_or_else(|| damaged("it cannot be read"))
}

/// Packs rows into packs of about [`PACK_BYTES`] before compression.
pub(super) fn pack(rows: &[Row]) -> std::io::Result<Vec<Vec<u8>>> {
    let (mut packs, mut gathered) = (Vec::new(), Vec::new());
    for (key, value) in rows {
        for part in [key, value] {
            let length = u32::try_from(part.len()).expect("invariant: keys and values have limits far below 4 GiB");
            gathered.extend(length.to_be_bytes());
            gathered.extend(part);
        }
        if gathered.len() >= PACK_BYTES {
            packs.push(zstd::bulk::compress(&gathered, LEVEL)?);
            gathered.clear();
        }
    }
    if !gathered.is_empty() {
        packs.push(zstd::bulk::compress(&gathered, LEVEL)?);
    }
    Ok(packs)
}

fn unpack(mut bytes: &[u8]) -> Option<Vec<Row>> {
    let mut part = || {
        let (length, rest) = bytes.split_first_chunk()?;
        let (part, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        bytes = rest;
        Some((part.to_vec(), rest.is_empty()))
    };
    let mut rows = Vec::new();
    loop {
        let (key, _) = part()?;
        let (value, is_last) = part()?;
        rows.push((key, value));
        if is_last {
            return Some(rows);
        }
    }
}

async fn read(target: &Target, path: &str) -> Result<bytes::Bytes, ContentError> {
    target.read(path).await.map_err(|error| {
        if error.is_absent() {
            ContentError::Missing(path.to_owned())
        } else {
            error.into()
        }
    })
}
