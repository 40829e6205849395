//! A game of three players on two bases, archived as db would do it, with the expected facts alongside. Its owners are on
//! one shard or on several.

use std::collections::BTreeMap;

use annals_audit::Index;
use annals_def::{EntityType, LedgerNames, Schema};
use annals_event::{
    BaseCreation, Body, Cause, Event, Gathering, Imprint, Subject, Tail,
    ledger::{
        Account, AssetSlot, Assets, Entry, Goods, Holder, Order, Outcome, Passage, Posting, RefusalReason, Side, Slots,
        Stage,
    },
};
use annals_evidence::{Cut, ShardLeaf, TradeStage};
use annals_ids::{
    Address, AssetKind, BatchNumber, CallNumber, DatabaseId, EntityId, EntryNumber, Epoch, LeafIndex, LogPosition,
    NoticeNumber, OfferVersion, OwnerId, OwnerKind, Part, ProcessId, Serial, SessionId, Shard, Slot, Tick, TradeId,
    TransferId, TransferNumber, TypeId, WallTime,
};
use annals_proof::Frontier;
use annals_store::{
    ArchivedBatch, MemoryStore, Store, StoreError, Transaction, archive,
    layout::{
        archive::{Tree, encode_place, leaf_key, place_key, tree_key},
        chunks,
        director::{Realm, realm_key, schema_key},
        migrations::{self, MigrationRecord},
        owners::{Cursor, OwnerRecord, cursor_key, owner_key},
        shards,
    },
    segment::{self, Leaf},
};
use tempfile::TempDir;

pub(crate) const SHARD: Shard = Shard(0);
pub(crate) const LEDGER: OwnerId = OwnerId(9);
const COINS: AssetKind = AssetKind(1);
const SWORDS: AssetKind = AssetKind(2);
const INVENTORY: Slot = Slot(0);
/// Reason of created goods. Games write such texts, unchecked.
pub(crate) const REASON: &str = "<script>alert(\"found\")</script> & more";
const LONG: WallTime = WallTime(u64::MAX);
const OPEN: TradeStage = TradeStage::Begun(Stage::Open);

/// `SplitMix64`.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.roll() % limit as u64).expect("small")
    }
}

/// The true state of a trade.
#[derive(Clone, Debug)]
pub(crate) struct Deal {
    pub(crate) id: TradeId,
    pub(crate) parties: [DatabaseId; 2],
    pub(crate) stage: TradeStage,
    pub(crate) version: OfferVersion,
    pub(crate) tables: [Slots; 2],
    pub(crate) accepted: [bool; 2],
}

/// The true state after an entry.
#[derive(Clone, Debug)]
pub(crate) struct Truth {
    pub(crate) entry: Entry,
    pub(crate) held: BTreeMap<DatabaseId, Slots>,
    /// The trade that it acted on; none if it only named one.
    pub(crate) deal: Option<Deal>,
    /// The session whose call caused it.
    pub(crate) session: Option<SessionId>,
}

#[derive(Default)]
struct Log {
    tail: Tail,
    gathering: Gathering,
}

/// The game, its archive, and the true state after each entry.
pub(crate) struct Game {
    pub(crate) store: Store,
    /// The definitions under which batches are written.
    pub(crate) schema: Schema,
    /// All batches, in the order in which they were archived.
    pub(crate) leaves: Vec<(LogPosition, Vec<u8>)>,
    /// The leaf of each of these batches.
    placed: Vec<ShardLeaf>,
    shards: u16,
    /// The owner whose log has the ledger's entries.
    pub(crate) ledger: OwnerId,
    /// Owners whose batches are archived on another shard from now on than that on which they belong.
    pub(crate) moved: BTreeMap<OwnerId, Shard>,
    pub(crate) truths: Vec<Truth>,
    pub(crate) deals: Vec<Deal>,
    pub(crate) serials: Vec<Serial>,
    dice: Dice,
    trees: BTreeMap<Shard, Frontier>,
    logs: BTreeMap<OwnerId, Log>,
    held: BTreeMap<DatabaseId, Slots>,
    orders: BTreeMap<EntityId, u64>,
    wall: u64,
}

