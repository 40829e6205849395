//! The settings: name, meaning and default of each, and which services use it.

use Service::{Base, Cell, Db, Director, Login, Signer};

/// A service of a realm.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    /// Base entities and clients' connections.
    Base,
    /// Cell entities.
    Cell,
    /// The store and the archive.
    Db,
    /// Membership, grants and placement.
    Director,
    /// Log-ins.
    Login,
    /// Signed checkpoints.
    Signer,
}

impl Service {
    /// All services.
    pub const ALL: [Self; 6] = [Base, Cell, Db, Director, Login, Signer];

    /// Its name; its binary is called `annals-` and that.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Base => "base",
            Cell => "cell",
            Db => "db",
            Director => "director",
            Login => "login",
            Signer => "signer",
        }
    }

    /// Whether it uses the setting of this name, and so has a flag for it.
    #[must_use]
    pub fn uses(self, key: &str) -> bool {
        named(key).is_some_and(|setting| setting.used_by.contains(&self))
    }

    /// What its process does, for its command line's help.
    pub(super) fn about(self) -> &'static str {
        match self {
            Base => {
                "A base process of a realm: holds base entities and serves the clients that play\n\n\
                 Contains a game. Waits for nats-server and the director, which grants it its entities; more base processes share \
                 the load and take over from one another."
            }
            Cell => {
                "A cell process of a realm: holds cell entities and shows each client what is around it\n\n\
                 Contains a game. Waits for nats-server and the director, which grants it a part of a space; more cell processes \
                 share the load and take over from one another."
            }
            Db => {
                "The db process of a realm: serves the store, archives the log into it, and keeps the ledger\n\n\
                 Waits for nats-server. All other processes of the realm wait for it."
            }
            Director => {
                "A director process of a realm: grants entities and spaces to base and cell processes\n\n\
                 Waits for nats-server and db. One director leads; others that are started stand by."
            }
            Login => {
                "A login process of a realm: checks passwords and sends clients to a base\n\n\
                 Waits for nats-server, the director and db. Prints nothing: where it listens is written to login.address in its \
                 data folder."
            }
            Signer => {
                "The signer of a realm: signs checkpoints of the archive with a key that it alone has\n\n\
                 Waits for nats-server and db. Without a key in its data folder it makes one."
            }
        }
    }
}

/// One setting.
pub(super) struct Setting {
    /// Its name in a file. The names of the flag and the variable derive from it.
    pub(super) key: &'static str,
    /// Its default, if it has one.
    pub(super) default: Option<&'static str>,
    /// The name of its value in a command line's help.
    pub(super) value: &'static str,
    /// Its help text.
    pub(super) help: &'static str,
    /// The services that use it. A service has no flag for a setting that it does not use; files and the environment
    /// serve all services alike.
    pub(super) used_by: &'static [Service],
}

/// Processes that append to logs or read them.
const WITH_LOGS: &[Service] = &[Base, Cell, Db, Login];

/// Processes that clients connect to.
const FRONTS: &[Service] = &[Base, Login];

const fn setting(
    key: &'static str,
    default: Option<&'static str>,
    value: &'static str,
    help: &'static str,
    used_by: &'static [Service],
) -> Setting {
    Setting {
        key,
        default,
        value,
        help,
        used_by,
    }
}

