//! The source of a realm's log: a live realm, or an offline data directory.
//!
//! Reading changes nothing. A data directory's nats-server store, which has what db has not archived, is copied, and a
//! server is started on the copy: a server on the original would tidy it up.

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use crate::{
    claim::{Claim, ClaimError},
    config::{Advice, CertificateFiles, Realm, StoreKind},
    log::{History, ReadError, Reading},
    nats::{Access, Bus, ConnectError, ServerCount, ServerError, ServerOptions, Servers, StreamError},
    process::{FIRST_SHARD, Settings, connect, remote_store},
    store::{self, OpenError},
};
use annals_db::{RecoveryError, read_archived, read_records, read_schema, read_shards};
use annals_def::Schema;
use annals_director::read_owners;
use annals_event::{FrozenBatch, Header};
use annals_ids::{BatchNumber, Epoch, Hash, OwnerId, Shard, WallTime};
use annals_node::{
    chain::{Hole, assemble},
    writer::{Opening, Tip},
};
use annals_store::{
    ScanOrder, Store, StoreError, Transaction, embedded,
    layout::{
        director,
        lineage::{self, Lineage},
        owners::{self, Cursor, OpeningRecord},
        shards,
    },
};
use annals_wire::Subjects;
use tempfile::TempDir;
use thiserror::Error;

/// Maximum reads of a log that loses its tail meanwhile, or whose server has no leader or is busy.
const READINGS: usize = 10;

/// Pause between two reads.
const AGAIN_AFTER: Duration = Duration::from_millis(250);

/// Which realm a command is about.
#[derive(Clone, Debug, clap::Args)]
pub struct NamedRealm {
    /// Name of the realm
    #[arg(long, global = true, env = "ANNALS_REALM", default_value = "annals")]
    realm: Realm,
    /// The realm's nats-server
    #[arg(long, global = true, env = "ANNALS_NATS", default_value = "nats://127.0.0.1:4222")]
    nats: String,
    /// File with USER:PASSWORD for the nats-server
    #[arg(long, global = true, env = "ANNALS_NATS_CREDENTIALS", value_name = "FILE")]
    nats_credentials: Option<PathBuf>,
    /// Certificates of the authorities that sign the nats-server's, in PEM form; with it, TLS is required
    #[arg(long, global = true, env = "ANNALS_NATS_CA", value_name = "FILE")]
    nats_ca: Option<PathBuf>,
    /// Certificate chain for the nats-server, in PEM form
    #[arg(
        long,
        global = true,
        env = "ANNALS_NATS_CERTIFICATE",
        value_name = "FILE",
        requires = "nats_key"
    )]
    nats_certificate: Option<PathBuf>,
    /// The private key of --nats-certificate in PEM form
    #[arg(
        long,
        global = true,
        env = "ANNALS_NATS_KEY",
        value_name = "FILE",
        requires = "nats_certificate"
    )]
    nats_key: Option<PathBuf>,
}

impl NamedRealm {
    /// The settings to connect to it. Commands that read a realm create no streams, so they do not need replicas.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            realm: self.realm.clone(),
            nats: self.nats.clone(),
            access: Access {
                credentials: self.nats_credentials.clone(),
                authority: self.nats_ca.clone(),
                certificate: self
                    .nats_certificate
                    .clone()
                    .zip(self.nats_key.clone())
                    .map(|(chain, key)| CertificateFiles { chain, key }),
            },
            replicas: 1,
        }
    }
}

/// Where a realm that does not run has kept what it has, if it is to be read there.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct KeptRealm {
    /// Read the data directory of an offline realm instead of a live realm
    #[arg(long, global = true)]
    pub data: Option<PathBuf>,
    /// Backend of that realm's store: embedded, or fdb:FILE for the FoundationDB cluster of a cluster file; defaults
    /// to ANNALS_STORE if that is set, else to embedded
    #[arg(long, global = true, value_name = "WHERE")]
    pub store: Option<StoreKind>,
}

impl KeptRealm {
    /// The offline realm in the data directory, or the live one that `settings` name.
    ///
    /// # Errors
    /// When there is none, or it cannot be read.
    pub async fn source(&self, settings: &Settings) -> Result<Source, SourceError> {
        match &self.data {
            Some(data) => Source::directory(data, &self.place()?, &settings.realm).await,
            None => self.running(settings).await,
        }
    }

