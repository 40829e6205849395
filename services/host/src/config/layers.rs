//! Layers of settings, each value with its source.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fs;
use std::num::{NonZeroU32, NonZeroUsize};
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::time::Duration;

use annals_def::nearest;
use annals_ids::Shard;
use annals_store::layout::shards::SHARDS;
use toml::{Table, Value};

use super::settings::{SETTINGS, named};
use super::values::{
    AccountCreation, Advice, Age, Authentication, CertificateFiles, advertised, collector, listened, nats_url,
};
use super::{Config, DuplicateLogin, Flags, Mistake, Mistakes, Origin, Telemetry};
use crate::nats::Access;

/// Prefix of our variables.
pub(super) const PREFIX: &str = "ANNALS_";

/// The variable that names the file, which is not itself a setting.
pub(super) const FILE_VARIABLE: &str = "ANNALS_CONFIG";

/// Our variables that are not settings: read by tests, tools and the set-up.
const OTHERS: [&str; 5] = [
    "ANNALS_CORPUS",
    "ANNALS_FDB_CLUSTER_FILE",
    "ANNALS_NATS_SERVER",
    "ANNALS_SIM_SEED",
    "ANNALS_SIM_SEEDS",
];

/// Prefix of the variables by which tests configure processes that they start.
const TEST_PREFIX: &str = "ANNALS_TEST_";

struct Given {
    value: String,
    origin: Origin,
}

/// The settings so far, weakest source first, and the errors found so far.
pub(super) struct Layers {
    defaults: BTreeMap<&'static str, Given>,
    file: BTreeMap<&'static str, Given>,
    environment: BTreeMap<&'static str, Given>,
    flags: BTreeMap<&'static str, Given>,
    mistakes: Vec<Mistake>,
}

impl Layers {
    /// The defaults: a realm on this machine.
    pub(super) fn defaults() -> Self {
        let given = |value: &str| Given {
            value: value.to_owned(),
            origin: Origin::Default,
        };
        let defaults = SETTINGS
            .iter()
            .filter_map(|setting| Some((setting.key, given(setting.default?))));
        Self {
            defaults: defaults.collect(),
            file: BTreeMap::new(),
            environment: BTreeMap::new(),
            flags: BTreeMap::new(),
            mistakes: Vec::new(),
        }
    }

    /// Adds the settings in a file.
    pub(super) fn file(&mut self, path: &Path) {
        let read = fs::read_to_string(path).map_err(|error| Mistake::Unreadable {
            path: path.to_owned(),
            reason: error.to_string(),
        });
        let table = read.and_then(|text| {
            text.parse::<Table>().map_err(|error| Mistake::NotToml {
                path: path.to_owned(),
                reason: error.to_string().trim_end().to_owned(),
            })
        });
        match table {
            Ok(table) => table
                .into_iter()
                .for_each(|(key, value)| self.entry(path, &key, &value)),
            Err(mistake) => self.mistakes.push(mistake),
        }
    }

    /// Adds the settings in the environment; returns the file that it names.
    pub(super) fn environment(&mut self, variables: impl IntoIterator<Item = (OsString, OsString)>) -> Option<PathBuf> {
        let mut file = None;
        for (name, value) in variables {
            let Some(name) = name.to_str().filter(|name| name.starts_with(PREFIX)) else {
                continue;
            };
            if name == FILE_VARIABLE {
                file = Some(PathBuf::from(value));
            } else if !OTHERS.contains(&name) && !name.starts_with(TEST_PREFIX) {
                self.variable(name, &value.to_string_lossy());
            }
        }
        file
    }

    /// Adds the settings on the command line.
    pub(super) fn flags(&mut self, flags: &Flags) {
        for (&key, value) in &flags.given {
            let origin = Origin::Flag(format!("--{}", key.replace('_', "-")));
            let value = value.clone();
            self.flags.insert(key, Given { value, origin });
        }
    }

