//! Wrong clocks. Expiry follows the wall time of a batch, which is its writer's clock. A fast clock expires things
//! early and a slow one late, by its error; each expires once, and nothing is lost or doubled.

use annals_event::ledger::{Assets, LONGEST_OPEN, Order, Outcome, RefusalReason};
use annals_ids::{DatabaseId, OfferVersion, Slot, TradeId, TransferId, WallTime};
use annals_store::MemoryStore;

use crate::traders::{GOLD, Traders, gold};

const HOUR: i64 = 3_600_000;

/// Two holders on a base each, with gold; gifts and proposals of the first last half an hour.
struct Open {
    traders: Traders,
    gift: TransferId,
    trade: TransferId,
}

fn open() -> Open {
    let mut traders = Traders::begin(MemoryStore::new().store(), 2, 2);
    for base in traders.bases.clone() {
        // No clock stands at the beginning of time.
        traders.realm.scribe(base).fast = 100 * HOUR;
    }
    for holder in 1..=2 {
        traders.mint(holder, gold(100));
    }
    traders.turn();
    let expires = WallTime(traders.later(1, 0).0 + HOUR as u64 / 2);
    let (slot, assets) = (Slot(0), Assets::units(GOLD, 10));
    let to = DatabaseId(2);
    let gift = traders.order(
        1,
        Order::Give {
            slot,
            to,
            assets,
            expires,
        },
    );
    let trade = traders.order(1, Order::Propose { with: to, expires });
    traders.turn();
    let assets = Assets::units(GOLD, 20);
    let offer = |trade| Order::Offer {
        trade,
        slot,
        assets: assets.clone(),
    };
    assert_eq!(traders.ask(1, offer(TradeId(trade))).1, Outcome::Posted);
    assert_eq!(traders.ask(2, offer(TradeId(trade))).1, Outcome::Posted);
    assert_eq!(both(&traders), [70, 80]);
    Open { traders, gift, trade }
}

fn both(traders: &Traders) -> [u64; 2] {
    [1, 2].map(|holder| traders.held(holder).units.get(&GOLD).copied().unwrap_or(0))
}

impl Open {
    /// Sets the error of one base's clock.
    fn set(&mut self, base: usize, fast: i64) {
        let owner = self.traders.bases[base];
        self.traders.realm.scribe(owner).fast = 100 * HOUR + fast;
    }

    /// Restarts db, which reads the stream again.
    fn restart(&mut self) {
        drop(self.traders.realm.begin_db());
        self.traders.realm.fold(usize::MAX);
    }

    fn ended(&self) -> [Vec<Outcome>; 2] {
        [self.gift, self.trade].map(|id| self.traders.outcomes(id))
    }

    /// Both have come back once, and no party can act on them.
    fn check_expired(&mut self) {
        let once = vec![Outcome::Pending, Outcome::Expired];
        assert_eq!(self.ended(), [once.clone(), once]);
        assert_eq!(both(&self.traders), [100, 100]);
        let (of, trade) = (self.gift, TradeId(self.trade));
        let not_open = Outcome::Refused(RefusalReason::NotOpen);
        let version = OfferVersion(2);
        for order in [
            Order::Post { of },
            Order::Void { of },
            Order::Accept { trade, version },
            Order::Cancel { trade },
        ] {
            assert_eq!(self.traders.ask(1, order.clone()).1, not_open, "{order:?}");
        }
        self.traders.check();
    }

    fn check_open(&self) {
        assert_eq!(self.ended(), [vec![Outcome::Pending], vec![Outcome::Pending]]);
        assert_eq!(both(&self.traders), [70, 80]);
        self.traders.check();
    }
}

#[test]
fn a_fast_clock_returns_assets_early_and_once() {
    for restarts in [false, true] {
        // With any clock: that of the giver's base, or another one.
        for base in [0, 1] {
            let mut open = open();
            open.set(base, HOUR);
            if restarts {
                open.restart();
            }
            open.traders.turn();
            open.traders.turn();
            open.set(base, 0);
            open.traders.turn();
            open.check_expired();
        }
    }
}

#[test]
fn a_slow_clock_returns_assets_late_and_once() {
    for restarts in [false, true] {
        let mut open = open();
        (0..2).for_each(|base| open.set(base, -HOUR));
        if restarts {
            open.restart();
        }
        open.traders.turn();
        // An hour has just passed by the slow clocks; the half hour ended long ago by correct ones.
        (0..2).for_each(|base| open.set(base, -1));
        open.traders.turn();
        open.check_open();
        (0..2).for_each(|base| open.set(base, HOUR / 2));
        open.traders.turn();
        open.traders.turn();
        open.check_expired();
    }
}

#[test]
fn a_wrong_clock_bounds_the_error_of_deadlines() {
    let mut open = open();
    let (slot, to) = (Slot(0), DatabaseId(2));
    let give = |expires| Order::Give {
        slot,
        to,
        assets: Assets::units(GOLD, 1),
        expires,
    };
    // The maximum duration by the slow clock; shorter by the clock's error for a correct one.
    open.set(0, -HOUR);
    open.traders.turn();
    let longest = WallTime(open.traders.later(1, 1).0 + LONGEST_OPEN);
    let late = WallTime(longest.0 + HOUR as u64);
    let (of, given) = open.traders.ask(1, give(longest));
    assert_eq!(given, Outcome::Pending);
    let refused = Outcome::Refused(RefusalReason::BadDeadline);
    assert_eq!(open.traders.ask(1, give(late)).1, refused);
    // The fast clock has reached it already.
    open.set(0, HOUR);
    assert_eq!(open.traders.ask(1, give(WallTime(longest.0 - LONGEST_OPEN))).1, refused);
    // A clock that is far off ends what is open, and leaves the ledger in order for correct clocks.
    open.set(1, i64::MAX - 1_000 * HOUR);
    open.traders.turn();
    open.traders.turn();
    assert_eq!(open.traders.outcomes(of), [Outcome::Pending, Outcome::Expired]);
    open.set(0, 0);
    open.set(1, 0);
    open.traders.turn();
    open.check_expired();
    let (of, given) = open.traders.ask(1, give(open.traders.later(1, 10)));
    assert_eq!(given, Outcome::Pending);
    (0..12).for_each(|_| open.traders.turn());
    assert_eq!(open.traders.outcomes(of), [Outcome::Pending, Outcome::Expired]);
    open.traders.check();
}