    /// The offline realm, with the log on the live nats-servers that `settings` name if the data directory has none of
    /// its own: the log of a realm of which no process runs.
    ///
    /// # Errors
    /// As [`Self::source`].
    pub async fn source_with_log(&self, settings: &Settings) -> Result<Source, SourceError> {
        let mut source = self.source(settings).await?;
        if source.logs.is_empty() {
            let (bus, _) = connect(settings, "log").await?;
            source.logs = find_logs(&bus, &settings.realm, source.shards().await?).await?;
        }
        Ok(source)
    }

    /// As [`Self::source`], with the store only.
    ///
    /// # Errors
    /// As there.
    pub async fn stored(&self, settings: &Settings) -> Result<Source, SourceError> {
        match &self.data {
            Some(data) => Source::stored(data, &self.place()?, &settings.realm).await,
            None => self.running(settings).await,
        }
    }

    /// The store of a live realm is read through db, wherever it is.
    async fn running(&self, settings: &Settings) -> Result<Source, SourceError> {
        match self.store {
            None | Some(StoreKind::Embedded) => Source::running(settings).await,
            Some(StoreKind::FoundationDb(_)) => Err(SourceError::StoreWithoutData),
        }
    }

    /// Whether the store is on a cluster and is not read through db.
    ///
    /// # Errors
    /// When the environment variable is not valid.
    pub fn is_on_cluster(&self) -> Result<bool, SourceError> {
        let is = |place: &StoreKind| matches!(place, StoreKind::FoundationDb(_));
        match &self.data {
            Some(_) => self.place().map(|place| is(&place)),
            None => Ok(self.store.as_ref().is_some_and(is)),
        }
    }

    /// The store that the realm's services were configured with. The variable does not apply to a live realm.
    fn place(&self) -> Result<StoreKind, SourceError> {
        match (&self.store, std::env::var("ANNALS_STORE")) {
            (Some(named), _) => Ok(named.clone()),
            (None, Ok(said)) => said.parse().map_err(SourceError::Variable),
            (None, Err(_)) => Ok(StoreKind::default()),
        }
    }
}

