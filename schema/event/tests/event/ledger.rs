//! Ledger types survive a round trip, any change of their bytes is rejected or harmless, and a base part rejects an update
//! that does not follow the earlier update.

use std::collections::BTreeMap;

use annals_def::split_mix;
use annals_event::{
    BaseCreation, Body, Call, Cause, Event, OwnerState, Reader, Subject,
    ledger::{
        ASSETS_PER_SIDE, Account, AssetSlot, Assets, Booking, Change, Delivery, Entry, Gift, Goods,
        HOLDINGS_PER_HOLDER, Holder, Holdings, LedgerUpdate, Notice, OPEN_PER_HOLDER, Offer, Order, Outcome, Passage,
        Posting, RefusalReason, STATEMENT_BYTES, Side, Slots, Stage, Statement, Trade, Warrant,
    },
};
use annals_ids::{
    ActionId, AssetKind, BatchNumber, DatabaseId, EntityId, EntryNumber, HoldingsVersion, LogPosition, MemberId,
    NoticeNumber, OfferVersion, OwnerId, OwnerKind, Part, Serial, Slot, TradeId, TransferId, TransferNumber, TypeId,
    WallTime,
};

/// Number of generated values of each type.
const CASES: u64 = 300;

struct Dice(Box<dyn FnMut() -> u64>);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        (self.0)() % sides
    }

    /// Small numbers, and numbers at the edges of a byte.
    fn number(&mut self) -> u64 {
        [0, 1, 127, 128, 300, u64::from(u32::MAX), 1 << 62][self.roll(7) as usize]
    }

    fn transfer(&mut self) -> TransferId {
        TransferId {
            asker: EntityId(self.number()),
            number: TransferNumber(self.number()),
        }
    }

    fn slot(&mut self) -> Slot {
        Slot(self.roll(3) as u16)
    }

    fn kind(&mut self) -> AssetKind {
        AssetKind(self.roll(5) as u32)
    }

    fn assets(&mut self) -> Assets {
        let units = (0..self.roll(3)).map(|_| (self.kind(), self.number())).collect();
        let items = (0..self.roll(3))
            .map(|_| (Serial(self.number()), self.kind()))
            .collect();
        Assets { units, items }
    }

    fn slots(&mut self) -> Slots {
        (0..self.roll(3)).map(|_| (self.slot(), self.assets())).collect()
    }

    fn place(&mut self) -> AssetSlot {
        let holder = match self.roll(4) {
            0 => Holder::World,
            1 => Holder::Stored(DatabaseId(self.number())),
            2 => Holder::Pending(self.transfer()),
            _ => Holder::Trade(
                TradeId(self.transfer()),
                [Side::Proposer, Side::Partner][self.roll(2) as usize],
            ),
        };
        AssetSlot {
            holder,
            slot: self.slot(),
        }
    }

    fn order(&mut self) -> Order {
        let (slot, to) = (self.slot(), self.slot());
        let (of, trade) = (self.transfer(), TradeId(self.transfer()));
        let assets = self.assets();
        let reason = ["", "quest", "äöü"][self.roll(3) as usize].to_owned();
        let expires = WallTime(self.number());
        match self.roll(14) {
            10 => Order::Grant {
                slot,
                goods: Goods {
                    units: assets.units,
                    items: BTreeMap::from([(self.kind(), self.roll(9) as u32)]),
                },
                restored: assets.items,
                warrant: self.warrant(),
            },
            11 => Order::Take {
                slot,
                assets,
                warrant: self.warrant(),
            },
            12 => Order::Delete,
            0 => Order::Mint {
                slot,
                goods: Goods {
                    units: assets.units,
                    items: BTreeMap::from([(self.kind(), self.roll(9) as u32)]),
                },
                reason,
            },
            1 => Order::Burn { slot, assets, reason },
            2 => Order::Move { from: slot, to, assets },
            3 => Order::Give {
                slot,
                to: DatabaseId(self.number()),
                assets,
                expires,
            },
            4 => Order::Post { of },
            5 => Order::Void { of },
            6 => Order::Propose {
                with: DatabaseId(self.number()),
                expires,
            },
            7 => Order::Offer { trade, slot, assets },
            8 => Order::Withdraw { trade, slot, assets },
            9 => Order::Accept {
                trade,
                version: OfferVersion(self.number()),
            },
            _ => Order::Cancel { trade },
        }
    }

    fn warrant(&mut self) -> Box<Warrant> {
        let mut text = || ["grace", "äöü", "case 7: lost at a crash"][self.roll(3) as usize].to_owned();
        let (operator, tool, reason) = (text(), text(), text());
        let action = ActionId(u128::from(self.number()) << self.roll(64));
        Box::new(Warrant {
            action,
            operator,
            tool,
            reason,
        })
    }

    fn outcome(&mut self) -> Outcome {
        match self.roll(5) {
            0 => Outcome::Posted,
            1 => Outcome::Pending,
            2 => Outcome::Voided,
            3 => Outcome::Expired,
            _ => Outcome::Refused([RefusalReason::NotStored, RefusalReason::BadDeadline][self.roll(2) as usize]),
        }
    }

    fn stage(&mut self) -> Stage {
        [Stage::Open, Stage::Settled, Stage::Cancelled, Stage::Expired][self.roll(4) as usize]
    }

    fn entry(&mut self) -> Entry {
        Entry {
            number: EntryNumber(self.number()),
            at: LogPosition {
                owner: OwnerId(self.roll(9) as u32),
                batch: BatchNumber(self.number()),
            },
            wall: WallTime(self.number()),
            of: self.transfer(),
            holder: DatabaseId(self.number()),
            order: (self.roll(2) == 0).then(|| self.order()),
            outcome: self.outcome(),
            postings: (0..self.roll(3))
                .map(|_| Posting {
                    account: Account {
                        place: self.place(),
                        kind: self.kind(),
                    },
                    amount: [0, 1, -1, i64::MAX, i64::MIN, 64, -65][self.roll(7) as usize],
                })
                .collect(),
            passages: (0..self.roll(3))
                .map(|_| Passage {
                    serial: Serial(self.number()),
                    kind: self.kind(),
                    from: self.place(),
                    to: self.place(),
                })
                .collect(),
        }
    }

    fn trade(&mut self) -> Trade {
        let mut offer = || Offer {
            holder: DatabaseId(self.number()),
            table: self.slots(),
            accepted: self.roll(2) == 0,
        };
        let (proposer, partner) = (offer(), offer());
        Trade {
            id: TradeId(self.transfer()),
            stage: self.stage(),
            version: OfferVersion(self.number()),
            expires: WallTime(self.number()),
            proposer,
            partner,
        }
    }

    fn gift(&mut self) -> Gift {
        Gift {
            id: self.transfer(),
            stage: self.stage(),
            from: DatabaseId(self.number()),
            to: DatabaseId(self.number()),
            slot: self.slot(),
            assets: self.assets(),
            expires: WallTime(self.number()),
        }
    }

    fn update(&mut self) -> LedgerUpdate {
        if self.roll(2) == 0 {
            let trades = (0..self.roll(3)).map(|_| self.trade()).map(|trade| (trade.id, trade));
            let trades = trades.collect();
            let gifts = (0..self.roll(3)).map(|_| self.gift()).map(|gift| (gift.id, gift));
            return LedgerUpdate::Statement(Box::new(Statement {
                gifts: gifts.collect(),
                trades,
                holder: DatabaseId(self.number()),
                holdings: Holdings {
                    version: HoldingsVersion(self.number()),
                    slots: self.slots(),
                },
            }));
        }
        LedgerUpdate::Booking(Box::new(Booking {
            entry: EntryNumber(self.number()),
            of: self.transfer(),
            outcome: self.outcome(),
            change: (self.roll(2) == 0).then(|| Change {
                version: HoldingsVersion(self.number()),
                gone: self.slots(),
                come: self.slots(),
            }),
            trade: (self.roll(2) == 0).then(|| self.trade()),
            gift: (self.roll(2) == 0).then(|| self.gift()),
        }))
    }
}

