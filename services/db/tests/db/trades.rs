//! Orders that depend on timing: acceptances of an offer that changed afterwards, and orders about expired trades and
//! gifts. And the limits of a holder's holdings, at the limit and one above.

use annals_db::ledger::read_entries;
use annals_event::{
    Body,
    ledger::{
        ASSETS_PER_ORDER, ASSETS_PER_SIDE, Assets, Entry, Goods, HOLDINGS_PER_HOLDER, OPEN_PER_HOLDER, Order, Outcome,
        RefusalReason, UNITS_OF_A_KIND,
    },
};
use annals_ids::{
    AssetKind, DatabaseId, EntityId, EntryNumber, OfferVersion, OwnerId, Part, Serial, Slot, TradeId, TransferId,
    WallTime,
};
use annals_store::{ScanOrder, layout::ledger as layout};

use crate::{acts, realm::Realm, wait};

const INVENTORY: Slot = Slot(0);
const COINS: AssetKind = AssetKind(1);

/// Coins that each party begins with.
const PURSE: u64 = 100;

/// Parties on one base, with some coins each. Party `n` is stored entity `n`, from 1 on.
struct Parties {
    realm: Realm,
    base: OwnerId,
    /// The newest entry that a test has examined.
    seen: EntryNumber,
}

fn entity(party: u64) -> EntityId {
    EntityId(1_000 + party)
}

fn coins(amount: u64) -> Assets {
    Assets::units(COINS, amount)
}

impl Parties {
    fn new(count: u64) -> Self {
        let mut realm = Realm::new(0);
        let base = realm.found(Part::Base);
        for party in 1..=count {
            acts::begin_base(
                &mut realm,
                base,
                entity(party),
                &format!("party {party}"),
                (party, party),
            );
        }
        let mut parties = Self {
            realm,
            base,
            seen: EntryNumber(0),
        };
        for party in 1..=count {
            let goods = Goods {
                units: coins(PURSE).units,
                ..Goods::default()
            };
            let reason = String::new();
            parties.record(
                party,
                Order::Mint {
                    slot: INVENTORY,
                    goods,
                    reason,
                },
            );
        }
        assert!(parties.outcomes().iter().all(|outcome| *outcome == Outcome::Posted));
        parties
    }

    /// Adds an order to the present batch. Returns its id.
    fn record(&mut self, party: u64, order: Order) -> TransferId {
        let asker = entity(party);
        let scribe = self.realm.scribe(self.base);
        let base = scribe.state.entities[&asker].base().expect("a base part");
        let number = base.ledger.last.next();
        scribe.record(asker, false, Body::Ordered { number, order });
        TransferId { asker, number }
    }

    /// Wall time of the present batch.
    fn now(&mut self) -> u64 {
        self.realm.scribe(self.base).state.tick.0 + 1
    }

    /// Closes the batch, folds it, and returns the entries that it created.
    fn entries(&mut self) -> Vec<Entry> {
        self.realm.write(self.base, false);
        self.realm.fold(usize::MAX);
        let entries = wait(read_entries(&self.realm.store, self.seen, usize::MAX)).expect("the store answers");
        self.seen = entries.last().map_or(self.seen, |entry| entry.number);
        entries
    }

    fn outcomes(&mut self) -> Vec<Outcome> {
        self.entries().iter().map(|entry| entry.outcome).collect()
    }

    /// Executes one order in a batch of its own.
    fn execute(&mut self, party: u64, order: Order) -> Entry {
        let of = self.record(party, order);
        let mut entries = self.entries();
        assert_eq!(entries.len(), 1, "{entries:?}");
        let entry = entries.remove(0);
        assert_eq!(entry.of, of);
        entry
    }

    /// Opens a trade of party 1 with party 2, in which both have offered 10 coins.
    fn open_trade(&mut self) -> TradeId {
        let expires = WallTime(self.now() + 1_000_000);
        let proposed = self.execute(
            1,
            Order::Propose {
                with: DatabaseId(2),
                expires,
            },
        );
        assert_eq!(proposed.outcome, Outcome::Pending);
        let trade = TradeId(proposed.of);
        for party in [1, 2] {
            assert_eq!(self.execute(party, offer(trade, 10)).outcome, Outcome::Posted);
        }
        trade
    }

    /// Number of open trades and gifts.
    fn open(&self) -> usize {
        let transaction = self.realm.store.begin();
        let page = wait(transaction.get_range(&layout::open(), 1_000, ScanOrder::Forward));
        page.expect("the store answers").rows.len()
    }

    /// The coins of each party, as the sum of the entries.
    fn held(&self, count: u64) -> Vec<i64> {
        let entries = wait(read_entries(&self.realm.store, EntryNumber(0), usize::MAX)).expect("the store answers");
        let postings = || entries.iter().flat_map(|entry| &entry.postings);
        let of = |party| {
            let holder = annals_event::ledger::Holder::Stored(DatabaseId(party));
            let own = postings().filter(move |posting| posting.account.place.holder == holder);
            own.map(|posting| posting.amount).sum()
        };
        (1..=count).map(of).collect()
    }
}

