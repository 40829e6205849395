//! The history of a trade, step by step.

use annals_event::ledger::{Entry, Holder, Order, Outcome, RefusalReason, Side, Slots, Stage};
use annals_ids::{DatabaseId, OfferVersion, TradeId};

use crate::{
    Cited, Contradiction, Span,
    holdings::{apply, kept},
};

/// A trade from its proposal on.
#[derive(Clone, Debug, PartialEq)]
pub struct Trade {
    pub id: TradeId,
    /// The stored entity that proposed it.
    pub proposer: DatabaseId,
    /// The other party.
    pub partner: DatabaseId,
    /// Its steps in order, including refused orders of the parties; never empty.
    pub steps: Vec<TradeStep>,
}

/// One step of a trade, executed or refused.
#[derive(Clone, Debug, PartialEq)]
pub struct TradeStep {
    /// The entry.
    pub cited: Cited,
    /// The stage after it.
    pub stage: TradeStage,
    /// The version of the offers after it.
    pub version: OfferVersion,
    /// The proposer's side after it.
    pub proposer: TradeSide,
    /// The partner's side after it.
    pub partner: TradeSide,
}

/// The stage of a trade.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TradeStage {
    /// It never began: the ledger refused the proposal.
    Refused(RefusalReason),
    /// It began, and is open or has ended.
    Begun(Stage),
}

/// The parties of a trade, determined from its entries in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Parties {
    trade: TradeId,
    known: Option<[DatabaseId; 2]>,
}

/// One side of a trade after a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TradeSide {
    /// The assets on the table, by the slot they came from.
    pub table: Slots,
    /// Whether it has accepted what is on the table.
    pub accepted: bool,
}

/// The state of a trade between two steps.
struct Standing {
    id: TradeId,
    stage: TradeStage,
    version: OfferVersion,
    tables: [Slots; 2],
    accepted: [bool; 2],
}

impl Trade {
    /// Follows a trade through all entries about it, in order. `None` if they do not begin with its proposal.
    ///
    /// # Errors
    /// When one of them is not possible at that point.
    pub fn follow(id: TradeId, entries: Vec<Cited>) -> Result<Option<Self>, Contradiction> {
        let Some(parties) = entries.first().and_then(|first| proposal(id, &first.entry)) else {
            return Ok(None);
        };
        let mut standing = Standing::new(id);
        let mut steps = Vec::new();
        for cited in entries {
            standing.take(&cited, parties)?;
            let [proposer, partner] = [0, 1].map(|side| TradeSide {
                table: standing.tables[side].clone(),
                accepted: standing.accepted[side],
            });
            let (stage, version) = (standing.stage, standing.version);
            steps.push(TradeStep {
                cited,
                stage,
                version,
                proposer,
                partner,
            });
        }
        Ok(Some(Self {
            id,
            proposer: parties[0],
            partner: parties[1],
            steps,
        }))
    }

    /// Its stage at the end of a span; `None` before it was proposed.
    #[must_use]
    pub fn stage_within(&self, span: &Span) -> Option<TradeStage> {
        let last = self.steps.iter().rev().find(|step| span.had_come_to(&step.cited));
        last.map(|step| step.stage)
    }

    /// Number of assets on the tables, each counted after each step after which it is there; counting ends above
    /// `most`, or when a step is not possible.
    pub(crate) fn count_assets(id: TradeId, entries: &[Cited], most: usize) -> usize {
        let parties = entries.first().and_then(|first| proposal(id, &first.entry));
        let (mut standing, mut count) = (Standing::new(id), 0usize);
        for cited in entries {
            let done = parties.map(|parties| standing.take(cited, parties));
            if count > most || !matches!(done, Some(Ok(()))) {
                break;
            }
            count = standing.tables.iter().map(kept).fold(count, usize::saturating_add);
        }
        count
    }
}

/// The parties of a trade, if the entry is its proposal.
fn proposal(id: TradeId, entry: &Entry) -> Option<[DatabaseId; 2]> {
    match entry.order {
        Some(Order::Propose { with, .. }) if entry.of == id.0 => Some([entry.holder, with]),
        _ => None,
    }
}

impl Parties {
    /// For a trade without entries so far.
    pub(crate) fn of(trade: TradeId) -> Self {
        Self { trade, known: None }
    }

    /// Whether the next entry that refers to the trade belongs to it. Refused orders from before the trade began, or of
    /// an entity that is not a party, do not: an order can refer to any trade, even a future one.
    pub(crate) fn concerns(&mut self, entry: &Entry) -> bool {
        let is_refused = matches!(entry.outcome, Outcome::Refused(_));
        if let Some(parties) = proposal(self.trade, entry) {
            self.known = (!is_refused).then_some(parties);
            return true;
        }
        !is_refused || self.known.is_some_and(|known| known.contains(&entry.holder))
    }
}

impl Standing {
    fn new(id: TradeId) -> Self {
        Self {
            id,
            stage: TradeStage::Begun(Stage::Open),
            version: OfferVersion(0),
            tables: [Slots::new(), Slots::new()],
            accepted: [false; 2],
        }
    }

    /// Applies the next step.
    fn take(&mut self, cited: &Cited, parties: [DatabaseId; 2]) -> Result<(), Contradiction> {
        let entry = &cited.entry;
        if let Outcome::Refused(reason) = entry.outcome {
            if proposal(self.id, entry).is_some() {
                self.stage = TradeStage::Refused(reason);
            }
            return Ok(());
        }
        if self.follow(entry, parties).is_some() {
            return Ok(());
        }
        Err(Contradiction::Unfounded {
            trade: self.id,
            entry: entry.number,
        })
    }

    /// Applies an entry; `None` if it is not possible now.
    fn follow(&mut self, entry: &Entry, parties: [DatabaseId; 2]) -> Option<()> {
        if self.stage != TradeStage::Begun(Stage::Open) {
            return None;
        }
        for (table, side) in self.tables.iter_mut().zip([Side::Proposer, Side::Partner]) {
            apply(table, Holder::Trade(self.id, side), entry)?;
        }
        match &entry.order {
            Some(Order::Propose { .. }) => {}
            Some(Order::Offer { .. } | Order::Withdraw { .. }) => {
                self.version = OfferVersion(self.version.0 + 1);
                self.accepted = [false; 2];
            }
            Some(Order::Accept { version, .. }) => {
                let side = parties.iter().position(|party| *party == entry.holder);
                self.accepted[side.filter(|_| *version == self.version)?] = true;
                if self.accepted == [true; 2] {
                    self.stage = TradeStage::Begun(Stage::Settled);
                } else if !(entry.postings.is_empty() && entry.passages.is_empty()) {
                    // The other side has not accepted.
                    return None;
                }
            }
            Some(Order::Cancel { .. }) => self.stage = TradeStage::Begun(Stage::Cancelled),
            None => self.stage = TradeStage::Begun(Stage::Expired),
            Some(_) => return None,
        }
        let is_open = self.stage == TradeStage::Begun(Stage::Open);
        (is_open || self.tables.iter().all(Slots::is_empty)).then_some(())
    }
}