/// Players are numbered 0 to 2: their stored entity, live entity and owner.
pub(crate) fn player(number: usize) -> (DatabaseId, EntityId, OwnerId) {
    let wide = number as u64;
    let base = OwnerId(1 + u32::from(number == 2));
    (DatabaseId(100 + wide), EntityId(1_000 + wide), base)
}

/// The session of a player's client.
fn session_of(entity: EntityId) -> SessionId {
    SessionId(entity.0 * 10)
}

impl Game {
    /// A game of `steps` steps.
    pub(crate) async fn play(seed: u64, steps: usize) -> Self {
        Self::play_in(MemoryStore::new().store(), seed, steps).await
    }

    /// The same, in an empty store.
    pub(crate) async fn play_in(store: Store, seed: u64, steps: usize) -> Self {
        Self::play_over(store, (seed, steps), 1).await
    }

    /// The same game, with its owners on so many shards, up to three.
    pub(crate) async fn play_on_shards(seed: u64, steps: usize, shards: u16) -> Self {
        Self::play_over(MemoryStore::new().store(), (seed, steps), shards).await
    }

    async fn play_over(store: Store, (seed, steps): (u64, usize), shards: u16) -> Self {
        let schema = definitions();
        let realm = Realm {
            began: WallTime(0),
            schema: schema.fingerprint(),
        };
        commit(&store, |transaction| {
            transaction.set(&realm_key(), &realm.encode())?;
            if shards > 1 {
                transaction.set(&shards::count_key(), &shards::encode_count(shards))?;
            }
            for (key, chunk) in chunks(&schema_key(schema.fingerprint()), &schema.encode()) {
                transaction.set(&key, chunk)?;
            }
            Ok(())
        })
        .await;
        let mut game = Self {
            dice: Dice(seed),
            store,
            schema,
            leaves: Vec::new(),
            placed: Vec::new(),
            shards,
            ledger: LEDGER,
            moved: BTreeMap::new(),
            truths: Vec::new(),
            deals: Vec::new(),
            serials: Vec::new(),
            trees: BTreeMap::new(),
            logs: BTreeMap::new(),
            held: BTreeMap::new(),
            orders: BTreeMap::new(),
            wall: 1_000,
        };
        game.begin().await;
        game.play_on(steps).await;
        game
    }

    /// The shard of an owner: the ledger is on the first, and each base on another, as far as there are others.
    fn shard_of(&self, owner: OwnerId) -> Shard {
        match (self.moved.get(&owner), owner) {
            (Some(shard), _) => *shard,
            (None, LEDGER) => SHARD,
            (None, OwnerId(base)) => Shard(u16::try_from(base).expect("small") % self.shards),
        }
    }

    /// The leaf of a batch, by its place in the order in which batches were archived.
    pub(crate) fn leaf_of(&self, place: usize) -> ShardLeaf {
        self.placed[place]
    }

    /// The first batches, as a number of leaves of each shard.
    pub(crate) fn cut(&self, batches: usize) -> Cut {
        let mut leaves: BTreeMap<Shard, u64> = (0..self.shards).map(|shard| (Shard(shard), 0)).collect();
        for placed in &self.placed[..batches] {
            leaves.insert(placed.shard, placed.leaf.0 + 1);
        }
        leaves.into_iter().collect()
    }

    /// Creates the owners, and lets the players in.
    async fn begin(&mut self) {
        let owners = [
            (OwnerId(1), OwnerKind::Base),
            (OwnerId(2), OwnerKind::Base),
            (LEDGER, OwnerKind::Ledger),
        ]
        .map(|(owner, kind)| (owner, kind, self.shard_of(owner)));
        commit(&self.store, |transaction| {
            for (owner, kind, shard) in owners {
                let record = OwnerRecord {
                    kind,
                    shard,
                    epoch: Epoch(1),
                    process: ProcessId(1),
                    call_generation: 0,
                };
                transaction.set(&owner_key(owner), &record.encode())?;
            }
            Ok(())
        })
        .await;
        for who in 0..3 {
            let (database, entity, base) = player(who);
            let creation = BaseCreation {
                type_id: TypeId(0),
                database,
                checkout: 1,
                properties: Vec::new(),
                cell_properties: Vec::new(),
            };
            let admission = Body::Admitted {
                session: session_of(entity),
                person: database,
                sealed: Vec::new(),
            };
            let gathering = &mut self.logs.entry(base).or_default().gathering;
            for body in [Body::BaseCreated(Box::new(creation)), admission] {
                gathering.record(&Event {
                    subject: Subject::Entity(entity, Part::Base),
                    cause: Cause(0),
                    history: None,
                    body,
                });
            }
        }
    }