fn cases() -> impl Iterator<Item = (u64, Dice)> {
    (0..CASES).map(|seed| (seed, Dice(Box::new(split_mix(seed)))))
}

fn event(subject: Subject, body: Body) -> Event {
    Event {
        subject,
        cause: Cause(0),
        history: None,
        body,
    }
}

#[test]
fn events_of_the_ledger_are_read_back_and_changed_bytes_are_other_events() {
    for (seed, mut dice) in cases() {
        let bodies = [
            Body::Ordered {
                number: TransferNumber(dice.number()),
                order: dice.order(),
            },
            Body::Booked(dice.update()),
            Body::Restated {
                member: MemberId(dice.roll(1 << 16) as u16),
            },
            Body::Entered {
                notice: NoticeNumber(dice.number()),
                entry: (dice.roll(2) == 0).then(|| Box::new(dice.entry())),
            },
        ];
        for body in bodies {
            let event = event(Subject::Entity(EntityId(4), Part::Base), body);
            let mut bytes = Vec::new();
            event.write(&mut bytes);
            assert_eq!(Event::read(&bytes).as_ref(), Ok(&event), "seed {seed}");
            for cut in 0..bytes.len() {
                assert!(Event::read(&bytes[..cut]).is_err(), "seed {seed}: cut at {cut}");
            }
            let mut flipped = bytes.clone();
            let bit = dice.roll(bytes.len() as u64 * 8) as usize;
            flipped[bit / 8] ^= 1 << (bit % 8);
            if let Ok(other) = Event::read(&flipped) {
                assert_ne!(other, event, "seed {seed}: bit {bit}");
                let mut again = Vec::new();
                other.write(&mut again);
                assert_eq!(again, flipped, "seed {seed}: bit {bit} has a second encoding");
            }
        }
    }
}

