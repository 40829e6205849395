//! Limits how often a name may be tried with a wrong password.

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

/// Maximum names remembered; at 255 bytes each they take 6 MB. Beyond that the name that is due to be forgiven first is
/// evicted.
pub const MAX_NAMES: usize = 20_000;

/// Wrong passwords by name, or by another key. The state of a name is a moment in the future that each wrong password
/// moves further: the name may be tried while that moment is less than [`GUESSES`] times [`GUESS_EVERY`] away.
#[derive(Debug, Default)]
pub struct Throttle {
    forgiven: BTreeMap<String, Mono>,
    due: BTreeSet<(Mono, String)>,
}

impl Throttle {
    /// Whether the name may be tried.
    #[must_use]
    pub fn admits(&self, now: Mono, name: &str) -> bool {
        let forgiven = self.forgiven.get(name).copied().unwrap_or_default();
        forgiven.since(now) + GUESS_EVERY <= GUESS_EVERY * GUESSES
    }

    /// Records a wrong password.
    pub fn blame(&mut self, now: Mono, name: &str) {
        let before = self.take(name).unwrap_or_default().max(now);
        let forgiven = before.after(GUESS_EVERY);
        self.forgiven.insert(name.to_owned(), forgiven);
        self.due.insert((forgiven, name.to_owned()));
        while let Some((at, _)) = self.due.first()
            && (*at <= now || self.due.len() > MAX_NAMES)
            && let Some((_, oldest)) = self.due.pop_first()
        {
            self.forgiven.remove(&oldest);
        }
    }

    /// Records the right password: clears the name.
    pub fn forgive(&mut self, name: &str) {
        self.take(name);
    }

    fn take(&mut self, name: &str) -> Option<Mono> {
        let forgiven = self.forgiven.remove(name)?;
        self.due.remove(&(forgiven, name.to_owned()));
        Some(forgiven)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guesses_are_limited_and_refill_slowly() {
        let mut throttle = Throttle::default();
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
    fn the_number_of_names_is_bounded() {
        let mut throttle = Throttle::default();
        for n in 0..MAX_NAMES + 10 {
            throttle.blame(Mono(n as u64), &n.to_string());
        }
        assert_eq!((throttle.forgiven.len(), throttle.due.len()), (MAX_NAMES, MAX_NAMES));
        assert!(!throttle.forgiven.contains_key("9"), "the oldest go");
        // Names whose time has passed are removed by later calls, even if they are not tried again.
        throttle.blame(Mono(0).after(GUESS_EVERY * 100), "late");
        assert_eq!(throttle.forgiven.len(), 1);
    }
}