    /// Plays `steps` more steps.
    pub(crate) async fn play_on(&mut self, steps: usize) {
        for _ in 0..steps {
            self.step().await;
        }
        self.close(self.ledger).await;
    }

    /// Forges an entry that moves an item from the first player to the second: by an order that no one gave, or by
    /// none.
    pub(crate) async fn forge(&mut self, serial: Serial, order: Option<Order>) {
        let (first, second) = (player(0).0, player(1).0);
        let (from, to) = (place(Holder::Stored(first)), place(Holder::Stored(second)));
        let moved = [(from, to, Assets::item(serial, SWORDS))];
        let (of, at) = (self.truths[0].entry.of, self.truths[0].entry.at);
        self.enter(of, (first, order), (Outcome::Posted, &moved), (None, None), at)
            .await;
        self.close(self.ledger).await;
    }

    /// Lets a player's client in, with its sealed admission.
    pub(crate) async fn come_in(&mut self, who: usize, sealed: Vec<u8>) {
        let (person, entity, base) = player(who);
        let session = session_of(entity);
        let gathering = &mut self.logs.entry(base).or_default().gathering;
        gathering.record(&Event {
            subject: Subject::Entity(entity, Part::Base),
            cause: Cause(0),
            history: None,
            body: Body::Admitted {
                session,
                person,
                sealed,
            },
        });
        self.close(base).await;
    }

    /// Migrates the realm to definitions in which the first kind has another name.
    pub(crate) async fn rename(&mut self, coins: &str) {
        self.close(self.ledger).await;
        let (from, to) = (self.schema.fingerprint(), named(coins));
        let realm = Realm {
            began: WallTime(0),
            schema: to.fingerprint(),
        };
        let record = MigrationRecord {
            from,
            to: to.fingerprint(),
            at: WallTime(self.wall),
            leaves: LeafIndex(self.leaves.len() as u64),
            renames: Vec::new(),
            receivers: Vec::new(),
        };
        commit(&self.store, |transaction| {
            transaction.set(&realm_key(), &realm.encode())?;
            for (key, chunk) in chunks(&migrations::key_of(0), &record.encode()) {
                transaction.set(&key, chunk)?;
            }
            for (key, chunk) in chunks(&schema_key(to.fingerprint()), &to.encode()) {
                transaction.set(&key, chunk)?;
            }
            Ok(())
        })
        .await;
        self.schema = to;
    }

    /// An index of its archive, in its own folder.
    pub(crate) async fn index(&self) -> (TempDir, Index) {
        let folder = tempfile::tempdir().expect("a folder");
        let index = Index::open(folder.path()).await.expect("an index");
        (folder, index)
    }

    async fn step(&mut self) {
        let dice = &mut Dice(self.dice.roll());
        self.wall += dice.roll() % 500;
        let who = dice.below(3);
        match dice.below(10) {
            0 => self.mint_coins(who, 1 + dice.roll() % 20).await,
            1 | 2 => self.mint_sword(who).await,
            3 => self.propose(who, (who + 1 + dice.below(2)) % 3).await,
            4 => self.refused(who, dice).await,
            5 => {
                self.close(self.ledger).await;
            }
            _ => self.deal(dice).await,
        }
    }

    async fn mint_coins(&mut self, who: usize, amount: u64) {
        let made = Assets::units(COINS, amount);
        let goods = Goods {
            units: made.units.clone(),
            ..Goods::default()
        };
        self.make(who, goods, &made).await;
    }