#[test]
fn calls_and_notices_are_read_back() {
    for (seed, mut dice) in cases() {
        let call = Call::Ledger {
            to: EntityId(4),
            update: dice.update(),
        };
        let mut bytes = Vec::new();
        call.write(&mut bytes);
        assert_eq!(Call::read(&mut Reader::new(&bytes)), Ok(call), "seed {seed}");
        let notice = Notice {
            entry: (dice.roll(2) == 0).then(|| Box::new(dice.entry())),
            deliveries: (0..dice.roll(3))
                .map(|_| Delivery {
                    to: EntityId(dice.number()),
                    home: OwnerId(dice.roll(9) as u32),
                    update: dice.update(),
                })
                .collect(),
        };
        let mut bytes = Vec::new();
        notice.write(&mut bytes);
        assert_eq!(Notice::read(&bytes).as_ref(), Ok(&notice), "seed {seed}");
        bytes.push(0);
        assert!(Notice::read(&bytes).is_err(), "seed {seed}: trailing bytes");
    }
}

/// Players choose the ids in an order: whatever they choose, the log can be decoded afterwards.
#[test]
fn every_valid_order_round_trips() {
    let mut passed = 0;
    for (seed, mut dice) in cases() {
        let mut order = dice.order();
        let mut extreme = || [0, (1 << 63) - 1, 1 << 63, u64::MAX][dice.roll(4) as usize];
        match &mut order {
            Order::Post { of } | Order::Void { of } => of.number.0 = extreme(),
            Order::Accept { trade, version } => (trade.0.number.0, version.0) = (extreme(), extreme()),
            Order::Offer { trade, .. } | Order::Withdraw { trade, .. } | Order::Cancel { trade } => {
                (trade.0.asker.0, trade.0.number.0) = (extreme(), extreme());
            }
            Order::Give { to, expires, .. } => (to.0, expires.0) = (extreme(), extreme()),
            Order::Propose { with, expires } => (with.0, expires.0) = (extreme(), extreme()),
            Order::Grant { warrant, .. } | Order::Take { warrant, .. } => {
                warrant.action = ActionId(u128::from(extreme()) << 64 | u128::from(extreme()));
            }
            Order::Mint { .. } | Order::Burn { .. } | Order::Move { .. } | Order::Delete => {}
        }
        if order.check().is_ok() {
            passed += 1;
            let mut bytes = Vec::new();
            order.write(&mut bytes);
            assert_eq!(Order::read(&mut Reader::new(&bytes)), Ok(order), "seed {seed}");
        }
    }
    assert!(passed > CASES / 4, "{passed} orders passed");
}

/// A base owner that holds entity 4, which stands for stored entity 9.
fn base() -> OwnerState {
    let mut state = OwnerState::new(OwnerId(1), Part::Base);
    let creation = BaseCreation {
        type_id: TypeId(0),
        database: DatabaseId(9),
        checkout: 1,
        properties: Vec::new(),
        cell_properties: Vec::new(),
    };
    let begun = event(
        Subject::Entity(EntityId(4), Part::Base),
        Body::BaseCreated(Box::new(creation)),
    );
    state.apply(&begun).expect("it begins");
    state
}

fn apply(state: &mut OwnerState, body: Body) -> Result<(), String> {
    let applied = state.apply(&event(Subject::Entity(EntityId(4), Part::Base), body));
    applied.map_err(|impossible| impossible.why.into_owned())
}

fn booking(of: TransferId, change: Option<Change>) -> Body {
    Body::Booked(LedgerUpdate::Booking(Box::new(Booking {
        entry: EntryNumber(1),
        of,
        outcome: Outcome::Posted,
        change,
        trade: None,
        gift: None,
    })))
}

fn changed(version: u64, gone: u64, come: u64) -> Option<Change> {
    let of = |amount| match amount {
        0 => Slots::new(),
        _ => Slots::from([(Slot(0), Assets::units(AssetKind(1), amount))]),
    };
    Some(Change {
        version: HoldingsVersion(version),
        gone: of(gone),
        come: of(come),
    })
}

