//! Questions, and the answers that follow from the entries about them.

use std::{fmt, str::FromStr};

use annals_event::ledger::Entry;
use annals_ids::{DatabaseId, EntityId, Serial, TradeId, TransferId, TransferNumber};
use thiserror::Error;

use crate::{About, Cited, Contradiction, Item, Owned, Trade, cited::concerns, trade::Parties};

/// The kinds of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Where an item was made, its owners since, and the reasons.
    Item(Serial),
    /// The steps of a trade.
    Trade(TradeId),
    /// The holdings of a stored entity over time.
    Account(DatabaseId),
}

/// The answers.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The path of an item.
    Item(Item),
    /// A trade, step by step.
    Trade(Trade),
    /// The holdings of a stored entity.
    Account(Owned),
}

/// Selects the entries that answer a question from those that only refer to its subject.
#[derive(Clone, Debug)]
pub struct Sieve {
    about: About,
    /// The parties of the trade in question.
    parties: Option<Parties>,
}

/// The text is not a question.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a question is \"item SERIAL\", \"trade ENTITY/NUMBER\" or \"account stored:NUMBER\"")]
pub struct NoQuestion;

impl Question {
    /// What the entries that answer it are about.
    #[must_use]
    pub fn about(&self) -> About {
        match *self {
            Self::Item(serial) => About::Item(serial),
            Self::Trade(TradeId(id)) => About::Transfer(id),
            Self::Account(holder) => About::Holder(holder),
        }
    }

    /// The selection of the entries that answer it.
    #[must_use]
    pub fn sieve(&self) -> Sieve {
        let parties = match *self {
            Self::Trade(id) => Some(Parties::of(id)),
            Self::Item(_) | Self::Account(_) => None,
        };
        let about = self.about();
        Sieve { about, parties }
    }

    /// Number of assets in an answer, each counted in each step in which it is held; counting may end above `most`.
    pub(crate) fn count_assets(&self, entries: &[Cited], most: usize) -> usize {
        match *self {
            Self::Item(_) => 0,
            Self::Trade(id) => Trade::count_assets(id, entries, most),
            Self::Account(holder) => Owned::count_assets(holder, entries, most),
        }
    }

    /// The answer from all entries about the question, in order. `None` if its subject does not exist.
    ///
    /// # Errors
    /// When the entries contradict each other.
    pub fn answer(&self, entries: Vec<Cited>) -> Result<Option<Answer>, Contradiction> {
        Ok(match *self {
            Self::Item(serial) => Item::follow(serial, entries)?.map(Answer::Item),
            Self::Trade(id) => Trade::follow(id, entries)?.map(Answer::Trade),
            Self::Account(holder) => Owned::follow(holder, entries)?.map(Answer::Account),
        })
    }
}

impl Sieve {
    /// Whether an entry answers the question. All candidates must be passed in, in the order of their numbers.
    pub fn takes(&mut self, entry: &Entry) -> bool {
        let is_named = concerns(entry).contains(&self.about);
        is_named && self.parties.as_mut().is_none_or(|parties| parties.concerns(entry))
    }
}

impl Answer {
    /// The entries that it cites, in order.
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
        // A question has exactly one form, so it is parsed leniently and compared.
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

/// Parses a trade's text form: `ENTITY/NUMBER`.
#[must_use]
pub fn read_trade(text: &str) -> Option<TradeId> {
    let (asker, number) = text.split_once('/')?;
    Some(TradeId(TransferId {
        asker: EntityId(asker.parse().ok()?),
        number: TransferNumber(number.parse().ok()?),
    }))
}
