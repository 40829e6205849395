//! A trade and a gift between two players, whose bases send orders and receive notices independently, and which may be
//! deleted. Rules F10 to F13 and F19.
//!
//! Each player has one item; a trade is open between them. A base records an order, its log acknowledges it, db
//! executes the orders of that log in order, and both bases receive notices of the result, each independently. An order
//! in a log is final; one that a base has recorded but not logged is lost if its process crashes. The log, calls and
//! the outbox have models of their own: here each order is executed once, and notices arrive once and in order.

pub mod exhibits;
mod words;

use crate::explorer::Model;
use crate::faults::{Faults, spend};
use crate::invariant::Invariant;
use crate::rule::{Rule, Rules};

/// Maximum orders of a player that are logged and not executed.
const LOGGED: usize = 2;
/// Maximum notices to a player in flight.
const PENDING: usize = 4;
const BOTH: [usize; 2] = [0, 1];

/// Bounds of a schedule.
#[derive(Debug, Clone, Copy)]
pub struct TradeBounds {
    /// Orders of each player.
    pub orders: [u8; 2],
    /// Whether players also destroy items and give them away, outside the trade.
    pub aside: bool,
    /// Whether players are deleted, once they seem to hold nothing.
    pub deletes: bool,
    /// Faults; crashes of a base count here.
    pub faults: Faults,
}

/// The model of a trade.
#[derive(Debug, Clone, Copy)]
pub struct TradeModel {
    /// The rules in force.
    pub rules: Rules,
    /// Bounds of a schedule.
    pub bounds: TradeBounds,
}

/// Items as bits: initially bit 0 is the first player's item, bit 1 the second's.
type Items = u8;

/// Items that both sides have on the table.
type Tables = [Items; 2];

/// An order of a player.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Ask {
    /// Puts an item on the table.
    Offer(Items),
    /// Takes it back.
    Withdraw(Items),
    /// Accepts this version, with the tables that the player has seen.
    Accept(u8, Tables),
    /// Ends the trade.
    Cancel,
    /// Destroys an item.
    Spend(Items),
    /// Reserves an item for the other player.
    Give(Items),
    /// Completes that gift.
    Post,
    /// Deletes the player.
    Delete,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
enum Stage {
    #[default]
    Open,
    Settled,
    Ended,
}

/// A notice to a player's base.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct BaseNotice {
    gone: Items,
    come: Items,
    version: u8,
    tables: Tables,
    stage: Stage,
    reserved: Items,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Player {
    asked: u8,
    memory: Option<Ask>,
    log: [Option<Ask>; LOGGED],
    pending: [Option<BaseNotice>; PENDING],
    /// The base's knowledge: what the player holds, and the state of the trade.
    holds: Items,
    version: u8,
    tables: Tables,
    stage: Stage,
    reserved: Items,
    /// Whether it has ordered a gift, of which it may not have received the notice.
    gave: bool,
}

/// The store's state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
struct Ledger {
    holds: [Items; 2],
    tables: Tables,
    reserved: [Items; 2],
    spent: Items,
    version: u8,
    /// By player: the tables that it accepted, if it has.
    accepted: [Option<Tables>; 2],
    stage: Stage,
    deleted: [bool; 2],
    /// A player got something other than it accepted.
    cheated: bool,
}

/// The state of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TradeState {
    players: [Player; 2],
    ledger: Ledger,
    left: Faults,
}

/// A step. Players are named by index.
#[derive(Debug, Clone, Copy)]
pub enum TradeStep {
    /// A base records an order.
    Ask(usize, Ask),
    /// The base's log acknowledges it.
    Log(usize),
    /// The base crashes and loses what it has not logged.
    Crash(usize),
    /// db executes the next order of a base's log.
    Execute(usize),
    /// The base receives the next notice.
    Receive(usize),
    /// The trade expires.
    Expire,
}

impl Model for TradeModel {
    type State = TradeState;
    type Step = TradeStep;

    fn start(&self) -> TradeState {
        let player = |holds| Player {
            holds,
            ..Player::default()
        };
        TradeState {
            players: [player(1), player(2)],
            ledger: Ledger {
                holds: [1, 2],
                ..Ledger::default()
            },
            left: self.bounds.faults,
        }
    }

