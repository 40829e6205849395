//! Holdings and trades of accounts, in the ledger. The account is the holder; its avatar forwards the player's
//! requests, and shows the ledger's results.

use annals_event::ledger::{self, Booking, Goods, LedgerView, Order, Outcome, Side, Slots, Stage, Trade};
use annals_ids::{DatabaseId, EntityId, OfferVersion, Serial, TradeId, TransferId, TransferNumber};
use annals_node::{Denied, typed::Failure};

use crate::defs::{Assets, Deal, Holdings, Table, Wish, account, avatar};
pub use crate::defs::{
    kinds::{COIN, SWORD},
    slots::{CARRIED, WORN},
};

/// Coins of a new account.
pub const FIRST_COINS: u64 = 100;

/// Swords of a new account.
pub const FIRST_SWORDS: u32 = 2;

/// Time limit of a trade, milliseconds.
pub const TRADE_MS: u64 = 30_000;

/// Time limit for a gift to arrive before it is returned, milliseconds.
const GIFT_MS: u64 = 60_000;

/// Numbers of the player's requests, used in wishes and outcomes.
pub mod wishes {
    /// Opens a trade.
    pub const PROPOSE: u8 = 0;
    /// Puts assets on the table.
    pub const OFFER: u8 = 1;
    /// Takes assets back from the table.
    pub const WITHDRAW: u8 = 2;
    /// Accepts what is on the table.
    pub const ACCEPT: u8 = 3;
    /// Cancels a trade.
    pub const CANCEL: u8 = 4;
    /// Gives assets to another account.
    pub const GIVE: u8 = 5;
    /// Puts on an item.
    pub const WEAR: u8 = 6;
    /// Takes off an item.
    pub const TAKE_OFF: u8 = 7;
}

/// Gives a new account its first assets, once over all its activations: if it holds nothing and never held anything.
pub(crate) fn endow(own: &mut account::Base<'_, '_>) -> Result<(), Denied> {
    let is_new = |view: &LedgerView| {
        let holdings = view.holdings.as_ref();
        view.last.0 == 0 && holdings.is_some_and(|holdings| holdings.version.0 == 0)
    };
    if own.context.ledger().is_some_and(is_new) {
        let goods = Goods {
            units: [(COIN, FIRST_COINS)].into(),
            items: [(SWORD, FIRST_SWORDS)].into(),
        };
        let reason = "what every account begins with".to_owned();
        let slot = CARRIED;
        own.context.order(Order::Mint { slot, goods, reason })?;
    }
    Ok(())
}

/// Sends the player's request to the ledger. If it is rejected, the player gets the reason.
pub(crate) fn grant(own: &mut account::Base<'_, '_>, wish: &Wish) -> Result<(), Failure> {
    let what = wish.what;
    match order(own, wish) {
        Ok(_) => Ok(()),
        Err(denied) => Ok(send_outcome(own, what, false, &denied.to_string())?),
    }
}

fn order(own: &mut account::Base<'_, '_>, wish: &Wish) -> Result<TransferId, Denied> {
    let context = &mut *own.context;
    let (trade, partner) = (trade_of(&wish.trade), DatabaseId(wish.partner));
    let assets = assets_of(&wish.assets);
    match wish.what {
        wishes::PROPOSE => context.propose(partner, TRADE_MS).map(|TradeId(id)| id),
        wishes::OFFER => context.offer(trade, CARRIED, assets),
        wishes::WITHDRAW => context.withdraw(trade, CARRIED, assets),
        wishes::ACCEPT => context.accept(trade, OfferVersion(wish.version)),
        wishes::GIVE => context.give(CARRIED, partner, assets, GIFT_MS),
        wishes::WEAR => context.order(Order::Move {
            from: CARRIED,
            to: WORN,
            assets,
        }),
        wishes::TAKE_OFF => context.order(Order::Move {
            from: WORN,
            to: CARRIED,
            assets,
        }),
        _ => context.cancel(trade),
    }
}

/// Shows the player the result of a booking.
pub(crate) fn show(own: &mut account::Base<'_, '_>, booking: &Booking, order: Option<&Order>) -> Result<(), Denied> {
    if let Some(what) = order.and_then(wish_of) {
        let (done, said) = match booking.outcome {
            Outcome::Refused(why) => (false, why.to_string()),
            Outcome::Posted | Outcome::Pending => (true, String::new()),
            Outcome::Voided => (true, "it was cancelled".to_owned()),
            Outcome::Expired => (true, "its time was over".to_owned()),
        };
        send_outcome(own, what, done, &said)?;
    }
    if booking.change.is_some() {
        show_holdings(own)?;
    }
    match &booking.trade {
        Some(trade) => show_trade(own, trade),
        None => Ok(()),
    }
}