    async fn mint_sword(&mut self, who: usize) {
        let serial = Serial(self.serials.len() as u64 + 1);
        self.serials.push(serial);
        let goods = Goods {
            items: BTreeMap::from([(SWORDS, 1)]),
            ..Goods::default()
        };
        self.make(who, goods, &Assets::item(serial, SWORDS)).await;
    }

    async fn make(&mut self, who: usize, goods: Goods, made: &Assets) {
        let (holder, ..) = player(who);
        let order = Order::Mint {
            slot: INVENTORY,
            goods,
            reason: REASON.to_owned(),
        };
        let slots = self.held.entry(holder).or_default();
        slots.entry(INVENTORY).or_default().add(made).expect("room");
        let (from, to) = (place(Holder::World), place(Holder::Stored(holder)));
        self.done(who, order, Outcome::Posted, &[(from, to, made.clone())], None)
            .await;
    }

    /// A player gives an order that is rejected: about a transfer that no one made, a trade that does not exist yet,
    /// one of others, or one of theirs; or proposes a trade.
    async fn refused(&mut self, who: usize, dice: &mut Dice) {
        let other = (who + 1 + dice.below(2)) % 3;
        let about = dice.below(self.deals.len().max(1));
        match (dice.below(6), self.deals.get(about).map(|deal| deal.id)) {
            (0, _) => {
                let of = TransferId::default();
                self.refuse(who, Order::Post { of }, RefusalReason::NotOpen, None).await;
            }
            (1, _) => {
                // Of its proposer or of another player; as that player's next order, or the one after.
                let asker = [who, other][dice.below(2)];
                let trade = self.next_trade(who, 1 + u64::from(asker == who));
                let order = Order::Cancel { trade };
                self.refuse(asker, order, RefusalReason::NotOpen, None).await;
                self.propose(who, other).await;
            }
            (2, _) => self.refused_proposal(who, other, dice).await,
            (_, Some(trade)) => {
                let Deal { parties, stage, .. } = self.deals[about];
                let is_party = parties.contains(&player(who).0) && matches!(stage, TradeStage::Begun(_));
                let reason = match dice.below(3) {
                    0 => RefusalReason::Empty,
                    _ if is_party && stage == OPEN => RefusalReason::Stale,
                    _ if stage == OPEN => RefusalReason::NotParty,
                    _ => RefusalReason::NotOpen,
                };
                let version = OfferVersion(1_000);
                let order = Order::Accept { trade, version };
                self.refuse(who, order, reason, is_party.then_some(about)).await;
            }
            (_, None) => {}
        }
    }

    async fn refused_proposal(&mut self, who: usize, other: usize, dice: &mut Dice) {
        let (with, reason) = match dice.below(3) {
            0 => (who, RefusalReason::Oneself),
            1 => (other, RefusalReason::TooManyOpen),
            _ => (other, RefusalReason::BadDeadline),
        };
        let deal = self.begin_deal(who, with, TradeStage::Refused(reason));
        let (with, expires) = (player(with).0, LONG);
        self.refuse(who, Order::Propose { with, expires }, reason, Some(deal))
            .await;
    }

    async fn refuse(&mut self, who: usize, order: Order, reason: RefusalReason, deal: Option<usize>) {
        self.done(who, order, Outcome::Refused(reason), &[], deal).await;
    }

    /// The trade that a player would propose with the order that is `ahead` orders ahead.
    fn next_trade(&self, who: usize, ahead: u64) -> TradeId {
        let (_, asker, _) = player(who);
        let number = TransferNumber(self.orders.get(&asker).copied().unwrap_or(0) + ahead);
        TradeId(TransferId { asker, number })
    }

    async fn propose(&mut self, who: usize, with: usize) {
        let deal = self.begin_deal(who, with, OPEN);
        let order = Order::Propose {
            with: player(with).0,
            expires: LONG,
        };
        self.done(who, order, Outcome::Pending, &[], Some(deal)).await;
    }

