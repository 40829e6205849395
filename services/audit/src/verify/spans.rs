//! Dense numbers, stored as runs.

use std::collections::BTreeMap;

use annals_ids::{BatchNumber, OwnerId};

/// Numbers from 1 on, with the places in which they were seen: small if they are as dense as they should be.
#[derive(Clone, Debug, Default)]
pub(super) struct Spans {
    /// By the first number of each run.
    runs: BTreeMap<u64, Run>,
}

#[derive(Clone, Copy, Debug)]
struct Run {
    last: u64,
    seen: Occurrence,
}

/// The place of a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occurrence {
    /// The owner of the log.
    pub owner: OwnerId,
    /// The range of batches in which it was seen.
    pub batches: (BatchNumber, BatchNumber),
}

impl Spans {
    /// Adds a number; if it is present already, returns its place.
    pub(super) fn insert(&mut self, number: u64, owner: OwnerId, batch: BatchNumber) -> Option<Occurrence> {
        if let Some((_, run)) = self.runs.range_mut(..=number).next_back() {
            if number <= run.last {
                return Some(run.seen);
            }
            if number == run.last + 1 && owner == run.seen.owner {
                run.last = number;
                run.seen.batches.0 = run.seen.batches.0.min(batch);
                run.seen.batches.1 = run.seen.batches.1.max(batch);
                return None;
            }
        }
        let seen = Occurrence {
            owner,
            batches: (batch, batch),
        };
        self.runs.insert(number, Run { last: number, seen });
        None
    }

    /// Marks all numbers up to `upto` as seen.
    pub(super) fn seed(&mut self, upto: u64, owner: OwnerId, batch: BatchNumber) {
        let seen = Occurrence {
            owner,
            batches: (BatchNumber(1), batch),
        };
        if upto > self.newest() {
            self.runs.clear();
            self.runs.insert(1, Run { last: upto, seen });
        }
    }

    /// The lowest number; 1 if there is none.
    pub(super) fn oldest(&self) -> u64 {
        self.runs.first_key_value().map_or(1, |(first, _)| *first)
    }

    pub(super) fn contains(&self, number: u64) -> bool {
        let before = self.runs.range(..=number).next_back();
        before.is_some_and(|(_, run)| number <= run.last)
    }

    /// The lowest number that `other` does not contain.
    pub(super) fn first_beyond(&self, other: &Self) -> Option<u64> {
        self.runs.iter().find_map(|(&first, run)| {
            let mut number = first;
            while number <= run.last {
                match other.runs.range(..=number).next_back() {
                    Some((_, before)) if number <= before.last => number = before.last + 1,
                    _ => return Some(number),
                }
            }
            None
        })
    }

    /// The highest number; 0 if there is none.
    pub(super) fn newest(&self) -> u64 {
        self.runs.last_key_value().map_or(0, |(_, run)| run.last)
    }

    /// The first missing number from `from` on, and the first number after the gap.
    pub(super) fn first_gap(&self, from: u64) -> Option<(u64, u64)> {
        let mut expected = from;
        for (&first, run) in &self.runs {
            if first > expected {
                return Some((expected, first));
            }
            expected = run.last + 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use annals_def::split_mix;

    use super::*;

    const OWNER: OwnerId = OwnerId(1);

    #[test]
    fn spans_agree_with_a_set_of_numbers() {
        for seed in 0..50 {
            let mut dice = split_mix(seed);
            let (mut spans, mut set) = (Spans::default(), BTreeSet::new());
            for batch in 1..200 {
                let number = dice() % 100 + 1;
                let owner = OwnerId(u32::from(dice().is_multiple_of(4)));
                let before = spans.insert(number, owner, BatchNumber(batch));
                assert_eq!(before.is_none(), set.insert(number), "seed {seed}: {number}");
                let gap = (1..=set.last().copied().unwrap_or(0)).find(|number| !set.contains(number));
                assert_eq!(spans.first_gap(1).map(|(first, _)| first), gap, "seed {seed}");
                assert_eq!(Some(spans.newest()), set.last().copied(), "seed {seed}");
                let mut other = Spans::default();
                let held: Vec<u64> = (1..=100).filter(|_| !dice().is_multiple_of(3)).collect();
                for number in &held {
                    other.insert(*number, OWNER, BatchNumber(batch));
                }
                let beyond = set.iter().copied().find(|number| !held.contains(number));
                assert_eq!(spans.first_beyond(&other), beyond, "seed {seed}");
                assert!(
                    (1..=101).all(|number| spans.contains(number) == set.contains(&number)),
                    "seed {seed}"
                );
            }
        }
    }

    #[test]
    fn a_run_is_one_row_and_says_where_it_was_seen() {
        let mut spans = Spans::default();
        for number in 1..=1_000 {
            assert_eq!(spans.insert(number, OWNER, BatchNumber(number / 10)), None);
        }
        assert_eq!(spans.runs.len(), 1);
        let seen = Occurrence {
            owner: OWNER,
            batches: (BatchNumber(0), BatchNumber(100)),
        };
        assert_eq!(spans.insert(500, OwnerId(2), BatchNumber(7)), Some(seen));
        assert_eq!(spans.first_gap(1), None);
        spans.insert(1_003, OWNER, BatchNumber(101));
        assert_eq!(spans.first_gap(1), Some((1_001, 1_003)));
    }
}
