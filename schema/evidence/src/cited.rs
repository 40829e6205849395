//! What an answer rests on: an entry of the ledger where its log has it, and the order that asked for it where the log of
//! the asker has that.

use annals_event::{
    Body, Consumed, Event, Header, Subject,
    ledger::{Entry, Holder, Order, Place},
};
use annals_ids::{
    DatabaseId, EntryNumber, EventNumber, Hash, LeafIndex, LogPosition, Part, Serial, TradeId, TransferId,
};
use thiserror::Error;

/// An entry of the ledger, with where the archive has it.
#[derive(Clone, Debug, PartialEq)]
pub struct Cited {
    /// The entry.
    pub entry: Entry,
    /// The batch of the ledger's log in which it is told.
    pub at: LogPosition,
    /// That batch's leaf.
    pub leaf: LeafIndex,
    /// Its number in that log.
    pub event: EventNumber,
    /// The definitions under which that batch was written: names of kinds and slots are theirs.
    pub schema: Hash,
    /// The order; `None` where nobody asked, and time was over.
    pub asked: Option<Asked>,
}

/// The event with which a base part asked for something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its batch.
    pub at: LogPosition,
    /// That batch's leaf.
    pub leaf: LeafIndex,
    /// Its number in that log.
    pub event: EventNumber,
    /// The call that led to it; `None` where a timer or the like did.
    pub call: Option<Consumed>,
}

/// An event where an archive has it.
#[derive(Clone, Copy, Debug)]
pub struct Found<'a> {
    /// The leaf of its batch.
    pub leaf: LeafIndex,
    /// The header of its batch.
    pub header: &'a Header,
    /// How many of the batch's events are before it.
    pub place: u32,
    /// The event.
    pub event: &'a Event,
}

/// What entries can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// They move this item.
    Item(Serial),
    /// They belong to this transfer or trade.
    Transfer(TransferId),
    /// They were asked for this entity of the database, or concern what it holds.
    Holder(DatabaseId),
}

/// Why what is cited cannot be the truth.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Contradiction {
    /// An entry should be there.
    #[error("event {event} of batch {at} is not an entry of the ledger")]
    NoEntry {
        /// Which batch.
        at: LogPosition,
        /// Which event.
        event: EventNumber,
    },
    /// An entry and the log of whoever asked for it contradict one another.
    #[error("entry {entry} says that batch {asked} asked for it, and that batch does not: one of the two was made up")]
    NotAsked {
        /// Which entry.
        entry: EntryNumber,
        /// Which batch it names.
        asked: LogPosition,
    },
    /// The way of an item has a gap.
    #[error("entry {entry} moves item {serial} from where it was not: an entry before it is missing, or was changed")]
    Astray {
        /// Which item.
        serial: Serial,
        /// Which entry.
        entry: EntryNumber,
    },
    /// A trade cannot have come to where an entry says.
    #[error(
        "entry {entry} does to trade {trade} what cannot be done to it: an entry before it is missing, or was changed"
    )]
    Unfounded {
        /// Which trade.
        trade: TradeId,
        /// Which entry.
        entry: EntryNumber,
    },
    /// Somebody gives what they do not have.
    #[error(
        "entry {entry} takes from entity {holder} of the database what that does not have: an entry before it is missing, or was changed"
    )]
    Overdrawn {
        /// Who.
        holder: DatabaseId,
        /// Which entry.
        entry: EntryNumber,
    },
}

impl<'a> Found<'a> {
    /// Its batch.
    #[must_use]
    pub fn at(&self) -> LogPosition {
        LogPosition {
            owner: self.header.owner,
            batch: self.header.number,
        }
    }

    /// Its number in its log.
    #[must_use]
    pub fn number(&self) -> EventNumber {
        EventNumber(self.header.first_event.0 + u64::from(self.place))
    }

    /// The entry that it tells.
    ///
    /// # Errors
    /// When it tells none.
    pub fn entry(&self) -> Result<&'a Entry, Contradiction> {
        match &self.event.body {
            Body::Entered { entry: Some(entry), .. } => Ok(entry),
            _ => Err(Contradiction::NoEntry {
                at: self.at(),
                event: self.number(),
            }),
        }
    }
}

/// Whether an event is the order that an entry says to answer.
#[must_use]
pub fn asks(event: &Event, entry: &Entry) -> bool {
    let is_it = match &event.body {
        Body::Ordered { number, order } => *number == entry.of.number && Some(order) == entry.order.as_ref(),
        _ => false,
    };
    is_it && event.subject == Subject::Entity(entry.of.asker, Part::Base)
}

impl Cited {
    /// Holds an entry and the order that it answers against one another. An entry without an order has none before it.
    ///
    /// # Errors
    /// When it is no entry, or the order is another one.
    pub fn of(told: &Found<'_>, asked: Option<&Found<'_>>) -> Result<Self, Contradiction> {
        let entry = told.entry()?;
        let not_asked = || Contradiction::NotAsked {
            entry: entry.number,
            asked: entry.at,
        };
        if entry.order.is_some() != asked.is_some() {
            return Err(not_asked());
        }
        let asked = asked.map(|found| {
            if found.at() != entry.at || !asks(found.event, entry) {
                return Err(not_asked());
            }
            let cause = found.event.cause.0 as usize;
            let call = cause.checked_sub(1).and_then(|index| found.header.consumed.get(index));
            Ok(Asked {
                at: found.at(),
                leaf: found.leaf,
                event: found.number(),
                call: call.copied(),
            })
        });
        Ok(Self {
            entry: entry.clone(),
            at: told.at(),
            leaf: told.leaf,
            event: told.number(),
            schema: told.header.schema,
            asked: asked.transpose()?,
        })
    }
}

/// Whatever an entry is about. Some of it may be named twice.
#[must_use]
pub fn concerns(entry: &Entry) -> Vec<About> {
    let mut found = vec![About::Transfer(entry.of), About::Holder(entry.holder)];
    let named = entry.order.as_ref().and_then(|order| match order {
        Order::Post { of } | Order::Void { of } => Some(*of),
        Order::Offer { trade, .. }
        | Order::Withdraw { trade, .. }
        | Order::Accept { trade, .. }
        | Order::Cancel { trade } => Some(trade.0),
        _ => None,
    });
    found.extend(named.map(About::Transfer));
    let mut touch = |place: Place| match place.holder {
        Holder::World => {}
        Holder::Stored(holder) => found.push(About::Holder(holder)),
        Holder::Pending(of) | Holder::Trade(TradeId(of), _) => found.push(About::Transfer(of)),
    };
    for posting in &entry.postings {
        touch(posting.account.place);
    }
    for passage in &entry.passages {
        touch(passage.from);
        touch(passage.to);
    }
    found.extend(entry.passages.iter().map(|passage| About::Item(passage.serial)));
    found
}
