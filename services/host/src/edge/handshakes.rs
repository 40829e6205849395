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

/// Maximum clients of all hosts that wait for their turn: what is served in about eight seconds, after which clients
/// retry.
pub(super) const WAITING: usize = 4_096;

/// The handshakes in progress, and the queue.
#[derive(Debug)]
pub(super) struct Handshakes<T> {
    under_way: BTreeMap<Host, usize>,
    /// Their total number.
    shaking: usize,
    waiting: Turns<T>,
}

impl<T> Handshakes<T> {
    pub(super) fn new() -> Self {
        Self {
            under_way: BTreeMap::new(),
            shaking: 0,
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
        let of_host = self.of(host) + self.waiting.of(host);
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
        let Self { waiting, under_way, .. } = self;
        let of = |host| under_way.get(&host).copied().unwrap_or(0);
        let (host, who) = waiting.next(|host| of(host) < OF_ONE_HOST)?;
        self.shaking += 1;
        *self.under_way.entry(host).or_default() += 1;
        Some((host, who))
    }

    /// A handshake of a host has ended, with any result.
    pub(super) fn ended(&mut self, host: Host) {
        if let Some(count) = self.under_way.get_mut(&host) {
            *count -= 1;
            self.shaking -= 1;
            if *count == 0 {
                self.under_way.remove(&host);
            }
        }
    }

    fn of(&self, host: Host) -> usize {
        self.under_way.get(&host).copied().unwrap_or(0)
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
