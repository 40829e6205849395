//! The prefix of an archive that was verified, and the file that keeps it between two verifications.
//!
//! The file is JSON: the number of leaves, the tree over them, and the head of each log, its last batch with the hash.
//! Before continuing from there, the archive is compared with it: the heads must still be in their places, and the
//! first leaves must have that root.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs, io,
    path::Path,
};

use annals_event::Tail;
use annals_ids::{BatchNumber, Epoch, EventNumber, Hash, OwnerId, Shard};
use annals_proof::Frontier;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::{first::Kept, tree::TreeCheck};

/// Format of the file. Other formats are refused.
const FORM: u32 = 1;

/// The end of a verified log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Head {
    pub(crate) tail: Tail,
    pub(crate) epoch: Epoch,
    /// The epochs that were opened.
    pub(crate) opened: BTreeSet<Epoch>,
}

/// A verified prefix of an archive: the tree, and the head of each log.
#[derive(Clone, Debug)]
pub struct VerifiedPrefix {
    pub(super) shard: Shard,
    pub(super) tree: TreeCheck,
    pub(super) heads: BTreeMap<OwnerId, Head>,
}

/// Why a progress file cannot be used.
#[derive(Debug, Error)]
pub enum PrefixError {
    /// It cannot be read or written.
    #[error("the progress file cannot be read or written")]
    File(#[from] io::Error),
    /// It is not in the format.
    #[error("the file is no progress file; name another, or remove it to start over")]
    Form(#[from] serde_json::Error),
    /// It contradicts itself.
    #[error("the progress file is inconsistent, or is of another version; remove it to start over")]
    Wrong,
}

/// A hash in hexadecimal.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
struct Digits(Hash);

impl TryFrom<String> for Digits {
    type Error = annals_ids::ParseHashError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse().map(Self)
    }
}

impl From<Digits> for String {
    fn from(digits: Digits) -> Self {
        digits.0.to_string()
    }
}

#[derive(Debug, Serialize, Deserialize)]
struct Written {
    form: u32,
    shard: u16,
    leaves: u64,
    peaks: Vec<Digits>,
    open_tiles: Vec<Vec<Digits>>,
    waiting_tiles: Vec<(u8, u64, Digits)>,
    heads: BTreeMap<u32, WrittenHead>,
}

#[derive(Debug, Serialize, Deserialize)]
struct WrittenHead {
    batch: u64,
    hash: Digits,
    event: u64,
    epoch: u64,
    opened: Vec<u64>,
}

impl VerifiedPrefix {
    /// The empty prefix.
    #[must_use]
    pub fn begin(shard: Shard) -> Self {
        Self {
            shard,
            tree: TreeCheck::new(shard),
            heads: BTreeMap::new(),
        }
    }

    /// Adds kept checkpoints: later leaves are compared with them too, earlier ones through the tiles.
    #[must_use]
    pub fn against(mut self, kept: &Kept) -> Self {
        self.tree.keep(kept.heads());
        self
    }

    /// Number of leaves in it.
    #[must_use]
    pub fn leaves(&self) -> u64 {
        self.tree.tree().size()
    }

    /// Reads a file; `None` if there is none.
    ///
    /// # Errors
    /// When it cannot be read or used.
    pub fn read(file: &Path) -> Result<Option<Self>, PrefixError> {
        let bytes = match fs::read(file) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        Self::of(serde_json::from_slice(&bytes)?)
            .ok_or(PrefixError::Wrong)
            .map(Some)
    }

    /// Writes the file atomically: an interruption leaves this or the previous content.
    ///
    /// # Errors
    /// When the disk does not accept it.
    pub fn write(&self, file: &Path) -> Result<(), PrefixError> {
        let beside = file.with_extension("new");
        fs::write(&beside, serde_json::to_vec_pretty(&self.written())?)?;
        Ok(fs::rename(&beside, file)?)
    }

    fn of(written: Written) -> Option<Self> {
        let peaks = written.peaks.into_iter().map(|peak| peak.0).collect();
        let tree = Frontier::resume(written.leaves, peaks).filter(|_| written.form == FORM)?;
        let mut prefix = Self::begin(Shard(written.shard));
        let hashes = |tile: Vec<Digits>| tile.into_iter().map(|digits| digits.0).collect::<Vec<_>>();
        let open: Vec<Vec<Hash>> = written.open_tiles.into_iter().map(hashes).collect();
        let mut left = tree.size();
        for tile in &open {
            if tile.len() as u64 != left % 256 {
                return None;
            }
            left /= 256;
        }
        if left > 0 {
            return None;
        }
        prefix.tree.tree = tree;
        prefix.tree.open = open;
        let waiting = written.waiting_tiles.into_iter();
        prefix.tree.waiting = waiting.map(|(level, index, root)| (level, index, root.0)).collect();
        prefix.heads = written
            .heads
            .into_iter()
            .map(|(owner, head)| (OwnerId(owner), head.read()))
            .collect();
        Some(prefix)
    }

    fn written(&self) -> Written {
        let digits = |hashes: &[Hash]| hashes.iter().copied().map(Digits).collect::<Vec<_>>();
        let waiting = self.tree.waiting.iter();
        Written {
            form: FORM,
            shard: self.shard.0,
            leaves: self.leaves(),
            peaks: digits(self.tree.tree().peaks()),
            open_tiles: self.tree.open.iter().map(|tile| digits(tile)).collect(),
            waiting_tiles: waiting
                .map(|(level, index, root)| (*level, *index, Digits(*root)))
                .collect(),
            heads: self
                .heads
                .iter()
                .map(|(owner, head)| (owner.0, WrittenHead::of(head)))
                .collect(),
        }
    }
}

impl WrittenHead {
    fn of(head: &Head) -> Self {
        Self {
            batch: head.tail.batch.0,
            hash: Digits(head.tail.hash),
            event: head.tail.event.0,
            epoch: head.epoch.0,
            opened: head.opened.iter().map(|epoch| epoch.0).collect(),
        }
    }

    fn read(self) -> Head {
        Head {
            tail: Tail {
                batch: BatchNumber(self.batch),
                hash: self.hash.0,
                event: EventNumber(self.event),
            },
            epoch: Epoch(self.epoch),
            opened: self.opened.into_iter().map(Epoch).collect(),
        }
    }
}