    fn begin_deal(&mut self, who: usize, with: usize, stage: TradeStage) -> usize {
        self.deals.push(Deal {
            id: self.next_trade(who, 1),
            parties: [player(who).0, player(with).0],
            stage,
            version: OfferVersion(0),
            tables: [Slots::new(), Slots::new()],
            accepted: [false; 2],
        });
        self.deals.len() - 1
    }

    /// A player acts on an open trade, if there is one.
    async fn deal(&mut self, dice: &mut Dice) {
        let open: Vec<usize> = (0..self.deals.len())
            .filter(|deal| self.deals[*deal].stage == OPEN)
            .collect();
        if open.is_empty() {
            return;
        }
        let number = open[dice.below(open.len())];
        let (side, what) = (dice.below(2), dice.below(8));
        let trade = self.deals[number].id;
        let holder = self.deals[number].parties[side];
        let who = usize::try_from(holder.0 - 100).expect("small");
        let table = place(Holder::Trade(trade, [Side::Proposer, Side::Partner][side]));
        let own = place(Holder::Stored(holder));
        match what {
            0..=2 => {
                let Some(assets) = self.some_of(holder, dice) else {
                    return;
                };
                take(self.held.get_mut(&holder).expect("held"), &assets);
                put(&mut self.deals[number].tables[side], &assets);
                self.changed(number);
                let order = Order::Offer {
                    trade,
                    slot: INVENTORY,
                    assets: assets.clone(),
                };
                self.done(who, order, Outcome::Posted, &[(own, table, assets)], Some(number))
                    .await;
            }
            3 => {
                let Some(assets) = self.deals[number].tables[side].get(&INVENTORY).cloned() else {
                    return;
                };
                take(&mut self.deals[number].tables[side], &assets);
                put(self.held.entry(holder).or_default(), &assets);
                self.changed(number);
                let order = Order::Withdraw {
                    trade,
                    slot: INVENTORY,
                    assets: assets.clone(),
                };
                self.done(who, order, Outcome::Posted, &[(table, own, assets)], Some(number))
                    .await;
            }
            4..=6 => self.accept(number, side, who).await,
            _ => self.end(number, who, dice.below(3) == 0).await,
        }
    }

    async fn accept(&mut self, number: usize, side: usize, who: usize) {
        let deal = &mut self.deals[number];
        let (trade, version) = (deal.id, deal.version);
        deal.accepted[side] = true;
        let mut moved = Vec::new();
        if deal.accepted == [true; 2] {
            deal.stage = TradeStage::Begun(Stage::Settled);
            moved = self.empty(number, [1, 0]);
        }
        let order = Order::Accept { trade, version };
        self.done(who, order, Outcome::Posted, &moved, Some(number)).await;
    }

    /// A trade ends without an exchange.
    async fn end(&mut self, number: usize, who: usize, by_time: bool) {
        let moved = self.empty(number, [0, 1]);
        let deal = &mut self.deals[number];
        let trade = deal.id;
        let stage = if by_time { Stage::Expired } else { Stage::Cancelled };
        deal.stage = TradeStage::Begun(stage);
        if by_time {
            self.enter(
                trade.0,
                (player(who).0, None),
                (Outcome::Expired, &moved),
                (Some(number), None),
                at_none(),
            )
            .await;
        } else {
            self.done(who, Order::Cancel { trade }, Outcome::Voided, &moved, Some(number))
                .await;
        }
    }

    /// Passes the contents of a trade's tables to these parties.
    fn empty(&mut self, number: usize, to: [usize; 2]) -> Vec<(AssetSlot, AssetSlot, Assets)> {
        let mut moved = Vec::new();
        for (side, name) in [Side::Proposer, Side::Partner].into_iter().enumerate() {
            let deal = &mut self.deals[number];
            let (from, receiver) = (place(Holder::Trade(deal.id, name)), deal.parties[to[side]]);
            for (_, assets) in std::mem::take(&mut deal.tables[side]) {
                put(self.held.entry(receiver).or_default(), &assets);
                moved.push((from, place(Holder::Stored(receiver)), assets));
            }
        }
        moved
    }

    fn changed(&mut self, number: usize) {
        let deal = &mut self.deals[number];
        deal.version = deal.version.next();
        deal.accepted = [false; 2];
    }