    /// The settings, or all errors in them.
    pub(super) fn finish(mut self) -> Result<Config, Mistakes> {
        for key in ["keep_base_events", "keep_ledger_events"] {
            self.read(key, forever);
        }
        let config = Config {
            realm: self.read("realm", |text| text.parse()),
            nats: self.read("nats", nats_url),
            access: self.access(),
            nats_system: self.read_optional("nats_system", file),
            replicas: self.read("replicas", replicas),
            world: self.read("world", folder),
            data: self.read("data", folder),
            store: self.read("store", |text| text.parse()),
            http: self.read_optional("http", listened),
            listen: self.read("listen", listened),
            advertise: self.read_optional("advertise", advertised),
            certificate: self.certificate("certificate", "key"),
            web_origins: self.read_optional("web_origins", |text| text.parse()),
            outbound: self.read_optional("outbound", file),
            downloads: self.read_optional("downloads", folder),
            download_bandwidth: self.read("download_bandwidth", download_bandwidth),
            threads: self.read("threads", threads),
            acknowledged: self.read("acknowledged", |text| text.parse()),
            shards: self.read("shards", shards),
            fold: self.read("fold", |text| text.parse()),
            shard: self.read("shard", shard),
            archive_period: self.read("archive_period", period),
            client_bandwidth: self.read("client_bandwidth", bandwidth),
            duplicate_login: self.read("duplicate_login", duplicate_login),
            authentication: self.read("authentication", |text| text.parse()),
            account_creation: self.account_creation(),
            max_players: self.read("max_players", max_players),
            exempt_accounts: self.read_optional("exempt_accounts", names).unwrap_or_default(),
            keep_cell_events: self.read("keep_cell_events", |text| text.parse()),
            spaces: self.read("spaces", |text| text.parse()),
            telemetry: Telemetry {
                endpoint: self.read_optional("otlp", collector),
                trace_ratio: self.read("trace_ratio", |text| text.parse()),
                attributes: self
                    .read_optional("resource_attributes", |text| text.parse())
                    .unwrap_or_default(),
            },
            log: self.read("log", |text| text.parse()),
            log_format: self.read("log_format", |text| text.parse()),
        };
        if self.mistakes.is_empty() {
            Ok(config)
        } else {
            Err(Mistakes(self.mistakes))
        }
    }

    fn entry(&mut self, path: &Path, key: &str, value: &Value) {
        let origin = Origin::File(path.to_owned());
        let Some(key) = self.known(key, origin.clone(), str::to_owned) else {
            return;
        };
        match plain(value) {
            Some(value) => {
                self.file.insert(key, Given { value, origin });
            }
            None => {
                let reason = Advice("write a text, a number or a list of texts".to_owned());
                self.mistakes.push(Mistake::BadValue {
                    key,
                    value: format!("a {}", value.type_str()),
                    origin,
                    reason,
                });
            }
        }
    }

    fn variable(&mut self, name: &str, value: &str) {
        let key = name[PREFIX.len()..].to_lowercase();
        let origin = Origin::Variable(name.to_owned());
        if let Some(key) = self.known(&key, origin.clone(), |key| format!("{PREFIX}{}", key.to_uppercase())) {
            self.environment.insert(
                key,
                Given {
                    value: value.to_owned(),
                    origin,
                },
            );
        }
    }

