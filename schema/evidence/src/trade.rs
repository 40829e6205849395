//! What happened in a trade, step by step.

use annals_event::ledger::{Entry, Holder, Order, Outcome, Side, Slots, Stage};
use annals_ids::{DatabaseId, OfferVersion, TradeId};

use crate::{Cited, Contradiction, Span, holdings::apply};

/// A trade from its proposal on.
#[derive(Clone, Debug, PartialEq)]
pub struct Trade {
    /// Which.
    pub id: TradeId,
    /// Who proposed it.
    pub proposer: DatabaseId,
    /// With whom.
    pub partner: DatabaseId,
    /// What was done, in order, what was refused included; never empty.
    pub steps: Vec<TradeStep>,
}

/// One thing that was done in a trade, or was to be.
#[derive(Clone, Debug, PartialEq)]
pub struct TradeStep {
    /// What.
    pub cited: Cited,
    /// How the trade stands after it.
    pub stage: Stage,
    /// Which offers are on the table after it.
    pub version: OfferVersion,
    /// The proposer's side after it.
    pub proposer: TradeSide,
    /// The partner's side after it.
    pub partner: TradeSide,
}

/// One side of a trade after a step.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TradeSide {
    /// What is on the table, by the slot it came from.
    pub table: Slots,
    /// Whether what is on the table is accepted.
    pub accepted: bool,
}

/// A trade as it stands between two steps.
struct Standing {
    id: TradeId,
    stage: Stage,
    version: OfferVersion,
    tables: [Slots; 2],
    accepted: [bool; 2],
}

impl Trade {
    /// Follows a trade through the entries that are about it, all of them and in their order. `None` if they do not begin with
    /// its proposal.
    ///
    /// # Errors
    /// When one of them does what cannot be done then.
    pub fn follow(id: TradeId, entries: Vec<Cited>) -> Result<Option<Self>, Contradiction> {
        let first = entries.first().map(|first| &first.entry);
        let Some(Entry {
            holder: proposer,
            order: Some(Order::Propose { with, .. }),
            ..
        }) = first.filter(|first| first.of == id.0)
        else {
            return Ok(None);
        };
        let parties = [*proposer, *with];
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

    /// How it stood at the end of a span; `None` before it was proposed.
    #[must_use]
    pub fn stage_within(&self, span: &Span) -> Option<Stage> {
        let last = self.steps.iter().rev().find(|step| span.had_come_to(&step.cited));
        last.map(|step| step.stage)
    }
}

impl Standing {
    fn new(id: TradeId) -> Self {
        Self {
            id,
            stage: Stage::Open,
            version: OfferVersion(0),
            tables: [Slots::new(), Slots::new()],
            accepted: [false; 2],
        }
    }

    /// The next thing that was done.
    fn take(&mut self, cited: &Cited, parties: [DatabaseId; 2]) -> Result<(), Contradiction> {
        let entry = &cited.entry;
        let is_refused = matches!(entry.outcome, Outcome::Refused(_));
        if is_refused || self.follow(entry, parties).is_some() {
            return Ok(());
        }
        Err(Contradiction::Unfounded {
            trade: self.id,
            entry: entry.number,
        })
    }

    /// Does what an entry says was done; `None` if that cannot be done now.
    fn follow(&mut self, entry: &Entry, parties: [DatabaseId; 2]) -> Option<()> {
        if self.stage != Stage::Open {
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
                    self.stage = Stage::Settled;
                }
            }
            Some(Order::Cancel { .. }) => self.stage = Stage::Cancelled,
            None => self.stage = Stage::Expired,
            Some(_) => return None,
        }
        let is_open = self.stage == Stage::Open;
        (is_open || self.tables.iter().all(Slots::is_empty)).then_some(())
    }
}
