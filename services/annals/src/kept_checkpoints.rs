//! Checkpoints kept outside a realm, as command-line options.

use std::{fs, io, path::PathBuf};

use annals_audit::verify::{Kept, StrayLeaves};
use annals_db::{ProveError, Prover};
use annals_evidence::{DeclaredLost, Lineage, Wrong};
use annals_host::signer::{FolderError, key_records, read_note};
use annals_ids::{Hash, Shard};
use annals_proof::{Checkpoint, SignedNote, TreeHead, Trust, VerifierKey, checkpoint::Untrusted, key::KeyError};
use annals_store::{Store, StoreError};
use thiserror::Error;

/// Size of a hash in bytes.
const HASH_BYTES: usize = 32;

/// What to hold an archive against.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct KeptCheckpoints {
    /// A signed checkpoint kept elsewhere, to compare the archive with; may be given several times
    #[arg(long, value_name = "FILE", requires = "key")]
    checkpoint: Vec<PathBuf>,
    /// A trusted verifier key of the log; of each log that has signed one of the checkpoints, if several
    #[arg(long, value_name = "KEY", requires = "checkpoint")]
    key: Vec<String>,
    /// The leaf hashes that annals checkpoint show --leaves wrote with one of these checkpoints
    #[arg(long, value_name = "FILE", requires = "checkpoint")]
    leaves: Option<PathBuf>,
    /// The shard of which these checkpoints are
    #[arg(long, value_name = "N", default_value = "0")]
    shard: u16,
}

/// Why kept checkpoints cannot be used.
#[derive(Debug, Error)]
pub(crate) enum KeptError {
    /// A key is invalid.
    #[error("the key cannot be used")]
    Key(#[from] KeyError),
    /// A checkpoint's file cannot be read.
    #[error("the checkpoint cannot be used")]
    File(#[from] FolderError),
    /// The file does not exist.
    #[error("file not found: {}", .0.display())]
    Missing(PathBuf),
    /// It is not signed by the keys.
    #[error("the checkpoint in {} cannot be trusted", file.display())]
    Untrusted {
        /// The file.
        file: PathBuf,
        /// The underlying error.
        source: Untrusted,
    },
    /// The store cannot be read.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// The archive's tree cannot be read.
    #[error("the archive's tree cannot be read")]
    Prove(#[from] ProveError),
    /// The records of keys in the store contradict each other.
    #[error("the store's records of the log's keys cannot be trusted")]
    Records(#[from] Wrong),
    /// The file with the hashes of leaves cannot be read.
    #[error("the hashes of leaves in {} cannot be read", file.display())]
    Leaves {
        /// The file.
        file: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The hashes are of another archive, or of another size.
    #[error(transparent)]
    Stray(#[from] StrayLeaves),
}

impl KeptCheckpoints {
    /// The shard of which the checkpoints are.
    pub(crate) fn shard(&self) -> Shard {
        Shard(self.shard)
    }

    /// The trusted keys.
    fn keys(&self) -> Result<Vec<VerifierKey>, KeyError> {
        self.key.iter().map(|key| key.trim().parse()).collect()
    }

    /// Reads the checkpoints. They can be of several logs, of each of which a key is given.
    fn checkpoints(&self) -> Result<Vec<Checkpoint>, KeptError> {
        let keys = self.keys()?;
        let mut checkpoints = Vec::new();
        for file in &self.checkpoint {
            let note = read_note(file)?.ok_or_else(|| KeptError::Missing(file.clone()))?;
            let trusted = trust_for(&note, &keys).check(&note).map_err(|source| {
                let file = file.clone();
                KeptError::Untrusted { file, source }
            })?;
            checkpoints.push(trusted.checkpoint);
        }
        Ok(checkpoints)
    }

    /// The declarations that batches of these checkpoints are lost, for those that the archive does not continue.
    ///
    /// # Errors
    /// When files or store cannot be read, or are not trusted.
    pub(crate) async fn declared_lost(&self, store: &Store) -> Result<Vec<DeclaredLost>, KeptError> {
        let keys = self.keys()?;
        let mut lost = Vec::new();
        for checkpoint in self.checkpoints()? {
            lost.extend(declared_lost((store, self.shard()), &keys, &checkpoint).await?);
        }
        Ok(lost)
    }

    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be read, or are not trusted.
    pub(crate) fn read(&self) -> Result<Kept, KeptError> {
        let checkpoints = self.checkpoints()?.into_iter();
        let kept = Kept::new(checkpoints.map(|checkpoint| checkpoint.head).collect());
        let Some(file) = &self.leaves else { return Ok(kept) };
        let bytes = fs::read(file).map_err(|source| {
            let file = file.clone();
            KeptError::Leaves { file, source }
        })?;
        let (hashes, rest) = bytes.as_chunks::<HASH_BYTES>();
        let leaves = hashes.len() + usize::from(!rest.is_empty());
        if !rest.is_empty() {
            return Err(StrayLeaves { leaves }.into());
        }
        Ok(kept.with_leaves(hashes.iter().copied().map(Hash).collect())?)
    }
}

/// Trust in a note by these keys: in the log that it states, if one of them has its name, or else in that of the first.
pub(crate) fn trust_for(note: &SignedNote, keys: &[VerifierKey]) -> Trust {
    let stated = note.text().lines().next().unwrap_or_default();
    let named = keys.iter().find(|key| key.name().as_str() == stated).or(keys.first());
    Trust::in_log(named.map_or("", |key| key.name().as_str()), keys)
}

/// The declaration that batches of a checkpoint are lost, if the archive does not continue it and the store has a
/// declaration that follows from one of these keys.
///
/// # Errors
/// When the store cannot be read, or its records of keys are not trusted.
pub(crate) async fn declared_lost(
    (store, shard): (&Store, Shard),
    keys: &[VerifierKey],
    checkpoint: &Checkpoint,
) -> Result<Option<DeclaredLost>, KeptError> {
    let records = key_records(store, shard).await?.into_iter();
    let lineage = Lineage::verify(&records.map(|(_, record)| record).collect::<Vec<_>>())?;
    let lost = lineage.declared_lost(checkpoint);
    let Some(lost) = lost.filter(|_| keys.iter().any(|key| lineage.has_key(key))) else {
        return Ok(None);
    };
    let mut prover = Prover::begin(store.clone(), shard).await?;
    let TreeHead { size, root } = checkpoint.head;
    let has_it = size <= prover.head().size && prover.root(size).await? == root;
    Ok((!has_it).then_some(lost))
}
