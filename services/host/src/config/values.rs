//! The values that settings can have, and how they are read. Errors say what a value can be; who gave it is added above.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;
use std::time::Duration;

use annals_wire::Subjects;
use tracing_subscriber::EnvFilter;

use crate::nats::SyncPolicy;

/// The shortest `sync` interval: below it "always" costs the same and promises more.
const SHORTEST_SYNC: Duration = Duration::from_millis(1);

/// The longest: the server's own default.
const LONGEST_SYNC: Duration = Duration::from_secs(120);

/// Why a value cannot be, and what could.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Advice(pub(super) String);

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

/// What counts as acknowledged: before that, nothing of a change is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledged {
    /// JetStream has it.
    Log,
    /// db has it in the store.
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

/// Addresses to listen on; at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listen {
    first: SocketAddr,
    more: Vec<SocketAddr>,
}

impl Listen {
    /// The first.
    pub fn first(&self) -> SocketAddr {
        self.first
    }

    /// All, in the order given.
    pub fn all(&self) -> impl Iterator<Item = SocketAddr> {
        std::iter::once(self.first).chain(self.more.iter().copied())
    }
}

impl FromStr for Listen {
    type Err = Advice;

    fn from_str(text: &str) -> Result<Self, Advice> {
        let address = |one: &str| {
            one.trim().parse().map_err(|_| {
                Advice(format!(
                    "{:?} is no address: write IP:PORT, such as 0.0.0.0:7700",
                    one.trim()
                ))
            })
        };
        let mut addresses = text.split(',').map(address);
        let first = addresses.next().unwrap_or_else(|| address(""))?;
        Ok(Self {
            first,
            more: addresses.collect::<Result<_, _>>()?,
        })
    }
}

/// Which messages are logged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogFilter(String);

impl LogFilter {
    /// For the subscriber.
    pub fn filter(&self) -> EnvFilter {
        EnvFilter::try_new(&self.0).expect("invariant: checked when it was read")
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

impl FromStr for SyncPolicy {
    type Err = Advice;

    /// Reads `always`, `100ms` and `2s`.
    fn from_str(text: &str) -> Result<Self, Advice> {
        if text == "always" {
            return Ok(SyncPolicy::Always);
        }
        let number = text.trim_end_matches(char::is_alphabetic);
        let interval = match (number.parse::<u32>(), &text[number.len()..]) {
            (Ok(count), "ms") => Some(Duration::from_millis(u64::from(count))),
            (Ok(count), "s") => Some(Duration::from_secs(u64::from(count))),
            _ => None,
        };
        interval
            .filter(|interval| (SHORTEST_SYNC..=LONGEST_SYNC).contains(interval))
            .map(SyncPolicy::Every)
            .ok_or_else(|| Advice("write always, or an interval from 1ms to 120s".to_owned()))
    }
}

/// Addresses of nats-servers: what the client library can read.
pub(super) fn nats_url(text: &str) -> Result<String, Advice> {
    for one in text.split(',').map(str::trim) {
        let read = one.parse::<async_nats::ServerAddr>();
        read.map_err(|error| {
            Advice(format!(
                "{one:?} is no address ({error}): write nats://HOST:PORT, several with commas"
            ))
        })?;
    }
    Ok(text.to_owned())
}

/// `HOST:PORT`; port 0 is the one that is listened on.
pub(super) fn advertised(text: &str) -> Result<String, Advice> {
    match text.rsplit_once(':') {
        Some((host, port)) if !host.is_empty() && port.parse::<u16>().is_ok() => Ok(text.to_owned()),
        _ => Err(Advice("write HOST:PORT, such as play.example.org:7700".to_owned())),
    }
}