    /// One sword or a part of the coins of a holder.
    fn some_of(&mut self, holder: DatabaseId, dice: &mut Dice) -> Option<Assets> {
        let held = self.held.get(&holder)?.get(&INVENTORY)?;
        let (coins, swords) = (held.units.get(&COINS).copied().unwrap_or(0), held.items.len());
        if swords > 0 && dice.below(2) == 0 {
            let (serial, kind) = held.items.iter().nth(dice.below(swords))?;
            return Some(Assets::item(*serial, *kind));
        }
        (coins > 0).then(|| Assets::units(COINS, 1 + dice.roll() % coins))
    }

    /// Logs and executes an order.
    async fn done(
        &mut self,
        who: usize,
        order: Order,
        outcome: Outcome,
        moved: &[(AssetSlot, AssetSlot, Assets)],
        deal: Option<usize>,
    ) {
        let (holder, entity, base) = player(who);
        let number = self.orders.entry(entity).or_default();
        *number += 1;
        let of = TransferId {
            asker: entity,
            number: TransferNumber(*number),
        };
        // Each fourth order is made by behaviour itself; each of the others is caused by a call.
        let session = (!of.number.0.is_multiple_of(4)).then_some(session_of(entity));
        let call = CallNumber(of.number.0 - of.number.0 / 4);
        let gathering = &mut self.logs.entry(base).or_default().gathering;
        if let Some(session) = session {
            let (from, to) = (Address::Client(session), Address::Base(entity));
            gathering.consume(from, to, call, Default::default());
        }
        gathering.record(&Event {
            subject: Subject::Entity(entity, Part::Base),
            cause: Cause(session.map_or(0, |_| gathering.consumed())),
            history: None,
            body: Body::Ordered {
                number: of.number,
                order: order.clone(),
            },
        });
        let at = self.close(base).await;
        self.enter(of, (holder, Some(order)), (outcome, moved), (deal, session), at)
            .await;
    }

    async fn enter(
        &mut self,
        of: TransferId,
        (holder, order): (DatabaseId, Option<Order>),
        (outcome, moved): (Outcome, &[(AssetSlot, AssetSlot, Assets)]),
        (deal, session): (Option<usize>, Option<SessionId>),
        at: LogPosition,
    ) {
        let number = EntryNumber(self.truths.len() as u64 + 1);
        let mut entry = Entry {
            number,
            at,
            wall: WallTime(self.wall),
            of,
            holder,
            order,
            outcome,
            postings: Vec::new(),
            passages: Vec::new(),
        };
        for (from, to, assets) in moved {
            for (&kind, &amount) in &assets.units {
                let amount = i64::try_from(amount).expect("small");
                for (place, amount) in [(*from, -amount), (*to, amount)] {
                    let account = Account { place, kind };
                    entry.postings.push(Posting { account, amount });
                }
            }
            for (&serial, &kind) in &assets.items {
                let (from, to) = (*from, *to);
                entry.passages.push(Passage { serial, kind, from, to });
            }
        }
        let log = self.logs.entry(self.ledger).or_default();
        log.gathering.record(&Event {
            subject: Subject::Owner,
            cause: Cause(0),
            history: None,
            body: Body::Entered {
                notice: NoticeNumber(number.0),
                entry: Some(Box::new(entry.clone())),
            },
        });
        self.truths.push(Truth {
            entry,
            held: self.held.clone(),
            deal: deal.map(|deal| self.deals[deal].clone()),
            session,
        });
    }

    /// Closes and archives a batch.
    async fn close(&mut self, owner: OwnerId) -> LogPosition {
        let log = self.logs.entry(owner).or_default();
        let imprint = Imprint {
            realm: "audited".to_owned(),
            owner,
            epoch: Epoch(1),
            schema: self.schema.fingerprint(),
        };
        let wall = WallTime(self.wall);
        let frozen = log.gathering.freeze(&imprint, &mut log.tail, Tick(0), wall, false);
        let at = LogPosition {
            owner,
            batch: frozen.number,
        };
        let shard = self.shard_of(owner);
        let tree = self.trees.entry(shard).or_default();
        let leaf = LeafIndex(tree.size());
        tree.push(frozen.hash);
        self.placed.push(ShardLeaf { shard, leaf });
        self.leaves.push((at, frozen.bytes));
        let place = self.leaves.len() - 1;
        self.write(place, &self.leaves[place].1.clone()).await;
        self.write_tree(owner).await;
        at
    }

