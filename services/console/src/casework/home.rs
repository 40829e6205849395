//! Contents of the first page: the most recent trades, and alarms for operators.

use std::collections::BTreeSet;

use annals_audit::{Extent, Index};
use annals_event::ledger::Stage;
use annals_evidence::{Lexicon, Span, TradeStage};
use annals_host::telemetry::Chain;
use annals_ids::{DatabaseId, TradeId, WallTime};
use annals_store::Store;

use super::{Casework, NoAnswer, Verification};
use crate::alarms::{self, Alarm};

/// Maximum trades listed.
const TRADES: usize = 10;

/// Contents of the first page: recent trades, and alarms.
#[derive(Clone, Debug, PartialEq)]
pub struct Home {
    /// Trades with the most recent activity, oldest first.
    pub trades: Vec<TradeLine>,
    pub alarms: Vec<Alarm>,
    /// Names of the parties.
    pub lexicon: Lexicon,
}

/// Summary of a trade.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TradeLine {
    /// Id of the trade.
    pub id: TradeId,
    /// Proposer and partner.
    pub parties: [DatabaseId; 2],
    /// Stage of the trade.
    pub stage: TradeStage,
    /// Time of the last activity.
    pub last: WallTime,
}

impl Home {
    pub(super) async fn of(casework: &Casework, index: &Index) -> Result<Self, NoAnswer> {
        let mut trades = Vec::new();
        for id in index.recent_trades(TRADES).await? {
            let trade = index.trade(casework.store(), id).await?;
            let last = trade.steps.last().map_or(WallTime(0), |step| step.cited.entry.wall);
            trades.push(TradeLine {
                id,
                parties: [trade.proposer, trade.partner],
                stage: trade
                    .stage_within(&Span::default())
                    .unwrap_or(TradeStage::Begun(Stage::Open)),
                last,
            });
        }
        let parties: BTreeSet<DatabaseId> = trades.iter().flat_map(|trade| trade.parties).collect();
        let mut alarms = unsigned(casework.store(), index.extent()?).await?;
        alarms.extend(alarms::of_holes(casework.store()).await?);
        alarms.extend(of_processes(casework).await?);
        Ok(Self {
            trades,
            alarms,
            lexicon: casework.lexicon(index, parties).await?,
        })
    }
}

/// Alarms if the archive is not signed, or differs from what was signed.
async fn unsigned(store: &Store, extent: Extent) -> Result<Vec<Alarm>, NoAnswer> {
    match Verification::of(store, extent, None).await {
        Ok(Verification { shards, .. }) => {
            let is_alone = shards.len() == 1;
            // Of an empty archive there is nothing to sign.
            let unsigned = shards
                .iter()
                .filter(|shard| shard.newest.is_none() && (is_alone || shard.verified.size > 0));
            let alarms = unsigned.map(|shard| Alarm {
                what: match is_alone {
                    true => "Nothing of the archive is signed.".to_owned(),
                    false => format!("Nothing of the archive of shard {} is signed.", shard.shard),
                },
                advice: "Without a signed checkpoint there is no evidence, and a person with the files can have \
                    rewritten them. Run annals-signer.",
            });
            Ok(alarms.collect())
        }
        Err(NoAnswer::Wrong(what)) => Ok(vec![Alarm {
            what: format!("The archive is not what was signed: {what}."),
            advice: "Leave everything as it is, and have an operator run annals log verify.",
        }]),
        Err(other) => Err(other),
    }
}

/// Alarms from the status reports of a live realm's processes.
async fn of_processes(casework: &Casework) -> Result<Vec<Alarm>, NoAnswer> {
    let Some(live) = casework.live() else {
        return Ok(Vec::new());
    };
    let instances = live.instances().await;
    let instances = instances.map_err(|error| NoAnswer::Unavailable(Chain(&error).to_string()))?;
    Ok(alarms::of_processes(&instances))
}
