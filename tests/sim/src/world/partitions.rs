//! Who does not reach whom.

use annals_ids::ProcessId;

use super::{Step, World};

/// What a process does not reach at the moment. Its clients reach it all the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Log and store.
    pub log: bool,
    /// The other processes.
    pub peers: bool,
    /// The director.
    pub director: bool,
}

impl Cut {
    /// Nothing is reached.
    pub const OFF: Self = Self {
        log: true,
        peers: true,
        director: true,
    };
    /// Other processes are not reached.
    pub const FROM_PEERS: Self = Self {
        log: false,
        peers: true,
        director: false,
    };
    /// The director is not reached.
    pub const FROM_DIRECTOR: Self = Self {
        log: false,
        peers: false,
        director: true,
    };

    /// Whether anything is not reached.
    #[must_use]
    pub fn is_any(self) -> bool {
        self != Self::default()
    }
}

impl World {
    /// What a process does not reach.
    pub(super) fn cut_of(&self, process: ProcessId) -> Cut {
        self.processes.get(&process).map_or_else(Cut::default, |host| host.cut)
    }

    /// Whether messages of one process get through to another.
    pub(super) fn reach_each_other(&self, one: ProcessId, other: ProcessId) -> bool {
        one == other || !self.cut_of(one).peers && !self.cut_of(other).peers
    }

    pub(super) fn cut(&mut self, process: ProcessId, cut: Cut, length: u64) {
        if let Some(host) = self.processes.get_mut(&process) {
            host.cut = cut;
            self.after(length, Step::Reconnect { process });
        }
    }

    pub(super) fn reconnect(&mut self, process: ProcessId) {
        if let Some(host) = self.processes.get_mut(&process) {
            host.cut = Cut::default();
        }
    }
}