    fn steps(&self, state: &TradeState, steps: &mut Vec<TradeStep>) {
        let has_room = state.players.iter().all(|player| player.pending[PENDING - 1].is_none());
        for who in BOTH {
            let player = &state.players[who];
            match player.memory {
                None if player.asked < self.bounds.orders[who] => self.asks(player, who, steps),
                Some(_) if player.log[LOGGED - 1].is_none() => steps.push(TradeStep::Log(who)),
                _ => {}
            }
            if player.memory.is_some() && state.left.crashes > 0 {
                steps.push(TradeStep::Crash(who));
            }
            if player.log[0].is_some() && has_room {
                steps.push(TradeStep::Execute(who));
            }
            if player.pending[0].is_some() {
                steps.push(TradeStep::Receive(who));
            }
        }
        if state.ledger.stage == Stage::Open && has_room {
            steps.push(TradeStep::Expire);
        }
    }

    fn take(&self, state: &TradeState, step: TradeStep) -> TradeState {
        let mut after = *state;
        match step {
            TradeStep::Ask(who, ask) => {
                let player = &mut after.players[who];
                player.memory = Some(ask);
                player.asked += 1;
                player.gave |= matches!(ask, Ask::Give(_));
            }
            TradeStep::Log(who) => {
                let player = &mut after.players[who];
                let free = player.log.iter().position(Option::is_none).unwrap_or(0);
                player.log[free] = player.memory.take();
            }
            TradeStep::Crash(who) => {
                spend(&mut after.left.crashes);
                after.players[who].memory = None;
            }
            TradeStep::Execute(who) => {
                let player = &mut after.players[who];
                let ask = player.log[0];
                player.log = [player.log[1], None];
                if let Some(ask) = ask {
                    self.execute(&mut after, who, ask);
                }
            }
            TradeStep::Receive(who) => receive(&mut after.players[who]),
            TradeStep::Expire => {
                let before = after.ledger;
                self.end(&mut after.ledger);
                notify(&mut after, &before);
            }
        }
        after
    }

    fn broken(&self, state: &TradeState) -> Option<Invariant> {
        let ledger = &state.ledger;
        let mut places = vec![ledger.holds[0], ledger.holds[1], ledger.spent];
        places.extend(ledger.reserved);
        if self.rules.has(Rule::F10Escrow) {
            places.extend(ledger.tables);
        }
        let once = |item: Items| places.iter().filter(|place| **place & item != 0).count() == 1;
        if !once(1) || !once(2) {
            return Some(Invariant::UnitsHaveOneOwner);
        }
        if state.players[0].holds & state.players[1].holds != 0 {
            return Some(Invariant::HeldInOneView);
        }
        if BOTH.into_iter().any(|who| ledger.deleted[who] && ledger.owns(who)) {
            return Some(Invariant::DeletedHoldNothing);
        }
        ledger.cheated.then_some(Invariant::TradedAsAccepted)
    }

    fn words(&self, state: &TradeState, step: TradeStep, after: &TradeState) -> String {
        words::words(state, step, after)
    }

    /// Nothing is in flight, and each base's holdings equal the ledger's.
    fn settled(&self, state: &TradeState) -> bool {
        BOTH.into_iter().all(|who| {
            let player = &state.players[who];
            player.memory.is_none()
                && player.log[0].is_none()
                && player.pending[0].is_none()
                && player.holds == state.ledger.holds[who]
        })
    }

    fn is_fault(&self, step: TradeStep) -> bool {
        matches!(step, TradeStep::Crash(_) | TradeStep::Ask(..) | TradeStep::Expire)
    }
}

impl TradeModel {
    /// The orders that a player may give, according to its base's knowledge.
    fn asks(&self, player: &Player, who: usize, steps: &mut Vec<TradeStep>) {
        let mut ask = |ask| steps.push(TradeStep::Ask(who, ask));
        for item in [1, 2] {
            if player.holds & item != 0 {
                if player.stage == Stage::Open {
                    ask(Ask::Offer(item));
                }
                if self.bounds.aside {
                    ask(Ask::Spend(item));
                }
                if self.bounds.aside && !player.gave {
                    ask(Ask::Give(item));
                }
            }
            if player.tables[who] & item != 0 && player.stage == Stage::Open {
                ask(Ask::Withdraw(item));
            }
        }
        if player.stage == Stage::Open {
            ask(Ask::Accept(player.version, player.tables));
            ask(Ask::Cancel);
        }
        let knows = player.reserved != 0;
        if knows || (player.gave && !self.rules.has(Rule::F13PostAfterResult)) {
            ask(Ask::Post);
        }
        let seems_empty = player.holds | player.reserved == 0 && player.stage != Stage::Open;
        if self.bounds.deletes && seems_empty {
            ask(Ask::Delete);
        }
    }

