//! `annals backup`: create, list, verify and restore backups of a realm.

use std::{
    fs,
    io::{self, Write, stdout},
    path::PathBuf,
    process::ExitCode,
    time::{SystemTime, UNIX_EPOCH},
};

use annals_audit::moment::{self, Moment, position};
use annals_host::{
    claim::{Claim, ClaimError},
    config::{Advice, Realm, StoreKind},
    log_source::{KeptRealm, NamedRealm, SourceError},
    nats::ServerCount,
    process::Settings,
    store::{OpenError, open_to_fill},
    telemetry::Chain,
};
use annals_ids::{LogPosition, WallTime};
use thiserror::Error;

use crate::backup::{
    check::check,
    create::{CreateError, create},
    folded::wait_until_folded,
    manifest::{Manifest, ManifestError},
    restore::{RestoreFailed, Restored, Until, restore},
    target::{Target, TargetError},
};

/// Back up a realm, and restore it.
#[derive(Debug, clap::Args)]
pub struct Backup {
    #[command(subcommand)]
    command: Commands,
    /// Target of backups: a folder, or s3://BUCKET/PREFIX
    #[arg(long, global = true, env = "ANNALS_BACKUPS", default_value = "backups")]
    target: String,
}

#[derive(Debug, clap::Subcommand)]
enum Commands {
    /// Back up a realm, live or stopped
    Create {
        #[command(flatten)]
        named: NamedRealm,
        #[command(flatten)]
        kept: KeptRealm,
    },
    /// List the backups at the target, oldest first
    List,
    /// Read and check a whole backup; exit code 1: faults found, 2: not checked
    Verify {
        /// Name of the backup; the newest if omitted
        name: Option<String>,
    },
    /// Restore a realm into an empty store
    Restore {
        /// Name of the backup; the newest if omitted
        name: Option<String>,
        /// Data directory of the restored realm
        #[arg(long)]
        data: PathBuf,
        /// Backend of its store: embedded, or fdb:FILE for the FoundationDB cluster of a cluster file
        #[arg(long, value_name = "WHERE", default_value_t)]
        store: StoreKind,
        /// Name of the restored realm, needed if the old realm continues to run; the name in the backup if omitted
        #[arg(long)]
        realm: Option<Realm>,
        /// Restore up to this moment: the time since the start of the realm as in `annals log tail`, or @SECONDS
        /// since 1970
        #[arg(long, value_parser = moment::read, conflicts_with_all = ["at", "leaves"])]
        moment: Option<Moment>,
        /// Restore up to and including this batch, OWNER@BATCH
        #[arg(long, value_parser = position, conflicts_with = "leaves")]
        at: Option<LogPosition>,
        /// Restore this number of leaves of the archive of a realm of one shard
        #[arg(long)]
        leaves: Option<u64>,
    },
}

