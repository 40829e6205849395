//! The ledger's notices to base parts, and their orders.

use std::collections::BTreeMap;

use annals_base::BaseInput;
use annals_def::Value;
use annals_event::{
    Body, Call, Link,
    ledger::{
        Assets, Booking, Change, Gift, Holdings, LedgerUpdate, ORDERS_WAITING, Order, Outcome, RefusalReason, Stage,
        Statement,
    },
};
use annals_ids::{
    Address, CallNumber, DatabaseId, EntityId, EntryNumber, Epoch, HoldingsVersion, MemberId, OwnerId, Part, Slot,
    TransferId, TransferNumber, WallTime,
};
use annals_node::{ALARM, Denied};
use annals_wire::bus::{CallMessage, Envelope, Message};

use crate::{
    game::{COIN, FRIEND, Game, text},
    host::{BASE, Host, Mood, map},
    player::{Player, log_in},
};

const LEDGER: OwnerId = OwnerId(77);
const ACCOUNT: DatabaseId = DatabaseId(5);

/// The base method that does what a test says.
const RUN_ERRAND: MemberId = MemberId(17);

/// The ledger's owner, as far as a base sees it.
#[derive(Default)]
pub(crate) struct Ledger {
    last: CallNumber,
    entry: EntryNumber,
}

impl Ledger {
    pub(crate) fn send(&mut self, host: &mut Host, to: EntityId, update: LedgerUpdate) {
        self.last = self.last.next();
        self.say(host, to, update, false);
    }

    /// Sends a notice before which none is unconfirmed any more.
    fn send_oldest(&mut self, host: &mut Host, to: EntityId, update: LedgerUpdate) {
        self.last = self.last.next();
        self.say(host, to, update, true);
    }

    /// Sends it with the number of the last call.
    fn say(&self, host: &mut Host, to: EntityId, update: LedgerUpdate, is_oldest: bool) {
        let call = CallMessage {
            link: Link {
                from: Address::Owner(LEDGER),
                to: Address::Owner(BASE),
            },
            from_home: LEDGER,
            to_home: BASE,
            number: self.last,
            is_oldest,
            trace: [0; 16],
            call: Call::Ledger { to, update },
        };
        host.receive(Envelope {
            from: LEDGER,
            epoch: Epoch(1),
            message: Message::Call(call),
        });
    }

    pub(crate) fn booking(&mut self, of: TransferId, outcome: Outcome) -> Booking {
        self.entry = self.entry.next();
        Booking {
            entry: self.entry,
            of,
            outcome,
            change: None,
            trade: None,
            gift: None,
        }
    }
}

pub(crate) fn statement(coins: u64) -> Statement {
    let slots = BTreeMap::from([(Slot(0), Assets::units(COIN, coins))]);
    Statement {
        holder: ACCOUNT,
        holdings: Holdings {
            version: HoldingsVersion(3),
            slots,
        },
        ..Statement::default()
    }
}

fn gift(id: TransferId, stage: Stage) -> Gift {
    Gift {
        id,
        stage,
        from: ACCOUNT,
        to: FRIEND,
        slot: Slot(0),
        assets: Assets::units(COIN, 4),
        expires: WallTime(u64::MAX >> 1),
    }
}

fn leaving(version: u64) -> Change {
    Change {
        version: HoldingsVersion(version),
        gone: BTreeMap::from([(Slot(0), Assets::units(COIN, 4))]),
        come: BTreeMap::new(),
    }
}

fn bestow(host: &mut Host, player: &mut Player, units: u64) {
    player.call(host, Part::Base, "bestow", &[Value::UInt(units)]);
    host.settle();
    player.listen(host);
}

fn trail(host: &Host, entity: EntityId) -> String {
    text(&host.image(entity).properties[&MemberId(1)])
}

fn coins(host: &Host, entity: EntityId) -> u64 {
    let view = host.owner.cx().ledger(entity).expect("a base part");
    let holdings = view.holdings.as_ref().expect("a statement came");
    holdings.slots.get(&Slot(0)).map_or(0, |held| held.units[&COIN])
}

pub(crate) fn first(asker: EntityId) -> TransferId {
    TransferId {
        asker,
        number: TransferNumber(1),
    }
}

/// The orders in a log, each with the number of its batch.
pub(crate) fn orders(host: &Host) -> Vec<(u64, Order)> {
    let ordered = |body: &Body| match body {
        Body::Ordered { order, .. } => Some(order.clone()),
        _ => None,
    };
    let batches = host.batches();
    let found = batches.flat_map(|batch| {
        let number = batch.header.number.0;
        let events: Vec<_> = batch.events.iter().filter_map(|event| ordered(&event.body)).collect();
        events.into_iter().map(move |order| (number, order))
    });
    found.collect()
}