#[test]
fn a_base_part_counts_its_orders_and_drops_answered_ones() {
    let mut state = base();
    let order = |number| Body::Ordered {
        number: TransferNumber(number),
        order: Order::Post {
            of: TransferId::default(),
        },
    };
    assert!(apply(&mut state, order(2)).is_err(), "2 comes after 1");
    apply(&mut state, order(1)).expect("the first");
    apply(&mut state, order(2)).expect("the second");
    assert!(apply(&mut state, order(2)).is_err(), "2 was used");
    let of = |asker| TransferId {
        asker: EntityId(asker),
        number: TransferNumber(1),
    };
    apply(&mut state, booking(of(5), None)).expect("another's");
    let orders = |state: &OwnerState| {
        let base = state.entities[&EntityId(4)].base().expect("a base part");
        base.ledger.orders.keys().map(|number| number.0).collect::<Vec<_>>()
    };
    assert_eq!(orders(&state), [1, 2]);
    apply(&mut state, booking(of(4), None)).expect("its own");
    assert_eq!(orders(&state), [2]);
}

#[test]
fn holdings_follow_statements_without_a_gap_and_are_never_negative() {
    let of = TransferId::default();
    let mut state = base();
    let why = apply(&mut state.clone(), booking(of, changed(1, 0, 5))).expect_err("no statement came");
    assert!(why.contains("statement"), "{why}");
    let statement = Statement {
        holder: DatabaseId(9),
        holdings: Holdings {
            version: HoldingsVersion(7),
            slots: Slots::from([(Slot(0), Assets::units(AssetKind(1), 3))]),
        },
        ..Statement::default()
    };
    apply(&mut state, Body::Booked(LedgerUpdate::Statement(Box::new(statement)))).expect("a statement");
    for bad in [changed(7, 0, 1), changed(9, 0, 1), changed(8, 4, 0)] {
        assert!(apply(&mut state.clone(), booking(of, bad.clone())).is_err(), "{bad:?}");
    }
    apply(&mut state, booking(of, changed(8, 3, 0))).expect("all that there is");
    let held = state.entities[&EntityId(4)]
        .base()
        .and_then(|base| base.ledger.holdings.clone());
    let held = held.expect("a statement came");
    assert_eq!((held.version, held.slots.len()), (HoldingsVersion(8), 0));
}

#[test]
fn the_ledgers_owner_takes_each_notice_and_each_entry_once() {
    let entered = |notice, entry: Option<u64>| {
        let entry = entry.map(|number| {
            let mut dice = Dice(Box::new(split_mix(1)));
            Box::new(Entry {
                number: EntryNumber(number),
                ..dice.entry()
            })
        });
        event(
            Subject::Owner,
            Body::Entered {
                notice: NoticeNumber(notice),
                entry,
            },
        )
    };
    let mut state = OwnerState::new(OwnerId(3), OwnerKind::Ledger);
    state.apply(&entered(1, None)).expect("a statement");
    state.apply(&entered(2, Some(1))).expect("the first entry");
    for (notice, entry) in [(2, None), (4, None), (3, Some(1)), (3, Some(3))] {
        assert!(
            state.clone().apply(&entered(notice, entry)).is_err(),
            "{notice}, {entry:?}"
        );
    }
    let mut own = Vec::new();
    state.write_own(&mut own);
    let read = OwnerState::read_own(&own).expect("what was written");
    assert_eq!((read.kind, read.ledger), (OwnerKind::Ledger, state.ledger));
    let mut other = OwnerState::new(OwnerId(1), Part::Base);
    assert!(other.apply(&entered(1, None)).is_err(), "a base is not the ledger");
}

#[test]
fn an_order_is_checked_without_the_ledger_state() {
    let give = |assets| Order::Give {
        slot: Slot(0),
        to: DatabaseId(1),
        assets,
        expires: WallTime(1),
    };
    let crowd = |count: u64| Assets {
        items: (0..count).map(|serial| (Serial(serial), AssetKind(1))).collect(),
        ..Assets::default()
    };
    let mint = |items, reason: &str| Order::Mint {
        slot: Slot(0),
        goods: Goods {
            units: BTreeMap::new(),
            items: BTreeMap::from([(AssetKind(1), items)]),
        },
        reason: reason.to_owned(),
    };
    let same = Order::Move {
        from: Slot(1),
        to: Slot(1),
        assets: crowd(1),
    };
    for (order, expected) in [
        (give(crowd(64)), Ok(())),
        (give(crowd(65)), Err(RefusalReason::TooMany)),
        (give(Assets::default()), Err(RefusalReason::Empty)),
        (give(Assets::units(AssetKind(1), 0)), Err(RefusalReason::Empty)),
        (same, Err(RefusalReason::SameSlot)),
        (mint(64, "quest"), Ok(())),
        (mint(65, "quest"), Err(RefusalReason::TooMany)),
        (mint(u32::MAX, "quest"), Err(RefusalReason::TooMany)),
        (mint(0, "quest"), Err(RefusalReason::Empty)),
        (mint(1, &"x".repeat(65)), Err(RefusalReason::LongReason)),
    ] {
        assert_eq!(order.check(), expected, "{order:?}");
    }
}

