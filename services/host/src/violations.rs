//! How clients violate the protocol and its limits: counted by kind, and summarised in the process's messages.

use std::{
    collections::BTreeMap,
    fmt,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use annals_login::Host;
use annals_wire::client::{CallRefusal, CloseReason};

/// Time between two messages about violations.
const SUMMARY_EVERY: Duration = Duration::from_secs(60);

/// Maximum hosts that a summary lists separately.
const MAX_HOSTS: usize = 4_096;

/// What a client did against the protocol or its limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// The handshake failed or did not end in time: no TLS, another protocol, a certificate that was not expected.
    FailedHandshake,
    /// A page of another origin tried to connect.
    ForeignOrigin,
    /// A connection above the limit of the process or of its host.
    Refused,
    /// No first frame came in time.
    Silent,
    /// A frame or datagram was malformed.
    Malformed,
    /// A frame was above the limit.
    TooLarge,
    /// Frames and datagrams came faster than the limit.
    TooFast,
    /// The client did not read what was sent.
    TooSlow,
    /// The session of a hello is unknown, or the proof is wrong or used up.
    UnknownSession,
    /// A call of a method that is not exposed.
    NoSuchMethod,
    /// A call of a method that this client may not call on that entity.
    NotAllowed,
    /// A call with arguments that do not fit.
    BadArguments,
    /// A call of a method above its `CallsPerMinute`.
    TooOften,
}

impl Violation {
    /// All, in the order of reports.
    pub const ALL: [Self; 13] = [
        Self::FailedHandshake,
        Self::ForeignOrigin,
        Self::Refused,
        Self::Silent,
        Self::Malformed,
        Self::TooLarge,
        Self::TooFast,
        Self::TooSlow,
        Self::UnknownSession,
        Self::NoSuchMethod,
        Self::NotAllowed,
        Self::BadArguments,
        Self::TooOften,
    ];

    /// The name in metrics, watched values and messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FailedHandshake => "failed_handshake",
            Self::ForeignOrigin => "foreign_origin",
            Self::Refused => "refused",
            Self::Silent => "silent",
            Self::Malformed => "malformed",
            Self::TooLarge => "too_large",
            Self::TooFast => "too_fast",
            Self::TooSlow => "too_slow",
            Self::UnknownSession => "unknown_session",
            Self::NoSuchMethod => "no_such_method",
            Self::NotAllowed => "not_allowed",
            Self::BadArguments => "bad_arguments",
            Self::TooOften => "too_often",
        }
    }

    /// What is counted, for readers.
    pub(crate) const fn about(self) -> &'static str {
        match self {
            Self::FailedHandshake => "failed handshakes",
            Self::ForeignOrigin => "connections of pages of other origins",
            Self::Refused => "connections refused because there were too many, of the process or of one host",
            Self::Silent => "connections closed because no first frame arrived",
            Self::Malformed => "connections closed for malformed bytes",
            Self::TooLarge => "connections closed for a frame above the limit",
            Self::TooFast => "connections closed because the client exceeded a rate limit",
            Self::TooSlow => "connections closed because the client did not read",
            Self::UnknownSession => "connections whose session is unknown, or whose proof is wrong",
            Self::NoSuchMethod => "calls of methods that are not exposed",
            Self::NotAllowed => "calls of methods that the client may not call",
            Self::BadArguments => "calls with arguments that do not fit",
            Self::TooOften => "calls above the CallsPerMinute of their method",
        }
    }

    /// The violation for which a connection was closed, if it was one.
    pub(crate) const fn of_close(reason: CloseReason) -> Option<Self> {
        match reason {
            CloseReason::Malformed => Some(Self::Malformed),
            CloseReason::TooLarge => Some(Self::TooLarge),
            CloseReason::TooFast => Some(Self::TooFast),
            CloseReason::TooSlow => Some(Self::TooSlow),
            CloseReason::Silent => Some(Self::Silent),
            _ => None,
        }
    }
}

impl From<CallRefusal> for Violation {
    fn from(refusal: CallRefusal) -> Self {
        match refusal {
            CallRefusal::NoSuchMethod => Self::NoSuchMethod,
            CallRefusal::NotAllowed => Self::NotAllowed,
            CallRefusal::BadArguments => Self::BadArguments,
            CallRefusal::TooOften => Self::TooOften,
        }
    }
}

