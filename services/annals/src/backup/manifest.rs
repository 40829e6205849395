//! The manifest of a backup.
//!
//! A manifest is a text: the SHA-256 of the rest on a line of its own, then JSON. Damage is therefore detected, and
//! `tail -n +2 FILE | sha256sum` gives the same as the first line.

use annals_ids::{Hash, Shard, WallTime};
use annals_proof::Frontier;
use annals_store::segment::{Segment, sha256};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::target::{Target, TargetError};

/// The folder of manifests.
const FOLDER: &str = "backups";

/// The file extension of a manifest.
const ENDING: &str = ".json";

/// Current format of manifests, and of the pieces that they list.
const FORMAT: u32 = 2;

/// The format of a backup of a realm of one shard, before there were several.
const OF_ONE_SHARD: u32 = 1;

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Format of the manifest and its pieces.
    pub format: u32,
    /// The realm's name.
    pub realm: String,
    /// When the realm began, in ms since 1970.
    pub began: u64,
    /// When the backup was begun, in ms since 1970.
    pub created: u64,
    /// The archive of each shard, from shard 0 on.
    pub shards: Vec<ArchiveOfShard>,
    /// Its packs of rows.
    pub rows: Vec<RowsPiece>,
}

/// A backup in [`OF_ONE_SHARD`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ManifestOfOneShard {
    format: u32,
    realm: String,
    began: u64,
    created: u64,
    leaves: u64,
    root: String,
    latest: u64,
    sealed: Sealed,
    segments: Vec<SegmentPiece>,
    rows: Vec<RowsPiece>,
}

/// The archive of a shard in a backup.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ArchiveOfShard {
    /// Number of its leaves in the backup; later leaves of its segments are not part of it.
    pub leaves: u64,
    /// The root of the Merkle tree over those leaves, in hexadecimal.
    pub root: String,
    /// The wall time of the newest batch, in ms since 1970.
    pub latest: u64,
    /// The prefix that was sealed in the realm's store: shared with the next backup.
    pub sealed: Sealed,
    /// Its segments, ordered by first leaf; those counted in `sealed` come first.
    pub segments: Vec<SegmentPiece>,
}

/// The sealed prefix of an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// Number of segments.
    pub segments: usize,
    /// Number of leaves.
    pub leaves: u64,
    /// The roots of the complete subtrees over those leaves, largest first, in hexadecimal.
    pub peaks: Vec<String>,
    /// The latest wall time in those leaves, in ms since 1970.
    pub latest: u64,
}

/// A segment in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SegmentPiece {
    /// Its name: the hash of its index, in hexadecimal.
    pub name: String,
    /// Its first leaf.
    pub first: u64,
    /// Its last leaf.
    pub last: u64,
    /// Size of its file, in bytes.
    pub size: u64,
}

/// A pack of rows in a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RowsPiece {
    /// Its name: its hash, in hexadecimal.
    pub name: String,
    /// Size of its file, in bytes.
    pub size: u64,
}

/// Why a manifest could not be read.
#[derive(Debug, Error)]
pub enum ManifestError {
    /// It is missing, or cannot be read.
    #[error("the backup cannot be read")]
    Target(#[from] TargetError),
    /// Its hash does not match.
    #[error("{0} is damaged: it is not what was written")]
    Damaged(String),
    /// It has another format version.
    #[error("{name} has format {format}, and this version reads formats {OF_ONE_SHARD} to {FORMAT}")]
    Format { name: String, format: u32 },
    /// There is no backup.
    #[error("there is no backup at {0}")]
    None(String),
}

impl Manifest {
    /// The manifest of a backup of which nothing is written yet.
    pub(super) fn begin(realm: String, began: WallTime, created: WallTime) -> Self {
        Self {
            format: FORMAT,
            realm,
            began: began.0,
            created: created.0,
            shards: Vec::new(),
            rows: Vec::new(),
        }
    }

    fn decode(body: &str) -> Result<Option<Self>, serde_json::Error> {
        match serde_json::from_str::<Versioned>(body)?.format {
            FORMAT => serde_json::from_str(body).map(Some),
            OF_ONE_SHARD => serde_json::from_str::<ManifestOfOneShard>(body).map(|of_one| Some(of_one.into())),
            _ => Ok(None),
        }
    }

    /// The backup's name.
    #[must_use]
    pub fn name(&self) -> String {
        format!("{}-{}", self.realm, self.created)
    }

    /// The names of the backups at a target, oldest first.
    ///
    /// # Errors
    /// When the target does not answer.
    pub async fn names(target: &Target) -> Result<Vec<String>, TargetError> {
        let files = target.list(FOLDER).await?;
        let mut names: Vec<String> = files
            .into_keys()
            .filter_map(|file| file.strip_suffix(ENDING).map(str::to_owned))
            .collect();
        names.sort_by_key(|name| (created_of(name), name.clone()));
        Ok(names)
    }

