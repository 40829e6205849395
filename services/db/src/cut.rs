//! Consistent cuts (rule F5): the leaves at which an archive can be cut so that no log in it has consumed a call that
//! no log in it has made.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Batch, Header, Link, Thinned, calls_made};
use annals_ids::{Address, CallNumber};

/// Finds consistent cuts in the archive's batches, which must be given in order.
#[derive(Debug, Default)]
pub struct Cuts {
    /// By link and generation, within which numbers are dense.
    made: BTreeMap<(Link, u64), Made>,
    /// Calls that were consumed but not made so far.
    unmade: BTreeSet<(Link, CallNumber)>,
}

/// Calls of one generation made on a link.
#[derive(Debug, Default)]
struct Made {
    /// All calls of the generation up to this one were made.
    upto: u64,
    /// Calls beyond a gap: their batches were archived before those of the gap.
    beyond: BTreeSet<u64>,
}

impl Cuts {
    /// Adds the next batch. Returns whether the archive up to and including it is a consistent cut.
    pub fn take(&mut self, batch: &Batch) -> bool {
        self.take_calls(&batch.header, calls_made(batch))
    }

    /// Like [`Self::take`], for a batch whose events were deleted: the numbers of the calls it made are kept (rule
    /// F14).
    pub fn take_thinned(&mut self, batch: &Thinned) -> bool {
        self.take_calls(&batch.header, batch.calls.iter().copied())
    }

    /// Whether all calls that a batch consumed were made, by batches before it or by itself.
    pub(crate) fn has_made(&self, header: &Header, own: &[(Link, CallNumber)]) -> bool {
        header.consumed.iter().all(|consumed| {
            let link = Link {
                from: consumed.from,
                to: consumed.to,
            };
            self.is_made(link, consumed.number)
                || matches!(consumed.from, Address::Client(_))
                || own.contains(&(link, consumed.number))
        })
    }

    fn is_made(&self, link: Link, number: CallNumber) -> bool {
        let (generation, place) = split(number);
        let made = self.made.get(&(link, generation));
        made.is_some_and(|made| made.contains(place))
    }

    /// Like [`Self::take`], given the calls that the batch made.
    pub(crate) fn take_calls(&mut self, header: &Header, made: impl Iterator<Item = (Link, CallNumber)>) -> bool {
        for (link, number) in made {
            let (generation, place) = split(number);
            self.made.entry((link, generation)).or_default().insert(place);
            self.unmade.remove(&(link, number));
        }
        for consumed in &header.consumed {
            // A call from a client is in no log before it is consumed (rule C8).
            if matches!(consumed.from, Address::Client(_)) {
                continue;
            }
            let link = Link {
                from: consumed.from,
                to: consumed.to,
            };
            if !self.is_made(link, consumed.number) {
                self.unmade.insert((link, consumed.number));
            }
        }
        self.unmade.is_empty()
    }

    /// Whether a call was consumed but made by no batch so far.
    #[must_use]
    pub fn is_open(&self, link: Link, number: CallNumber) -> bool {
        self.unmade.contains(&(link, number))
    }

    /// Number of such calls.
    #[must_use]
    pub fn open_calls(&self) -> usize {
        self.unmade.len()
    }

    /// Calls that were consumed but made by no batch so far.
    pub fn unmade(&self) -> impl Iterator<Item = (Link, CallNumber)> {
        self.unmade.iter().copied()
    }
}

/// The generation of a call number, and its place in the generation, from 1.
fn split(number: CallNumber) -> (u64, u64) {
    let generation = number.generation();
    (generation, number.0 - CallNumber::floor(generation).0)
}

impl Made {
    fn insert(&mut self, number: u64) {
        self.beyond.insert(number);
        while self.beyond.remove(&(self.upto + 1)) {
            self.upto += 1;
        }
    }

    fn contains(&self, number: u64) -> bool {
        number <= self.upto || self.beyond.contains(&number)
    }
}
