//! What a backup says of itself.
//!
//! A manifest is a text: the SHA-256 of what follows on a line of its own, then JSON. So damage shows, and `tail -n +2 FILE |
//! sha256sum` says the same as the first line.

use annals_ids::{Hash, WallTime};
use annals_proof::Frontier;
use annals_store::segment::{Segment, sha256};
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::target::{Target, TargetError};

/// Where manifests lie.
const FOLDER: &str = "backups";

/// What a manifest's file name ends with.
const ENDING: &str = ".json";

/// The present form of manifests, and of what they list.
const FORMAT: u32 = 1;

/// A backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// The form of all this.
    pub format: u32,
    /// The realm's name.
    pub realm: String,
    /// When the realm began, in ms since 1970.
    pub began: u64,
    /// When the backup was begun, in ms since 1970.
    pub created: u64,
    /// How many leaves of the archive it holds: those of its segments that come before.
    pub leaves: u64,
    /// The root of the Merkle tree over those leaves, in hexadecimal.
    pub root: String,
    /// The wall time of the newest batch, in ms since 1970.
    pub latest: u64,
    /// What of it was sealed in the realm's store: the next backup has it in common.
    pub sealed: Sealed,
    /// Its segments, by their first leaves; those that were sealed first.
    pub segments: Vec<SegmentPiece>,
    /// Its packs of rows.
    pub rows: Vec<RowsPiece>,
}

/// The front of an archive, as far as it is sealed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sealed {
    /// How many segments.
    pub segments: usize,
    /// How many leaves.
    pub leaves: u64,
    /// The roots of the complete subtrees over those leaves, largest first, in hexadecimal.
    pub peaks: Vec<String>,
    /// The latest wall time in them, in ms since 1970.
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
    /// It is not there, or cannot be read.
    #[error("the backup cannot be read")]
    Target(#[from] TargetError),
    /// It was changed.
    #[error("{0} is damaged: it is not what was written")]
    Damaged(String),
    /// It is of another version.
    #[error("{name} has format {format}, and this version reads format {FORMAT}")]
    Format {
        /// Which.
        name: String,
        /// Its format.
        format: u32,
    },
    /// There is none.
    #[error("there is no backup at {0}")]
    None(String),
}

impl Manifest {
    /// Of a backup of which nothing is written.
    pub(super) fn begin(realm: String, began: WallTime, created: WallTime) -> Self {
        Self {
            format: FORMAT,
            realm,
            began: began.0,
            created: created.0,
            leaves: 0,
            root: String::new(),
            latest: 0,
            sealed: Sealed::default(),
            segments: Vec::new(),
            rows: Vec::new(),
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
    /// When it does not answer.
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
    /// When there is none of that name, or it is damaged.
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
        let format = serde_json::from_str::<Versioned>(body).map_err(|_| damaged())?.format;
        if format != FORMAT {
            return Err(ManifestError::Format { name: piece, format });
        }
        let manifest: Self = serde_json::from_str(body).map_err(|_| damaged())?;
        if manifest.name() != name {
            return Err(damaged());
        }
        Ok(manifest)
    }

    /// Writes it: from here on there is this backup.
    pub(super) async fn write(&self, target: &Target) -> Result<(), TargetError> {
        let body = serde_json::to_string_pretty(self).expect("invariant: numbers and texts are JSON");
        let text = format!("{}\n{body}", sha256(body.as_bytes()));
        target.write_new(&path(&self.name()), text.into_bytes()).await
    }

    /// Where its manifest lies.
    #[must_use]
    pub fn path(&self) -> String {
        path(&self.name())
    }

    /// The root of the tree over its leaves.
    #[must_use]
    pub fn root(&self) -> Option<Hash> {
        self.root.parse().ok()
    }

    /// Bytes of all its pieces.
    #[must_use]
    pub fn size(&self) -> u64 {
        let segments = self.segments.iter().map(|piece| piece.size);
        segments.chain(self.rows.iter().map(|piece| piece.size)).sum()
    }
}

impl Sealed {
    /// Such a front, of so many segments.
    pub(super) fn of(segments: usize, tree: &Frontier, latest: u64) -> Self {
        Self {
            segments,
            leaves: tree.size(),
            peaks: tree.peaks().iter().map(ToString::to_string).collect(),
            latest,
        }
    }

    /// The tree over its leaves; `None` if it is none.
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

    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> String {
        format!("segments/{}", self.name)
    }
}

impl RowsPiece {
    /// Where it lies.
    #[must_use]
    pub fn path(&self) -> String {
        format!("rows/{}", self.name)
    }
}

/// As much of a manifest as every version has.
#[derive(Deserialize)]
struct Versioned {
    format: u32,
}

fn path(name: &str) -> String {
    format!("{FOLDER}/{name}{ENDING}")
}

/// When the backup of this name was begun, as the name says.
fn created_of(name: &str) -> u64 {
    let created = name.rsplit_once('-').and_then(|(_, created)| created.parse().ok());
    created.unwrap_or_default()
}