/// Why there is no log to read.
#[derive(Debug, Error)]
pub enum SourceError {
    /// A store was given without a data directory.
    #[error("--store applies to an offline realm: name its data directory too, with --data")]
    StoreWithoutData,
    /// The environment variable is not valid.
    #[error("ANNALS_STORE cannot be used")]
    Variable(#[source] Advice),
    /// It could not connect.
    #[error("the realm cannot be reached; for an offline realm, name its data directory with --data")]
    Connect(#[from] ConnectError),
    /// The stream does not answer.
    #[error("the realm's log cannot be read")]
    Stream(#[from] StreamError),
    /// A log of the stream does not answer.
    #[error("the realm's log cannot be read")]
    Log(#[from] ReadError),
    /// The server has no log of that realm.
    #[error("the nats-server on {nats} has no log of a realm {realm}: name the realm with --realm")]
    NoLog {
        /// The server's address.
        nats: String,
        /// The realm.
        realm: Realm,
    },
    /// The realm does not have that shard.
    #[error("the realm has no shard {shard}: its shards are 0 to {}; name one of them with --shard", count - 1)]
    NoShard {
        shard: Shard,
        /// Number of the realm's shards.
        count: u16,
    },
    /// The folder is not a realm's data directory.
    #[error("{} is not the data directory of a realm: there is no store in it", .0.display())]
    NoRealm(PathBuf),
    /// The cluster has no such realm.
    #[error("there is no realm {realm} on {store}: name the realm with --realm")]
    NoSuchRealm {
        /// The realm.
        realm: Realm,
        /// The cluster.
        store: StoreKind,
    },
    /// A live realm uses it.
    #[error("{} is in use by a live realm; read its log with --nats {nats} instead of --data", data.display())]
    InUse {
        /// The data directory.
        data: PathBuf,
        /// The address of the realm's nats-server, as far as the directory has it.
        nats: String,
    },
    /// The data directory could not be claimed, so a realm could start on it meanwhile.
    #[error(transparent)]
    Claim(ClaimError),
    /// The store cannot be opened.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The store cannot be read.
    #[error("the store cannot be read")]
    Store(#[from] StoreError),
    /// The archive cannot be read.
    #[error("the archive cannot be read")]
    Archive(#[from] RecoveryError),
    /// The nats-server's store cannot be copied.
    #[error("the nats-server's store in {} cannot be copied to a temporary folder (TMPDIR says where)", path.display())]
    Copy {
        /// The path.
        path: PathBuf,
        /// The cause.
        #[source]
        source: io::Error,
    },
    /// No nats-server could be started on the copy.
    #[error("no nats-server could be started on a copy of {}", path.display())]
    Serve {
        /// The path of the original.
        path: PathBuf,
        /// The cause.
        #[source]
        source: ServerError,
    },
}

/// Why the log beyond the archive could not be read.
#[derive(Debug, Error)]
pub enum BeyondError {
    /// The stream could not be read.
    #[error("the log beyond the archive could not be read")]
    Log(#[from] ReadError),
    /// The store could not be read.
    #[error("the openings could not be read")]
    Store(#[from] StoreError),
    /// Batches are missing.
    #[error(transparent)]
    Hole(#[from] Hole),
}

/// A realm's start and definitions, as its store has them.
#[derive(Debug)]
pub struct About {
    /// When it began.
    pub began: WallTime,
    /// Its present definitions.
    pub schema: Schema,
    /// Its earlier definitions: batches name those under which they were written.
    pub former: Vec<Schema>,
}

impl About {
    /// All definitions that it has had, by their fingerprints.
    #[must_use]
    pub fn schemas(self) -> BTreeMap<Hash, Schema> {
        let all = self.former.into_iter().chain([self.schema]);
        all.map(|schema| (schema.fingerprint(), schema)).collect()
    }
}

/// A realm's log, open for reading.
pub struct Source {
    /// The archive and everything else in the store.
    pub store: Store,
    /// The streams of the shards that have a log beyond the archive.
    pub logs: BTreeMap<Shard, History>,
    /// The realm's bus, if the realm is live.
    pub live: Option<(Bus, Subjects)>,
    /// A message about where the log ends, if that is earlier than expected.
    pub note: Option<String>,
    /// Serves the history while it is read.
    _copy: Option<ServedCopy>,
    /// Keeps realms from starting on a data directory that is being read.
    _claim: Option<Claim>,
}

/// Nats-servers on copies of store folders. They are stopped before the copies are removed.
struct ServedCopy {
    servers: Servers,
    _folder: TempDir,
}

impl Source {
    /// A source of the archive in a store only.
    #[must_use]
    pub fn archive(store: Store) -> Self {
        Self {
            store,
            logs: BTreeMap::new(),
            live: None,
            note: None,
            _copy: None,
            _claim: None,
        }
    }

    /// A source on a live realm.
    ///
    /// # Errors
    /// When it cannot be reached.
    pub async fn running(settings: &Settings) -> Result<Self, SourceError> {
        let (bus, subjects) = connect(settings, "log").await?;
        let none = || SourceError::NoLog {
            nats: settings.nats.clone(),
            realm: settings.realm.clone(),
        };
        // Without a log there is no db either, and a read of the store would wait for it.
        let first = History::find(&bus, settings.realm.as_str(), FIRST_SHARD)
            .await?
            .ok_or_else(none)?;
        let mut source = Self::archive(remote_store(&bus, &subjects));
        source.logs = find_logs(&bus, &settings.realm, source.shards().await?).await?;
        source.logs.insert(FIRST_SHARD, first);
        source.live = Some((bus, subjects));
        Ok(source)
    }

    /// A source on the data directory of a realm that does not run: its store, and what its private nats-server's store
    /// has beyond. An embedded store gives the realm's name once anything is archived; on a cluster the name must be
    /// given.
    ///
    /// # Errors
    /// When it is not a data directory, when a realm runs on it, or when it cannot be read.
    pub async fn directory(data: &Path, store: &StoreKind, realm: &Realm) -> Result<Self, SourceError> {
        let mut source = Self::stored(data, store, realm).await?;
        let kept = data.join("nats");
        let Some(count) = ServerCount::kept_in(&kept) else {
            source.note = Some("there is no nats-server's store beside it: this is the archive alone".to_owned());
            return Ok(source);
        };
        let place = (source.realm_name(realm).await?, source.shards().await?);
        let (copy, logs) = match serve_copy(&kept, count, place).await {
            Ok(served) => served,
            Err(SourceError::Serve { source: reason, .. }) if is_without_program(&reason) => {
                source.note = Some(format!("this is the archive alone: {reason}"));
                return Ok(source);
            }
            Err(other) => return Err(other),
        };
        if logs.is_empty() {
            source.note = Some("its nats-server's store has no log of the realm: this is the archive alone".to_owned());
        }
        source.logs = logs;
        source._copy = Some(copy);
        Ok(source)
    }

    /// A source on the store only of a realm that does not run.
    ///
    /// # Errors
    /// As [`Self::directory`].
    pub async fn stored(data: &Path, store: &StoreKind, realm: &Realm) -> Result<Self, SourceError> {
        // Opening would create it.
        if *store == StoreKind::Embedded && !data.join("store/rows").is_dir() {
            return Err(SourceError::NoRealm(data.to_owned()));
        }
        let in_use = || SourceError::InUse {
            data: data.to_owned(),
            nats: served_at(data),
        };
        let claim = Claim::take(data).map_err(|error| match error {
            ClaimError::Taken { .. } => in_use(),
            other => SourceError::Claim(other),
        })?;
        let opened = match store::open(store, data, realm).await {
            Ok(opened) => opened,
            Err(OpenError::Embedded(embedded::OpenError::Held { .. })) => return Err(in_use()),
            Err(other) => return Err(other.into()),
        };
        let mut source = Self::archive(opened);
        source._claim = Some(claim);
        // On a cluster every name opens a store, possibly an empty one.
        if matches!(store, StoreKind::FoundationDb(_)) && source.about().await?.is_none() {
            return Err(SourceError::NoSuchRealm {
                realm: realm.clone(),
                store: store.clone(),
            });
        }
        Ok(source)
    }

    /// The realm's start and definitions; `None` if it never began.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn about(&self) -> Result<Option<About>, SourceError> {
        let read = |transaction: Transaction| async move { transaction.snapshot().get(&director::realm_key()).await };
        let Some(value) = self.store.read(read).await? else {
            return Ok(None);
        };
        let realm = director::Realm::decode(&value)?;
        let schema = read_schema(&self.store, realm.schema).await?;
        let mut former = Vec::new();
        for record in read_records(&self.store).await? {
            former.push(read_schema(&self.store, record.from).await?);
        }
        Ok(Some(About {
            began: realm.began,
            schema,
            former,
        }))
    }

    /// Number of the realm's shards.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn shards(&self) -> Result<u16, StoreError> {
        read_shards(&self.store).await
    }

    /// Refuses a shard that the realm does not have, which would look like an empty archive.
    ///
    /// # Errors
    /// When there is none of that number, or the store cannot be read.
    pub async fn require_shard(&self, shard: Shard) -> Result<(), SourceError> {
        match self.shards().await? {
            count if shard.0 < count => Ok(()),
            count => Err(SourceError::NoShard { shard, count }),
        }
    }

    /// Reads the log of an owner on a shard to its end, if there is one beside the archive. Use the same `reading` to read
    /// on later.
    ///
    /// # Errors
    /// When the stream does not answer.
    pub async fn read_log(&self, (shard, owner): (Shard, OwnerId), reading: &mut Reading) -> Result<(), ReadError> {
        let Some(history) = self.logs.get(&shard) else {
            return Ok(());
        };
        for _ in 1..READINGS {
            match history.read(owner, reading).await {
                Err(ReadError::Shrunk { .. }) => *reading = Reading::default(),
                Err(ReadError::Silent { .. } | ReadError::Failed { .. }) => {}
                Ok(()) => return Ok(()),
            }
            tokio::time::sleep(AGAIN_AFTER).await;
        }
        history.read(owner, reading).await
    }

    /// What an owner's log has beyond its archive, as a take-over would find it (rule E1): `archived` is where the
    /// archive ended after the log was read, so that it includes everything trimmed meanwhile.
    ///
    /// # Errors
    /// When something is missing, or the store does not answer.
    pub async fn beyond(
        &self,
        owner: OwnerId,
        archived: Cursor,
        reading: &Reading,
    ) -> Result<Vec<FrozenBatch>, BeyondError> {
        let tip = Tip {
            number: archived.batch,
            hash: archived.hash,
        };
        let openings: Vec<Opening> = read_openings(&self.store, owner)
            .await?
            .into_iter()
            .map(|OpeningRecord { epoch, number, hash }| Opening { epoch, number, hash })
            .collect();
        let chain = assemble(owner, tip, &openings, reading.batches.iter().cloned(), reading.last)?;
        Ok(chain.beyond)
    }

    /// The name of the realm: from its last restore, else from its first archived batch.
    ///
    /// # Errors
    /// When the store cannot be read.
    pub async fn realm_name(&self, otherwise: &Realm) -> Result<Realm, SourceError> {
        let last = |transaction: Transaction| async move {
            let range = lineage::restorations();
            let page = transaction.get_range(&range, 1, ScanOrder::Reverse).await?;
            page.rows.first().map(|(_, value)| Lineage::decode(value)).transpose()
        };
        let restored: Option<Lineage> = self.store.read(last).await?;
        if let Some(name) = restored.and_then(|lineage| lineage.to.parse().ok()) {
            return Ok(name);
        }
        for (owner, record) in read_owners(&self.store).await? {
            let first = match read_archived(&self.store, record.shard, owner, BatchNumber(0), 1).await {
                Ok(first) => first,
                // Errors of the archive are reported elsewhere.
                Err(RecoveryError::Missing { .. }) => continue,
                Err(other) => return Err(other.into()),
            };
            let header = first.first().and_then(|(_, bytes)| Header::read(bytes.header()).ok());
            if let Some(name) = header.and_then(|(header, _)| header.realm.parse().ok()) {
                return Ok(name);
            }
        }
        Ok(otherwise.clone())
    }
}

/// All openings of an owner in the store, by epoch.
///
/// # Errors
/// When the store cannot be read.
pub async fn read_openings(store: &Store, owner: OwnerId) -> Result<Vec<OpeningRecord>, StoreError> {
    store
        .read(|transaction| async move { owners::read_openings(&transaction, owner, Epoch(0)).await })
        .await
}

/// The streams that there are, of a realm that has so many shards.
async fn find_logs(bus: &Bus, realm: &Realm, count: u16) -> Result<BTreeMap<Shard, History>, StreamError> {
    let mut logs = BTreeMap::new();
    for shard in shards::all(count) {
        if let Some(history) = History::find(bus, realm.as_str(), shard).await? {
            logs.insert(shard, history);
        }
    }
    Ok(logs)
}

/// Starts nats-servers on copies of the stores in `kept`, and looks up the logs of a realm with so many shards there.
async fn serve_copy(
    kept: &Path,
    count: ServerCount,
    (realm, shards): (Realm, u16),
) -> Result<(ServedCopy, BTreeMap<Shard, History>), SourceError> {
    let failed = |source| SourceError::Copy {
        path: kept.to_owned(),
        source,
    };
    let folder = TempDir::with_prefix("annals-log-").map_err(failed)?;
    for store in stores(count) {
        copy_folder(&kept.join(&store), &folder.path().join(&store)).map_err(failed)?;
    }
    let servers = Servers::start(&ServerOptions::new(folder.path()), count).await;
    let servers = servers.map_err(|source| SourceError::Serve {
        path: kept.to_owned(),
        source,
    })?;
    let copy = ServedCopy {
        servers,
        _folder: folder,
    };
    let bus = Bus::connect(&copy.servers.url(), "annals-log").await?;
    let logs = find_logs(&bus, &realm, shards).await?;
    Ok((copy, logs))
}

/// The store folders of `count` nats-servers, below their common folder.
fn stores(count: ServerCount) -> Vec<PathBuf> {
    match count {
        ServerCount::One => vec![PathBuf::from("store")],
        ServerCount::Three => ["n1", "n2", "n3"].map(|name| Path::new(name).join("store")).into(),
    }
}

fn copy_folder(from: &Path, to: &Path) -> io::Result<()> {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}

fn is_without_program(error: &ServerError) -> bool {
    matches!(error, ServerError::Binary(_))
}

/// The addresses of a data directory's own nats-servers, by their configurations; else a form for the operator to fill.
fn served_at(data: &Path) -> String {
    let kept = data.join("nats");
    let port = |store: PathBuf| {
        let configuration = fs::read_to_string(kept.join(store.with_file_name("nats.conf"))).ok()?;
        let port = configuration.lines().find_map(|line| line.strip_prefix("port: "))?;
        Some(format!("nats://127.0.0.1:{port}"))
    };
    let stores = stores(ServerCount::kept_in(&kept).unwrap_or_default());
    let addresses: Option<Vec<String>> = stores.into_iter().map(port).collect();
    addresses.map_or_else(|| "nats://HOST:PORT".to_owned(), |addresses| addresses.join(","))
}