    /// The setting of that name; if there is none, an error is recorded. `spell` spells a name as in this source.
    fn known(&mut self, key: &str, origin: Origin, spell: impl Fn(&str) -> String) -> Option<&'static str> {
        let known = named(key).map(|setting| setting.key);
        if known.is_none() {
            let nearest = nearest(key, SETTINGS.iter().map(|setting| setting.key)).map(&spell);
            self.mistakes.push(Mistake::UnknownKey {
                key: spell(key),
                origin,
                nearest,
            });
        }
        known
    }

    /// Parses the strongest value for `key`. An invalid value is recorded and the default used, so that the other
    /// settings are checked too.
    fn read<T>(&mut self, key: &'static str, read: impl Fn(&str) -> Result<T, Advice>) -> T {
        let given = self.strongest(key).expect("invariant: the setting has a default");
        match read(&given.value) {
            Ok(value) => value,
            Err(reason) => {
                let mistake = bad(key, given, reason);
                self.mistakes.push(mistake);
                read(&self.defaults[key].value).expect("invariant: defaults can be read")
            }
        }
    }

    fn read_optional<T>(&mut self, key: &'static str, read: impl Fn(&str) -> Result<T, Advice>) -> Option<T> {
        let given = self.strongest(key)?;
        match read(&given.value) {
            Ok(value) => Some(value),
            Err(reason) => {
                let mistake = bad(key, given, reason);
                self.mistakes.push(mistake);
                None
            }
        }
    }

    /// Who is authenticated elsewhere does not register here.
    fn account_creation(&mut self) -> AccountCreation {
        let creation = self.read("account_creation", |text| text.parse());
        let is_elsewhere = self
            .strongest("authentication")
            .and_then(|given| given.value.parse().ok())
            .is_some_and(|authentication: Authentication| authentication != Authentication::BuiltIn);
        if let (AccountCreation::Registration, true, Some(given)) =
            (creation, is_elsewhere, self.strongest("account_creation"))
        {
            let reason = "registration is for authentication = \"built-in\"; write open or closed";
            let mistake = bad("account_creation", given, Advice(reason.to_owned()));
            self.mistakes.push(mistake);
        }
        creation
    }

    fn access(&mut self) -> Access {
        Access {
            credentials: self.read_optional("nats_credentials", file),
            authority: self.read_optional("nats_ca", file),
            certificate: self.certificate("nats_certificate", "nats_key"),
        }
    }

    /// A certificate and its key, which go together.
    fn certificate(&mut self, chain_setting: &'static str, key_setting: &'static str) -> Option<CertificateFiles> {
        let chain = self.read_optional(chain_setting, file);
        let key = self.read_optional(key_setting, file);
        for (given, missing) in [(chain_setting, key_setting), (key_setting, chain_setting)] {
            if let (Some(value), None) = (self.strongest(given), self.strongest(missing)) {
                let origin = value.origin.clone();
                self.mistakes.push(Mistake::Alone { given, origin, missing });
            }
        }
        Some(CertificateFiles {
            chain: chain?,
            key: key?,
        })
    }

    fn strongest(&self, key: &str) -> Option<&Given> {
        [&self.flags, &self.environment, &self.file, &self.defaults]
            .into_iter()
            .find_map(|layer| layer.get(key))
    }
}

fn folder(text: &str) -> Result<PathBuf, Advice> {
    if text.is_empty() {
        Err(Advice("name a folder".to_owned()))
    } else {
        Ok(PathBuf::from(text))
    }
}

fn file(text: &str) -> Result<PathBuf, Advice> {
    if text.is_empty() {
        Err(Advice("name a file".to_owned()))
    } else {
        Ok(PathBuf::from(text))
    }
}

/// JetStream keeps 1 to 5 copies; an even number survives no more failures than the odd one below it.
fn replicas(text: &str) -> Result<usize, Advice> {
    match text.parse() {
        Ok(count @ (1 | 3 | 5)) => Ok(count),
        _ => Err(Advice("write 1, 3 or 5".to_owned())),
    }
}

fn shards(text: &str) -> Result<u16, Advice> {
    match text.parse() {
        Ok(count @ 1..=SHARDS) => Ok(count),
        _ => Err(Advice(format!("write a number from 1 to {SHARDS}"))),
    }
}

fn shard(text: &str) -> Result<Shard, Advice> {
    match text.parse() {
        Ok(shard @ 0..SHARDS) => Ok(Shard(shard)),
        _ => Err(Advice(format!("write a number from 0 to {}", SHARDS - 1))),
    }
}

/// Minimum bandwidth, bits per second: below it a packet per tick would carry nothing but its headers.
const LEAST_BANDWIDTH: u32 = 4_000;

