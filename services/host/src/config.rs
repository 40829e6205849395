//! Settings of an operator: by file, environment or flag, each overriding the one before, checked once at start.
//! Everything else is a constant. The same settings serve every service:
//!
//! ```toml
//! realm = "aldmoor"                    # ANNALS_REALM         --realm
//! nats = "nats://127.0.0.1:4222"       # ANNALS_NATS          --nats
//! nats_credentials = "/etc/annals/cell.nats"  # ANNALS_NATS_CREDENTIALS  --nats-credentials
//! nats_ca = "/etc/annals/ca.pem"       # ANNALS_NATS_CA       --nats-ca
//! nats_certificate = "/etc/annals/nats.pem"  # ANNALS_NATS_CERTIFICATE  --nats-certificate
//! nats_key = "/etc/annals/nats.key"    # ANNALS_NATS_KEY      --nats-key
//! nats_system = "/etc/annals/system"   # ANNALS_NATS_SYSTEM   --nats-system
//! replicas = 3                         # ANNALS_REPLICAS      --replicas
//! world = "/srv/aldmoor/defs"          # ANNALS_WORLD         --world
//! data = "/var/lib/annals"             # ANNALS_DATA          --data
//! store = "embedded"                   # ANNALS_STORE         --store
//! listen = "0.0.0.0:7700"              # ANNALS_LISTEN        --listen
//! advertise = "play.example.org:7700"  # ANNALS_ADVERTISE     --advertise
//! certificate = "/etc/annals/play.pem" # ANNALS_CERTIFICATE   --certificate
//! key = "/etc/annals/play.key"         # ANNALS_KEY           --key
//! web_origins = ["https://aldmoor.example"] # ANNALS_WEB_ORIGINS  --web-origins
//! outbound = "/etc/annals/outbound.toml" # ANNALS_OUTBOUND    --outbound
//! downloads = "/srv/annals/downloads" # ANNALS_DOWNLOADS      --downloads
//! download_bandwidth = 100000         # ANNALS_DOWNLOAD_BANDWIDTH --download-bandwidth
//! threads = 1                          # ANNALS_THREADS       --threads
//! acknowledged = "log"                 # ANNALS_ACKNOWLEDGED  --acknowledged
//! shards = 1                           # ANNALS_SHARDS        --shards
//! fold = "all"                         # ANNALS_FOLD          --fold
//! shard = 0                            # ANNALS_SHARD         --shard
//! archive_period = 300                 # ANNALS_ARCHIVE_PERIOD  --archive-period
//! client_bandwidth = 100000            # ANNALS_CLIENT_BANDWIDTH  --client-bandwidth
//! duplicate_login = "replace"          # ANNALS_DUPLICATE_LOGIN   --duplicate-login
//! authentication = "built-in"          # ANNALS_AUTHENTICATION    --authentication
//! account_creation = "open"            # ANNALS_ACCOUNT_CREATION  --account-creation
//! max_players = 5000                   # ANNALS_MAX_PLAYERS   --max-players
//! exempt_accounts = ["gm-ann"]         # ANNALS_EXEMPT_ACCOUNTS  --exempt-accounts
//! keep_cell_events = "90d"             # ANNALS_KEEP_CELL_EVENTS  --keep-cell-events
//! spaces = ["1 extent=200", "2"]       # ANNALS_SPACES        --spaces
//! http = "127.0.0.1:9464"              # ANNALS_HTTP          --http
//! otlp = "http://127.0.0.1:4318"       # ANNALS_OTLP          --otlp
//! trace_ratio = 0.01                   # ANNALS_TRACE_RATIO   --trace-ratio
//! resource_attributes = ["host.name=a"] # ANNALS_RESOURCE_ATTRIBUTES  --resource-attributes
//! log = "info"                         # ANNALS_LOG           --log
//! log_format = "text"                  # ANNALS_LOG_FORMAT    --log-format
//! ```

mod flags;
mod layers;
mod settings;
mod spaces;
mod values;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::num::{NonZeroU32, NonZeroUsize};
use std::path::PathBuf;
use std::time::Duration;

pub use annals_base::DuplicateLogin;
pub use flags::Flags;
pub use settings::Service;
pub use spaces::{FIRST, SpaceSetting, Spaces};
pub use values::{
    AccountCreation, Acknowledged, Advice, Age, Attributes, Authentication, CertificateFiles, FoldedShards, LogFilter,
    LogFormat, Ratio, Realm, StoreKind,
};

use annals_ids::Shard;

use crate::{edge::WebOrigins, nats::Access};
use layers::Layers;

