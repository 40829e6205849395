//! The values of settings, and how they are parsed. Errors say what is valid; the caller adds the source.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use annals_ids::Shard;
use annals_store::layout::shards::SHARDS;
use annals_wire::Subjects;
use tracing_subscriber::EnvFilter;

use crate::edge::WebOrigins;

/// Why a value is invalid, and what is valid.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Advice(pub(crate) String);

/// The name of a realm: part of every subject.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Realm(String);

impl Realm {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for Realm {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        if Subjects::is_realm_name(text) {
            Ok(Self(text.to_owned()))
        } else {
            Err(Advice("a realm's name has 1 to 32 letters, digits, - or _".to_owned()))
        }
    }
}

/// A retention age.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Age {
    /// For ever.
    #[default]
    Forever,
    /// At least this long.
    AtLeast(Duration),
}

/// Units of ages, in seconds.
const UNITS: [(char, u64); 4] = [('s', 1), ('m', 60), ('h', 3_600), ('d', 86_400)];

/// Maximum age, in seconds: a century; anything longer is kept for ever.
const LONGEST_AGE: u64 = 36_525 * 86_400;

impl FromStr for Age {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        if text == "forever" {
            return Ok(Self::Forever);
        }
        let age = UNITS.iter().find_map(|(unit, seconds)| {
            let count: u64 = text.strip_suffix(*unit)?.parse().ok()?;
            count.checked_mul(*seconds)
        });
        match age {
            Some(seconds @ 1..=LONGEST_AGE) => Ok(Self::AtLeast(Duration::from_secs(seconds))),
            _ => Err(Advice(
                "write forever, or a number with its unit: 90d, 12h, 30m or 45s".to_owned(),
            )),
        }
    }
}

/// Where a realm's store is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum StoreKind {
    /// Files on this machine, in the data directory.
    #[default]
    Embedded,
    /// The FoundationDB cluster of this cluster file.
    FoundationDb(PathBuf),
}

/// Prefix of the name of a cluster file.
const CLUSTER: &str = "fdb:";

impl FromStr for StoreKind {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        match (text, text.strip_prefix(CLUSTER)) {
            ("embedded", _) => Ok(StoreKind::Embedded),
            (_, Some(file)) if !file.is_empty() => Ok(StoreKind::FoundationDb(PathBuf::from(file))),
            _ => Err(Advice(format!(
                "write embedded (files in the data directory) or {CLUSTER}FILE (the FoundationDB cluster of that \
                 cluster file)"
            ))),
        }
    }
}

impl fmt::Display for StoreKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreKind::Embedded => f.write_str("embedded"),
            StoreKind::FoundationDb(file) => write!(f, "{CLUSTER}{}", file.display()),
        }
    }
}

/// When a change counts as acknowledged: before that, nothing of it is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// When JetStream has it.
    Log,
    /// When db has it in the store.
    Archive,
}

impl FromStr for Acknowledged {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        match text {
            "log" => Ok(Acknowledged::Log),
            "archive" => Ok(Acknowledged::Archive),
            _ => Err(Advice(
                "write log (JetStream has it) or archive (db has it in the store)".to_owned(),
            )),
        }
    }
}

/// How players are authenticated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Authentication {
    /// By the passwords in the realm's store.
    #[default]
    BuiltIn,
    /// By a service that answers on this subject of the realm's nats-servers.
    Service(String),
    /// By tokens, by the rules in this file.
    Tokens(PathBuf),
}

impl FromStr for Authentication {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        let is_word =
            |word: &str| !word.is_empty() && !word.contains(['*', '>']) && !word.contains(char::is_whitespace);
        match text.split_once(':') {
            None if text == "built-in" => Ok(Self::BuiltIn),
            Some(("service", subject)) if subject.split('.').all(is_word) => Ok(Self::Service(subject.to_owned())),
            Some(("tokens", file)) if !file.is_empty() => Ok(Self::Tokens(PathBuf::from(file))),
            _ => Err(Advice(
                "write built-in (the realm's own passwords), service:SUBJECT (a service on the realm's nats-servers, such \
                 as service:accounts.check) or tokens:FILE (the file with the rules for tokens)"
                    .to_owned(),
            )),
        }
    }
}

/// How accounts come into being.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum AccountCreation {
    /// By the first log-in under a name.
    #[default]
    Open,
    /// By a client that asks for it.
    Registration,
    /// By an operator.
    Closed,
}

impl FromStr for AccountCreation {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        match text {
            "open" => Ok(Self::Open),
            "registration" => Ok(Self::Registration),
            "closed" => Ok(Self::Closed),
            _ => Err(Advice(
                "write open (the first log-in creates the account), registration (a client asks for it) or closed (only \
                 annals realm account create)"
                    .to_owned(),
            )),
        }
    }
}

/// A certificate that an authority signed, and its private key: files in PEM form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateFiles {
    /// The certificate, followed by the chain to the authority's.
    pub chain: PathBuf,
    pub key: PathBuf,
}

/// A share, 0 to 1, in millionths.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Ratio(u32);

/// Millionths of a whole.
const MILLIONTHS: f64 = 1e6;

