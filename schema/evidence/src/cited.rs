//! The evidence for an answer: a ledger entry with its place in the ledger's log, and the order that it answers with
//! its place in the requester's log.

use annals_event::{
    Body, Consumed, Event, Header, Subject,
    ledger::{AssetSlot, Entry, Holder},
};
use annals_ids::{DatabaseId, EntryNumber, EventNumber, Hash, LogPosition, Part, Serial, TradeId, TransferId};
use thiserror::Error;

use crate::ShardLeaf;

/// An entry of the ledger, with its place in the archive.
#[derive(Clone, Debug, PartialEq)]
pub struct Cited {
    pub entry: Entry,
    /// The batch of the ledger's log that contains it.
    pub at: LogPosition,
    /// That batch's leaf.
    pub leaf: ShardLeaf,
    /// The event's number in that log.
    pub event: EventNumber,
    /// The definitions under which that batch was written, with the names of kinds and slots.
    pub schema: Hash,
    /// The order; `None` for an expiry.
    pub asked: Option<Asked>,
}

/// The event with which a base part made an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its batch.
    pub at: LogPosition,
    /// That batch's leaf.
    pub leaf: ShardLeaf,
    /// The event's number in that log.
    pub event: EventNumber,
    /// The call that caused it; `None` for a timer or the like.
    pub call: Option<Consumed>,
}

/// An event with its place in an archive.
#[derive(Clone, Copy, Debug)]
pub struct ArchivedEvent<'a> {
    /// The leaf of its batch.
    pub leaf: ShardLeaf,
    /// The header of its batch.
    pub header: &'a Header,
    /// Number of the batch's events before it.
    pub place: u32,
    pub event: &'a Event,
}

/// What entries can be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum About {
    /// Entries that move this item.
    Item(Serial),
    /// Entries that belong to this transfer or trade.
    Transfer(TransferId),
    /// Entries that were ordered by this stored entity, or that affect its holdings.
    Holder(DatabaseId),
}

/// Why the cited entries cannot all be true.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Contradiction {
    /// The event should be an entry.
    #[error("event {event} of batch {at} is not an entry of the ledger")]
    NoEntry {
        /// The batch.
        at: LogPosition,
        event: EventNumber,
    },
    /// An entry does not match the log of its requester.
    #[error(
        "entry {entry} cites batch {asked} as its order, and that batch has no such order: one of the two was \
        forged"
    )]
    NotAsked {
        entry: EntryNumber,
        /// The batch that it refers to.
        asked: LogPosition,
    },
    /// The path of an item has a gap.
    #[error(
        "entry {entry} moves item {serial} from a place where it was not: an earlier entry is missing, or was \
        changed"
    )]
    Astray {
        /// The item.
        serial: Serial,
        entry: EntryNumber,
    },
    /// An entry does not fit the state of its trade.
    #[error(
        "entry {entry} is not possible in trade {trade} at that point: an earlier entry is missing, or was changed"
    )]
    Unfounded { trade: TradeId, entry: EntryNumber },
    /// A holder gives assets that it does not hold.
    #[error(
        "entry {entry} takes assets that entity {holder} of the database does not have: an earlier entry is missing, \
         or was changed"
    )]
    Overdrawn { holder: DatabaseId, entry: EntryNumber },
}

impl<'a> ArchivedEvent<'a> {
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

    /// The entry in this event.
    ///
    /// # Errors
    /// When it has none.
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

/// Whether an event is the order that an entry answers.
#[must_use]
pub fn asks(event: &Event, entry: &Entry) -> bool {
    let is_it = match &event.body {
        Body::Ordered { number, order } => *number == entry.of.number && Some(order) == entry.order.as_ref(),
        _ => false,
    };
    is_it && event.subject == Subject::Entity(entry.of.asker, Part::Base)
}

impl Cited {
    /// Pairs an entry with the order that it answers, and checks that they match. An entry of an expiry has no order.
    ///
    /// # Errors
    /// When the event is not an entry, or the order is another one.
    pub fn of(event: &ArchivedEvent<'_>, asked: Option<&ArchivedEvent<'_>>) -> Result<Self, Contradiction> {
        let entry = event.entry()?;
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
            at: event.at(),
            leaf: event.leaf,
            event: event.number(),
            schema: event.header.schema,
            asked: asked.transpose()?,
        })
    }
}

/// Everything that an entry is about, possibly with duplicates.
#[must_use]
pub fn concerns(entry: &Entry) -> Vec<About> {
    let mut found = vec![About::Transfer(entry.of), About::Holder(entry.holder)];
    let open = entry.order.as_ref().and_then(|order| order.parts().open);
    found.extend(open.map(|open| About::Transfer(open.id())));
    let mut touch = |place: AssetSlot| match place.holder {
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
