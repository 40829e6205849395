//! Holders that trade, their base, the log `ledger`, and db.

use std::sync::Arc;
use std::time::{Duration, Instant};

use annals_db::{Folder, PIPELINED_FROM, ledger::Outbox};
use annals_def::Schema;
use annals_event::{
    BaseCreation, Body, Call, Cause, Event, FrozenBatch, Gathering, Imprint, Subject, Tail,
    ledger::{Assets, Booking, Goods, LedgerUpdate, Notice, Order, Outcome},
};
use annals_ids::{
    Address, AssetKind, BatchNumber, CallNumber, DatabaseId, EntityId, EntryNumber, Epoch, Hash, NoticeNumber,
    OfferVersion, OwnerId, OwnerKind, Part, ProcessId, Shard, Slot, Tick, TradeId, TransferId, TransferNumber, TypeId,
    WallTime,
};
use annals_store::{
    Store,
    layout::owners::{self, OpeningRecord, OwnerRecord},
};

use crate::Percentiles;

const SHARD: Shard = Shard(0);
const BASE: OwnerId = OwnerId(1);
const LEDGER: OwnerId = OwnerId(2);
const GOLD: AssetKind = AssetKind(1);

/// Orders per trade.
pub(crate) const STAGES: usize = 5;

/// Sets of groups that take turns: while the batch of one is made durable, that of the other is folded.
pub(crate) const SETS: usize = 2;

/// Groups of trades in flight.
const GROUPS: usize = SETS * STAGES;

/// Warm-up and measurement of a turn; turns alternate with the bare store, so that a busy moment of the disk affects
/// both.
const WARM_UP: Duration = Duration::from_millis(300);
const MEASURED: Duration = Duration::from_millis(1500);

/// Milliseconds between batches, by the batches' own time.
const PACE: u64 = 100;

/// Batches until a proposal expires; a trade takes ten.
const LASTS: u64 = 100;

/// Maximum notices read from the outbox at a time, as by db in a realm.
const NOTICES_AT_ONCE: usize = 256;

/// A group of trades that are at the same stage.
struct Group {
    stage: usize,
    began: Instant,
    /// The proposal of each pair.
    ids: Vec<TransferId>,
}

/// An owner's log being written.
struct Log {
    owner: OwnerId,
    gathering: Gathering,
    tail: Tail,
}

/// A holder: its database id is its index plus one.
struct Holder {
    entity: EntityId,
    /// Its last order.
    order: TransferNumber,
}

/// The holders, both logs and db's fold.
pub(crate) struct Market {
    pub(crate) store: Store,
    pub(crate) folder: Folder,
    base: Log,
    ledger: Log,
    outbox: Outbox,
    /// The last call of the ledger's owner to the base.
    called: CallNumber,
    holders: Vec<Holder>,
    /// Number of the last activation, and its check-out.
    lives: u64,
    groups: Vec<Group>,
    /// The set whose turn it is.
    set: usize,
    /// Trades of a group.
    pairs: usize,
    /// Whether one holder is the partner in every trade.
    one_partner: bool,
    /// Processor time of this thread for making batches, which is not db's work.
    making: Duration,
    is_measured: bool,
    pub(crate) settled: u64,
    time: Duration,
    latencies: Vec<Duration>,
}

pub(crate) struct Rate {
    pub(crate) per_second: f64,
    pub(crate) p50: f64,
    pub(crate) p99: f64,
}

impl Log {
    fn new(owner: OwnerId) -> Self {
        Self {
            owner,
            gathering: Gathering::default(),
            tail: Tail::default(),
        }
    }

    fn record(&mut self, subject: Subject, body: Body) {
        self.gathering.record(&Event {
            subject,
            cause: Cause(0),
            history: None,
            body,
        });
    }

    fn close(&mut self, opens: bool) -> FrozenBatch {
        let imprint = Imprint {
            realm: "bench".to_owned(),
            owner: self.owner,
            epoch: Epoch(1),
            schema: Hash::ZERO,
        };
        let number = self.tail.batch.0 + 1;
        let (tick, wall) = (Tick(number), WallTime(number * PACE));
        self.gathering.freeze(&imprint, &mut self.tail, tick, wall, opens)
    }
}