/// The settings of one process, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The realm this process belongs to.
    pub realm: Realm,
    /// The nats-servers, separated by commas.
    pub nats: String,
    /// How this process is admitted to them.
    pub access: Access,
    /// The file with addresses and credentials of the nats-servers' system account, if any.
    pub nats_system: Option<PathBuf>,
    /// Number of copies of each log: 1, 3 or 5.
    pub replicas: usize,
    /// The folder of the world's definitions.
    pub world: PathBuf,
    /// Where this process keeps files, if any.
    pub data: PathBuf,
    /// Where the realm's store is.
    pub store: StoreKind,
    /// Address for probes and metrics over HTTP, if any.
    pub http: Option<SocketAddr>,
    /// Address to listen on, for services that clients connect to.
    pub listen: SocketAddr,
    /// Address that clients are given to connect to, `HOST:PORT`, if it is not the listen address.
    pub advertise: Option<String>,
    /// The certificate that is shown to clients, if it is not a development certificate.
    pub certificate: Option<CertificateFiles>,
    /// The web pages that may connect; without it, neither WebTransport nor WebSockets are accepted.
    pub web_origins: Option<WebOrigins>,
    /// The file of the services that the game calls outside the realm, if any.
    pub outbound: Option<PathBuf>,
    /// The folder of files that the game sends to clients, if any.
    pub downloads: Option<PathBuf>,
    /// Maximum rate of downloads to each client, bits per second.
    pub download_bandwidth: NonZeroU32,
    /// Threads that run a base or cell.
    pub threads: NonZeroUsize,
    /// What counts as acknowledged in this realm.
    pub acknowledged: Acknowledged,
    /// Minimum number of the realm's shards.
    pub shards: u16,
    /// Which shards this db folds.
    pub fold: FoldedShards,
    /// The shard whose archive is signed.
    pub shard: Shard,
    /// Maximum time until db writes a change of an active stored entity; `None` to write on request only.
    pub archive_period: Option<Duration>,
    /// Maximum rate of a cell to each client, bits per second; `None` for no limit.
    pub client_bandwidth: Option<NonZeroU32>,
    /// Policy of login at a log-in to an account that has a client.
    pub duplicate_login: DuplicateLogin,
    /// How login authenticates players.
    pub authentication: Authentication,
    /// How accounts come into being.
    pub account_creation: AccountCreation,
    /// Maximum players of the realm; `None` for no limit.
    pub max_players: Option<NonZeroU32>,
    /// Names of accounts that do not wait when the realm is full.
    pub exempt_accounts: BTreeSet<String>,
    /// How long db keeps the events of cells.
    pub keep_cell_events: Age,
    /// The spaces of the realm.
    pub spaces: Spaces,
    /// What is exported to a collector.
    pub telemetry: Telemetry,
    /// Log filter.
    pub log: LogFilter,
    pub log_format: LogFormat,
}

/// What a process exports to an OpenTelemetry collector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Telemetry {
    /// The URL of the collector, without a path of OTLP; without it nothing is exported.
    pub endpoint: Option<String>,
    /// The share of clients' calls that is traced.
    pub trace_ratio: Ratio,
    /// Attributes of the process, beside or instead of its own.
    pub attributes: Attributes,
}

/// The source of a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// The built-in default.
    Default,
    File(PathBuf),
    /// The environment variable of this name.
    Variable(String),
    /// The command-line flag of this name.
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Default => f.write_str("by default"),
            Origin::File(path) => write!(f, "in {}", path.display()),
            Origin::Variable(name) => write!(f, "in the environment as {name}"),
            Origin::Flag(name) => write!(f, "as {name}"),
        }
    }
}

/// One error in the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// The file does not exist, or cannot be read.
    #[error("{path} cannot be read: {reason}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// The operating system's error.
        reason: String,
    },
    /// The file is not TOML.
    #[error("{path} is not TOML: {reason}", path = path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// The position and the reason.
        reason: String,
    },
    /// There is no such setting.
    #[error("there is no setting {key:?}, given {origin}; {}", meant(nearest.as_deref()))]
    UnknownKey {
        /// The key as given.
        key: String,
        /// Its source.
        origin: Origin,
        /// The most similar setting.
        nearest: Option<String>,
    },
    /// The value is not valid for the setting.
    #[error("{key} cannot be {value:?}, given {origin}: {reason}")]
    BadValue {
        /// The setting.
        key: &'static str,
        /// The value as given.
        value: String,
        /// Its source.
        origin: Origin,
        /// Why it is invalid, and what is valid.
        reason: Advice,
    },
    /// Only one of two settings that go together was given.
    #[error("{given} is given {origin}, and {missing} is not; give both, or neither")]
    Alone {
        /// The one that was given.
        given: &'static str,
        /// Its source.
        origin: Origin,
        /// The other.
        missing: &'static str,
    },
}

/// All errors in the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("invalid settings:{}", .0.iter().map(|mistake| format!("\n  - {mistake}")).collect::<String>())]
pub struct Mistakes(pub Vec<Mistake>);

impl Config {
    /// The settings of this process: the file that `--config` or `ANNALS_CONFIG` names, overridden by the environment,
    /// overridden by `flags`.
    ///
    /// # Errors
    /// Every error in any of them: an unknown key, an invalid value, an unreadable file.
    pub fn load(flags: &Flags) -> Result<Self, Mistakes> {
        Self::from_sources(flags, std::env::vars_os())
    }

    /// As [`Self::load`], with the environment as an argument.
    ///
    /// # Errors
    /// As there.
    pub fn from_sources(
        flags: &Flags,
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Result<Self, Mistakes> {
        let mut layers = Layers::defaults();
        let file = layers.environment(environment);
        if let Some(path) = flags.file.clone().or(file) {
            layers.file(&path);
        }
        layers.flags(flags);
        layers.finish()
    }
}

fn meant(nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => {
            let all: Vec<&str> = settings::SETTINGS.iter().map(|setting| setting.key).collect();
            format!("the settings are {}", all.join(", "))
        }
    }
}
