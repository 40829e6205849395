//! What an operator sets: by file, environment or flag, each over the one before, checked once at start. Everything else is a
//! constant. The same settings serve every service:
//!
//! ```toml
//! realm = "aldmoor"                    # ANNALS_REALM         --realm
//! nats = "nats://127.0.0.1:4222"       # ANNALS_NATS          --nats
//! replicas = 3                         # ANNALS_REPLICAS      --replicas
//! world = "/srv/aldmoor/defs"          # ANNALS_WORLD         --world
//! data = "/var/lib/annals"             # ANNALS_DATA          --data
//! store = "embedded"                   # ANNALS_STORE         --store
//! listen = "0.0.0.0:7700"              # ANNALS_LISTEN        --listen
//! advertise = "play.example.org:7700"  # ANNALS_ADVERTISE     --advertise
//! certificate = "/etc/annals/play.pem" # ANNALS_CERTIFICATE   --certificate
//! key = "/etc/annals/play.key"         # ANNALS_KEY           --key
//! acknowledged = "log"                 # ANNALS_ACKNOWLEDGED  --acknowledged
//! archive_period = 300                 # ANNALS_ARCHIVE_PERIOD  --archive-period
//! client_bandwidth = 100000            # ANNALS_CLIENT_BANDWIDTH  --client-bandwidth
//! duplicate_login = "replace"          # ANNALS_DUPLICATE_LOGIN   --duplicate-login
//! keep_cell_events = "90d"             # ANNALS_KEEP_CELL_EVENTS  --keep-cell-events
//! spaces = ["1 extent=200", "2"]       # ANNALS_SPACES        --spaces
//! log = "info"                         # ANNALS_LOG           --log
//! log_format = "text"                  # ANNALS_LOG_FORMAT    --log-format
//! ```

mod layers;
mod spaces;
mod values;

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

pub use annals_base::DuplicateLogin;
pub use spaces::{FIRST, SpaceSetting, Spaces};
pub use values::{Acknowledged, Advice, Age, CertificateFiles, LogFilter, LogFormat, Realm, StoreKind};

use layers::Layers;

/// The settings of one process, checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The realm this process belongs to.
    pub realm: Realm,
    /// The nats-servers, separated by commas.
    pub nats: String,
    /// How many nats-servers keep each log: 1, 3 or 5.
    pub replicas: usize,
    /// The folder of the world's definitions.
    pub world: PathBuf,
    /// Where this process keeps files, if it keeps any.
    pub data: PathBuf,
    /// What the realm's store is in.
    pub store: StoreKind,
    /// Where clients are listened for, by services that clients connect to.
    pub listen: SocketAddr,
    /// What clients are told to connect to, `HOST:PORT`, when it is not where we listen.
    pub advertise: Option<String>,
    /// The certificate that is shown to clients, when it is not one that was made for development.
    pub certificate: Option<CertificateFiles>,
    /// What counts as acknowledged in this realm.
    pub acknowledged: Acknowledged,
    /// Within what time db writes stored entities that live and have changed; `None` for never unasked.
    pub archive_period: Option<Duration>,
    /// What a cell shows each client at most, bits per second; `None` for as much as there is.
    pub client_bandwidth: Option<NonZeroU32>,
    /// What login does at a log-in to an account that has a client.
    pub duplicate_login: DuplicateLogin,
    /// How long db keeps the events of cells.
    pub keep_cell_events: Age,
    /// The spaces of the realm.
    pub spaces: Spaces,
    /// What is logged.
    pub log: LogFilter,
    /// How it is written.
    pub log_format: LogFormat,
}

