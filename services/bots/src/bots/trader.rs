//! How a bot trades, in worlds that trade as the sample does: with other bots wherever they are, with coins and items,
//! and with mistakes. It changes its mind, accepts outdated offers, and abandons trades.

use std::collections::BTreeMap;

use annals_def::{Dice, EntityType, Schema, Value};

use super::report::TradeEnd;

/// The client methods that report holdings and trades.
const HOLDINGS: &str = "onHoldings";
const TRADE: &str = "onTrade";
const OUTCOME: &str = "onOutcome";

/// The base method that proposes a trade: a world without it has no trade.
const PROPOSE: &str = "proposeTrade";

/// The property that holds the number under which a player trades.
pub(super) const TRADER: &str = "trader";

/// Turns to wait for an answer before trying something else.
const TIMEOUT: u32 = 10;

/// A steady bot without a trade proposes one at one turn in so many.
const STEADY_PROPOSAL_ODDS: u64 = 32;

/// Maximum coins per offer.
const MOST_COINS: u64 = 5;

/// A trade, by its proposer and the number of the proposer's wish.
pub(super) type TradeId = (u64, u64);

/// Coins and items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Assets {
    coins: u64,
    items: Vec<u64>,
}

/// An open trade as shown to the bot.
#[derive(Clone, Debug)]
struct Table {
    trade: TradeId,
    version: u64,
    own: Assets,
    theirs: Assets,
    accepted: bool,
}

/// What a bot knows of its trades.
#[derive(Debug, Default)]
pub(super) struct Trader {
    carried: Option<Assets>,
    worn: Assets,
    open: BTreeMap<TradeId, Table>,
    /// Turns for which an answer has been pending.
    waits: Option<u32>,
    /// The outcomes of the trades whose end it was shown.
    pub(super) ended: BTreeMap<TradeId, TradeEnd>,
    /// Wishes that were granted and refused.
    pub(super) granted: u64,
    pub(super) refused: u64,
}

/// A call on the base part of the bot's entity.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Wish {
    pub(super) method: &'static str,
    pub(super) args: Vec<Value>,
}

/// Whether bots can trade in a world.
pub(crate) fn can_trade(schema: &Schema) -> bool {
    schema.types().iter().any(Trader::can)
}

impl Trader {
    /// Whether entities of a type can trade.
    pub(super) fn can(entity_type: &EntityType) -> bool {
        let listens = [HOLDINGS, TRADE, OUTCOME]
            .iter()
            .all(|name| entity_type.client_method_named(name).is_some());
        listens && entity_type.base_method_named(PROPOSE).is_some()
    }

    /// A session begins: the world reports open trades again.
    pub(super) fn forget(&mut self) {
        self.carried = None;
        self.open.clear();
        self.waits = None;
    }

    /// Takes a call of a client method on the bot's own entity.
    pub(super) fn take(&mut self, method: &str, args: &[Value]) {
        match (method, args) {
            (HOLDINGS, [Value::Dict(holdings)]) => {
                if let [_, carried, worn] = &holdings[..] {
                    self.carried = assets(carried);
                    self.worn = assets(worn).unwrap_or_default();
                }
            }
            (TRADE, [Value::Dict(table)]) => self.take_trade(table),
            (OUTCOME, [_, Value::UInt(done), _]) => {
                self.waits = None;
                if *done == 0 {
                    self.refused += 1;
                } else {
                    self.granted += 1;
                }
            }
            _ => {}
        }
    }

    fn take_trade(&mut self, table: &[Value]) {
        let [
            trade,
            Value::UInt(stage),
            Value::UInt(version),
            _,
            own,
            theirs,
            Value::UInt(accepted),
            _,
        ] = table
        else {
            return;
        };
        let (Some(trade), Some(own), Some(theirs)) = (trade_id(trade), assets(own), assets(theirs)) else {
            return;
        };
        let end = match stage {
            0 => {
                let (version, accepted) = (*version, *accepted != 0);
                let table = Table {
                    trade,
                    version,
                    own,
                    theirs,
                    accepted,
                };
                self.open.insert(trade, table);
                return;
            }
            1 => TradeEnd::Settled,
            2 => TradeEnd::Cancelled,
            _ => TradeEnd::Expired,
        };
        self.open.remove(&trade);
        self.ended.insert(trade, end);
    }

