//! Limits how often something may happen per key: wrong passwords per name, registrations per host.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use annals_node::time::Mono;

/// Wrong passwords allowed in a row per name: for a player who first tries passwords of other sites.
pub const GUESSES: u32 = 5;

/// Time after which one wrong password is forgiven. The 7,200 guesses a day that this allows are useless against a
/// password that was not leaked.
pub const GUESS_EVERY: Duration = Duration::from_secs(12);

/// Wrong credentials allowed in a row per host: of many players behind one address.
pub const HOST_GUESSES: u32 = 50;

/// Time after which one of them is forgiven.
pub const HOST_GUESS_EVERY: Duration = Duration::from_secs(5);

/// Accounts that a host may register in a row: a family, or a room of friends.
pub const REGISTRATIONS: u32 = 10;

/// Time after which a host may register one more account.
pub const REGISTRATION_EVERY: Duration = Duration::from_secs(600);

/// Maximum keys remembered; at 255 bytes each they take 6 MB. Beyond that the key that is due to be forgiven first is
/// evicted.
pub const MAX_KEYS: usize = 20_000;

/// Counts by key. The state of a key is a moment in the future that each count moves further: the key is admitted while
/// that moment is less than the allowed number of intervals away.
#[derive(Debug)]
pub struct Throttle<K> {
    allowed: u32,
    every: Duration,
    forgiven: BTreeMap<K, Mono>,
    due: BTreeSet<(Mono, K)>,
}

impl<K: Ord + Clone> Throttle<K> {
    /// Allows this number in a row, and one more after each interval.
    #[must_use]
    pub fn new(allowed: u32, every: Duration) -> Self {
        Self {
            allowed,
            every,
            forgiven: BTreeMap::new(),
            due: BTreeSet::new(),
        }
    }

    /// Whether the key is admitted.
    #[must_use]
    pub fn admits(&self, now: Mono, key: &K) -> bool {
        let forgiven = self.forgiven.get(key).copied().unwrap_or_default();
        forgiven.since(now) + self.every <= self.every * self.allowed
    }

    /// Counts once.
    pub fn blame(&mut self, now: Mono, key: &K) {
        let before = self.take(key).unwrap_or_default().max(now);
        self.put(now, key, before.after(self.every));
    }

    /// Clears a key, as after the right password. Returns whether there was anything to clear.
    pub fn forgive(&mut self, now: Mono, key: &K) -> bool {
        self.take(key).is_some_and(|forgiven| forgiven > now)
    }

    /// Has a key be forgiven in this time at the earliest: that is what another process has counted.
    pub fn raise(&mut self, now: Mono, key: &K, remaining: Duration) {
        // More than is allowed makes no difference.
        let theirs = now.after(remaining.min(self.every * self.allowed));
        let forgiven = self.take(key).unwrap_or_default().max(theirs);
        self.put(now, key, forgiven);
    }

    /// The keys with counts, those that are forgiven last first, each with the time until then.
    pub fn newest(&self, now: Mono) -> impl Iterator<Item = (K, Duration)> {
        let counted = self.due.iter().rev().take_while(move |(forgiven, _)| *forgiven > now);
        counted.map(move |(forgiven, key)| (key.clone(), forgiven.since(now)))
    }

    fn put(&mut self, now: Mono, key: &K, forgiven: Mono) {
        self.forgiven.insert(key.clone(), forgiven);
        self.due.insert((forgiven, key.clone()));
        while let Some((at, _)) = self.due.first()
            && (*at <= now || self.due.len() > MAX_KEYS)
            && let Some((_, oldest)) = self.due.pop_first()
        {
            self.forgiven.remove(&oldest);
        }
    }

    fn take(&mut self, key: &K) -> Option<Mono> {
        let forgiven = self.forgiven.remove(key)?;
        self.due.remove(&(forgiven, key.clone()));
        Some(forgiven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_limited_and_refill_slowly() {
        let mut throttle = Throttle::new(GUESSES, GUESS_EVERY);
        let mut now = Mono(5_000_000_000);
        for guess in 0..GUESSES {
            assert!(throttle.admits(now, &"eve"), "guess {guess}");
            throttle.blame(now, &"eve");
        }
        assert!(!throttle.admits(now, &"eve"));
        assert!(throttle.admits(now, &"adam"));
        now = now.after(GUESS_EVERY);
        assert!(throttle.admits(now, &"eve"));
        throttle.blame(now, &"eve");
        assert!(!throttle.admits(now, &"eve"), "one for each so long");
        assert!(throttle.forgive(now, &"eve") && !throttle.forgive(now, &"eve"));
        assert!(throttle.admits(now, &"eve"));
        assert_eq!((throttle.forgiven.len(), throttle.due.len()), (0, 0));
    }

    #[test]
    fn counts_of_another_process_are_learned() {
        let mut here = Throttle::new(GUESSES, GUESS_EVERY);
        let mut there = Throttle::new(GUESSES, GUESS_EVERY);
        let now = Mono(5_000_000_000);
        for _ in 0..GUESSES {
            there.blame(now, &"eve");
        }
        here.blame(now, &"eve");
        let later = now.after(GUESS_EVERY / 2);
        for (key, remaining) in there.newest(later).collect::<Vec<_>>() {
            // Twice changes nothing.
            here.raise(later, &key, remaining);
            here.raise(later, &key, remaining);
        }
        assert!(!here.admits(later, &"eve"));
        assert!(here.admits(now.after(GUESS_EVERY), &"eve"));
        here.raise(later, &"adam", Duration::MAX);
        assert!(
            here.admits(later.after(GUESS_EVERY), &"adam"),
            "no count lasts longer than is possible"
        );
        assert_eq!(here.newest(later.after(GUESS_EVERY * 99)).count(), 0);
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let mut throttle = Throttle::new(GUESSES, GUESS_EVERY);
        for n in 0..MAX_KEYS + 10 {
            throttle.blame(Mono(n as u64), &n);
        }
        assert_eq!((throttle.forgiven.len(), throttle.due.len()), (MAX_KEYS, MAX_KEYS));
        assert!(!throttle.forgiven.contains_key(&9), "the oldest go");
        // Keys whose time has passed are removed by later calls, even if they are not tried again.
        throttle.blame(Mono(0).after(GUESS_EVERY * 100), &usize::MAX);
        assert_eq!(throttle.forgiven.len(), 1);
    }
}
