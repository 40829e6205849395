//! Scheduling of handshakes: few at a time, fewer per host, and hosts in turn. A host that starts handshakes and never
//! completes them delays only itself.

use std::collections::BTreeMap;

pub(super) use annals_login::Host;
use annals_login::Turns;

/// Maximum concurrent handshakes: from 64 on they slow one another down.
pub(super) const AT_ONCE: usize = 32;

/// Maximum concurrent handshakes per host, so that most are left to other hosts.
pub(super) const OF_ONE_HOST: usize = 8;

/// With fewer free handshakes than this, a client must first prove that its address is its own.
const FREE_FOR_STRANGERS: usize = AT_ONCE / 2;

/// Maximum handshakes of a host for clients with an unproven address: the rest is left to the host itself.
const OF_STRANGERS: usize = OF_ONE_HOST / 2;

/// Maximum clients per host that have not sent their first frame, in handshakes or after them. A host that connects and
/// stays silent holds no more.
pub(super) const NEWCOMERS_OF_ONE_HOST: usize = 256;

/// Maximum clients of all hosts that wait for their turn: what is served in about eight seconds, after which clients
/// retry.
pub(super) const WAITING: usize = 4_096;

/// The handshakes in progress, and the queue.
#[derive(Debug)]
pub(super) struct Handshakes<T> {
    under_way: Counts,
    /// Their total number.
    shaking: usize,
    /// Clients that have not sent their first frame, those in handshakes among them.
    newcomers: Counts,
    waiting: Turns<T>,
}

impl<T> Handshakes<T> {
    pub(super) fn new() -> Self {
        Self {
            under_way: Counts::default(),
            shaking: 0,
            newcomers: Counts::default(),
            waiting: Turns::new(WAITING),
        }
    }

    /// Length of the queue.
    pub(super) fn queued(&self) -> usize {
        self.waiting.len()
    }

    /// Whether a client is accepted that has not proven its address: not in a rush, and not when the host has several
    /// handshakes already, which a client with a forged address may have started.
    pub(super) fn takes_strangers(&self, host: Host) -> bool {
        let of_host = self.under_way.of(host) + self.waiting.of(host);
        self.waiting.is_empty() && AT_ONCE - self.shaking > FREE_FOR_STRANGERS && of_host < OF_STRANGERS
    }

    /// Queues a client; if its host has no room left, the client is handed back.
    pub(super) fn wait(&mut self, host: Host, who: T) -> Result<(), T> {
        self.waiting.wait(host, who)
    }

    /// Starts the next handshake; `None` if no client that waits may start.
    pub(super) fn next(&mut self) -> Option<(Host, T)> {
        if self.shaking >= AT_ONCE {
            return None;
        }
        let Self {
            waiting,
            under_way,
            newcomers,
            ..
        } = self;
        let may_begin = |host| under_way.of(host) < OF_ONE_HOST && newcomers.of(host) < NEWCOMERS_OF_ONE_HOST;
        let (host, who) = waiting.next(may_begin)?;
        self.shaking += 1;
        self.under_way.add(host);
        self.newcomers.add(host);
        Some((host, who))
    }

    /// A handshake of a host has ended, with any result.
    pub(super) fn ended(&mut self, host: Host) {
        if self.under_way.take(host) {
            self.shaking -= 1;
        }
    }

    /// A client whose handshake was started has sent its first frame, or its connection is closed.
    pub(super) fn arrived(&mut self, host: Host) {
        self.newcomers.take(host);
    }
}

/// Counts by host.
#[derive(Debug, Default)]
struct Counts(BTreeMap<Host, usize>);

impl Counts {
    fn of(&self, host: Host) -> usize {
        self.0.get(&host).copied().unwrap_or(0)
    }

    fn add(&mut self, host: Host) {
        *self.0.entry(host).or_default() += 1;
    }

    /// Returns whether there was one.
    fn take(&mut self, host: Host) -> bool {
        let Some(count) = self.0.get_mut(&host) else {
            return false;
        };
        *count -= 1;
        if *count == 0 {
            self.0.remove(&host);
        }
        true
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
    fn each_host_has_its_own_share() {
        let mut handshakes = Handshakes::new();
        for number in 0..100 {
            handshakes.wait(host(1), number).unwrap();
        }
        let begun: Vec<_> = std::iter::from_fn(|| handshakes.next()).collect();
        assert_eq!(
            begun,
            (0..OF_ONE_HOST).map(|number| (host(1), number)).collect::<Vec<_>>()
        );

        // Another host's client is served at once, before all that waited earlier.
        handshakes.wait(host(2), 1_000).unwrap();
        assert_eq!(handshakes.next(), Some((host(2), 1_000)));
        assert_eq!(handshakes.next(), None);

        // Hosts in turn, as slots become free.
        handshakes.wait(host(3), 2_000).unwrap();
        handshakes.wait(host(3), 2_001).unwrap();
        handshakes.ended(host(1));
        let begun: Vec<_> = std::iter::from_fn(|| handshakes.next()).collect();
        assert_eq!(begun, [(host(1), 8), (host(3), 2_000), (host(3), 2_001)]);
        assert_eq!(handshakes.queued(), 91);
    }

    #[test]
    fn a_host_has_few_newcomers() {
        let mut handshakes = Handshakes::new();
        let mut begun = 0;
        for number in 0..1_000 {
            handshakes.wait(host(1), number).unwrap();
            // Each completes its handshake and stays silent.
            while handshakes.next().is_some() {
                begun += 1;
                handshakes.ended(host(1));
            }
        }
        assert_eq!(begun, NEWCOMERS_OF_ONE_HOST);
        // Others connect as before.
        handshakes.wait(host(2), 1_000).unwrap();
        assert_eq!(handshakes.next(), Some((host(2), 1_000)));
        handshakes.arrived(host(1));
        assert_eq!(handshakes.next(), Some((host(1), NEWCOMERS_OF_ONE_HOST)));
        assert_eq!(handshakes.next(), None);
    }

    #[test]
    fn concurrent_handshakes_are_bounded() {
        let mut handshakes = Handshakes::new();
        for number in 0..100 {
            handshakes.wait(host(number), ()).unwrap();
        }
        assert_eq!(std::iter::from_fn(|| handshakes.next()).count(), AT_ONCE);
        handshakes.ended(host(0));
        // A host without handshakes in progress frees nothing.
        handshakes.ended(host(0));
        assert_eq!(std::iter::from_fn(|| handshakes.next()).count(), 1);
    }

    #[test]
    fn strangers_are_accepted_only_at_low_load() {
        let mut handshakes = Handshakes::new();
        let mut taken = 0;
        while handshakes.takes_strangers(host(taken / OF_STRANGERS as u16)) {
            handshakes.wait(host(taken / OF_STRANGERS as u16), ()).unwrap();
            assert!(handshakes.next().is_some());
            taken += 1;
        }
        assert_eq!(usize::from(taken), AT_ONCE - FREE_FOR_STRANGERS);

        let mut handshakes = Handshakes::new();
        for _ in 0..OF_STRANGERS {
            assert!(handshakes.takes_strangers(host(1)));
            handshakes.wait(host(1), ()).unwrap();
            assert!(handshakes.next().is_some());
        }
        assert!(!handshakes.takes_strangers(host(1)), "the others may be the host's own");
        assert!(handshakes.takes_strangers(host(2)));
    }
}
