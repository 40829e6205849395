//! Contents of the first page: the most recent trades, and alarms for operators.

use std::{collections::BTreeSet, time::Duration};

use annals_audit::{Extent, Index};
use annals_event::ledger::Stage;
use annals_evidence::{Lexicon, Span, TradeStage};
use annals_host::{
    config::Realm,
    health::{Instance, discover},
    telemetry::Chain,
};
use annals_ids::{DatabaseId, TradeId, WallTime};
use annals_store::{
    Page, ScanOrder, Store, Transaction,
    layout::archive::{Hole, holes},
};

use super::{Casework, NoAnswer, Verification};

/// Maximum trades listed.
const TRADES: usize = 10;

/// Maximum holes in logs listed.
const HOLES: usize = 20;

/// How long the processes of a realm may take to report their status.
const SAID_WITHIN: Duration = Duration::from_millis(300);

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

/// A condition that needs attention.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Alarm {
    /// Description of the condition.
    pub what: String,
    /// Advice on what to do.
    pub advice: &'static str,
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
        alarms.extend(holes_in(casework.store()).await?);
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
    let found = match Verification::of(store, extent, None).await {
        Ok(Verification { newest: Some(_), .. }) => None,
        Ok(_) => Some(Alarm {
            what: "Nothing of the archive is signed.".to_owned(),
            advice: "Without a signed checkpoint there is no evidence, and a person with the files can have \
                rewritten them. Run annals-signer.",
        }),
        Err(NoAnswer::Wrong(what)) => Some(Alarm {
            what: format!("The archive is not what was signed: {what}."),
            advice: "Leave everything as it is, and have an operator run annals log verify.",
        }),
        Err(other) => return Err(other),
    };
    Ok(Vec::from_iter(found))
}

/// The holes that db has recorded.
async fn holes_in(store: &Store) -> Result<Vec<Alarm>, NoAnswer> {
    let read = |transaction: Transaction| async move {
        transaction
            .snapshot()
            .get_range(&holes(), HOLES, ScanOrder::Forward)
            .await
    };
    let page: Page = store.read(read).await?;
    let mut alarms = Vec::new();
    for (key, value) in &page.rows {
        let ((owner, first), hole) = (Hole::place(key)?, Hole::decode(value)?);
        alarms.push(Alarm {
            what: format!(
                "The log of owner {owner} has a hole: batch {first} is missing, and batch {} follows.",
                hole.until
            ),
            advice: "The missing batches are not in the archive. annals log verify has details, and an operator \
                decides.",
        });
    }
    Ok(alarms)
}

/// Alarms from the status reports of a live realm's processes.
async fn of_processes(casework: &Casework) -> Result<Vec<Alarm>, NoAnswer> {
    let Some((bus, subjects)) = &casework.source.live else {
        return Ok(Vec::new());
    };
    let realm = subjects.realm().parse::<Realm>();
    let realm = realm.map_err(|_| NoAnswer::Unavailable("the realm's name cannot be read".to_owned()))?;
    let found = discover(bus, &realm, SAID_WITHIN, |_| false).await;
    let found = found.map_err(|error| NoAnswer::Unavailable(Chain(&error).to_string()))?;
    Ok(found.iter().filter_map(of_process).collect())
}

fn of_process(process: &Instance) -> Option<Alarm> {
    let (service, report) = (&process.service, &process.report);
    let findings = report.metrics.ledger_findings;
    if findings > 0 {
        return Some(Alarm {
            what: format!("The audit of the ledger, which {service} runs, has {findings} findings."),
            advice: "annals realm audit-ledger names them.",
        });
    }
    // A standby director is expected not to be ready.
    let is_expected = report.ready || service == "director";
    (!is_expected).then(|| Alarm {
        what: format!("A process of {service} is not working: {}.", report.readiness),
        advice: "Its log has details; notify the realm's operator.",
    })
}