/// Every setting.
pub(super) const SETTINGS: [Setting; 41] = [
    setting("realm", Some("annals"), "NAME", "Name of the realm", &Service::ALL),
    setting(
        "nats",
        Some("nats://127.0.0.1:4222"),
        "URL",
        "Addresses of nats-servers, separated by commas",
        &Service::ALL,
    ),
    setting(
        "nats_credentials",
        None,
        "FILE",
        "File with USER:PASSWORD for the nats-servers; without it, no credentials are sent",
        &Service::ALL,
    ),
    setting(
        "nats_ca",
        None,
        "FILE",
        "Certificates of the authorities that sign those of the nats-servers, in PEM form; with it, TLS is required",
        &Service::ALL,
    ),
    setting(
        "nats_certificate",
        None,
        "FILE",
        "Certificate chain for the nats-servers, in PEM form",
        &Service::ALL,
    ),
    setting(
        "nats_key",
        None,
        "FILE",
        "The private key of nats_certificate in PEM form",
        &Service::ALL,
    ),
    setting(
        "nats_system",
        None,
        "FILE",
        "File with addresses and credentials of the nats-servers' system account, from which a director learns at once \
         that a process has died",
        &[Director],
    ),
    setting(
        "replicas",
        Some("1"),
        "COUNT",
        "Number of nats-servers that store each log: 1, 3 or 5",
        WITH_LOGS,
    ),
    setting(
        "world",
        Some("defs"),
        "DIR",
        "Folder of the world's definitions",
        &[Base, Cell, Db, Director, Login],
    ),
    setting(
        "data",
        Some("data"),
        "DIR",
        "Folder for files of this process",
        &[Base, Db, Login, Signer],
    ),
    setting(
        "store",
        Some("embedded"),
        "WHERE",
        "Backend of the realm's store: embedded, or fdb:FILE for the cluster of a cluster file",
        &[Db],
    ),
    setting(
        "http",
        None,
        "IP:PORT",
        "Address for probes (/livez, /readyz) and metrics (/metrics) over HTTP",
        &Service::ALL,
    ),
    setting(
        "listen",
        Some("127.0.0.1:7700"),
        "IP:PORT",
        "Address to listen on for clients",
        FRONTS,
    ),
    setting(
        "advertise",
        None,
        "HOST:PORT",
        "Address that clients connect to, if it differs from the listen address",
        FRONTS,
    ),
    setting(
        "certificate",
        None,
        "FILE",
        "Certificate chain for clients, in PEM form; without it, a development certificate is generated",
        FRONTS,
    ),
    setting("key", None, "FILE", "The certificate's private key in PEM form", FRONTS),
    setting(
        "web_origins",
        None,
        "ORIGINS",
        "Accept WebTransport, and WebSockets on the same TCP port number, from pages of these origins: * or a list",
        FRONTS,
    ),
    setting(
        "outbound",
        None,
        "FILE",
        "File of the services outside the realm that the game calls, over HTTP or NATS",
        &[Base, Cell],
    ),
    setting(
        "downloads",
        None,
        "DIR",
        "Folder of files that the game sends to clients; each base needs the same files",
        &[Base],
    ),
    setting(
        "download_bandwidth",
        Some("100000"),
        "BITS",
        "Maximum bits per second of downloads to each client by a base",
        &[Base],
    ),
    setting(
        "threads",
        Some("1"),
        "N",
        "Threads that run a base or cell: entities, and connections; 1 to 64",
        &[Base, Cell],
    ),
    setting(
        "acknowledged",
        Some("log"),
        "WHERE",
        "What must have stored a change before it is shown: log or archive",
        &[Base, Cell],
    ),
    setting(
        "shards",
        Some("1"),
        "N",
        "Minimum number of the realm's shards: a realm that has fewer gets more; 1 to 64",
        &[Db],
    ),
    setting(
        "fold",
        Some("all"),
        "SHARDS",
        "Which shards this db folds: all, or numbers separated by commas; the db of shard 0 serves the store to the others",
        &[Db],
    ),
    setting(
        "shard",
        Some("0"),
        "N",
        "The shard whose archive is signed; each shard has a signer of its own, with a key and a folder of its own",
        &[Signer],
    ),
    setting(
        "archive_period",
        Some("300"),
        "SECONDS",
        "Seconds within which changed active entities are written to the database; 0 for only on request",
        &[Db],
    ),
    setting(
        "client_bandwidth",
        Some("100000"),
        "BITS",
        "Maximum bits per second sent to each client by a cell; 0 for no limit",
        &[Cell],
    ),
    setting(
        "duplicate_login",
        Some("replace"),
        "POLICY",
        "What happens when an account that has a client logs in: replace that client, or refuse the log-in",
        &[Login],
    ),
    setting(
        "authentication",
        Some("built-in"),
        "METHOD",
        "How players are authenticated: built-in (by the realm's own passwords), service:SUBJECT (by a service on the \
         realm's nats-servers) or tokens:FILE (by tokens, JWTs, by the rules in this file)",
        &[Login],
    ),
    setting(
        "account_creation",
        Some("open"),
        "POLICY",
        "How accounts come into being: open (by the first log-in), registration (only if a client asks for it) or closed \
         (only by an operator)",
        &[Login],
    ),
    setting(
        "max_players",
        Some("0"),
        "COUNT",
        "Maximum players of the realm; further ones wait in a queue; 0 for no limit",
        &[Director],
    ),
    setting(
        "exempt_accounts",
        None,
        "NAMES",
        "Names of accounts, separated by commas, that do not wait when the realm is full, such as those of game masters",
        &[Login],
    ),
    setting(
        "keep_cell_events",
        Some("forever"),
        "AGE",
        "How long the events of cells are kept: forever, or an age such as 90d or 12h",
        &[Db],
    ),
    setting(
        "keep_base_events",
        Some("forever"),
        "AGE",
        "How long the events of bases are kept: forever, by rule",
        &[Db],
    ),
    setting(
        "keep_ledger_events",
        Some("forever"),
        "AGE",
        "How long the events of the ledger's owner are kept: forever, by rule",
        &[Db],
    ),
    setting(
        "spaces",
        Some("1"),
        "SPACES",
        "The realm's spaces, separated by commas, each with its non-default values: \"1 extent=200 radius=80 \
         hysteresis=5 cells=2\"; \"11-40 cells=1\" is thirty of them",
        &[Director],
    ),
    setting(
        "otlp",
        None,
        "URL",
        "OpenTelemetry collector to export to, by OTLP over HTTP: http://HOST:PORT",
        &Service::ALL,
    ),
    setting(
        "trace_ratio",
        Some("0.01"),
        "RATIO",
        "Share of clients' calls that is traced, 0 to 1, if there is a collector",
        &[Base, Cell, Db],
    ),
    setting(
        "resource_attributes",
        None,
        "ATTRIBUTES",
        "Attributes of this process in what is exported, NAME=VALUE separated by commas",
        &Service::ALL,
    ),
    setting(
        "log",
        Some("info,async_nats=warn"),
        "LEVELS",
        "Log level, or levels by module such as info,annals_host=debug",
        &Service::ALL,
    ),
    setting(
        "log_format",
        Some("text"),
        "FORMAT",
        "Log format: text or json",
        &Service::ALL,
    ),
];

/// The setting of this name.
pub(super) fn named(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

impl Setting {
    /// The flag, without its leading dashes.
    pub(super) fn flag(&self) -> String {
        self.key.replace('_', "-")
    }

    /// The environment variable.
    pub(super) fn variable(&self) -> String {
        format!("{}{}", super::layers::PREFIX, self.key.to_uppercase())
    }
}
