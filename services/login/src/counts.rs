//! What clients have tried: wrong credentials by name and by host, and registrations by host. All login processes of a
//! realm count together: each sends the others what it counts, and a new one asks for what they have.

use std::time::Duration;

use annals_ids::Hash;
use annals_node::time::Mono;

use crate::{
    throttle::{GUESS_EVERY, GUESSES, HOST_GUESS_EVERY, HOST_GUESSES, REGISTRATION_EVERY, REGISTRATIONS, Throttle},
    turns::Host,
};

/// Maximum counts that a process sends to a new one: the newest of each kind.
pub const MAX_SHARED_COUNTS: usize = 10_000;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// Wrong credentials for a name, by its keyed hash.
    Name(Hash),
    /// Wrong credentials from a host.
    Host(Host),
    /// Accounts that a host has registered.
    Registration(Host),
}

/// All counts of a process.
#[derive(Debug)]
pub(crate) struct Counts {
    names: Throttle<Hash>,
    hosts: Throttle<Host>,
    registrations: Throttle<Host>,
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            names: Throttle::new(GUESSES, GUESS_EVERY),
            hosts: Throttle::new(HOST_GUESSES, HOST_GUESS_EVERY),
            registrations: Throttle::new(REGISTRATIONS, REGISTRATION_EVERY),
        }
    }
}

impl Counts {
    pub(crate) fn admits(&self, now: Mono, counted: &Counted) -> bool {
        match counted {
            Counted::Name(name) => self.names.admits(now, name),
            Counted::Host(host) => self.hosts.admits(now, host),
            Counted::Registration(host) => self.registrations.admits(now, host),
        }
    }

    pub(crate) fn count(&mut self, now: Mono, counted: &Counted) {
        match counted {
            Counted::Name(name) => self.names.blame(now, name),
            Counted::Host(host) => self.hosts.blame(now, host),
            Counted::Registration(host) => self.registrations.blame(now, host),
        }
    }

    /// Clears a name. Returns whether there was anything to clear.
    pub(crate) fn forgive(&mut self, now: Mono, name: &Hash) -> bool {
        self.names.forgive(now, name)
    }

    /// Takes over what another process has counted: the time until all of it is forgiven.
    pub(crate) fn learn(&mut self, now: Mono, counted: &Counted, remaining: Duration) {
        match counted {
            Counted::Name(name) => self.names.raise(now, name, remaining),
            Counted::Host(host) => self.hosts.raise(now, host, remaining),
            Counted::Registration(host) => self.registrations.raise(now, host, remaining),
        }
    }

    /// The newest counts, each with the time until all of it is forgiven.
    pub(crate) fn newest(&self, now: Mono) -> Vec<(Counted, Duration)> {
        let names = self.names.newest(now).map(|(name, left)| (Counted::Name(name), left));
        let hosts = self.hosts.newest(now).map(|(host, left)| (Counted::Host(host), left));
        let registrations = self.registrations.newest(now);
        let registrations = registrations.map(|(host, left)| (Counted::Registration(host), left));
        let each = MAX_SHARED_COUNTS / 3;
        names
            .take(each)
            .chain(hosts.take(each))
            .chain(registrations.take(each))
            .collect()
    }
}
