//! A fair queue: hosts take turns, and room is left for hosts that come later. A host that queues many items delays
//! only itself.

use std::{
    collections::{BTreeMap, VecDeque},
    net::IpAddr,
};

/// The unit of fairness and limits: an address, or the network that one customer is given (RFC 6177).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Host {
    /// An IPv4 address.
    Four([u8; 4]),
    /// The first 64 bits of an IPv6 address.
    Six([u8; 8]),
}

impl From<IpAddr> for Host {
    fn from(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Host::Four(address.octets()),
            IpAddr::V6(address) => {
                let [a, b, c, d, e, f, g, h, ..] = address.octets();
                Host::Six([a, b, c, d, e, f, g, h])
            }
        }
    }
}

/// A bounded queue that serves hosts in turn.
#[derive(Debug)]
pub struct Turns<T> {
    waiting: BTreeMap<Host, VecDeque<T>>,
    /// Number of waiting items.
    queued: usize,
    /// The hosts that have waiting items, next first.
    turns: VecDeque<Host>,
    room: usize,
}

impl<T> Turns<T> {
    /// An empty queue with room for this many items of all hosts.
    #[must_use]
    pub fn new(room: usize) -> Self {
        Self {
            waiting: BTreeMap::new(),
            queued: 0,
            turns: VecDeque::new(),
            room,
        }
    }

    /// Number of waiting items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.queued
    }

    /// Whether no item waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queued == 0
    }

    /// Number of waiting items of a host.
    #[must_use]
    pub fn of(&self, host: Host) -> usize {
        self.waiting.get(&host).map_or(0, VecDeque::len)
    }

    /// Queues an item. A host may take half of the room that is left, so that later hosts always find some.
    ///
    /// # Errors
    /// The item, if the host has its share already.
    pub fn wait(&mut self, host: Host, item: T) -> Result<(), T> {
        if self.of(host) >= (self.room - self.queued) / 2 {
            return Err(item);
        }
        let queue = self.waiting.entry(host).or_default();
        if queue.is_empty() {
            self.turns.push_back(host);
        }
        queue.push_back(item);
        self.queued += 1;
        Ok(())
    }

    /// Takes the oldest item of the host whose turn it is, among those that may be served.
    pub fn next(&mut self, may_be_served: impl Fn(Host) -> bool) -> Option<(Host, T)> {
        let turn = self.turns.iter().position(|host| may_be_served(*host))?;
        let host = self.turns.remove(turn)?;
        let queue = self.waiting.get_mut(&host)?;
        let item = queue.pop_front()?;
        if queue.is_empty() {
            self.waiting.remove(&host);
        } else {
            self.turns.push_back(host);
        }
        self.queued -= 1;
        Some((host, item))
    }

    /// Removes the items of a host that have been given up.
    pub fn give_up(&mut self, host: Host, is_given_up: impl Fn(&T) -> bool) {
        let Some(queue) = self.waiting.get_mut(&host) else {
            return;
        };
        let before = queue.len();
        queue.retain(|item| !is_given_up(item));
        self.queued -= before - queue.len();
        if queue.is_empty() {
            self.waiting.remove(&host);
            self.turns.retain(|other| *other != host);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Maximum waiting items in these tests.
    const ROOM: usize = 512;

    fn host(number: u16) -> Host {
        let [high, low] = number.to_be_bytes();
        Host::from(IpAddr::from([10, 0, high, low]))
    }

    #[test]
    fn a_customers_addresses_are_one_host() {
        let host = |text: &str| Host::from(text.parse::<IpAddr>().unwrap());
        assert_eq!(host("2001:db8:0:1::1"), host("2001:db8:0:1:ffff::2"));
        assert_ne!(host("2001:db8:0:1::1"), host("2001:db8:0:2::1"));
        assert_eq!(host("::ffff:10.0.0.1"), host("10.0.0.1"));
        assert_ne!(host("10.0.0.1"), host("10.0.0.2"));
    }

    #[test]
    fn hosts_take_turns() {
        let mut turns = Turns::new(ROOM);
        for item in 0..3 {
            turns.wait(host(1), item).unwrap();
        }
        turns.wait(host(2), 10).unwrap();
        turns.wait(host(3), 20).unwrap();
        assert_eq!(turns.next(|_| true), Some((host(1), 0)));
        assert_eq!(turns.next(|host| host != self::host(2)), Some((host(3), 20)));
        let rest: Vec<_> = std::iter::from_fn(|| turns.next(|_| true)).collect();
        assert_eq!(rest, [(host(2), 10), (host(1), 1), (host(1), 2)]);
        assert!(turns.is_empty() && turns.turns.is_empty() && turns.waiting.is_empty());
    }

    #[test]
    fn no_host_takes_all_places() {
        let mut turns = Turns::new(ROOM);
        for greedy in 0..3 {
            for _ in 0..ROOM {
                let _ = turns.wait(host(greedy), ());
            }
        }
        assert!(turns.len() < ROOM, "{}", turns.len());
        assert_eq!(turns.wait(host(9), ()), Ok(()), "there is room for another");
        for many in 0..10_000 {
            let _ = turns.wait(host(many), ());
        }
        assert!(turns.len() <= ROOM);
        assert_eq!(turns.turns.len(), turns.waiting.len());
    }

    #[test]
    fn cancelled_turns_free_their_place() {
        let mut turns = Turns::new(ROOM);
        for item in 0..4 {
            turns.wait(host(item % 2), item).unwrap();
        }
        turns.give_up(host(1), |item| *item == 1);
        assert_eq!((turns.len(), turns.of(host(1))), (3, 1));
        turns.give_up(host(0), |_| true);
        turns.give_up(host(7), |_| true);
        assert_eq!(turns.next(|_| true), Some((host(1), 3)));
        assert!(turns.is_empty() && turns.turns.is_empty() && turns.waiting.is_empty());
    }
}
