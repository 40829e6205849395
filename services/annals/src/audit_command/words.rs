//! Assets, places and callers in the words of an auditor.

use annals_audit::{Asked, Cited};
use annals_event::{
    Consumed,
    ledger::{Assets, Holder, Order, Outcome, Place, Side, Slots},
};
use annals_ids::Address;

/// Where something is.
pub(super) fn place(place: Place) -> String {
    let slot = place.slot;
    match place.holder {
        Holder::World => "nowhere".to_owned(),
        Holder::Stored(holder) => format!("stored entity {holder}, slot {slot}"),
        Holder::Pending(transfer) => format!("transfer {transfer}, under way"),
        Holder::Trade(trade, Side::Proposer) => format!("table of trade {trade}, proposer"),
        Holder::Trade(trade, Side::Partner) => format!("table of trade {trade}, partner"),
    }
}

/// What was asked for.
pub(super) fn order(cited: &Cited) -> String {
    let Some(order) = &cited.entry.order else {
        return format!("time was over for {}", cited.entry.of);
    };
    match order {
        Order::Mint { reason, .. } => format!("made: {reason}"),
        Order::Burn { reason, .. } => format!("destroyed: {reason}"),
        Order::Move { from, to, .. } => format!("moved from slot {from} to slot {to}"),
        Order::Give { to, .. } => format!("given to stored entity {to}, transfer {}", cited.entry.of),
        Order::Post { of } => format!("transfer {of} completed"),
        Order::Void { of } => format!("transfer {of} taken back"),
        Order::Propose { with, .. } => format!("trade proposed to stored entity {with}"),
        Order::Offer {
            assets: offered, trade, ..
        } => format!("offered in trade {trade}: {}", assets(offered)),
        Order::Withdraw {
            assets: taken, trade, ..
        } => format!("withdrawn from trade {trade}: {}", assets(taken)),
        Order::Accept { trade, version } => format!("version {version} of trade {trade} accepted"),
        Order::Cancel { trade } => format!("trade {trade} cancelled"),
    }
}

/// What came of it.
pub(super) fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Posted => "done".to_owned(),
        Outcome::Pending => "open".to_owned(),
        Outcome::Voided => "ended, all went back".to_owned(),
        Outcome::Expired => "expired, all went back".to_owned(),
        Outcome::Refused(reason) => format!("refused: {reason}"),
    }
}

/// Who asked, and by which call.
pub(super) fn asker(cited: &Cited) -> String {
    let Some(Asked { at, event, call, .. }) = &cited.asked else {
        return "nobody".to_owned();
    };
    let by = call.as_ref().map_or_else(|| "by itself".to_owned(), caller);
    format!("{by}; {at} #{event}")
}

/// Who called, and which call it was.
pub(super) fn caller(call: &Consumed) -> String {
    let number = call.number;
    match call.from {
        Address::Client(session) => format!("client session {session}, call {number}"),
        Address::Base(entity) => format!("entity {entity} (base), call {number}"),
        Address::Cell(entity) => format!("entity {entity} (cell), call {number}"),
        Address::Owner(owner) => format!("owner {owner}, call {number}"),
    }
}

/// What somebody has, by slot.
pub(super) fn slots(slots: &Slots) -> String {
    let held = slots.iter().filter(|(_, assets)| !assets.is_empty());
    let named: Vec<String> = held
        .map(|(slot, held)| format!("slot {slot}: {}", assets(held)))
        .collect();
    if named.is_empty() {
        "nothing".to_owned()
    } else {
        named.join("; ")
    }
}

/// Units and items.
fn assets(assets: &Assets) -> String {
    let units = assets.units.iter().filter(|(_, amount)| **amount > 0);
    let units = units.map(|(kind, amount)| format!("{amount} of kind {kind}"));
    let items = assets
        .items
        .iter()
        .map(|(serial, kind)| format!("item {serial} (kind {kind})"));
    let named: Vec<String> = units.chain(items).collect();
    if named.is_empty() {
        "nothing".to_owned()
    } else {
        named.join(", ")
    }
}