#[test]
fn a_reservation_is_posted_in_the_batch_of_its_departure() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, ACCOUNT.0, 1);
    let entity = player.entity.unwrap().0;
    let mut ledger = Ledger::default();
    ledger.send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(10))));
    bestow(&mut host, &mut player, 4);
    assert_eq!(coins(&host, entity), 10, "no output has left yet");

    let of = first(entity);
    let booking = Booking {
        change: Some(leaving(4)),
        gift: Some(gift(of, Stage::Open)),
        ..ledger.booking(of, Outcome::Pending)
    };
    let update = LedgerUpdate::Booking(Box::new(booking));
    ledger.send(&mut host, entity, update.clone());
    host.settle();
    assert_eq!(coins(&host, entity), 6);
    let given = orders(&host);
    let [(_, Order::Give { .. }), (posted_in, Order::Post { of: posted })] = &given[..] else {
        panic!("{given:?}");
    };
    assert_eq!(*posted, of);
    let booked_in = host.batches().find(|batch| {
        let mut events = batch.events.iter();
        events.any(|event| matches!(event.body, Body::Booked(LedgerUpdate::Booking(_))))
    });
    assert_eq!(booked_in.map(|batch| batch.header.number.0), Some(*posted_in));

    // It comes again, before and after the process was lost, and takes effect once.
    ledger.say(&mut host, entity, update.clone(), false);
    host.crash();
    ledger.say(&mut host, entity, update, false);
    host.settle();
    assert_eq!((coins(&host, entity), orders(&host).len()), (6, 2));
    assert!(trail(&host, entity).contains("HoT"), "{}", trail(&host, entity));

    let posted = TransferId {
        number: TransferNumber(2),
        ..of
    };
    let booking = Booking {
        gift: Some(gift(of, Stage::Settled)),
        ..ledger.booking(posted, Outcome::Posted)
    };
    ledger.send(&mut host, entity, LedgerUpdate::Booking(Box::new(booking)));
    host.settle();
    let view = host.owner.cx().ledger(entity).unwrap();
    assert!(view.gifts.is_empty() && view.orders.is_empty());
    assert_eq!(host.folded().hash(), host.owner.state().hash());
}

#[test]
fn an_activation_posts_its_predecessors_reservations() {
    let mut host = Host::new();
    let player = log_in(&mut host, ACCOUNT.0, 1);
    let entity = player.entity.unwrap().0;
    let before = first(EntityId(entity.0 + 1_000));
    let mut left = statement(6);
    left.gifts.insert(before, gift(before, Stage::Open));
    Ledger::default().send(&mut host, entity, LedgerUpdate::Statement(Box::new(left)));
    host.settle();
    let given = orders(&host);
    assert!(
        matches!(&given[..], [(_, Order::Post { of })] if *of == before),
        "{given:?}"
    );
}

#[test]
fn an_impossible_order_is_denied_at_once() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, ACCOUNT.0, 1);
    let entity = player.entity.unwrap().0;
    bestow(&mut host, &mut player, 1);
    Ledger::default().send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(10))));
    bestow(&mut host, &mut player, 0);
    for _ in 0..=ORDERS_WAITING {
        bestow(&mut host, &mut player, 1);
    }
    let expected = format!("uHn{}m", "o".repeat(ORDERS_WAITING));
    assert!(trail(&host, entity).ends_with(&expected), "{}", trail(&host, entity));

    player.call(&mut host, Part::Base, "become", &[Value::UInt(0)]);
    host.settle();
    player.listen(&mut host);
    let avatar = player.entity.unwrap().0;
    assert_ne!(avatar, entity);
    bestow(&mut host, &mut player, 1);
    assert!(trail(&host, avatar).ends_with('s'), "{}", trail(&host, avatar));
}

#[test]
fn a_deletion_is_refused_while_the_entity_knows_of_assets() {
    let mut host = Host::of(Game {
        errand: Some(|context| {
            let refused = context.delete();
            assert_eq!(refused, Err(Denied::Order(RefusalReason::StillHolds)));
        }),
        ..Game::default()
    });
    host.role(BaseInput::Map(map()));
    let player = log_in(&mut host, ACCOUNT.0, 1);
    let entity = player.entity.unwrap().0;
    let mut ledger = Ledger::default();
    ledger.send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(10))));
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert_eq!(orders(&host), []);
}

