//! What was asked, and what follows from the entries about it.

use std::{fmt, str::FromStr};

use annals_event::ledger::Entry;
use annals_ids::{DatabaseId, EntityId, Serial, TradeId, TransferId, TransferNumber};
use thiserror::Error;

use crate::{About, Cited, Contradiction, Item, Owned, Trade, cited::concerns, trade::Parties};

/// What can be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Where an item was made, who has had it since, and why.
    Item(Serial),
    /// What was done in a trade.
    Trade(TradeId),
    /// What a stored entity has had, and what was done with it.
    Account(DatabaseId),
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The way of an item.
    Item(Item),
    /// A trade, step by step.
    Trade(Trade),
    /// What somebody has had.
    Account(Owned),
}

/// Takes the entries that answer a question, and leaves those that only name what is asked about.
#[derive(Clone, Debug)]
pub struct Sieve {
    about: About,
    /// Of the trade that is asked about.
    parties: Option<Parties>,
}

/// That is no question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a question is \"item SERIAL\", \"trade ENTITY/NUMBER\" or \"account stored:NUMBER\"")]
pub struct NoQuestion;

impl Question {
    /// What the entries are about that answer it.
    #[must_use]
    pub fn about(&self) -> About {
        match *self {
            Self::Item(serial) => About::Item(serial),
            Self::Trade(TradeId(id)) => About::Transfer(id),
            Self::Account(holder) => About::Holder(holder),
        }
    }

    /// Tells apart which entries answer it.
    #[must_use]
    pub fn sieve(&self) -> Sieve {
        let parties = match *self {
            Self::Trade(id) => Some(Parties::of(id)),
            Self::Item(_) | Self::Account(_) => None,
        };
        let about = self.about();
        Sieve { about, parties }
    }

    /// How many assets an answer tells of, each counted in each step in which it is held; of those beyond `most` not all.
    pub(crate) fn told(&self, entries: &[Cited], most: usize) -> usize {
        match *self {
            Self::Item(_) => 0,
            Self::Trade(id) => Trade::told(id, entries, most),
            Self::Account(holder) => Owned::told(holder, entries, most),
        }
    }

    /// What follows from the entries about it, all of them and in their order. `None` if there is no such thing.
    ///
    /// # Errors
    /// When the entries contradict one another.
    pub fn answer(&self, entries: Vec<Cited>) -> Result<Option<Answer>, Contradiction> {
        Ok(match *self {
            Self::Item(serial) => Item::follow(serial, entries)?.map(Answer::Item),
            Self::Trade(id) => Trade::follow(id, entries)?.map(Answer::Trade),
            Self::Account(holder) => Owned::follow(holder, entries)?.map(Answer::Account),
        })
    }
}

impl Sieve {
    /// Whether an entry answers the question; all that may are to be put to it, in the order of their numbers.
    pub fn takes(&mut self, entry: &Entry) -> bool {
        let is_named = concerns(entry).contains(&self.about);
        is_named && self.parties.as_mut().is_none_or(|parties| parties.concerns(entry))
    }
}

impl Answer {
    /// The entries that it cites, in their order.
    #[must_use]
    pub fn cited(&self) -> Vec<&Cited> {
        match self {
            Self::Item(item) => item.steps.iter().map(|step| &step.cited).collect(),
            Self::Trade(trade) => trade.steps.iter().map(|step| &step.cited).collect(),
            Self::Account(owned) => owned.steps.iter().map(|step| &step.cited).collect(),
        }
    }
}

impl fmt::Display for Question {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(serial) => write!(f, "item {serial}"),
            Self::Trade(id) => write!(f, "trade {id}"),
            Self::Account(holder) => write!(f, "account stored:{holder}"),
        }
    }
}

impl FromStr for Question {
    type Err = NoQuestion;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        // A question has one form, so it is read leniently and compared.
        read(text)
            .filter(|question| question.to_string() == text)
            .ok_or(NoQuestion)
    }
}

fn read(text: &str) -> Option<Question> {
    let (what, which) = text.split_once(' ')?;
    Some(match what {
        "item" => Question::Item(Serial(which.parse().ok()?)),
        "trade" => Question::Trade(read_trade(which)?),
        "account" => Question::Account(DatabaseId(which.strip_prefix("stored:")?.parse().ok()?)),
        _ => return None,
    })
}

/// A trade as it is written: `ENTITY/NUMBER`.
#[must_use]
pub fn read_trade(text: &str) -> Option<TradeId> {
    let (asker, number) = text.split_once('/')?;
    Some(TradeId(TransferId {
        asker: EntityId(asker.parse().ok()?),
        number: TransferNumber(number.parse().ok()?),
    }))
}