/// The settings as flags, for a binary's command line: flatten it into its arguments. Values are checked by [`Config::load`],
/// together with those from elsewhere.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Flags {
    /// Read settings from this TOML file [env: ANNALS_CONFIG]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Name of the realm [default: annals]
    #[arg(long, value_name = "NAME")]
    pub realm: Option<String>,
    /// Addresses of nats-servers, separated by commas [default: nats://127.0.0.1:4222]
    #[arg(long, value_name = "URL")]
    pub nats: Option<String>,
    /// How many nats-servers keep each log: 1, 3 or 5 [default: 1]
    #[arg(long, value_name = "COUNT")]
    pub replicas: Option<String>,
    /// Folder of the world's definitions [default: defs]
    #[arg(long, value_name = "DIR")]
    pub world: Option<String>,
    /// Folder for files of this process [default: data]
    #[arg(long, value_name = "DIR")]
    pub data: Option<String>,
    /// What db keeps the realm's store in: embedded, or fdb:FILE for the cluster of a cluster file [default: embedded]
    #[arg(long, value_name = "WHERE")]
    pub store: Option<String>,
    /// Address to listen on for clients [default: 127.0.0.1:7700]
    #[arg(long, value_name = "IP:PORT")]
    pub listen: Option<String>,
    /// What clients are told to connect to, when it is not where we listen
    #[arg(long, value_name = "HOST:PORT")]
    pub advertise: Option<String>,
    /// Certificate chain in PEM form that is shown to clients; without it, one is made for development
    #[arg(long, value_name = "FILE")]
    pub certificate: Option<String>,
    /// The certificate's private key in PEM form
    #[arg(long, value_name = "FILE")]
    pub key: Option<String>,
    /// What counts as acknowledged: log or archive [default: log]
    #[arg(long, value_name = "WHERE")]
    pub acknowledged: Option<String>,
    /// Within how many seconds db writes living entities that have changed to the database; 0 for never unasked [default: 300]
    #[arg(long, value_name = "SECONDS")]
    pub archive_period: Option<String>,
    /// How many bits per second a cell shows each client at most; 0 for as much as there is [default: 100000]
    #[arg(long, value_name = "BITS")]
    pub client_bandwidth: Option<String>,
    /// What login does when an account that has a client logs in: replace that client, or refuse the log-in [default: replace]
    #[arg(long, value_name = "POLICY")]
    pub duplicate_login: Option<String>,
    /// How long db keeps the events of cells: forever, or an age such as 90d or 12h [default: forever]
    #[arg(long, value_name = "AGE")]
    pub keep_cell_events: Option<String>,
    /// How long db keeps the events of bases: forever, by rule
    #[arg(long, value_name = "AGE")]
    pub keep_base_events: Option<String>,
    /// How long db keeps the events of the ledger's owner: forever, by rule
    #[arg(long, value_name = "AGE")]
    pub keep_ledger_events: Option<String>,
    /// The realm's spaces, separated by commas, each with what differs: "1 extent=200 radius=80 hysteresis=5 cells=2" [default: 1]
    #[arg(long, value_name = "SPACES")]
    pub spaces: Option<String>,
    /// What is logged: a level, or levels by module such as info,annals_host=debug [default: info,async_nats=warn]
    #[arg(long, value_name = "LEVELS")]
    pub log: Option<String>,
    /// How the log is written: text or json [default: text]
    #[arg(long, value_name = "FORMAT")]
    pub log_format: Option<String>,
}

/// Where a value was given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// Nowhere; ours.
    Default,
    /// In a file.
    File(PathBuf),
    /// In the environment, under this name.
    Variable(String),
    /// On the command line, under this name.
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

/// One thing that is wrong with the settings.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Mistake {
    /// The file is not there, or not readable.
    #[error("{path} cannot be read: {reason}", path = path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the operating system says.
        reason: String,
    },
    /// The file is no TOML.
    #[error("{path} is not TOML: {reason}", path = path.display())]
    NotToml {
        /// The file.
        path: PathBuf,
        /// Where and why.
        reason: String,
    },
    /// There is no such setting.
    #[error("there is no setting {key:?}, given {origin}; {}", meant(nearest.as_deref()))]
    UnknownKey {
        /// What was given.
        key: String,
        /// Where.
        origin: Origin,
        /// What was probably meant.
        nearest: Option<String>,
    },
    /// The value is none that the setting can have.
    #[error("{key} cannot be {value:?}, given {origin}: {reason}")]
    BadValue {
        /// The setting.
        key: &'static str,
        /// What was given.
        value: String,
        /// Where.
        origin: Origin,
        /// Why not, and what it can be.
        reason: Advice,
    },
    /// One of two settings that go together.
    #[error("{given} is given {origin}, and {missing} is not; give both, or neither")]
    Alone {
        /// The one that was given.
        given: &'static str,
        /// Where.
        origin: Origin,
        /// The other.
        missing: &'static str,
    },
}

/// Everything that is wrong with the settings, at once.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the settings are wrong:{}", .0.iter().map(|mistake| format!("\n  - {mistake}")).collect::<String>())]
pub struct Mistakes(pub Vec<Mistake>);

impl Config {
    /// The settings of this process: from the file that `--config` or `ANNALS_CONFIG` names, over that the environment, over
    /// that `flags`.
    ///
    /// # Errors
    /// Every mistake in any of them: an unknown key, a value that cannot be, a file that cannot be read.
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
        if let Some(path) = flags.config.clone().or(file) {
            layers.file(&path);
        }
        layers.flags(flags);
        layers.finish()
    }
}

fn meant(nearest: Option<&str>) -> String {
    match nearest {
        Some(nearest) => format!("did you mean {nearest:?}?"),
        None => format!("the settings are {}", layers::KEYS.join(", ")),
    }
}
