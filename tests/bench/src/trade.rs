//! Trades: asked for in batches of a base's log, executed by db's fold, durable in the embedded store.
//!
//! A trade is five orders: propose, an offer of each side, an acceptance of each side. Each asks for something that the one
//! before has made, so they come in five batches. Trades in flight are in five groups, each an order further than the next:
//! every batch finishes as many trades as it begins, as in a realm whose players trade all the time. A trade is confirmed
//! when the transaction that settled it is durable. How the result gets to the players (the outbox, the log `ledger`, the
//! base's own log) is not measured here.
//!
//! A bare commit writes one row, a trade some thirty. So it is also told how fast the bare store commits the very
//! transactions that the trades made, when nobody has to work out what is in them: faster than that no ledger can be that
//! leaves the same rows.

mod recording;

use std::sync::Arc;
use std::time::{Duration, Instant};

use annals_db::{Folder, ledger::audit};
use annals_def::Schema;
use annals_event::{
    BaseCreation, Body, Cause, Event, Gathering, Imprint, Subject, Tail,
    ledger::{Assets, Booking, Goods, News, Order, Outcome},
};
use annals_ids::{
    AssetKind, BatchNumber, DatabaseId, EntityId, EntryNumber, Epoch, Hash, OfferVersion, OwnerId, OwnerKind, Part,
    ProcessId, Shard, Slot, Tick, TradeId, TransferId, TransferNumber, TypeId, WallTime,
};
use annals_store::{
    Store,
    embedded::EmbeddedStore,
    layout::owners::{self, OpeningRecord, OwnerRecord},
    limits,
};

use crate::{Figure, Percentiles, store};
use recording::{Recording, Written};

const SHARD: Shard = Shard(0);
const OWNER: OwnerId = OwnerId(1);
const GOLD: AssetKind = AssetKind(1);

/// Orders that a trade takes.
const STAGES: usize = 5;

/// Trades in each of the five groups: as many transactions as the bare store has in flight.
const UNCONTENDED: usize = store::IN_FLIGHT;

/// The same where all trade with one and the same holder, who may have 32 open.
const CONTENDED: usize = 6;

/// How long each turn runs; they alternate with the bare store, so that a busy moment of the disk falls on both.
const WARM_UP: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_millis(1500);
const TURNS: u32 = 3;

