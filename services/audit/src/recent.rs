//! What was traded last.

use annals_event::ledger::{Entry, Holder, Order, Outcome, Place};
use annals_ids::TradeId;

use crate::{answer::AuditError, index::Index, rows};

/// Rows read for each trade that is wanted, at most: what is done in a few trades in turn is told in many entries.
const ROWS_PER_TRADE: usize = 50;

impl Index {
    /// The trades in which something was done last, at most `most`, by their last entry, the oldest first. What was refused
    /// does not count: anybody can name any trade.
    ///
    /// # Errors
    /// When the index cannot be read.
    pub async fn recent_trades(&self, most: usize) -> Result<Vec<TradeId>, AuditError> {
        let rows = self
            .last_rows(rows::traded(), most.saturating_mul(ROWS_PER_TRADE))
            .await?;
        let mut trades = Vec::new();
        for (_, value) in rows {
            let trade = rows::decode_trade(&value).map_err(AuditError::Index)?;
            if trades.len() < most && !trades.contains(&trade) {
                trades.push(trade);
            }
        }
        trades.reverse();
        Ok(trades)
    }
}

/// The trade in which an entry did something.
pub(crate) fn trade_of(entry: &Entry) -> Option<TradeId> {
    if matches!(entry.outcome, Outcome::Refused(_)) {
        return None;
    }
    match &entry.order {
        Some(Order::Propose { .. }) => Some(TradeId(entry.of)),
        Some(
            Order::Offer { trade, .. }
            | Order::Withdraw { trade, .. }
            | Order::Accept { trade, .. }
            | Order::Cancel { trade },
        ) => Some(*trade),
        Some(_) => None,
        // Its time was over: a trade, if something lay on its tables.
        None => {
            let postings = entry.postings.iter().map(|posting| posting.account.place);
            let passages = entry.passages.iter().map(|passage| passage.from);
            postings.chain(passages).find_map(|Place { holder, .. }| match holder {
                Holder::Trade(trade, _) => Some(trade),
                Holder::World | Holder::Stored(_) | Holder::Pending(_) => None,
            })
        }
    }
}