impl Market {
    /// A market with `others` holders that are idle until an order to act.
    pub(crate) async fn open(store: Store, pairs: usize, one_partner: bool, others: usize) -> Self {
        let traders = if one_partner {
            GROUPS * pairs + 1
        } else {
            2 * GROUPS * pairs
        };
        let mut market = Self {
            folder: found(&store).await,
            store,
            base: Log::new(BASE),
            ledger: Log::new(LEDGER),
            outbox: Outbox::default(),
            called: CallNumber(0),
            holders: Vec::new(),
            lives: 0,
            groups: Vec::new(),
            set: 0,
            pairs,
            one_partner,
            making: Duration::ZERO,
            is_measured: false,
            settled: 0,
            time: Duration::ZERO,
            latencies: Vec::new(),
        };
        for owner in [BASE, LEDGER] {
            let open = market.log(owner).close(true);
            record_opening(&market.store, owner, &open).await;
            market.fold(owner, open.bytes).await;
            market.take_folded(0).await;
        }
        for holder in 0..traders + others {
            market.holders.push(Holder {
                entity: EntityId(0),
                order: TransferNumber(0),
            });
            market.live(holder);
            let goods = Goods {
                units: [(GOLD, 1 << 40)].into(),
                ..Goods::default()
            };
            let (slot, reason) = (Slot(0), "bench".to_owned());
            market.order(holder, Order::Mint { slot, goods, reason });
        }
        market.turn().await;
        market
    }

    /// Indices of the idle holders.
    pub(crate) fn others(&self) -> std::ops::Range<usize> {
        let traders = if self.one_partner {
            GROUPS * self.pairs + 1
        } else {
            2 * GROUPS * self.pairs
        };
        traders..self.holders.len()
    }

    /// Ends the holder's activation, if there is one, and begins the next.
    pub(crate) fn live(&mut self, holder: usize) {
        if self.holders[holder].entity != EntityId(0) {
            self.record(holder, Body::Destroyed);
        }
        self.lives += 1;
        self.holders[holder] = Holder {
            entity: EntityId(self.lives),
            order: TransferNumber(0),
        };
        let creation = BaseCreation {
            type_id: TypeId(0),
            database: DatabaseId(holder as u64 + 1),
            checkout: self.lives,
            properties: Vec::new(),
            cell_properties: Vec::new(),
        };
        self.record(holder, Body::BaseCreated(Box::new(creation)));
    }

    /// Proposes a trade that is never continued; it expires after this many batches.
    pub(crate) fn propose(&mut self, holder: usize, with: usize, batches: u64) -> TransferId {
        let with = DatabaseId(with as u64 + 1);
        let expires = WallTime((self.base.tail.batch.0 + batches) * PACE);
        self.order(holder, Order::Propose { with, expires })
    }

    fn log(&mut self, owner: OwnerId) -> &mut Log {
        if owner == BASE {
            &mut self.base
        } else {
            &mut self.ledger
        }
    }

    fn record(&mut self, holder: usize, body: Body) {
        let subject = Subject::Entity(self.holders[holder].entity, Part::Base);
        self.base.record(subject, body);
    }

    fn order(&mut self, holder: usize, order: Order) -> TransferId {
        self.answer(holder);
        let Holder { entity, order: last } = &mut self.holders[holder];
        *last = last.next();
        let (asker, number) = (*entity, *last);
        self.record(holder, Body::Ordered { number, order });
        TransferId { asker, number }
    }

    /// The base receives the outcome of the holder's last order, so that pending orders do not accumulate.
    fn answer(&mut self, holder: usize) {
        let Holder { entity, order } = self.holders[holder];
        if order > TransferNumber(0) {
            let booking = Booking {
                entry: EntryNumber(1),
                of: TransferId {
                    asker: entity,
                    number: order,
                },
                outcome: Outcome::Posted,
                change: None,
                trade: None,
                gift: None,
            };
            self.record(holder, Body::Booked(LedgerUpdate::Booking(Box::new(booking))));
        }
    }

    /// Processor time of this thread for making batches so far.
    pub(crate) fn making(&self) -> Duration {
        self.making
    }

    fn make<T>(&mut self, batch: impl FnOnce(&mut Self) -> T) -> T {
        let began = crate::busy();
        let made = batch(self);
        self.making += crate::busy() - began;
        made
    }

    /// Folds the recorded batches, and empties the outbox.
    async fn turn(&mut self) {
        let batch = self.make(|market| market.base.close(false).bytes);
        self.fold(BASE, batch).await;
        self.empty_outbox().await;
    }

    /// Gives the notices in the outbox to the ledger's owner, as db does in a realm. The owner's batch is folded
    /// together with the next one of the base.
    async fn empty_outbox(&mut self) {
        let mut all = Vec::new();
        loop {
            let notices = self.outbox.read(&self.store, NOTICES_AT_ONCE).await;
            let notices = notices.expect("the store answers");
            let Some((last, _)) = notices.last() else { break };
            self.outbox.give(*last);
            all.extend(notices);
        }
        let batch = self.make(|market| market.enter(all));
        self.folder.offer(LEDGER, batch);
    }