/// The violations of a process's clients since it started. Clones count together.
#[derive(Clone, Debug, Default)]
pub struct Violations(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    by_kind: [AtomicU64; Violation::ALL.len()],
    /// Of each host since the last summary, as far as [`MAX_HOSTS`] allows.
    by_host: Mutex<BTreeMap<Host, u64>>,
}

impl Violations {
    /// Counts one.
    pub(crate) fn count(&self, violation: Violation, host: Host) {
        self.0.by_kind[violation as usize].fetch_add(1, Ordering::Relaxed);
        let mut hosts = self.0.by_host.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = hosts.get_mut(&host) {
            *count += 1;
        } else if hosts.len() < MAX_HOSTS {
            hosts.insert(host, 1);
        }
    }

    /// How many there were.
    #[must_use]
    pub fn of(&self, violation: Violation) -> u64 {
        self.0.by_kind[violation as usize].load(Ordering::Relaxed)
    }

    /// How many there were of each kind.
    pub(crate) fn all(&self) -> impl Iterator<Item = (Violation, u64)> + use<> {
        let counts = Violation::ALL.map(|violation| (violation, self.of(violation)));
        counts.into_iter()
    }

    /// Reports what was counted since the last time, once a minute, for as long as it is polled.
    pub(crate) async fn summarise(self) {
        let mut before = Violation::ALL.map(|_| 0);
        let mut summary = tokio::time::interval(SUMMARY_EVERY);
        summary.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            summary.tick().await;
            if let Some(summary) = self.since(&mut before) {
                tracing::warn!(
                    seconds = SUMMARY_EVERY.as_secs(),
                    hosts = summary.hosts,
                    most_of_one_host = summary.most,
                    violations = %summary,
                    "clients violated the protocol; the level debug has the address of each connection that was closed"
                );
            }
        }
    }

    /// What was counted since `before`, which becomes the present counts.
    fn since(&self, before: &mut [u64; Violation::ALL.len()]) -> Option<Summary> {
        let mut counts = Vec::new();
        for ((violation, now), before) in self.all().zip(before) {
            let more = now - std::mem::replace(before, now);
            if more > 0 {
                counts.push((violation, more));
            }
        }
        let hosts = std::mem::take(&mut *self.0.by_host.lock().unwrap_or_else(PoisonError::into_inner));
        (!counts.is_empty()).then(|| Summary {
            counts,
            hosts: hosts.len(),
            most: hosts.into_values().max().unwrap_or(0),
        })
    }
}

/// The violations of a time.
#[derive(Debug, PartialEq, Eq)]
struct Summary {
    counts: Vec<(Violation, u64)>,
    /// How many hosts they came from, at most [`MAX_HOSTS`].
    hosts: usize,
    /// The most of one host.
    most: u64,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (violation, count)) in self.counts.iter().enumerate() {
            let comma = if at > 0 { ", " } else { "" };
            write!(f, "{comma}{} {count}", violation.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use super::*;

    fn host(number: u16) -> Host {
        let [high, low] = number.to_be_bytes();
        Host::from(IpAddr::from([10, 0, high, low]))
    }

    #[test]
    fn a_summary_has_what_happened_since_the_last() {
        let violations = Violations::default();
        let mut before = Violation::ALL.map(|_| 0);
        assert_eq!(violations.since(&mut before), None);

        for _ in 0..3 {
            violations.count(Violation::TooOften, host(1));
        }
        violations.count(Violation::FailedHandshake, host(2));
        let summary = violations.since(&mut before).unwrap();
        assert_eq!(summary.to_string(), "failed_handshake 1, too_often 3");
        assert_eq!((summary.hosts, summary.most), (2, 3));
        assert_eq!(violations.since(&mut before), None, "each is reported once");
        assert_eq!(violations.of(Violation::TooOften), 3);
    }

    #[test]
    fn hosts_are_bounded() {
        let violations = Violations::default();
        for number in 0..u16::try_from(MAX_HOSTS).unwrap() + 10 {
            violations.count(Violation::Silent, host(number));
        }
        let summary = violations.since(&mut Violation::ALL.map(|_| 0)).unwrap();
        assert_eq!(summary.hosts, MAX_HOSTS);
        assert_eq!(summary.counts, [(Violation::Silent, MAX_HOSTS as u64 + 10)]);
    }

    #[test]
    fn counts_are_kept_in_the_order_of_all() {
        for (at, violation) in Violation::ALL.into_iter().enumerate() {
            assert_eq!(violation as usize, at, "{}", violation.name());
        }
    }
}