/// A period in seconds, at most a day: longer is a mistake.
fn period(text: &str) -> Result<Option<Duration>, Advice> {
    match text.parse() {
        Ok(0) => Ok(None),
        Ok(seconds @ 1..=86_400) => Ok(Some(Duration::from_secs(seconds))),
        _ => Err(Advice("write seconds, 1 to 86400, or 0 for never".to_owned())),
    }
}

/// Bandwidth of downloads, bits per second: with less a chunk is smaller than what is around it, and with more what is
/// under way to a client exceeds its queue.
const DOWNLOAD_BANDWIDTHS: RangeInclusive<u32> = 8_000..=100_000_000;

fn download_bandwidth(text: &str) -> Result<NonZeroU32, Advice> {
    let bits = text.parse().ok().filter(|bits| DOWNLOAD_BANDWIDTHS.contains(bits));
    bits.and_then(NonZeroU32::new).ok_or_else(|| {
        let (least, most) = (DOWNLOAD_BANDWIDTHS.start(), DOWNLOAD_BANDWIDTHS.end());
        Advice(format!("write bits per second, {least} to {most}"))
    })
}

/// Threads of a process: more than this is a mistake.
const MAX_THREADS: usize = 64;

fn threads(text: &str) -> Result<NonZeroUsize, Advice> {
    let threads = text
        .parse()
        .ok()
        .filter(|threads: &NonZeroUsize| threads.get() <= MAX_THREADS);
    threads.ok_or_else(|| Advice(format!("write a number of threads, 1 to {MAX_THREADS}")))
}

fn bandwidth(text: &str) -> Result<Option<NonZeroU32>, Advice> {
    match text.parse() {
        Ok(0) => Ok(None),
        Ok(bits @ LEAST_BANDWIDTH..) => Ok(NonZeroU32::new(bits)),
        _ => Err(Advice(format!(
            "write bits per second, {LEAST_BANDWIDTH} to {}, or 0 for no limit",
            u32::MAX
        ))),
    }
}

fn max_players(text: &str) -> Result<Option<NonZeroU32>, Advice> {
    match text.parse() {
        Ok(players) => Ok(NonZeroU32::new(players)),
        Err(_) => Err(Advice(format!(
            "write a number of players, 1 to {}, or 0 for no limit",
            u32::MAX
        ))),
    }
}

fn names(text: &str) -> Result<BTreeSet<String>, Advice> {
    let names: BTreeSet<String> = text.split(',').map(|name| name.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        return Err(Advice("write names of accounts, separated by commas".to_owned()));
    }
    Ok(names)
}

fn duplicate_login(text: &str) -> Result<DuplicateLogin, Advice> {
    match text {
        "replace" => Ok(DuplicateLogin::Replace),
        "refuse" => Ok(DuplicateLogin::Refuse),
        _ => Err(Advice(
            "write replace (the client before is closed) or refuse (the log-in is refused while that client is connected)"
                .to_owned(),
        )),
    }
}

/// Logs that are never deleted (rule F14).
fn forever(text: &str) -> Result<(), Advice> {
    match text.parse() {
        Ok(Age::Forever) => Ok(()),
        _ => Err(Advice(
            "these events are kept forever: the ledger, stored entities and disputes are folded from them when a realm is restored"
                .to_owned(),
        )),
    }
}

fn bad(key: &'static str, given: &Given, reason: Advice) -> Mistake {
    Mistake::BadValue {
        key,
        value: given.value.clone(),
        origin: given.origin.clone(),
        reason,
    }
}

/// A value in the spelling of an environment variable.
fn plain(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Integer(number) => Some(number.to_string()),
        Value::Float(number) => Some(number.to_string()),
        Value::Array(items) => {
            let items: Option<Vec<_>> = items.iter().map(|item| item.as_str().map(str::to_owned)).collect();
            items.map(|items| items.join(","))
        }
        Value::Boolean(_) | Value::Datetime(_) | Value::Table(_) => None,
    }
}
