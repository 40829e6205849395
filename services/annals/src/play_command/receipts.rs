//! Receipts of trades for the players, each checked by `annals-verify` as its receiver would.

use std::{
    fs, io,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use annals_audit::IndexError;
use annals_console::casework::{Casework, NoAnswer};
use annals_host::{
    log_source::{KeptRealm, SourceError},
    process::{FIRST_SHARD, Settings},
    signer::key_records,
};
use annals_ids::TradeId;
use annals_store::{Store, StoreError};
use serde::Serialize;
use thiserror::Error;
use tokio::{process::Command, sync::Mutex, time::timeout};

use crate::up::sibling;

/// Maximum time of `annals-verify`.
const VERIFIED_WITHIN: Duration = Duration::from_secs(20);

/// What makes receipts of a realm. It connects with the first one.
pub(crate) struct Receipts {
    settings: Settings,
    folder: PathBuf,
    opened: Mutex<Option<(Arc<Casework>, Store)>>,
}

/// A receipt, and what `annals-verify` says of it.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CheckedReceipt {
    text: String,
    /// The file in which it was written.
    file: String,
    /// The check, as a command line.
    command: String,
    is_accepted: bool,
    said: String,
}

/// Why there is no receipt.
#[derive(Debug, Error)]
pub(crate) enum NoReceipt {
    #[error("the realm cannot be read")]
    Source(#[from] SourceError),
    #[error("the index of the archive cannot be opened")]
    Index(#[from] IndexError),
    /// Among others: the signer has not signed the trade's batch.
    #[error(transparent)]
    None(#[from] NoAnswer),
    #[error("the realm's key cannot be read")]
    Key(#[from] StoreError),
    #[error("the realm has no key; it runs without a signer")]
    NoKey,
    #[error("the receipt cannot be written to {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} cannot be run; build it first: cargo build --release", program.display())]
    Verifier {
        program: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("annals-verify has no verdict after {} s", VERIFIED_WITHIN.as_secs())]
    Slow,
}

impl NoReceipt {
    /// Whether it may exist if it is asked for again soon.
    pub(crate) fn may_come(&self) -> bool {
        matches!(
            self,
            Self::None(NoAnswer::Verifying { .. } | NoAnswer::Unavailable(_) | NoAnswer::Nothing(_))
        )
    }
}

impl Receipts {
    /// Those of the realm with these settings, whose files are in this folder.
    pub(crate) fn new(settings: Settings, folder: PathBuf) -> Self {
        Self {
            settings,
            folder,
            opened: Mutex::default(),
        }
    }

    /// The receipt of a settled trade.
    pub(crate) async fn receipt(&self, id: TradeId) -> Result<CheckedReceipt, NoReceipt> {
        let (casework, store) = self.open().await?;
        let text = casework.receipt(id).await?;
        let keys = key_records(&store, FIRST_SHARD).await?;
        let key = keys.last().ok_or(NoReceipt::NoKey)?.1.key.to_string();
        let name = id.to_string().replace('/', "-");
        let file = self.folder.join(format!("receipt-{name}.txt"));
        fs::write(&file, &text).map_err(|source| NoReceipt::Write {
            path: file.clone(),
            source,
        })?;
        let (is_accepted, said) = verify(&file, &key).await?;
        Ok(CheckedReceipt {
            text,
            command: format!("annals-verify {} --key {key}", file.display()),
            file: file.display().to_string(),
            is_accepted,
            said,
        })
    }

    async fn open(&self) -> Result<(Arc<Casework>, Store), NoReceipt> {
        let mut opened = self.opened.lock().await;
        if let Some((casework, store)) = &*opened {
            return Ok((Arc::clone(casework), store.clone()));
        }
        let source = KeptRealm::default().stored(&self.settings).await?;
        let store = source.store.clone();
        let casework = Casework::open(source, &self.folder.join("index")).await?;
        *opened = Some((Arc::clone(&casework), store.clone()));
        Ok((casework, store))
    }
}

/// Runs `annals-verify` on a receipt; returns whether it accepts it, and its output.
async fn verify(receipt: &Path, key: &str) -> Result<(bool, String), NoReceipt> {
    let program = sibling("annals-verify");
    let mut command = Command::new(&program);
    command.arg(receipt).args(["--key", key]);
    let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = timeout(VERIFIED_WITHIN, running).await.map_err(|_| NoReceipt::Slow)?;
    let output = output.map_err(|source| NoReceipt::Verifier { program, source })?;
    let said = [output.stdout, output.stderr].concat();
    Ok((output.status.success(), String::from_utf8_lossy(&said).into_owned()))
}
