//! The faults and their order: a deck of all faults, shuffled by a seed.

use std::fmt;

/// A service whose processes can be killed or frozen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Service {
    Base,
    Cell,
    Db,
    Director,
    Login,
    /// One of the nats-servers.
    Nats,
}

/// All services.
const SERVICES: [Service; 6] = [
    Service::Base,
    Service::Cell,
    Service::Db,
    Service::Director,
    Service::Login,
    Service::Nats,
];

/// Services with leases, which are frozen for longer than a lease.
const HOLDERS: [Service; 4] = [Service::Base, Service::Cell, Service::Db, Service::Director];

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fault {
    /// SIGKILL to one process.
    Kill(Service),
    /// SIGKILL to two at once, of the same service or of two.
    KillBoth(Service, Service),
    /// SIGKILL to every process of the realm at once, then a start as by `annals up`.
    KillEverything,
    /// SIGSTOP to a process for longer than its lease, then SIGCONT.
    Freeze(Service),
}

impl Fault {
    /// All faults.
    pub(crate) fn all() -> Vec<Self> {
        let mut all: Vec<Self> = SERVICES.map(Fault::Kill).into();
        for (place, first) in SERVICES.into_iter().enumerate() {
            let second = SERVICES.into_iter().skip(place + 1);
            all.extend(second.map(|second| Fault::KillBoth(first, second)));
        }
        all.extend([Service::Base, Service::Cell].map(|twice| Fault::KillBoth(twice, twice)));
        all.push(Fault::KillEverything);
        all.extend(HOLDERS.map(Fault::Freeze));
        all
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Service::Base => "base",
            Service::Cell => "cell",
            Service::Db => "db",
            Service::Director => "director",
            Service::Login => "login",
            Service::Nats => "nats-server",
        })
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Kill(service) => write!(f, "kill {service}"),
            Fault::KillBoth(first, second) => write!(f, "kill {first} + {second}"),
            Fault::KillEverything => f.write_str("kill everything"),
            Fault::Freeze(service) => write!(f, "freeze {service}"),
        }
    }
}

/// An endless sequence of faults: all of them in random order, then all in another order.
pub(crate) struct Deck {
    faults: Vec<Fault>,
    left: Vec<Fault>,
}

impl Deck {
    pub(crate) fn of(faults: Vec<Fault>) -> Self {
        assert!(!faults.is_empty(), "a deck is not empty");
        Self {
            faults,
            left: Vec::new(),
        }
    }

    pub(crate) fn draw(&mut self, dice: &mut dyn FnMut() -> u64) -> Fault {
        if self.left.is_empty() {
            self.left.clone_from(&self.faults);
        }
        self.left.swap_remove(dice() as usize % self.left.len())
    }
}
