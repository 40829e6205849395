//! The signer's shell: the only process that holds the key with which a realm's checkpoints are signed. It changes
//! nothing of the realm but what it signs, and reads nothing of it but the archive's tree.

mod folder;
mod signing;
mod stored;

use std::time::Duration;

use annals_ids::Shard;
use annals_proof::{KeyName, key::KeyError};
use thiserror::Error;
use tokio::time::MissedTickBehavior;

pub use folder::{
    FOLDER, Folder, FolderError, NextLog, current_key, keep_note, make_key, make_key_file, make_next_key,
    make_next_log, read_key, read_note,
};
pub use signing::{Refusal, SignError, Signer};
pub use stored::{KEPT, add_cosignatures, covering, key_records, newest, of_size};

use crate::{
    config::Config,
    director::course_ended,
    health::{DiscoveryError, Health, Readiness},
    nats::ConnectError,
    process::{self, FIRST_SHARD, Settings},
    telemetry::Chain,
    waiting::Wait,
};

/// Interval at which a tree that has grown is signed.
const ROUND: Duration = Duration::from_secs(10);

/// Delay before a failed round is tried again.
const AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Why the signer ended.
#[derive(Debug, Error)]
pub enum SignerError {
    /// It could not connect.
    #[error("the realm's bus could not be joined")]
    Connect(#[from] ConnectError),
    /// The bus refused a subscription.
    #[error("cannot subscribe to the signer's subjects on the bus")]
    Listen(#[from] async_nats::SubscribeError),
    /// Service discovery failed.
    #[error("cannot announce the signer on the bus")]
    Announce(#[from] DiscoveryError),
    /// The signer's files cannot be used.
    #[error("the signer's files cannot be used")]
    Folder(#[from] FolderError),
    /// It cannot continue from the last signed checkpoint.
    #[error("the signer cannot continue from what it has signed")]
    Begin(#[from] SignError),
    /// A key cannot have the realm's name.
    #[error("a key cannot be named after the realm: make one with annals checkpoint keygen")]
    Name(#[from] KeyError),
}

/// Default name of the key that the signer of a shard makes when there is none: no real address.
///
/// # Errors
/// When a key cannot have it.
pub fn default_name(realm: &str, shard: Shard) -> Result<KeyName, KeyError> {
    match shard {
        FIRST_SHARD => KeyName::new(&format!("localhost/{realm}")),
        Shard(other) => KeyName::new(&format!("localhost/{realm}/{other}")),
    }
}

/// Runs the signer until the process is asked to stop, or the realm has stopped.
///
/// # Errors
/// When its files or the bus cannot be used.
pub async fn run((settings, health): (&Settings, &Health), config: &Config) -> Result<(), SignerError> {
    let stop = process::stop_signal();
    let folder = Folder::take(&config.data)?;
    let key = match folder.key()? {
        Some(key) => key,
        None => make_key(&config.data, default_name(settings.realm.as_str(), config.shard)?)?,
    };
    tracing::info!(key = %key.verifier(), "signing checkpoints");
    let joining = process::join(settings, "signer");
    let Some(joined) = process::unless_stopped(&stop, joining).await else {
        return Ok(());
    };
    let (bus, subjects) = joined?;
    let mut lifecycle = bus.subscribe(subjects.news("course")).await?;
    let _announcement = process::announce(&bus, settings, "signer", health).await?;
    let signer = Signer::begin(process::remote_store(&bus, &subjects), config.shard, folder, key)?;
    tokio::select! {
        () = sign_all(signer, &health.readiness) => unreachable!("invariant: signing does not end"),
        () = process::stopped(stop) => {}
        () = course_ended(&mut lifecycle) => tracing::info!("the realm is stopped"),
    }
    Ok(())
}

async fn sign_all(mut signer: Signer, readiness: &tokio::sync::watch::Sender<Readiness>) {
    let mut rounds = tokio::time::interval(ROUND);
    rounds.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut wait = Wait::new("the next checkpoint", "retrying");
    loop {
        rounds.tick().await;
        match signer.turn().await {
            Ok(signed) => {
                wait.ends();
                readiness.send_replace(Readiness::Ready);
                if let Some(note) = signed {
                    tracing::debug!(checkpoint = note.text(), "signed");
                }
            }
            Err(error) => {
                let text = Chain(&error).to_string();
                readiness.send_replace(Readiness::Waiting { reason: text.clone() });
                if !error.is_refusal() {
                    // db may not have started yet.
                    rounds.reset_after(AGAIN_AFTER);
                }
                wait.lasts(text);
            }
        }
    }
}
