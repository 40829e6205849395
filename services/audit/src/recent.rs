//! The most recent trades.

use annals_event::ledger::{AssetSlot, Entry, Holder, Outcome};
use annals_ids::TradeId;
use async_recursion::async_recursion as boxed;

use crate::{answer::AuditError, index::Index, rows};

/// Maximum rows read per requested trade: a few concurrent trades may have many entries.
const ROWS_PER_TRADE: usize = 50;

impl Index {
    /// The trades with the most recent activity, at most `most`, by their last entry, oldest first. Rejected orders do
    /// not count: anyone can name any trade.
    ///
    /// # Errors
    /// When the index cannot be read.
    #[boxed]
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

/// The trade that an entry acted on.
pub(crate) fn trade_of(entry: &Entry) -> Option<TradeId> {
    if matches!(entry.outcome, Outcome::Refused(_)) {
        return None;
    }
    match &entry.order {
        Some(order) => order.trade(entry.of),
        // An expiry: of a trade, if something was on its tables.
        None => {
            let postings = entry.postings.iter().map(|posting| posting.account.place);
            let passages = entry.passages.iter().map(|passage| passage.from);
            postings
                .chain(passages)
                .find_map(|AssetSlot { holder, .. }| match holder {
                    Holder::Trade(trade, _) => Some(trade),
                    Holder::World | Holder::Stored(_) | Holder::Pending(_) => None,
                })
        }
    }
}
