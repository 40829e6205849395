//! Network partitions.

use annals_ids::ProcessId;

use super::{Step, World};

/// What a process cannot reach. Its clients still reach it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cut {
    /// Log and store.
    pub log: bool,
    /// The other processes.
    pub peers: bool,
    pub director: bool,
}

impl Cut {
    /// Reaches nothing.
    pub const OFF: Self = Self {
        log: true,
        peers: true,
        director: true,
    };
    /// Does not reach other processes.
    pub const FROM_PEERS: Self = Self {
        log: false,
        peers: true,
        director: false,
    };
    /// Does not reach the director.
    pub const FROM_DIRECTOR: Self = Self {
        log: false,
        peers: false,
        director: true,
    };

    /// Whether anything is unreachable.
    #[must_use]
    pub fn is_any(self) -> bool {
        self != Self::default()
    }
}

impl World {
    /// The partition of a process.
    pub(super) fn cut_of(&self, process: ProcessId) -> Cut {
        self.processes.get(&process).map_or_else(Cut::default, |host| host.cut)
    }

    /// Whether messages get through between two processes.
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
