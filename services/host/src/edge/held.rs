//! Datagrams that wait a moment for frames of the same connection, to leave in one packet with them.
//!
//! A tick's movements can leave at once, and its frames when the log has acknowledged what they show, some milliseconds
//! later. Each packet has headers of some 70 B, about as much as its content, and is sent by a call of its own.

use std::collections::{BTreeMap, VecDeque};

use annals_node::ConnectionId;
use tokio::time::{Duration, Instant};

/// Maximum time that a datagram waits. JetStream on one server acknowledges a batch earlier, unless the machine is
/// overloaded.
pub(super) const HELD_FOR: Duration = Duration::from_millis(15);

/// The waiting datagrams of an edge.
#[derive(Debug, Default)]
pub(super) struct Held {
    datagrams: BTreeMap<ConnectionId, Waiting>,
    /// When the datagrams of a connection have waited long enough. Those that have left since are in it, too.
    deadlines: VecDeque<(Instant, ConnectionId)>,
}

#[derive(Debug)]
struct Waiting {
    since: Instant,
    datagrams: Vec<Vec<u8>>,
}

impl Held {
    /// Holds datagrams from `now` on, behind those that wait already. Returns whether they are the first that wait.
    pub(super) fn hold(&mut self, now: Instant, connection: ConnectionId, datagrams: Vec<Vec<u8>>) -> bool {
        let is_first = self.deadlines.is_empty();
        let waiting = self.datagrams.entry(connection).or_insert_with(|| {
            self.deadlines.push_back((now + HELD_FOR, connection));
            Waiting {
                since: now,
                datagrams: Vec::new(),
            }
        });
        waiting.datagrams.extend(datagrams);
        is_first
    }

    /// Takes the datagrams of a connection.
    pub(super) fn take(&mut self, connection: ConnectionId) -> Vec<Vec<u8>> {
        self.datagrams
            .remove(&connection)
            .map(|waiting| waiting.datagrams)
            .unwrap_or_default()
    }

    /// Takes the datagrams that have waited long enough.
    pub(super) fn take_overdue(&mut self, now: Instant) -> Vec<(ConnectionId, Vec<Vec<u8>>)> {
        let mut overdue = Vec::new();
        while let Some(&(deadline, connection)) = self.deadlines.front()
            && deadline <= now
        {
            self.deadlines.pop_front();
            // Otherwise they have left, and later ones wait.
            if self
                .datagrams
                .get(&connection)
                .is_some_and(|waiting| waiting.since + HELD_FOR <= now)
            {
                overdue.push((connection, self.take(connection)));
            }
        }
        overdue
    }

    /// When to look for overdue ones next.
    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.front().map(|(deadline, _)| *deadline)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: ConnectionId = ConnectionId(1);
    const OTHER: ConnectionId = ConnectionId(2);

    fn datagram(number: u8) -> Vec<Vec<u8>> {
        vec![vec![number]]
    }

    #[test]
    fn datagrams_leave_with_frames_or_when_they_have_waited_long_enough() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut held = Held::default();
        assert!(held.hold(start, ONE, datagram(1)));
        assert!(!held.hold(after(5), OTHER, datagram(2)));
        assert!(!held.hold(after(6), ONE, datagram(3)));
        assert_eq!(held.take(OTHER), datagram(2), "with frames");
        assert_eq!(held.next_deadline(), Some(after(15)));
        assert_eq!(held.take_overdue(after(14)), []);
        assert_eq!(held.take_overdue(after(15)), [(ONE, vec![vec![1], vec![3]])]);
        assert_eq!(held.take(ONE), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn what_waits_anew_waits_its_whole_time() {
        let start = Instant::now();
        let after = |millis| start + Duration::from_millis(millis);
        let mut held = Held::default();
        held.hold(start, ONE, datagram(1));
        held.take(ONE);
        held.hold(after(10), ONE, datagram(2));
        assert_eq!(held.take_overdue(after(15)), []);
        assert_eq!(held.take_overdue(after(25)), [(ONE, datagram(2))]);
        assert_eq!(held.next_deadline(), None);
    }
}
