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

mod flags;
mod layers;
mod settings;
mod spaces;
mod values;

use std::ffi::OsString;
use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

pub use annals_base::DuplicateLogin;
pub use flags::Flags;
pub use settings::Service;
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