#[test]
fn an_operators_order_names_its_operator() {
    let crowd = |count: u64| Assets {
        items: (0..count).map(|serial| (Serial(serial), AssetKind(1))).collect(),
        ..Assets::default()
    };
    let grant = |items: u32, restored: u64, operator: &str, reason: &str| Order::Grant {
        slot: Slot(0),
        goods: Goods {
            units: BTreeMap::new(),
            items: (items > 0).then_some((AssetKind(1), items)).into_iter().collect(),
        },
        restored: crowd(restored).items,
        warrant: Box::new(Warrant {
            action: ActionId(1),
            operator: operator.to_owned(),
            tool: "a tool".to_owned(),
            reason: reason.to_owned(),
        }),
    };
    let take = |assets, reason: &str| Order::Take {
        slot: Slot(0),
        assets,
        warrant: Box::new(Warrant {
            action: ActionId(1),
            operator: "grace".to_owned(),
            tool: "a tool".to_owned(),
            reason: reason.to_owned(),
        }),
    };
    for (order, expected) in [
        (grant(60, 4, "grace", "why"), Ok(())),
        (grant(60, 5, "grace", "why"), Err(RefusalReason::TooMany)),
        (grant(0, 0, "grace", "why"), Err(RefusalReason::Empty)),
        (grant(1, 0, "", "why"), Err(RefusalReason::BadWarrant)),
        (grant(1, 0, "grace", "  "), Err(RefusalReason::BadWarrant)),
        (grant(1, 0, &"x".repeat(65), "why"), Err(RefusalReason::BadWarrant)),
        (grant(1, 0, "grace", &"x".repeat(500)), Ok(())),
        (grant(1, 0, "grace", &"x".repeat(501)), Err(RefusalReason::BadWarrant)),
        (take(crowd(64), "why"), Ok(())),
        (take(crowd(65), "why"), Err(RefusalReason::TooMany)),
        (take(Assets::default(), "why"), Err(RefusalReason::Empty)),
        (take(crowd(1), ""), Err(RefusalReason::BadWarrant)),
    ] {
        assert_eq!(order.check(), expected, "{order:?}");
    }
}

#[test]
fn statements_fit_their_reserved_size() {
    let kind = |number: usize| AssetKind(u32::MAX - u32::try_from(number).expect("few"));
    let slot = |number: usize| Slot(u16::MAX - u16::try_from(number).expect("few"));
    // The largest encoding: each asset in a slot of its own, with the largest numbers.
    let alone = |most: usize| -> Slots {
        let item = |number: usize| Assets {
            items: [(Serial(u64::MAX - number as u64), kind(number))].into(),
            ..Assets::default()
        };
        (0..most).map(|number| (slot(number), item(number))).collect()
    };
    let offer = Offer {
        holder: DatabaseId(u64::MAX),
        table: alone(ASSETS_PER_SIDE),
        accepted: true,
    };
    let trades = (0..OPEN_PER_HOLDER).map(|number| {
        let id = TradeId(TransferId {
            asker: EntityId(u64::MAX),
            number: TransferNumber(u64::MAX - u64::from(number)),
        });
        let trade = Trade {
            id,
            stage: Stage::Open,
            version: OfferVersion(u64::MAX),
            expires: WallTime(u64::MAX),
            proposer: offer.clone(),
            partner: offer.clone(),
        };
        (id, trade)
    });
    let statement = Statement {
        holder: DatabaseId(u64::MAX),
        holdings: Holdings {
            version: HoldingsVersion(u64::MAX),
            slots: alone(HOLDINGS_PER_HOLDER as usize),
        },
        trades: trades.collect(),
        ..Statement::default()
    };
    let mut bytes = Vec::new();
    LedgerUpdate::Statement(Box::new(statement)).write(&mut bytes);
    assert!(
        (STATEMENT_BYTES / 2..STATEMENT_BYTES).contains(&bytes.len()),
        "{}",
        bytes.len()
    );
}