#[test]
fn a_deleted_entity_ends_with_the_ledgers_notice_and_a_refused_one_goes_on() {
    let mut host = Host::of(Game {
        errand: Some(|context| assert!(context.delete().is_ok())),
        ..Game::default()
    });
    host.role(BaseInput::Map(map()));
    let player = log_in(&mut host, ACCOUNT.0, 1);
    let entity = player.entity.unwrap().0;
    let mut ledger = Ledger::default();
    let empty = Statement {
        holder: ACCOUNT,
        ..Statement::default()
    };
    ledger.send(&mut host, entity, LedgerUpdate::Statement(Box::new(empty)));
    host.call(entity, RUN_ERRAND);
    host.settle();
    assert!(matches!(&orders(&host)[..], [(_, Order::Delete)]));
    // A gift has arrived meanwhile.
    let refused = ledger.booking(first(entity), Outcome::Refused(RefusalReason::StillHolds));
    ledger.send(&mut host, entity, LedgerUpdate::Booking(Box::new(refused)));
    host.settle();
    assert!(trail(&host, entity).ends_with('T'), "{}", trail(&host, entity));

    host.call_again(entity, RUN_ERRAND);
    host.settle();
    // The order survives the process.
    host.crash();
    let of = TransferId {
        asker: entity,
        number: TransferNumber(2),
    };
    let deleted = LedgerUpdate::Booking(Box::new(ledger.booking(of, Outcome::Posted)));
    ledger.send(&mut host, entity, deleted.clone());
    host.settle();
    assert_eq!(host.owner.cx().image(entity), None, "it has ended");
    // The notice again, to a process that took over.
    host.crash();
    ledger.say(&mut host, entity, deleted, false);
    host.settle();
    let ends = host.batches().flat_map(|batch| batch.events);
    assert_eq!(ends.filter(|event| event.body == Body::Destroyed).count(), 1);
    assert_eq!(host.folded().hash(), host.owner.state().hash());
}

#[test]
fn notices_for_an_ended_entity_are_consumed_without_effect() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, ACCOUNT.0, 1);
    let entity = player.entity.unwrap().0;
    player.call(&mut host, Part::Base, "leave", &[]);
    host.settle();
    assert!(host.owner.cx().image(entity).is_none());
    host.sent.clear();
    Ledger::default().send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(10))));
    host.settle();
    let took = host.sent.iter().any(|(to, envelope)| {
        *to == LEDGER
            && matches!(
                envelope.message,
                Message::Took {
                    upto: CallNumber(1),
                    ..
                }
            )
    });
    assert!(took, "the sender may delete it");
    assert_eq!(host.folded().hash(), host.owner.state().hash());
}

#[test]
fn an_alarm_is_reported_only_once_its_batch_is_in_the_log() {
    let mut host = Host::new();
    let player = log_in(&mut host, ACCOUNT.0, 1);
    let entity = player.entity.unwrap().0;
    let mut ledger = Ledger::default();
    ledger.send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(2))));
    host.settle();
    // A successor has taken the notices between and confirmed them; this holder, frozen meanwhile, skips them.
    host.mood = Mood::Withholds;
    ledger.last = CallNumber(ledger.last.0 + 2);
    let booking = Booking {
        change: Some(leaving(5)),
        ..ledger.booking(first(EntityId(1)), Outcome::Posted)
    };
    ledger.send_oldest(&mut host, entity, LedgerUpdate::Booking(Box::new(booking)));
    host.settle();
    assert_eq!(
        host.owner.poll_trouble(),
        None,
        "the log may never hold what it depends on"
    );
    host.answer_again();
    let trouble = host.owner.poll_trouble().expect("now it is certain").to_string();
    assert!(trouble.contains(ALARM), "{trouble}");
}

#[test]
fn notices_out_of_sequence_are_an_alarm_and_do_not_stop_the_process() {
    let mut host = Host::new();
    let player = log_in(&mut host, ACCOUNT.0, 1);
    let entity = player.entity.unwrap().0;
    let mut ledger = Ledger::default();
    ledger.send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(2))));
    let troubles = host.owner.troubles();
    for version in [3, 4, 5] {
        // The version is wrong, or it takes more than the entity holds.
        let booking = Booking {
            change: Some(leaving(version)),
            ..ledger.booking(first(EntityId(1)), Outcome::Posted)
        };
        ledger.send(&mut host, entity, LedgerUpdate::Booking(Box::new(booking)));
    }
    host.settle();
    assert_eq!(host.owner.troubles(), troubles + 3);
    assert_eq!(coins(&host, entity), 2);
    host.role(BaseInput::Map(crate::host::map()));
    assert_eq!(host.folded().hash(), host.owner.state().hash());
}
