//! Trades: ordered in batches of a base's log, executed by db's fold, durable in the embedded store.
//!
//! A trade is five orders: propose, an offer of each side, an acceptance of each side. Each depends on the result of
//! the previous one, so they come in five batches. Trades in flight form two sets of five groups, each one order ahead of
//! the next. The sets take turns: while db makes the batch of one set durable, it folds that of the other, so an order
//! follows when the transaction of the previous one is durable. Every batch completes as many trades as it begins, as in a
//! realm whose players trade all the time. A trade is confirmed when the transaction that settled it is durable. The log
//! `ledger` takes the contents of the outbox after each batch, as its owner does in a realm, and its batches are folded with
//! the next of the base. The way of the result from there to the players is not measured here.
//!
//! A bare commit writes one row, a trade about thirty. Reported as well is therefore how fast the bare store commits
//! the same transactions as the trades, without computing them: an upper bound for any ledger that writes the same
//! rows.

pub(crate) mod market;
pub(crate) mod recording;

use std::time::Duration;

use annals_db::ledger::audit;
use annals_store::{embedded::EmbeddedStore, limits};

use crate::{Figure, store};
use market::{Market, Rate, SETS, STAGES};
use recording::{Recording, Written};

/// Trades in each group. In both sets together, as many are at each stage as the bare store has transactions in flight.
const UNCONTENDED: usize = store::IN_FLIGHT / SETS;

/// The same if all trade with one holder, who may have 32 open.
const CONTENDED: usize = 3;

/// Measurements of trading and of the bare store, alternating.
const TURNS: u32 = 3;

/// Measures trades per second, uncontended and contended, against the bare store's commits.
///
/// # Panics
/// If store or fold fail.
#[must_use]
pub fn run() -> Vec<Figure> {
    let directory = crate::scratch();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let open = |name: &str| EmbeddedStore::open(&directory.path().join(name)).expect("a new store");
    let (bare, rows, apart, same) = (open("bare"), open("rows").store(), open("apart"), open("same"));
    let recording = Recording::of(&apart.store());
    let mut apart = runtime.block_on(Market::open(recording.store(), UNCONTENDED, false, 0));
    let mut same = runtime.block_on(Market::open(same.store(), CONTENDED, true, 0));
    let mut commits = 0.0;
    let mut again = Duration::ZERO;
    for _ in 0..TURNS {
        commits += runtime.block_on(store::commits_per_second(&bare)) / f64::from(TURNS);
        runtime.block_on(apart.trade(|| recording.begin()));
        again += runtime.block_on(recording.commit_again(&rows));
        runtime.block_on(same.trade(|| ()));
    }
    for market in [&apart, &same] {
        let report = runtime.block_on(audit(&market.store)).expect("the store answers");
        assert_eq!(report.findings, [], "trading loses nothing");
    }
    figures((&apart, &same), commits, (recording.written(), again))
}

/// Figures of trading, uncontended and contended, against the bare store's commits per second, and against the time the
/// bare store took to write the same rows.
fn figures((apart, same): (&Market, &Market), commits: f64, (written, again): (Written, Duration)) -> Vec<Figure> {
    let (uncontended, contended) = (apart.rate(), same.rate());
    let note = |rate: &Rate, group: usize| {
        format!(
            "{STAGES} orders each, {group} settled by a transaction, p50 {:.2} ms, p99 {:.2} ms from proposal to durable settlement",
            rate.p50, rate.p99
        )
    };
    let baseline = format!("baseline: the bare store's commits, {} in flight", store::IN_FLIGHT);
    let per_trade = |count: u64| count as f64 / apart.settled as f64;
    let largest = apart.store.largest();
    vec![
        Figure::against(
            "trade_vs_store",
            uncontended.per_second,
            commits,
            "trades/s",
            format!("each pair its own; {}; {baseline}", note(&uncontended, UNCONTENDED)),
        ),
        Figure::against(
            "trade_vs_rows",
            uncontended.per_second,
            apart.settled as f64 / again.as_secs_f64(),
            "trades/s",
            format!(
                "the same; baseline: the bare store's commits of the same transactions, {:.0} rows and {:.0} B a trade",
                per_trade(written.rows),
                per_trade(written.bytes)
            ),
        ),
        Figure::against(
            "trade_contended",
            contended.per_second,
            commits,
            "trades/s",
            format!("all with one holder; {}; {baseline}", note(&contended, CONTENDED)),
        ),
        Figure::alone(
            "ledger_orders",
            uncontended.per_second * STAGES as f64,
            "orders/s",
            "the same, counted in orders executed and durable".to_owned(),
        ),
        Figure::against(
            "trade_largest_transaction",
            largest.bytes as f64,
            limits::TRANSACTION_BYTES as f64,
            "B",
            format!(
                "{} mutations and {} conflict ranges at most; baseline: the store's limit",
                largest.mutations, largest.ranges
            ),
        ),
    ]
}