    /// Reads a backup's manifest; that of the newest if no name is given.
    ///
    /// # Errors
    /// When there is no backup of that name, or its manifest is damaged.
    pub async fn read(target: &Target, name: Option<&str>) -> Result<Self, ManifestError> {
        let name = match name {
            Some(name) => name.to_owned(),
            None => {
                let newest = Self::names(target).await?.pop();
                newest.ok_or_else(|| ManifestError::None(target.to_string()))?
            }
        };
        let piece = path(&name);
        let bytes = target.read(&piece).await?;
        let damaged = || ManifestError::Damaged(piece.clone());
        let text = std::str::from_utf8(&bytes).map_err(|_| damaged())?;
        let (hash, body) = text.split_once('\n').ok_or_else(damaged)?;
        if hash.parse() != Ok(sha256(body.as_bytes())) {
            return Err(damaged());
        }
        let Some(manifest) = Self::decode(body).map_err(|_| damaged())? else {
            let format = serde_json::from_str::<Versioned>(body).map_err(|_| damaged())?.format;
            return Err(ManifestError::Format { name: piece, format });
        };
        if manifest.name() != name {
            return Err(damaged());
        }
        Ok(manifest)
    }

    /// Writes the manifest. The backup exists from here on.
    pub(super) async fn write(&self, target: &Target) -> Result<(), TargetError> {
        let body = serde_json::to_string_pretty(self).expect("invariant: numbers and texts are JSON");
        let text = format!("{}\n{body}", sha256(body.as_bytes()));
        target.write_new(&path(&self.name()), text.into_bytes()).await
    }

    /// Its path at the target.
    #[must_use]
    pub fn path(&self) -> String {
        path(&self.name())
    }

    /// The archives, by shard.
    pub fn archives(&self) -> impl Iterator<Item = (Shard, &ArchiveOfShard)> {
        (0..).map(Shard).zip(&self.shards)
    }

    /// Number of leaves of all shards.
    #[must_use]
    pub fn leaves(&self) -> u64 {
        self.shards.iter().map(|archive| archive.leaves).sum()
    }

    /// The wall time of the newest batch, in ms since 1970.
    #[must_use]
    pub fn latest(&self) -> u64 {
        self.shards
            .iter()
            .map(|archive| archive.latest)
            .max()
            .unwrap_or_default()
    }

    /// Its segments.
    pub fn segments(&self) -> impl Iterator<Item = &SegmentPiece> {
        self.shards.iter().flat_map(|archive| &archive.segments)
    }

    /// Number of its pieces.
    #[must_use]
    pub fn pieces(&self) -> usize {
        self.segments().count() + self.rows.len()
    }

    /// Total size of its pieces, in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        let segments = self.segments().map(|piece| piece.size);
        segments.chain(self.rows.iter().map(|piece| piece.size)).sum()
    }
}

impl From<ManifestOfOneShard> for Manifest {
    fn from(of_one: ManifestOfOneShard) -> Self {
        Self {
            format: of_one.format,
            realm: of_one.realm,
            began: of_one.began,
            created: of_one.created,
            shards: vec![ArchiveOfShard {
                leaves: of_one.leaves,
                root: of_one.root,
                latest: of_one.latest,
                sealed: of_one.sealed,
                segments: of_one.segments,
            }],
            rows: of_one.rows,
        }
    }
}

impl ArchiveOfShard {
    /// The root of the tree over its leaves.
    #[must_use]
    pub fn root(&self) -> Option<Hash> {
        self.root.parse().ok()
    }
}

impl Sealed {
    /// The sealed prefix of this many segments.
    pub(super) fn of(segments: usize, tree: &Frontier, latest: u64) -> Self {
        Self {
            segments,
            leaves: tree.size(),
            peaks: tree.peaks().iter().map(ToString::to_string).collect(),
            latest,
        }
    }

    /// The tree over its leaves; `None` if the peaks form no tree.
    pub(super) fn tree(&self) -> Option<Frontier> {
        let peaks = self.peaks.iter().map(|peak| peak.parse().ok()).collect::<Option<_>>()?;
        Frontier::resume(self.leaves, peaks)
    }
}

impl SegmentPiece {
    pub(super) fn of(segment: &Segment, size: u64) -> Self {
        Self {
            name: segment.name().to_string(),
            first: segment.first.0,
            last: segment.last.0,
            size,
        }
    }

    /// Its path at the target.
    #[must_use]
    pub fn path(&self) -> String {
        format!("segments/{}", self.name)
    }
}

impl RowsPiece {
    /// Its path at the target.
    #[must_use]
    pub fn path(&self) -> String {
        format!("rows/{}", self.name)
    }
}

/// The fields that manifests of every version have.
#[derive(Deserialize)]
struct Versioned {
    format: u32,
}

fn path(name: &str) -> String {
    format!("{FOLDER}/{name}{ENDING}")
}

/// When the backup was begun, according to its name.
fn created_of(name: &str) -> u64 {
    let created = name.rsplit_once('-').and_then(|(_, created)| created.parse().ok());
    created.unwrap_or_default()
}
