//! Consistent cuts: the leaves at which an archive can be cut so that no log in it has consumed a call that no log in it
//! has made (rule F5); and at which the archives of several shards can be cut so that no log in them has confirmed a call
//! that no log in them has consumed (rule T6).

use std::collections::{BTreeMap, BTreeSet};

use annals_event::{Batch, Header, Link, Thinned, calls_confirmed, calls_made};
use annals_ids::{Address, CallNumber};
use annals_store::{StoreError, layout::owners::OpeningRecord};

use crate::{Row, restoring::openings_of};

/// Finds consistent cuts in the archive's batches, which must be given in order. The default considers the calls made
/// and consumed, but no confirmations.
#[derive(Debug, Default)]
pub struct Cuts {
    /// By link and generation, within which numbers are dense.
    made: BTreeMap<(Link, u64), Made>,
    /// Calls that were consumed but not made so far.
    unmade: BTreeSet<(Link, CallNumber)>,
    confirmations: Option<Confirmations>,
}

/// Calls that a batch names, other than those that it consumed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Named {
    pub(crate) made: Vec<(Link, CallNumber)>,
    /// The last call that is confirmed on a link.
    pub(crate) confirmed: Vec<(Link, CallNumber)>,
}

impl Named {
    pub(crate) fn of(batch: &Batch) -> Self {
        Self {
            made: calls_made(batch).collect(),
            confirmed: calls_confirmed(batch).collect(),
        }
    }
}

/// Confirmed calls, and those that were consumed.
#[derive(Debug, Default)]
struct Confirmations {
    /// The newest call that was consumed on each link. Earlier calls were consumed or skipped before it (rule C2).
    consumed: BTreeMap<Link, CallNumber>,
    /// Links on which calls up to a number were confirmed but not consumed so far.
    open: BTreeMap<Link, CallNumber>,
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
    /// Considers confirmations too (rule T6), unless a hole was accepted in the realm with these rows: confirmed calls
    /// may have been consumed in void batches (rule F4).
    ///
    /// # Errors
    /// When a row cannot be read.
    pub(crate) fn with_confirmations(rows: &[Row]) -> Result<Self, StoreError> {
        let has_holes = openings_of(rows)?.iter().any(OpeningRecord::closes_a_hole);
        Ok(Self {
            confirmations: (!has_holes).then(Confirmations::default),
            ..Self::default()
        })
    }

    /// Adds the next batch. Returns whether the archive up to and including it is a consistent cut.
    pub fn take(&mut self, batch: &Batch) -> bool {
        self.take_calls(&batch.header, &Named::of(batch))
    }

    /// Like [`Self::take`], for a batch whose events were deleted: the numbers of the calls it made are kept (rule
    /// F14).
    pub fn take_thinned(&mut self, batch: &Thinned) -> bool {
        let named = Named {
            made: batch.calls.clone(),
            ..Named::default()
        };
        self.take_calls(&batch.header, &named)
    }

    /// Whether all calls that a batch consumed were made, and all that it confirmed were consumed, by batches before it
    /// or by itself.
    pub(crate) fn has_causes(&self, header: &Header, named: &Named) -> bool {
        let are_made = header.consumed.iter().all(|consumed| {
            let link = Link {
                from: consumed.from,
                to: consumed.to,
            };
            self.is_made(link, consumed.number)
                || matches!(consumed.from, Address::Client(_))
                || named.made.contains(&(link, consumed.number))
        });
        are_made
            && named.confirmed.iter().all(|(link, upto)| {
                let mut own = header.consumed.iter();
                self.is_consumed(*link, *upto)
                    || own.any(|own| (own.from, own.to) == (link.from, link.to) && own.number >= *upto)
            })
    }

    pub(crate) fn is_made(&self, link: Link, number: CallNumber) -> bool {
        let (generation, place) = split(number);
        let made = self.made.get(&(link, generation));
        made.is_some_and(|made| made.contains(place))
    }

    /// The newest call that was consumed on a link, if confirmations are considered.
    pub(crate) fn consumed(&self, link: Link) -> CallNumber {
        let newest = self.confirmations.as_ref().and_then(|found| found.consumed.get(&link));
        newest.copied().unwrap_or_default()
    }

    /// Whether confirmations are considered.
    pub(crate) fn has_confirmations(&self) -> bool {
        self.confirmations.is_some()
    }

    fn is_consumed(&self, link: Link, number: CallNumber) -> bool {
        let Some(confirmations) = &self.confirmations else {
            return true;
        };
        confirmations
            .consumed
            .get(&link)
            .is_some_and(|newest| *newest >= number)
    }

    /// Like [`Self::take`], given the calls that the batch names.
    pub(crate) fn take_calls(&mut self, header: &Header, named: &Named) -> bool {
        for (link, number) in &named.made {
            let (generation, place) = split(*number);
            self.made.entry((*link, generation)).or_default().insert(place);
            self.unmade.remove(&(*link, *number));
        }
        for consumed in &header.consumed {
            let link = Link {
                from: consumed.from,
                to: consumed.to,
            };
            // A call from a client is in no log before it is consumed (rule C8).
            if matches!(consumed.from, Address::Client(_)) {
                continue;
            }
            if !self.is_made(link, consumed.number) {
                self.unmade.insert((link, consumed.number));
            }
            if let Some(confirmations) = &mut self.confirmations {
                confirmations.consume(link, consumed.number);
            }
        }
        for (link, upto) in &named.confirmed {
            if !self.is_consumed(*link, *upto)
                && let Some(confirmations) = &mut self.confirmations
            {
                confirmations.open.insert(*link, *upto);
            }
        }
        self.unmade.is_empty() && self.confirmations.as_ref().is_none_or(|found| found.open.is_empty())
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

impl Confirmations {
    fn consume(&mut self, link: Link, number: CallNumber) {
        let newest = self.consumed.entry(link).or_default();
        *newest = number.max(*newest);
        if self.open.get(&link).is_some_and(|upto| *upto <= *newest) {
            self.open.remove(&link);
        }
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
