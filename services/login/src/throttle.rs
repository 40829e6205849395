//! Limits how often something may happen per key: wrong passwords per name, registrations per host.

use std::{
    borrow::Borrow,
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use annals_node::time::Mono;

/// Wrong passwords allowed in a row per name: for a player who first tries passwords of other sites.
pub const GUESSES: u32 = 5;

/// Time after which one wrong password is forgiven. The 7,200 guesses a day that this allows are useless against a
/// password that was not leaked.
pub const GUESS_EVERY: Duration = Duration::from_secs(12);

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
    pub fn admits<Q: Ord + ?Sized>(&self, now: Mono, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        let forgiven = self.forgiven.get(key).copied().unwrap_or_default();
        forgiven.since(now) + self.every <= self.every * self.allowed
    }

    /// Counts once.
    pub fn blame<Q: Ord + ToOwned<Owned = K> + ?Sized>(&mut self, now: Mono, key: &Q)
    where
        K: Borrow<Q>,
    {
        let before = self.take(key).unwrap_or_default().max(now);
        let forgiven = before.after(self.every);
        self.forgiven.insert(key.to_owned(), forgiven);
        self.due.insert((forgiven, key.to_owned()));
        while let Some((at, _)) = self.due.first()
            && (*at <= now || self.due.len() > MAX_KEYS)
            && let Some((_, oldest)) = self.due.pop_first()
        {
            self.forgiven.remove::<K>(&oldest);
        }
    }

    /// Clears a key, as after the right password.
    pub fn forgive<Q: Ord + ToOwned<Owned = K> + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        self.take(key);
    }

    fn take<Q: Ord + ToOwned<Owned = K> + ?Sized>(&mut self, key: &Q) -> Option<Mono>
    where
        K: Borrow<Q>,
    {
        let forgiven = self.forgiven.remove(key)?;
        self.due.remove(&(forgiven, key.to_owned()));
        Some(forgiven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_limited_and_refill_slowly() {
        let mut throttle = Throttle::<String>::new(GUESSES, GUESS_EVERY);
        let mut now = Mono(5_000_000_000);
        for guess in 0..GUESSES {
            assert!(throttle.admits(now, "eve"), "guess {guess}");
            throttle.blame(now, "eve");
        }
        assert!(!throttle.admits(now, "eve"));
        assert!(throttle.admits(now, "adam"));
        now = now.after(GUESS_EVERY);
        assert!(throttle.admits(now, "eve"));
        throttle.blame(now, "eve");
        assert!(!throttle.admits(now, "eve"), "one for each so long");
        throttle.forgive("eve");
        assert!(throttle.admits(now, "eve"));
        assert_eq!((throttle.forgiven.len(), throttle.due.len()), (0, 0));
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        let mut throttle = Throttle::<String>::new(GUESSES, GUESS_EVERY);
        for n in 0..MAX_KEYS + 10 {
            throttle.blame(Mono(n as u64), n.to_string().as_str());
        }
        assert_eq!((throttle.forgiven.len(), throttle.due.len()), (MAX_KEYS, MAX_KEYS));
        assert!(!throttle.forgiven.contains_key("9"), "the oldest go");
        // Names whose time has passed are removed by later calls, even if they are not tried again.
        throttle.blame(Mono(0).after(GUESS_EVERY * 100), "late");
        assert_eq!(throttle.forgiven.len(), 1);
    }
}