fn offer(trade: TradeId, amount: u64) -> Order {
    Order::Offer {
        trade,
        slot: INVENTORY,
        assets: coins(amount),
    }
}

fn withdraw(trade: TradeId, amount: u64) -> Order {
    Order::Withdraw {
        trade,
        slot: INVENTORY,
        assets: coins(amount),
    }
}

fn accept(trade: TradeId, version: u64) -> Order {
    Order::Accept {
        trade,
        version: OfferVersion(version),
    }
}

/// One party accepts, one of the two changes its offer, the other party accepts the changed offer: an acceptance of
/// former offers settles nothing, whichever side gave it, whichever side changed its offer, and by whichever order.
#[test]
fn a_changed_offer_revokes_the_acceptance() {
    let changes: [fn(TradeId, u64) -> Order; 2] = [offer, withdraw];
    for (first, second) in [(1, 2), (2, 1)] {
        for changer in [first, second] {
            for change in changes {
                let mut parties = Parties::new(2);
                let trade = parties.open_trade();
                let case = format!("{first} accepts, {changer} does {:?}", change(trade, 3));
                // Two offers were made.
                assert_eq!(parties.execute(first, accept(trade, 2)).outcome, Outcome::Posted);
                assert_eq!(parties.execute(changer, change(trade, 3)).outcome, Outcome::Posted);
                let accepted = parties.execute(second, accept(trade, 3));
                assert_eq!(accepted.outcome, Outcome::Posted, "{case}");
                assert!(accepted.postings.is_empty(), "{case}: {accepted:?}");
                assert_eq!(parties.open(), 1, "{case}: it is not settled");

                let stale = parties.execute(first, accept(trade, 2));
                assert_eq!(stale.outcome, Outcome::Refused(RefusalReason::Stale), "{case}");
                assert_eq!(parties.open(), 1, "{case}: it is not settled");

                let settled = parties.execute(first, accept(trade, 3));
                assert_eq!(settled.outcome, Outcome::Posted, "{case}");
                assert_eq!(parties.open(), 0, "{case}: now both accept the same");
                let change: i64 = if matches!(change(trade, 3), Order::Offer { .. }) {
                    3
                } else {
                    -3
                };
                let given = if changer == 1 { -change } else { change };
                let expected = [PURSE as i64 + given, PURSE as i64 - given];
                assert_eq!(parties.held(2), expected, "{case}");
            }
        }
    }
}

/// Each holder has as many open as allowed, so that more expires at one moment than one batch ends. For the orders of
/// that batch, the remaining ones count as ended.
#[test]
fn an_overdue_transfer_accepts_no_orders() {
    const GIVERS: u64 = 3;
    let (giver, proposer, partner) = (GIVERS + 1, GIVERS + 2, GIVERS + 3);
    let mut parties = Parties::new(partner);
    let expires = WallTime(parties.now() + 4);
    for party in 1..=GIVERS {
        for _ in 0..OPEN_PER_HOLDER {
            parties.record(party, give(giver, expires));
        }
    }
    // Those with the lowest ids end first.
    let gift = parties.record(giver, give(partner, expires));
    let with = DatabaseId(partner);
    let trade = TradeId(parties.record(proposer, Order::Propose { with, expires }));
    assert!(parties.outcomes().iter().all(|outcome| *outcome == Outcome::Pending));
    for party in [proposer, partner] {
        parties.execute(party, offer(trade, 10));
    }
    assert_eq!(parties.execute(partner, accept(trade, 2)).outcome, Outcome::Posted);

    assert_eq!(parties.now(), expires.0, "it is due from now on");
    let orders = [
        (giver, Order::Post { of: gift }),
        (proposer, offer(trade, 1)),
        (proposer, withdraw(trade, 1)),
        (proposer, accept(trade, 2)),
    ];
    let count = orders.len();
    for (party, order) in orders {
        parties.record(party, order);
    }
    let mut outcomes = parties.outcomes();
    let answers = outcomes.split_off(outcomes.len() - count);
    assert_eq!(answers, vec![Outcome::Refused(RefusalReason::NotOpen); count]);
    let ended = outcomes.len();
    let due = usize::try_from(GIVERS).expect("few") * OPEN_PER_HOLDER as usize + 2;
    assert!(ended < due, "{ended} of {due} were ended with the first batch");
    assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Expired));

    // The rest ends with the following batches, each once.
    let mut ended = ended;
    for _ in 0..4 {
        let outcomes = parties.outcomes();
        assert!(outcomes.iter().all(|outcome| *outcome == Outcome::Expired));
        ended += outcomes.len();
    }
    assert_eq!((ended, parties.open()), (due, 0));
    assert_eq!(parties.held(partner), vec![PURSE as i64; partner as usize]);
}

