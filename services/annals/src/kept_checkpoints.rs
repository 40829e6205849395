//! Checkpoints kept outside a realm, as command-line options.

use std::{fs, io, path::PathBuf};

use annals_audit::verify::{Kept, StrayLeaves};
use annals_host::signer::{FolderError, read_note};
use annals_ids::Hash;
use annals_proof::{Trust, VerifierKey, checkpoint::Untrusted, key::KeyError};
use thiserror::Error;

/// Size of a hash in bytes.
const HASH_BYTES: usize = 32;

/// What to hold an archive against.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct KeptCheckpoints {
    /// A signed checkpoint kept elsewhere, to compare the archive with; may be given several times
    #[arg(long, value_name = "FILE", requires = "key")]
    checkpoint: Vec<PathBuf>,
    /// A trusted verifier key of the log
    #[arg(long, value_name = "KEY", requires = "checkpoint")]
    key: Vec<String>,
    /// The leaf hashes that annals checkpoint show --leaves wrote with one of these checkpoints
    #[arg(long, value_name = "FILE", requires = "checkpoint")]
    leaves: Option<PathBuf>,
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
    /// Reads the files.
    ///
    /// # Errors
    /// When they cannot be read, or are not trusted.
    pub(crate) fn read(&self) -> Result<Kept, KeptError> {
        let keys: Vec<VerifierKey> = self
            .key
            .iter()
            .map(|key| key.trim().parse())
            .collect::<Result<_, _>>()?;
        let trust = Trust {
            origin: keys.first().map(|key| key.name().to_string()).unwrap_or_default(),
            keys,
            witnesses: Vec::new(),
            quorum: 0,
        };
        let mut heads = Vec::new();
        for file in &self.checkpoint {
            let note = read_note(file)?.ok_or_else(|| KeptError::Missing(file.clone()))?;
            let trusted = trust.check(&note).map_err(|source| {
                let file = file.clone();
                KeptError::Untrusted { file, source }
            })?;
            heads.push(trusted.checkpoint.head);
        }
        let kept = Kept::new(heads);
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
