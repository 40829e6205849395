//! The bus and the log's server: which nats-servers are supported, a private one for development and tests, and how a
//! service connects. Nothing here knows what is sent; subjects and messages are in `annals-wire`.

mod access;
mod binary;
mod client;
mod reports;
mod server;
mod servers;
mod stream;
mod subscription;

use std::fmt;
use std::str::FromStr;

pub(crate) use access::check_validity;
pub use access::{Access, AccessProblem, AccessProblems};
pub use binary::{BinaryError, Candidate, find_binary};
pub use client::{Address, BarrierError, Bus, ConnectError, LinkState, Unfit};
pub use reports::{Reports, ReportsError, SUBJECT as REPORTS};
pub use server::{Cluster, NotASyncPolicy, Server, ServerError, ServerOptions, SyncPolicy, write_secret};
pub use servers::{NotACount, ServerCount, Servers};
pub use stream::{Difference, StreamError};
pub use subscription::Subscription;

/// Minimum server version. Older ones ignore unknown fields instead of refusing them, do not fence a stream's former
/// leader (before 2.14.4), or lack `sync_interval: always`.
pub const MINIMUM: Version = Version {
    major: 2,
    minor: 15,
    patch: 1,
};

/// Maximum message size, in bytes: the most that the makers of NATS recommend. A private server is configured for it;
/// a server with a lower limit is refused, since a batch that does not fit would stop its writer at the worst moment.
pub const MAX_PAYLOAD: usize = 8 * 1024 * 1024;

/// The version of a nats-server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// The major number.
    pub major: u16,
    /// The minor number.
    pub minor: u16,
    /// The patch number.
    pub patch: u16,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// The text is not a version.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a version such as 2.15.1")]
pub struct NotAVersion(String);

impl FromStr for Version {
    type Err = NotAVersion;

    /// Parses `2.15.1`, `v2.15.1` and `2.16.0-RC.1`; what follows the third number is ignored.
    fn from_str(text: &str) -> Result<Self, NotAVersion> {
        let plain = text.trim().trim_start_matches('v');
        let plain = plain.split(['-', '+']).next().unwrap_or_default();
        let mut numbers = plain.split('.').map(|part| part.parse::<u16>().ok());
        match (numbers.next(), numbers.next(), numbers.next(), numbers.next()) {
            (Some(Some(major)), Some(Some(minor)), Some(Some(patch)), None) => Ok(Self { major, minor, patch }),
            _ => Err(NotAVersion(text.to_owned())),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_ordered() {
        let version = |text: &str| text.parse::<Version>();
        assert_eq!(version("2.15.1"), Ok(MINIMUM));
        assert_eq!(version("v2.15.1"), Ok(MINIMUM));
        assert_eq!(
            version("2.16.0-RC.1"),
            Ok(Version {
                major: 2,
                minor: 16,
                patch: 0
            })
        );
        assert!(version("2.9.10").unwrap() < MINIMUM, "numbers, not text");
        assert!(version("2.15.10").unwrap() > MINIMUM);
        assert!(version("3.0.0").unwrap() > MINIMUM);
        for bad in ["", "2", "2.15", "2.15.x", "2.15.1.1", "nats", "-1.0.0", "99999999.0.0"] {
            assert_eq!(version(bad), Err(NotAVersion(bad.to_owned())));
        }
    }
}