    /// The bot's next action, if any, with these partners to trade with.
    pub(super) fn turn(&mut self, partners: &[u64], dice: &mut Dice<'_>) -> Option<Wish> {
        let carried = self.carried.as_ref()?;
        if has_to_wait(&mut self.waits) {
            return None;
        }
        let wish = match self.open.values().next_back() {
            Some(table) => table.turn(carried, dice),
            None => idle(carried, &self.worn, partners, dice),
        };
        self.waits = wish.as_ref().map(|_| 0);
        wish
    }

    /// The same of a bot that completes each trade: it offers something, and accepts whatever is offered.
    pub(super) fn steady_turn(&mut self, partners: &[u64], dice: &mut Dice<'_>) -> Option<Wish> {
        let carried = self.carried.as_ref()?;
        if has_to_wait(&mut self.waits) {
            return None;
        }
        let wish = match self.open.is_empty() {
            true if dice().is_multiple_of(STEADY_PROPOSAL_ODDS) => propose(partners, dice),
            true => None,
            // A partner that does not go on must not delay the others.
            false => self
                .open
                .values()
                .rev()
                .find_map(|table| table.steady_turn(carried, dice)),
        };
        self.waits = wish.as_ref().map(|_| 0);
        wish
    }
}

/// Whether the answer to the last wish is still waited for. Counts the turn.
fn has_to_wait(waits: &mut Option<u32>) -> bool {
    match waits {
        Some(waited) if *waited < TIMEOUT => {
            *waited += 1;
            true
        }
        _ => false,
    }
}

impl Table {
    fn steady_turn(&self, carried: &Assets, dice: &mut Dice<'_>) -> Option<Wish> {
        let trade = written_id(self.trade);
        if self.own == Assets::default() {
            return Some(wish("offer", vec![trade, written(&some_of(carried, dice))]));
        }
        let is_acceptable = !self.accepted && self.theirs != Assets::default();
        is_acceptable.then(|| wish("acceptTrade", vec![trade, Value::UInt(self.version)]))
    }

    fn turn(&self, carried: &Assets, dice: &mut Dice<'_>) -> Option<Wish> {
        let trade = || written_id(self.trade);
        let on_table = self.own != Assets::default();
        match dice() % 12 {
            0 => Some(wish("cancelTrade", vec![trade()])),
            1 if on_table => Some(wish("withdraw", vec![trade(), written(&self.own)])),
            2 if self.version > 0 => {
                let stale = Value::UInt(self.version - 1);
                Some(wish("acceptTrade", vec![trade(), stale]))
            }
            _ if !on_table => Some(wish("offer", vec![trade(), written(&some_of(carried, dice))])),
            _ if !self.accepted && self.theirs != Assets::default() => {
                Some(wish("acceptTrade", vec![trade(), Value::UInt(self.version)]))
            }
            _ => None,
        }
    }
}

/// One of these partners.
fn partner_of(partners: &[u64], dice: &mut Dice<'_>) -> Option<Value> {
    let chosen = partners.get(dice() as usize % partners.len().max(1));
    chosen.copied().map(Value::UInt)
}

fn propose(partners: &[u64], dice: &mut Dice<'_>) -> Option<Wish> {
    Some(wish(PROPOSE, vec![partner_of(partners, dice)?]))
}

fn idle(carried: &Assets, worn: &Assets, partners: &[u64], dice: &mut Dice<'_>) -> Option<Wish> {
    let partner = partner_of(partners, dice);
    let item = |held: &Assets| Assets {
        coins: 0,
        items: held.items.first().copied().into_iter().collect(),
    };
    match dice() % 8 {
        0..=3 => Some(wish(PROPOSE, vec![partner?])),
        4 => Some(wish("give", vec![partner?, written(&some_of(carried, dice))])),
        5 if !carried.items.is_empty() => Some(wish("wear", vec![written(&item(carried))])),
        6 if !worn.items.is_empty() => Some(wish("takeOff", vec![written(&item(worn))])),
        _ => None,
    }
}