    /// Overwrites the bytes of a batch, by its place in the order in which batches were archived.
    pub(crate) async fn write(&self, place: usize, bytes: &[u8]) {
        let (at, _) = self.leaves[place];
        let ShardLeaf { shard, leaf } = self.leaf_of(place);
        commit(&self.store, move |transaction| {
            for (key, chunk) in chunks(&leaf_key(shard, leaf), bytes) {
                transaction.set(&key, chunk)?;
            }
            transaction.set(&place_key(at.owner, at.batch), &encode_place(leaf))
        })
        .await;
    }

    /// Writes the tree over the archive of an owner's shard, and the owner's cursor.
    async fn write_tree(&self, owner: OwnerId) {
        let shard = self.shard_of(owner);
        let tree = Tree {
            size: self.trees[&shard].size(),
            peaks: self.trees[&shard].peaks().to_vec(),
        };
        let Tail { batch, hash, event } = self.logs[&owner].tail;
        let cursor = Cursor {
            batch,
            hash,
            event,
            epoch: Epoch(1),
        };
        commit(&self.store, |transaction| {
            transaction.set(&cursor_key(owner), &cursor.encode())?;
            transaction.set(&tree_key(shard), &tree.encode())
        })
        .await;
    }

    /// Seals some batches, by their places in the order in which they were archived: one segment for each shard.
    pub(crate) async fn seal(&self, from: usize, to: usize) {
        let mut shards: BTreeMap<Shard, Vec<Leaf>> = BTreeMap::new();
        for (place, (at, bytes)) in self.leaves.iter().enumerate().take(to).skip(from) {
            let ShardLeaf { shard, leaf } = self.leaf_of(place);
            shards.entry(shard).or_default().push(Leaf {
                leaf,
                owner: at.owner,
                batch: at.batch,
                wall: WallTime(0),
                archived: ArchivedBatch::Whole(bytes.clone()),
            });
        }
        for (shard, leaves) in shards {
            let (segment, blocks) = segment::seal(shard, leaves).expect("sealed");
            commit(&self.store, |transaction| {
                archive::write_segment(transaction, &segment, &blocks)
            })
            .await;
        }
    }
}

/// The definitions of the whole archive.
pub(crate) fn definitions() -> Schema {
    named("coin")
}

/// The same definitions, with that name for the first kind. The other kind has no name, nor has any slot but the first.
pub(crate) fn named(coins: &str) -> Schema {
    let schema = Schema::new(vec![EntityType::new("Avatar")], Vec::new(), Vec::new());
    let (kinds, slots) = ([(COINS, coins.to_owned())], [(INVENTORY, "carried".to_owned())]);
    schema.with_ledger_names(LedgerNames::new(kinds.into(), slots.into()))
}

/// No asker.
fn at_none() -> LogPosition {
    LogPosition {
        owner: OwnerId(1),
        batch: BatchNumber(1),
    }
}

pub(crate) async fn commit(store: &Store, work: impl Fn(&Transaction) -> Result<(), StoreError> + Send + Sync) {
    let work = &work;
    let done = store
        .run_repeatable(|transaction| async move { work(&transaction) })
        .await;
    done.expect("written");
}

fn place(holder: Holder) -> AssetSlot {
    AssetSlot {
        holder,
        slot: INVENTORY,
    }
}

fn put(slots: &mut Slots, assets: &Assets) {
    slots.entry(INVENTORY).or_default().add(assets).expect("room");
}

fn take(slots: &mut Slots, assets: &Assets) {
    let held = slots.get_mut(&INVENTORY).expect("held");
    held.take(assets).expect("held");
    slots.retain(|_, held| !held.is_empty());
}