/// Measures trades per second, uncontended and contended, against the bare store's commits.
///
/// # Panics
/// When store or fold fail: then there is nothing to measure.
#[must_use]
pub fn run() -> Vec<Figure> {
    let directory = crate::scratch();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let open = |name: &str| EmbeddedStore::open(&directory.path().join(name)).expect("a new store");
    let (bare, rows, apart, same) = (open("bare"), open("rows").store(), open("apart"), open("same"));
    let recording = Recording::of(&apart.store());
    let mut apart = runtime.block_on(Market::open(recording.store(), UNCONTENDED, false));
    let mut same = runtime.block_on(Market::open(same.store(), CONTENDED, true));
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

/// What trading gave, uncontended and contended, beside the bare store's commits per second, and beside how long it took
/// the bare store to write the same rows.
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

/// A group of trades that go through their stages together.
struct Group {
    stage: usize,
    began: Instant,
    /// Per pair, the proposal.
    ids: Vec<TransferId>,
}

/// Holders, the base that holds them, and db.
struct Market {
    store: Store,
    folder: Folder,
    gathering: Gathering,
    tail: Tail,
    /// The next order of each holder, which is also its entity and its id in the database.
    orders: Vec<u64>,
    groups: Vec<Group>,
    pairs: usize,
    /// Whether one holder is the partner in every trade.
    one_partner: bool,
    is_measured: bool,
    settled: u64,
    time: Duration,
    latencies: Vec<Duration>,
}

struct Rate {
    per_second: f64,
    p50: f64,
    p99: f64,
}

impl Market {
    async fn open(store: Store, pairs: usize, one_partner: bool) -> Self {
        let holders = if one_partner {
            STAGES * pairs + 1
        } else {
            2 * STAGES * pairs
        };
        let mut market = Self {
            folder: found(&store).await,
            store,
            gathering: Gathering::default(),
            tail: Tail::default(),
            orders: vec![0; holders],
            groups: Vec::new(),
            pairs,
            one_partner,
            is_measured: false,
            settled: 0,
            time: Duration::ZERO,
            latencies: Vec::new(),
        };
        let open = market.close(true);
        record_opening(&market.store, &open).await;
        market.fold(open.bytes).await;
        for holder in 0..holders {
            market.live(holder);
        }
        let lives = market.close(false).bytes;
        market.fold(lives).await;
        market
    }

    fn live(&mut self, holder: usize) {
        let creation = BaseCreation {
            type_id: TypeId(0),
            database: DatabaseId(holder as u64 + 1),
            checkout: holder as u64 + 1,
            properties: Vec::new(),
            cell_properties: Vec::new(),
        };
        self.record(holder, Body::BaseCreated(Box::new(creation)));
        let goods = Goods {
            units: [(GOLD, 1 << 40)].into(),
            ..Goods::default()
        };
        self.order(
            holder,
            Order::Mint {
                slot: Slot(0),
                goods,
                reason: "bench".to_owned(),
            },
        );
    }

    fn record(&mut self, holder: usize, body: Body) {
        self.gathering.record(&Event {
            subject: Subject::Entity(entity(holder), Part::Base),
            cause: Cause(0),
            history: None,
            body,
        });
    }

    fn order(&mut self, holder: usize, order: Order) -> TransferId {
        self.answer(holder);
        self.orders[holder] += 1;
        let number = TransferNumber(self.orders[holder]);
        self.record(holder, Body::Ordered { number, order });
        TransferId {
            asker: entity(holder),
            number,
        }
    }

    /// The base hears of the holder's last order, so that it does not wait for ever more of them.
    fn answer(&mut self, holder: usize) {
        if self.orders[holder] > 0 {
            let booking = Booking {
                entry: EntryNumber(1),
                of: TransferId {
                    asker: entity(holder),
                    number: TransferNumber(self.orders[holder]),
                },
                outcome: Outcome::Posted,
                change: None,
                trade: None,
                gift: None,
            };
            self.record(holder, Body::Booked(News::Booking(Box::new(booking))));
        }
    }

    fn close(&mut self, opens: bool) -> annals_event::FrozenBatch {
        let imprint = Imprint {
            realm: "bench".to_owned(),
            owner: OWNER,
            epoch: Epoch(1),
            schema: Hash::ZERO,
        };
        let number = self.tail.batch.0 + 1;
        self.gathering
            .freeze(&imprint, &mut self.tail, Tick(number), WallTime(number), opens)
    }

    async fn fold(&mut self, bytes: Vec<u8>) {
        self.folder.offer(OWNER, bytes);
        while self.folder.has_work() {
            let folded = self.folder.commit().await.expect("it is folded");
            assert_eq!(folded.alarms, [], "nothing is wrong");
        }
    }

    /// One turn. `begin` is called when it begins to be measured.
    async fn trade(&mut self, begin: impl FnOnce()) {
        let warm = Instant::now() + WARM_UP;
        while Instant::now() < warm {
            self.step().await;
        }
        self.is_measured = true;
        begin();
        let start = Instant::now();
        let end = start + MEASURED;
        while Instant::now() < end {
            self.step().await;
        }
        self.time += start.elapsed();
        self.is_measured = false;
    }

    /// One batch: a group begins, and each of those under way goes on.
    async fn step(&mut self) {
        if self.groups.len() < STAGES {
            let group = Group {
                stage: 0,
                began: Instant::now(),
                ids: Vec::new(),
            };
            self.groups.push(group);
        }
        for index in 0..self.groups.len() {
            self.advance(index);
        }
        let batch = self.close(false).bytes;
        self.fold(batch).await;
        for group in &mut self.groups {
            if group.stage == STAGES {
                if self.is_measured {
                    let took = group.began.elapsed();
                    self.latencies.extend(std::iter::repeat_n(took, self.pairs));
                    self.settled += self.pairs as u64;
                }
                group.stage = 0;
                group.began = Instant::now();
                group.ids.clear();
            }
        }
    }

    fn advance(&mut self, index: usize) {
        let stage = self.groups[index].stage;
        for pair in 0..self.pairs {
            let (proposer, partner) = self.sides(index, pair);
            let trade = self.groups[index]
                .ids
                .get(pair)
                .copied()
                .map(TradeId)
                .unwrap_or_default();
            let offer = Order::Offer {
                trade,
                slot: Slot(0),
                assets: Assets::units(GOLD, 1 + pair as u64),
            };
            let accept = Order::Accept {
                trade,
                version: OfferVersion(2),
            };
            let propose = Order::Propose {
                with: DatabaseId(partner as u64 + 1),
                expires: WallTime(self.tail.batch.0 + 1_000_000),
            };
            let (who, order) = match stage {
                0 => (proposer, propose),
                1 => (proposer, offer),
                2 => (partner, offer),
                3 => (proposer, accept),
                _ => (partner, accept),
            };
            let id = self.order(who, order);
            if stage == 0 {
                self.groups[index].ids.push(id);
            }
        }
        self.groups[index].stage += 1;
    }

    /// Who trades with whom.
    fn sides(&self, group: usize, pair: usize) -> (usize, usize) {
        let place = group * self.pairs + pair;
        if self.one_partner {
            (place + 1, 0)
        } else {
            (2 * place, 2 * place + 1)
        }
    }

    fn rate(&self) -> Rate {
        let Percentiles { p50, p99 } = Percentiles::of(&self.latencies);
        Rate {
            per_second: self.settled as f64 / self.time.as_secs_f64(),
            p50: p50 * 1e-3,
            p99: p99 * 1e-3,
        }
    }
}

fn entity(holder: usize) -> EntityId {
    EntityId(holder as u64 + 1)
}

/// The one owner's row, and whoever folds.
async fn found(store: &Store) -> Folder {
    let record = OwnerRecord {
        kind: OwnerKind::Base,
        shard: SHARD,
        epoch: Epoch(1),
        process: ProcessId(1),
    };
    let transaction = store.begin();
    transaction
        .set(&owners::owner_key(OWNER), &record.encode())
        .expect("a small row");
    transaction.commit().await.expect("it commits");
    let schema = Schema::new(Vec::new(), Vec::new(), Vec::new());
    Folder::begin(store.clone(), SHARD, Arc::new(schema))
        .await
        .expect("nobody else folds")
}

async fn record_opening(store: &Store, open: &annals_event::FrozenBatch) {
    let opening = OpeningRecord {
        epoch: Epoch(1),
        number: BatchNumber(1),
        hash: open.hash,
    };
    let transaction = store.begin();
    transaction
        .set(&owners::opening_key(OWNER, Epoch(1)), &opening.encode())
        .expect("a small row");
    transaction.commit().await.expect("it commits");
}