/// Some coins, or one item if there is one.
fn some_of(carried: &Assets, dice: &mut Dice<'_>) -> Assets {
    let items: Vec<u64> = carried.items.iter().copied().take(1).collect();
    if dice().is_multiple_of(3) && !items.is_empty() {
        return Assets { coins: 0, items };
    }
    let coins = 1 + dice() % MOST_COINS;
    Assets {
        coins: coins.min(carried.coins.max(1)),
        items: Vec::new(),
    }
}

fn wish(method: &'static str, args: Vec<Value>) -> Wish {
    Wish { method, args }
}

fn assets(value: &Value) -> Option<Assets> {
    let Value::Dict(fields) = value else { return None };
    let [Value::UInt(coins), Value::Sequence(items)] = &fields[..] else {
        return None;
    };
    let serial = |item: &Value| match item {
        Value::UInt(serial) => Some(*serial),
        _ => None,
    };
    Some(Assets {
        coins: *coins,
        items: items.iter().filter_map(serial).collect(),
    })
}

fn written(assets: &Assets) -> Value {
    let items = assets.items.iter().map(|serial| Value::UInt(*serial)).collect();
    Value::Dict(vec![Value::UInt(assets.coins), Value::Sequence(items)])
}

fn trade_id(value: &Value) -> Option<TradeId> {
    match value {
        Value::Dict(fields) => match fields[..] {
            [Value::UInt(asker), Value::UInt(number)] => Some((asker, number)),
            _ => None,
        },
        _ => None,
    }
}

fn written_id((asker, number): TradeId) -> Value {
    Value::Dict(vec![Value::UInt(asker), Value::UInt(number)])
}

#[cfg(test)]
mod tests {
    use super::*;

    const COINS: u64 = 100;

    fn held(coins: u64) -> Value {
        written(&Assets {
            coins,
            items: Vec::new(),
        })
    }

    /// What the world shows of a trade in which both have put coins on the table.
    fn shown(version: u64, [own, theirs]: [u64; 2], accepted: bool) -> Value {
        let counts = [Value::UInt(0), Value::UInt(version), Value::UInt(7)];
        let mut table = vec![written_id((3, 1))];
        table.extend(counts);
        table.extend([held(own), held(theirs), Value::UInt(accepted.into()), Value::UInt(0)]);
        Value::Dict(table)
    }

    fn next(trader: &mut Trader, shows: Value) -> Option<Wish> {
        trader.take(TRADE, &[shows]);
        trader.take(
            OUTCOME,
            &[Value::UInt(0), Value::UInt(1), Value::Unicode(String::new())],
        );
        trader.steady_turn(&[], &mut || 1)
    }

    #[test]
    fn a_steady_bot_offers_something_and_accepts_what_it_is_offered() {
        let mut trader = Trader::default();
        trader.take(HOLDINGS, &[Value::Dict(vec![Value::UInt(1), held(COINS), held(0)])]);
        let offered = next(&mut trader, shown(0, [0, 0], false)).expect("it offers");
        assert_eq!(offered.method, "offer");
        assert_eq!(next(&mut trader, shown(1, [2, 0], false)), None, "it waits");
        let accepted = next(&mut trader, shown(2, [2, 5], false)).expect("it accepts");
        assert_eq!(accepted, wish("acceptTrade", vec![written_id((3, 1)), Value::UInt(2)]));
        assert_eq!(next(&mut trader, shown(3, [2, 5], true)), None, "it has accepted");
    }

    #[test]
    fn a_steady_bot_does_nothing_while_an_answer_is_due() {
        let mut trader = Trader::default();
        trader.take(HOLDINGS, &[Value::Dict(vec![Value::UInt(1), held(COINS), held(0)])]);
        trader.take(TRADE, &[shown(0, [0, 0], false)]);
        assert!(trader.steady_turn(&[], &mut || 1).is_some());
        for _ in 0..TIMEOUT {
            assert_eq!(trader.steady_turn(&[], &mut || 1), None);
        }
        assert!(trader.steady_turn(&[], &mut || 1).is_some(), "it asks again");
    }
}
