//! Consistent cuts (rule F5): up to which leaf an archive can be taken so that no log in it has consumed a call that none in
//! it has made.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Batch, Header, Link, Thinned, calls_made};
use annals_ids::{Address, CallNumber};

/// Looks for consistent cuts, while the archive's batches pass by in their order.
#[derive(Debug, Default)]
pub struct Cuts {
    made: BTreeMap<Link, Made>,
    /// Calls that were consumed and not made so far.
    unmade: BTreeSet<(Link, CallNumber)>,
}

/// The calls that were made on a link.
#[derive(Debug, Default)]
struct Made {
    /// All up to this one.
    upto: u64,
    /// Those beyond a gap: their batches were put back in front of it.
    beyond: BTreeSet<u64>,
}

impl Cuts {
    /// Takes the next batch. Whether the archive up to and with it is a consistent cut.
    pub fn take(&mut self, batch: &Batch) -> bool {
        self.take_calls(&batch.header, calls_made(batch))
    }

    /// As [`Self::take`], of a batch whose events were let go: which calls it made is kept (rule F14).
    pub fn take_thinned(&mut self, batch: &Thinned) -> bool {
        self.take_calls(&batch.header, batch.calls.iter().copied())
    }

    fn take_calls(&mut self, header: &Header, made: impl Iterator<Item = (Link, CallNumber)>) -> bool {
        for (link, number) in made {
            self.made.entry(link).or_default().insert(number.0);
            self.unmade.remove(&(link, number));
        }
        for consumed in &header.consumed {
            // What a client calls is in no log before it is taken (rule C8).
            if matches!(consumed.from, Address::Client(_)) {
                continue;
            }
            let link = Link {
                from: consumed.from,
                to: consumed.to,
            };
            if !self
                .made
                .get(&link)
                .is_some_and(|made| made.contains(consumed.number.0))
            {
                self.unmade.insert((link, consumed.number));
            }
        }
        self.unmade.is_empty()
    }

    /// Calls that were consumed, and made by no batch so far.
    pub fn unmade(&self) -> impl Iterator<Item = (Link, CallNumber)> {
        self.unmade.iter().copied()
    }
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