impl Ratio {
    /// The share, 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / MILLIONTHS
    }
}

impl FromStr for Ratio {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        match text.parse::<f64>() {
            Ok(share) if (0.0..=1.0).contains(&share) => Ok(Self((share * MILLIONTHS).round() as u32)),
            _ => Err(Advice(
                "write a share from 0 to 1, such as 0.01 for one in a hundred".to_owned(),
            )),
        }
    }
}

/// Attributes of a process, by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Attributes(pub BTreeMap<String, String>);

impl FromStr for Attributes {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        let attribute = |text: &str| match text.trim().split_once('=') {
            Some((name, value)) if !name.is_empty() && !value.is_empty() => Ok((name.to_owned(), value.to_owned())),
            _ => Err(Advice(format!(
                "{text:?} is not an attribute: write NAME=VALUE, several separated by commas"
            ))),
        };
        text.split(',').map(attribute).collect::<Result<_, _>>().map(Self)
    }
}

/// The shards that a db folds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum FoldedShards {
    /// All of the realm.
    #[default]
    All,
    Some(BTreeSet<Shard>),
}

impl FoldedShards {
    /// Whether a shard is one of them.
    pub fn contains(&self, shard: Shard) -> bool {
        match self {
            Self::All => true,
            Self::Some(shards) => shards.contains(&shard),
        }
    }

    /// The highest shard that is named.
    pub fn highest(&self) -> Option<Shard> {
        match self {
            Self::All => None,
            Self::Some(shards) => shards.last().copied(),
        }
    }
}

impl FromStr for FoldedShards {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        if text.trim() == "all" {
            return Ok(Self::All);
        }
        let shard = |text: &str| match text.trim().parse() {
            Ok(shard @ 0..SHARDS) => Ok(Shard(shard)),
            _ => Err(Advice(format!(
                "write all, or numbers of shards from 0 to {} separated by commas",
                SHARDS - 1
            ))),
        };
        text.split(',').map(shard).collect::<Result<_, _>>().map(Self::Some)
    }
}

/// Which messages are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    /// The filter for the subscriber.
    pub fn filter(&self) -> EnvFilter {
        EnvFilter::try_new(&self.0).expect("invariant: checked when it was read")
    }
}

impl fmt::Display for LogFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for LogFilter {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        EnvFilter::try_new(text)
            .map(|_| Self(text.to_owned()))
            .map_err(|error| {
                Advice(format!(
                    "{error}; write a level (error, warn, info, debug, trace), or levels by module"
                ))
            })
    }
}

/// How the log is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// A line for people.
    Text,
    /// One JSON object a line, for machines.
    Json,
}

impl FromStr for LogFormat {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        match text {
            "text" => Ok(LogFormat::Text),
            "json" => Ok(LogFormat::Json),
            _ => Err(Advice("write text or json".to_owned())),
        }
    }
}

/// Addresses of nats-servers that the client library can parse.
pub(super) fn nats_url(text: &str) -> Result<String, Advice> {
    for one in text.split(',').map(str::trim) {
        let read = one.parse::<async_nats::ServerAddr>();
        read.map_err(|error| {
            Advice(format!(
                "{one:?} is not an address ({error}): write nats://HOST:PORT, several with commas"
            ))
        })?;
    }
    Ok(text.to_owned())
}

/// `http://HOST:PORT`, perhaps with a path, without a slash at its end.
pub(super) fn collector(text: &str) -> Result<String, Advice> {
    let url = text.trim().trim_end_matches('/');
    let is_web = reqwest::Url::parse(url).is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    if is_web {
        Ok(url.to_owned())
    } else {
        Err(Advice(
            "write the URL of a collector, such as http://127.0.0.1:4318".to_owned(),
        ))
    }
}

impl FromStr for WebOrigins {
    type Err = Advice;

    /// `*`, or origins of web pages, separated by commas.
    fn from_str(text: &str) -> Result<Self, Advice> {
        let text = text.trim();
        if text == "*" {
            return Ok(WebOrigins::Any);
        }
        let origins = text.split(',').map(|origin| web_origin(origin.trim()));
        origins.collect::<Result<_, _>>().map(WebOrigins::Only)
    }
}

fn web_origin(text: &str) -> Result<String, Advice> {
    let origin = reqwest::Url::parse(text).map(|url| url.origin().ascii_serialization());
    match origin {
        Ok(origin) if origin == text => Ok(origin),
        Ok(origin) if origin != "null" => Err(Advice(format!("{text:?} is not an origin: write {origin}"))),
        _ => Err(Advice(format!(
            "{text:?} is not an origin: write https://HOST or https://HOST:PORT, several with commas, or * for any"
        ))),
    }
}

/// `IP:PORT`.
pub(super) fn listened(text: &str) -> Result<SocketAddr, Advice> {
    text.trim().parse().map_err(|_| {
        Advice("write one address as IP:PORT, such as 0.0.0.0:7700, or [::]:7700 for both versions of IP".to_owned())
    })
}

/// `HOST:PORT`; port 0 is the listen port.
pub(super) fn advertised(text: &str) -> Result<String, Advice> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err(Advice("write HOST:PORT, such as play.example.org:7700".to_owned())),
    }
}
