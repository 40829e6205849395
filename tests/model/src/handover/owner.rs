//! An owner's state: the entity, and both ends of its links with other owners.

use super::MOST_OWNERS;
use super::message::Kind;

/// Maximum calls on one link.
const MOST_CALLS: usize = 4;

/// The sending end of a link between owners.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Out {
    calls: [Option<Kind>; MOST_CALLS],
    confirmed: u8,
}

impl Out {
    pub(crate) fn push(&mut self, kind: Kind) {
        if let Some(free) = self.calls.iter_mut().find(|call| call.is_none()) {
            *free = Some(kind);
        }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.calls.iter().all(Option::is_some)
    }

    /// The call with this number, counted from 1.
    pub(crate) fn at(&self, number: u8) -> Option<Kind> {
        self.calls[usize::from(number) - 1]
    }

    pub(crate) fn unconfirmed(&self) -> impl Iterator<Item = (u8, Kind)> + '_ {
        (1u8..)
            .zip(self.calls)
            .filter(|(number, _)| *number > self.confirmed)
            .filter_map(|(number, call)| Some((number, call?)))
    }

    pub(crate) fn is_news(&self, upto: u8) -> bool {
        upto > self.confirmed && self.at(upto).is_some()
    }

    pub(crate) fn confirm(&mut self, upto: u8) {
        self.confirmed = self.confirmed.max(upto);
    }
}

/// One owner's state.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Owner {
    /// The entity is real here, after this many hand-overs.
    pub(crate) real: Option<u8>,
    /// Whether the home has yet to learn that the entity is here.
    pub(crate) owes_place: bool,
    /// By receiving owner: the entity departed, after this many hand-overs.
    pub(crate) departing: [Option<u8>; MOST_OWNERS],
    /// Without H1: the call was made, but not yet the change that belongs to it.
    pub(crate) half_left: Option<u8>,
    pub(crate) out: [Out; MOST_OWNERS],
    /// The receiving ends: the highest number taken.
    pub(crate) taken: [u8; MOST_OWNERS],
}

impl Owner {
    pub(crate) fn has_departing(&self) -> bool {
        self.departing.iter().any(Option::is_some)
    }

    /// Whether nothing is departing or unconfirmed.
    pub(crate) fn is_quiet(&self) -> bool {
        !self.has_departing() && !self.owes_place && self.out.iter().all(|out| out.unconfirmed().next().is_none())
    }

    pub(crate) fn depart(&mut self, to: u8) {
        self.departing[usize::from(to)] = self.real.take();
        self.owes_place = false;
    }

    pub(crate) fn settle(&mut self, moves: u8) {
        self.real = Some(moves);
        self.owes_place = true;
    }

    /// The entity that departed to `to` is real here again, unchanged. The home may not know its place yet.
    pub(crate) fn take_back(&mut self, to: u8) {
        self.real = self.departing[usize::from(to)].take();
        self.owes_place = self.real != Some(0);
    }
}