/// Why a command failed.
#[derive(Debug, Error)]
enum BackupError {
    #[error("the realm cannot be opened")]
    Source(#[from] SourceError),
    #[error("the backup cannot be opened")]
    Manifest(#[from] ManifestError),
    #[error("the target cannot be used")]
    Target(#[from] TargetError),
    #[error("the backup failed")]
    Create(#[from] CreateError),
    #[error("the restore failed")]
    Restore(#[from] RestoreFailed),
    #[error("the data directory for the restored realm cannot be used")]
    Claim(#[from] ClaimError),
    #[error("{} belongs to a realm: name an empty data directory", .0.display())]
    Occupied(PathBuf),
    #[error("the store cannot be written")]
    Open(#[from] OpenError),
    #[error("the restored realm cannot take the name in the backup; give another one with --realm")]
    Name(#[source] Advice),
    #[error("{} cannot be used", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("standard output cannot be written")]
    Print(#[from] io::Error),
}

impl Backup {
    /// Runs the command.
    pub async fn run(self) -> ExitCode {
        match self.work().await {
            Ok(code) => code,
            Err(BackupError::Print(error)) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("{}", Chain(&error));
                ExitCode::from(2)
            }
        }
    }

    async fn work(self) -> Result<ExitCode, BackupError> {
        let target = Target::open(&self.target)?;
        match self.command {
            Commands::Create { named, kept } => create_one(&target, named.settings(), &kept).await?,
            Commands::List => list(&target).await?,
            Commands::Verify { name } => {
                let manifest = Manifest::read(&target, name.as_deref()).await?;
                let report = check(&target, &manifest).await?;
                writeln!(stdout(), "{report}")?;
                if !report.is_clean() {
                    return Ok(ExitCode::FAILURE);
                }
            }
            Commands::Restore {
                name,
                data,
                store,
                realm,
                moment,
                at,
                leaves,
            } => {
                let manifest = Manifest::read(&target, name.as_deref()).await?;
                let until = match (moment, at, leaves) {
                    (Some(moment), ..) => Until::Moment(moment.wall(WallTime(manifest.began))),
                    (None, Some(at), _) => Until::Batch(at),
                    (None, None, Some(leaves)) => Until::Leaves(leaves),
                    (None, None, None) => Until::End,
                };
                let place = Restoration {
                    realm: match realm {
                        Some(realm) => realm,
                        None => manifest.realm.parse().map_err(BackupError::Name)?,
                    },
                    data,
                    store,
                };
                let restored = place.restore(&target, &manifest, until).await?;
                place.print(&restored)?;
            }
        }
        Ok(ExitCode::SUCCESS)
    }
}

async fn create_one(target: &Target, settings: Settings, kept: &KeptRealm) -> Result<(), BackupError> {
    let source = kept.stored(&settings).await?;
    if let Some(note) = wait_until_folded(&source).await? {
        eprintln!("note: {note}");
    }
    let realm = match kept.data {
        Some(_) => source.realm_name(&settings.realm).await?,
        None => settings.realm,
    };
    let created = create(&source.store, realm.as_str(), now(), target).await?;
    let manifest = &created.manifest;
    writeln!(
        stdout(),
        "backup {}: {} leaves in {} pieces of {} B; {} of them written ({} B), {} were there",
        manifest.name(),
        manifest.leaves(),
        manifest.pieces(),
        manifest.size(),
        created.written,
        created.bytes,
        created.reused
    )?;
    Ok(())
}

async fn list(target: &Target) -> Result<(), BackupError> {
    for name in Manifest::names(target).await? {
        match Manifest::read(target, Some(&name)).await {
            Ok(manifest) => writeln!(
                stdout(),
                "{name}  {} leaves up to @{}.{:03}  {} pieces of {} B",
                manifest.leaves(),
                manifest.latest() / 1_000,
                manifest.latest() % 1_000,
                manifest.pieces(),
                manifest.size()
            )?,
            Err(ManifestError::Target(error)) => return Err(error.into()),
            Err(error) => writeln!(stdout(), "{name}  WRONG: {}", Chain(&error))?,
        }
    }
    Ok(())
}

/// The destination of a restoration.
struct Restoration {
    realm: Realm,
    data: PathBuf,
    store: StoreKind,
}

impl Restoration {
    /// Restores the backup. An interrupted restoration leaves a store that is marked as unfinished and is restarted by
    /// the next.
    ///
    /// # Errors
    /// When there is a realm, or the remains of one; when the backup is damaged; when the disk is full.
    async fn restore(&self, target: &Target, manifest: &Manifest, until: Until) -> Result<Restored, BackupError> {
        fs::create_dir_all(&self.data).map_err(|source| BackupError::Folder {
            path: self.data.clone(),
            source,
        })?;
        let _claim = Claim::take(&self.data)?;
        // Batches in a stream beyond the old realm's archive would be taken for a continuation of the restored one.
        let nats = self.data.join("nats");
        if ServerCount::kept_in(&nats).is_some() {
            return Err(BackupError::Occupied(nats));
        }
        let filled = open_to_fill(&self.store, &self.data, &self.realm).await?;
        Ok(restore(target, manifest, until, (self.realm.as_str(), now()), filled).await?)
    }

    fn print(&self, restored: &Restored) -> io::Result<()> {
        for (at, state) in restored.states.values() {
            writeln!(stdout(), "{at} {state}")?;
        }
        if restored.leaves != restored.wanted {
            writeln!(
                stdout(),
                "note: {} leaves were asked for; the nearest consistent cut is at {}",
                restored.wanted,
                restored.leaves
            )?;
        }
        let store = match &self.store {
            StoreKind::Embedded => String::new(),
            elsewhere @ StoreKind::FoundationDb(_) => format!(" --store {elsewhere}"),
        };
        writeln!(
            stdout(),
            "restored {}: {} leaves ({} B) as realm {realm}; start it with annals up --realm {realm} --data {}{store}",
            restored.backup,
            restored.leaves,
            restored.bytes,
            self.data.display(),
            realm = self.realm,
        )
    }
}

fn now() -> WallTime {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    WallTime(u64::try_from(since.as_millis()).unwrap_or(u64::MAX))
}