    fn execute(&self, state: &mut TradeState, who: usize, ask: Ask) {
        let before = state.ledger;
        let ledger = &mut state.ledger;
        let is_open = ledger.stage == Stage::Open;
        let escrow = self.rules.has(Rule::F10Escrow);
        match ask {
            Ask::Offer(item) if is_open && ledger.holds[who] & item != 0 => {
                if escrow {
                    ledger.holds[who] &= !item;
                }
                ledger.tables[who] |= item;
                self.renew(ledger);
            }
            Ask::Withdraw(item) if is_open && ledger.tables[who] & item != 0 => {
                ledger.tables[who] &= !item;
                ledger.holds[who] |= item;
                self.renew(ledger);
            }
            Ask::Accept(version, seen)
                if is_open && (version == ledger.version || !self.rules.has(Rule::F11Version)) =>
            {
                ledger.accepted[who] = Some(seen);
                self.settle(ledger);
            }
            Ask::Cancel if is_open => self.end(ledger),
            Ask::Spend(item) if ledger.holds[who] & item != 0 => {
                ledger.holds[who] &= !item;
                ledger.spent |= item;
            }
            Ask::Give(item) if ledger.holds[who] & item != 0 => {
                ledger.holds[who] &= !item;
                ledger.reserved[who] |= item;
            }
            Ask::Post if !ledger.deleted[1 - who] || !self.rules.has(Rule::F19Closed) => {
                ledger.holds[1 - who] |= std::mem::take(&mut ledger.reserved[who]);
            }
            Ask::Delete if !ledger.owns(who) || !self.rules.has(Rule::F19Empty) => ledger.deleted[who] = true,
            _ => {}
        }
        notify(state, &before);
    }

    fn renew(&self, ledger: &mut Ledger) {
        ledger.version += 1;
        if self.rules.has(Rule::F12Cleared) {
            ledger.accepted = [None; 2];
        }
    }

    /// Exchanges the items on the table once both players have accepted.
    fn settle(&self, ledger: &mut Ledger) {
        let [Some(one), Some(other)] = ledger.accepted else {
            return;
        };
        ledger.cheated = one != ledger.tables || other != ledger.tables;
        let tables = std::mem::take(&mut ledger.tables);
        for who in BOTH {
            ledger.holds[who] &= !tables[who];
            ledger.holds[1 - who] |= tables[who];
        }
        ledger.stage = Stage::Settled;
    }

    /// Returns all items on the table.
    fn end(&self, ledger: &mut Ledger) {
        let tables = std::mem::take(&mut ledger.tables);
        for who in BOTH {
            ledger.holds[who] |= tables[who];
        }
        ledger.stage = Stage::Ended;
    }
}

impl Ledger {
    /// Whether a player has an item, also reserved for the other or on the table.
    fn owns(&self, who: usize) -> bool {
        self.holds[who] | self.reserved[who] | self.tables[who] != 0
    }
}

/// Puts notices of changes into the outbox.
fn notify(state: &mut TradeState, before: &Ledger) {
    let ledger = state.ledger;
    for who in BOTH {
        let notice = BaseNotice {
            gone: before.holds[who] & !ledger.holds[who],
            come: ledger.holds[who] & !before.holds[who],
            version: ledger.version,
            tables: ledger.tables,
            stage: ledger.stage,
            reserved: ledger.reserved[who],
        };
        let free = state.players[who].pending.iter_mut().find(|place| place.is_none());
        if let Some(free) = free.filter(|_| *before != ledger) {
            *free = Some(notice);
        }
    }
}

fn receive(player: &mut Player) {
    let Some(notice) = player.pending[0] else { return };
    player.pending.rotate_left(1);
    player.pending[PENDING - 1] = None;
    player.holds = player.holds & !notice.gone | notice.come;
    player.version = notice.version;
    player.tables = notice.tables;
    player.stage = notice.stage;
    player.reserved = notice.reserved;
}