/// Shows the player all holdings and trades.
pub(crate) fn show_all(own: &mut account::Base<'_, '_>) -> Result<(), Denied> {
    show_holdings(own)?;
    let trades: Vec<Trade> = own
        .context
        .ledger()
        .map_or_else(Vec::new, |view| view.trades.values().cloned().collect());
    trades.iter().try_for_each(|trade| show_trade(own, trade))
}

fn show_holdings(own: &mut account::Base<'_, '_>) -> Result<(), Denied> {
    let (Some(avatar), Some(held)) = (
        own.avatar()?,
        own.context.ledger().and_then(|view| view.holdings.as_ref()),
    ) else {
        return Ok(());
    };
    let within = |slot| held.slots.get(&slot).map(shown).unwrap_or_default();
    let holdings = Holdings {
        version: held.version.0,
        carried: within(CARRIED),
        worn: within(WORN),
    };
    avatar::BaseMailbox(avatar).show_holdings(own.context, holdings)
}

fn show_trade(own: &mut account::Base<'_, '_>, trade: &Trade) -> Result<(), Denied> {
    let (Some(avatar), Some(database)) = (own.avatar()?, own.context.database()) else {
        return Ok(());
    };
    let side = trade.side_of(database).unwrap_or(Side::Proposer);
    let (mine, theirs) = (trade.side(side), trade.side(side.other()));
    let TradeId(TransferId { asker, number }) = trade.id;
    let table = Table {
        trade: Deal {
            asker: asker.0,
            number: number.0,
        },
        stage: match trade.stage {
            Stage::Open => 0,
            Stage::Settled => 1,
            Stage::Cancelled => 2,
            Stage::Expired => 3,
        },
        version: trade.version.0,
        partner: theirs.holder.0,
        own: on_table(&mine.table),
        theirs: on_table(&theirs.table),
        accepted: u8::from(mine.accepted),
        they_accepted: u8::from(theirs.accepted),
    };
    avatar::BaseMailbox(avatar).show_trade(own.context, table)
}

fn send_outcome(own: &mut account::Base<'_, '_>, what: u8, done: bool, said: &str) -> Result<(), Denied> {
    match own.avatar()? {
        Some(avatar) => {
            let avatar = avatar::BaseMailbox(avatar);
            avatar.show_outcome(own.context, what, u8::from(done), said.to_owned())
        }
        None => Ok(()),
    }
}

/// The player's request that an order stands for. Orders that an account makes by itself (its first assets, the end of
/// a gift) have none.
fn wish_of(order: &Order) -> Option<u8> {
    Some(match order {
        Order::Propose { .. } => wishes::PROPOSE,
        Order::Offer { .. } => wishes::OFFER,
        Order::Withdraw { .. } => wishes::WITHDRAW,
        Order::Accept { .. } => wishes::ACCEPT,
        Order::Cancel { .. } => wishes::CANCEL,
        Order::Give { .. } => wishes::GIVE,
        Order::Move { to: WORN, .. } => wishes::WEAR,
        Order::Move { .. } => wishes::TAKE_OFF,
        Order::Mint { .. }
        | Order::Burn { .. }
        | Order::Post { .. }
        | Order::Void { .. }
        | Order::Grant { .. }
        | Order::Take { .. }
        | Order::Delete => return None,
    })
}

fn trade_of(trade: &Deal) -> TradeId {
    TradeId(TransferId {
        asker: EntityId(trade.asker),
        number: TransferNumber(trade.number),
    })
}

fn assets_of(assets: &Assets) -> ledger::Assets {
    ledger::Assets {
        units: (assets.coins > 0).then_some((COIN, assets.coins)).into_iter().collect(),
        items: assets.items.iter().map(|serial| (Serial(*serial), SWORD)).collect(),
    }
}

fn shown(assets: &ledger::Assets) -> Assets {
    Assets {
        coins: assets.units.get(&COIN).copied().unwrap_or(0),
        items: assets.items.keys().map(|serial| serial.0).collect(),
    }
}

/// Assets on one side of a table, from all slots.
fn on_table(slots: &Slots) -> Assets {
    let mut all = Assets::default();
    for assets in slots.values().map(shown) {
        all.coins = all.coins.saturating_add(assets.coins);
        all.items.extend(assets.items);
    }
    all
}