    /// A batch of the ledger's owner: records notices, calls the parties, and confirms the calls of its previous batch.
    fn enter(&mut self, notices: Vec<(NoticeNumber, Notice)>) -> Vec<u8> {
        let (to, upto) = (Address::Owner(BASE), self.called);
        if upto > CallNumber(0) {
            let lost = false;
            self.ledger.record(Subject::Owner, Body::Confirmed { to, upto, lost });
        }
        for (notice, what) in notices {
            let entry = what.entry;
            self.ledger.record(Subject::Owner, Body::Entered { notice, entry });
            for delivery in what.deliveries {
                self.called = self.called.next();
                let (number, home) = (self.called, delivery.home);
                let call = Call::Ledger {
                    to: delivery.to,
                    update: delivery.update,
                };
                self.ledger
                    .record(Subject::Owner, Body::Called { to, home, number, call });
            }
        }
        self.ledger.close(false).bytes
    }

    async fn fold(&mut self, owner: OwnerId, bytes: Vec<u8>) {
        self.folder.offer(owner, bytes);
        if self.folder.pending_bytes() < PIPELINED_FROM {
            self.take_folded(0).await;
        }
        while self.folder.has_work() {
            self.folder.submit().await.expect("it is folded");
            self.take_folded(1).await;
        }
    }

    /// Waits until at most `left` transactions are not durable yet.
    async fn take_folded(&mut self, left: usize) {
        while self.folder.submitted() > left {
            let folded = self.folder.next_folded().await.expect("it is durable");
            assert_eq!(folded.map(|folded| folded.alarms), Some(Vec::new()), "nothing is wrong");
        }
    }

    /// One turn. `begin` is called when measurement begins.
    pub(crate) async fn trade(&mut self, begin: impl FnOnce()) {
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

    /// One batch: a new group of the set whose turn it is begins, and each of its groups in flight advances. Then the batch
    /// before, of the other set, is durable.
    pub(crate) async fn step(&mut self) {
        if self.groups.len() < GROUPS {
            let group = Group {
                stage: 0,
                began: Instant::now(),
                ids: Vec::new(),
            };
            self.groups.push(group);
        }
        self.make(|market| {
            let indices = market.set..market.groups.len();
            indices.step_by(SETS).for_each(|index| market.advance(index));
        });
        self.turn().await;
        self.set = (self.set + 1) % SETS;
        for group in self.groups.iter_mut().skip(self.set).step_by(SETS) {
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
            match stage {
                0 => {
                    let id = self.propose(proposer, partner, LASTS);
                    self.groups[index].ids.push(id);
                }
                1 => drop(self.order(proposer, offer)),
                2 => drop(self.order(partner, offer)),
                3 => drop(self.order(proposer, accept)),
                _ => drop(self.order(partner, accept)),
            }
        }
        self.groups[index].stage += 1;
    }

    /// The two sides of a pair.
    fn sides(&self, group: usize, pair: usize) -> (usize, usize) {
        let place = group * self.pairs + pair;
        if self.one_partner {
            (place + 1, 0)
        } else {
            (2 * place, 2 * place + 1)
        }
    }

    pub(crate) fn rate(&self) -> Rate {
        let Percentiles { p50, p99 } = Percentiles::of(&self.latencies);
        Rate {
            per_second: self.settled as f64 / self.time.as_secs_f64(),
            p50: p50 * 1e-3,
            p99: p99 * 1e-3,
        }
    }
}

/// Creates the rows of both owners, and the folder.
async fn found(store: &Store) -> Folder {
    let transaction = store.begin();
    for (owner, kind) in [(BASE, OwnerKind::Base), (LEDGER, OwnerKind::Ledger)] {
        let record = OwnerRecord {
            kind,
            shard: SHARD,
            epoch: Epoch(1),
            process: ProcessId(1),
            call_generation: 0,
        };
        transaction
            .set(&owners::owner_key(owner), &record.encode())
            .expect("a small row");
    }
    transaction.commit().await.expect("it commits");
    let schema = Schema::new(Vec::new(), Vec::new(), Vec::new());
    Folder::begin(store.clone(), SHARD, Arc::new(schema))
        .await
        .expect("no other db folds")
}

async fn record_opening(store: &Store, owner: OwnerId, open: &FrozenBatch) {
    let opening = OpeningRecord {
        epoch: Epoch(1),
        number: BatchNumber(1),
        hash: open.hash,
    };
    let transaction = store.begin();
    transaction
        .set(&owners::opening_key(owner, Epoch(1)), &opening.encode())
        .expect("a small row");
    transaction.commit().await.expect("it commits");
}