fn give(to: u64, expires: WallTime) -> Order {
    Order::Give {
        slot: INVENTORY,
        to: DatabaseId(to),
        assets: coins(1),
        expires,
    }
}

fn swords(count: u32) -> Order {
    let goods = Goods {
        items: std::collections::BTreeMap::from([(SWORDS, count)]),
        ..Goods::default()
    };
    mint(goods)
}

fn mint(goods: Goods) -> Order {
    let reason = String::new();
    Order::Mint {
        slot: INVENTORY,
        goods,
        reason,
    }
}

const SWORDS: AssetKind = AssetKind(2);

#[test]
fn open_transfers_of_a_holder_are_limited() {
    let mut parties = Parties::new(3);
    let expires = WallTime(parties.now() + 1_000_000);
    for _ in 0..=OPEN_PER_HOLDER {
        parties.record(1, give(2, expires));
    }
    let mut outcomes = parties.outcomes();
    let too_many = Outcome::Refused(RefusalReason::TooManyOpen);
    assert_eq!(outcomes.pop(), Some(too_many));
    assert_eq!(outcomes, vec![Outcome::Pending; OPEN_PER_HOLDER as usize]);
    // Nor can it be party to a trade that another holder proposes.
    let with = DatabaseId(1);
    assert_eq!(parties.execute(3, Order::Propose { with, expires }).outcome, too_many);
    let with = DatabaseId(2);
    let proposed = parties.execute(3, Order::Propose { with, expires });
    assert_eq!(proposed.outcome, Outcome::Pending, "a gift counts with the giver");
}

#[test]
fn units_of_a_kind_are_limited() {
    let mut parties = Parties::new(2);
    let rest = UNITS_OF_A_KIND - 2 * PURSE;
    let make = |amount| {
        mint(Goods {
            units: coins(amount).units,
            ..Goods::default()
        })
    };
    let supply = Outcome::Refused(RefusalReason::Supply);
    assert_eq!(parties.execute(1, make(rest + 1)).outcome, supply);
    assert_eq!(parties.execute(1, make(rest)).outcome, Outcome::Posted);
    assert_eq!(parties.execute(2, make(1)).outcome, supply);
}

#[test]
fn assets_on_one_side_of_a_trade_are_limited() {
    let mut parties = Parties::new(2);
    let trade = parties.open_trade();
    let count = u32::try_from(ASSETS_PER_SIDE).expect("few");
    assert_eq!(parties.execute(1, swords(count)).outcome, Outcome::Posted);
    let offer = |serials: std::ops::RangeInclusive<u64>| Order::Offer {
        trade,
        slot: INVENTORY,
        assets: Assets {
            items: serials.map(|serial| (Serial(serial), SWORDS)).collect(),
            ..Assets::default()
        },
    };
    // Coins are offered already, which count as one.
    let all = ASSETS_PER_SIDE as u64;
    let full = Outcome::Refused(RefusalReason::TableFull);
    assert_eq!(parties.execute(1, offer(1..=all)).outcome, full);
    assert_eq!(parties.execute(1, offer(1..=all - 1)).outcome, Outcome::Posted);
    assert_eq!(parties.execute(1, offer(all..=all)).outcome, full);
}

#[test]
fn assets_of_a_holder_are_limited() {
    let mut parties = Parties::new(2);
    let each = u32::try_from(ASSETS_PER_ORDER).expect("few");
    // All but one of its maximum holdings, including its coins.
    for _ in 1..HOLDINGS_PER_HOLDER / each {
        parties.record(1, swords(each));
    }
    parties.record(1, swords(each - 2));
    assert!(parties.outcomes().iter().all(|outcome| *outcome == Outcome::Posted));
    let full = Outcome::Refused(RefusalReason::Full);
    assert_eq!(parties.execute(1, swords(2)).outcome, full);
    assert_eq!(parties.execute(1, swords(1)).outcome, Outcome::Posted);
    assert_eq!(parties.execute(1, swords(1)).outcome, full);

    // Gifts of others do not reach it, and the giver can still take them back.
    assert_eq!(parties.execute(2, swords(1)).outcome, Outcome::Posted);
    let expires = WallTime(parties.now() + 1_000_000);
    let sword = Assets::item(Serial(u64::from(HOLDINGS_PER_HOLDER)), SWORDS);
    let given = parties.execute(
        2,
        Order::Give {
            slot: INVENTORY,
            to: DatabaseId(1),
            assets: sword,
            expires,
        },
    );
    assert_eq!(given.outcome, Outcome::Pending);
    assert_eq!(parties.execute(2, Order::Post { of: given.of }).outcome, full);
    assert_eq!(
        parties.execute(2, Order::Void { of: given.of }).outcome,
        Outcome::Voided
    );
}
