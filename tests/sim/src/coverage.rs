//! How often each kind of fault occurred, over many runs.

use std::{collections::BTreeMap, fmt};

use crate::fault::Kind;

/// Number of occurrences of each kind of fault, and number of runs with it.
#[derive(Clone, Debug, Default)]
pub struct Coverage {
    runs: u64,
    struck: BTreeMap<Kind, (u64, u64)>,
}

impl Coverage {
    /// Adds a run.
    pub fn add(&mut self, struck: &BTreeMap<Kind, u64>) {
        self.runs += 1;
        for (kind, count) in struck.iter().filter(|(_, count)| **count > 0) {
            let sum = self.struck.entry(*kind).or_default();
            *sum = (sum.0 + count, sum.1 + 1);
        }
    }

    /// Kinds that never occurred, so that their effects are untested.
    #[must_use]
    pub fn never(&self) -> Vec<Kind> {
        Kind::all().filter(|kind| !self.struck.contains_key(kind)).collect()
    }
}

/// A table: kind, occurrences, runs.
impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<42} {:>10} {:>10}", "fault", "struck", "in seeds")?;
        for kind in Kind::all() {
            let (count, runs) = self.struck.get(&kind).copied().unwrap_or_default();
            writeln!(f, "{kind:<42} {count:>10} {runs:>10}")?;
        }
        write!(f, "{} seeds", self.runs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Blow, Trouble};

    #[test]
    fn faults_that_never_occurred_are_named() {
        let mut coverage = Coverage::default();
        for kind in Kind::all().filter(|kind| *kind != Kind::Blow(Blow::TornWrite)) {
            coverage.add(&BTreeMap::from([(kind, 2), (Kind::Trouble(Trouble::Drop), 3)]));
        }
        assert_eq!(coverage.never(), [Kind::Blow(Blow::TornWrite)]);
        coverage.add(&BTreeMap::from([(Kind::Blow(Blow::TornWrite), 0)]));
        assert_eq!(coverage.never(), [Kind::Blow(Blow::TornWrite)]);
        coverage.add(&BTreeMap::from([(Kind::Blow(Blow::TornWrite), 1)]));
        assert!(coverage.never().is_empty());
        assert!(coverage.to_string().contains("a write is torn"), "{coverage}");
    }
}
