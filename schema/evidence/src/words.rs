//! Assets, places, callers and moments in the words of an auditor. What players or games have written is shown so that it
//! cannot pass for anything else.

use annals_event::{
    Consumed,
    ledger::{Assets, Entry, Holder, Order, Outcome, Place, Side, Slots, Stage, Warrant},
};
use annals_ids::{Address, WallTime};
pub use annals_proof::shown as text;

use crate::{Asked, Cited, TradeStage};

/// Milliseconds of a day.
const DAY: u64 = 24 * 3600 * 1000;

/// Where something is.
#[must_use]
pub fn place(place: Place) -> String {
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
#[must_use]
pub fn order(cited: &Cited) -> String {
    let Some(order) = &cited.entry.order else {
        return format!("time was over for {}", cited.entry.of);
    };
    match order {
        Order::Mint { reason, .. } => format!("made: {}", text(reason)),
        Order::Burn { reason, .. } => format!("destroyed: {}", text(reason)),
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
        Order::Grant {
            goods,
            restored,
            warrant,
            ..
        } => {
            let what = match (goods.count(), restored.len()) {
                (_, 0) => "granted",
                (0, _) => "given back",
                _ => "granted and given back",
            };
            format!("{what} by an operator: {}", text(&warrant.reason))
        }
        Order::Take { warrant, .. } => format!("taken by an operator: {}", text(&warrant.reason)),
    }
}

/// What came of it.
#[must_use]
pub fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Posted => "done".to_owned(),
        Outcome::Pending => "open".to_owned(),
        Outcome::Voided => "ended, all went back".to_owned(),
        Outcome::Expired => "expired, all went back".to_owned(),
        Outcome::Refused(reason) => format!("refused: {reason}"),
    }
}

/// Who asked, and by which call.
#[must_use]
pub fn asker(cited: &Cited) -> String {
    let Some(Asked { at, event, call, .. }) = &cited.asked else {
        return "nobody".to_owned();
    };
    let order = cited.entry.order.as_ref();
    let by = match (order.and_then(Order::warrant), call) {
        (Some(warrant), _) => operator(warrant),
        (None, Some(call)) => caller(call),
        (None, None) => "by itself".to_owned(),
    };
    format!("{by}; {at} #{event}")
}

/// An operator, and which of their actions it was.
#[must_use]
pub fn operator(warrant: &Warrant) -> String {
    let (operator, tool, action) = (text(&warrant.operator), text(&warrant.tool), warrant.action);
    format!("operator {operator} with {tool}, action {action}")
}

/// The same, and why.
#[must_use]
pub fn warrant(warrant: &Warrant) -> String {
    format!("by {}: {}", operator(warrant), text(&warrant.reason))
}

/// Who called, and which call it was.
#[must_use]
pub fn caller(call: &Consumed) -> String {
    let number = call.number;
    match call.from {
        Address::Client(session) => format!("client session {session}, call {number}"),
        Address::Base(entity) => format!("entity {entity} (base), call {number}"),
        Address::Cell(entity) => format!("entity {entity} (cell), call {number}"),
        Address::Owner(owner) => format!("owner {owner}, call {number}"),
    }
}

/// What an entry did to assets.
#[must_use]
pub fn moved(entry: &Entry) -> String {
    let units = entry.postings.iter().map(|posting| {
        let (amount, kind) = (posting.amount.unsigned_abs(), posting.account.kind);
        let goes = if posting.amount < 0 { "leaves" } else { "comes to" };
        format!("{amount} of kind {kind} {goes} {}", place(posting.account.place))
    });
    let items = entry.passages.iter().map(|passage| {
        let (serial, kind) = (passage.serial, passage.kind);
        let (from, to) = (place(passage.from), place(passage.to));
        format!("item {serial} (kind {kind}) goes from {from} to {to}")
    });
    let moved: Vec<String> = units.chain(items).collect();
    if moved.is_empty() {
        "nothing".to_owned()
    } else {
        moved.join("; ")
    }
}

/// What somebody has, by slot.
#[must_use]
pub fn slots(slots: &Slots) -> String {
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
#[must_use]
pub fn assets(assets: &Assets) -> String {
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

/// How a trade stands.
#[must_use]
pub fn stage(stage: TradeStage) -> String {
    match stage {
        TradeStage::Refused(reason) => format!("never begun, its proposal was refused: {reason}"),
        TradeStage::Begun(Stage::Open) => "open".to_owned(),
        TradeStage::Begun(Stage::Settled) => "settled".to_owned(),
        TradeStage::Begun(Stage::Cancelled) => "cancelled".to_owned(),
        TradeStage::Begun(Stage::Expired) => "expired".to_owned(),
    }
}

/// A wall clock's time with its date, in UTC.
#[must_use]
pub fn date(wall: WallTime) -> String {
    // Days are counted from the first of March of the year 0, so that a leap day is the last of its year.
    let days = wall.0 / DAY + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..=9 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    // Later it has no such form.
    if year > 9_999 {
        return format!("@{} ms", wall.0);
    }
    let ms = wall.0 % DAY;
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    let ms = ms % 1_000;
    format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{ms:03}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (951_868_800_000, "2000-03-01T00:00:00.000Z"),
            (1_795_308_600_500, "2026-11-22T00:50:00.500Z"),
            (4_107_542_399_000, "2100-02-28T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (253_402_300_800_000, "@253402300800000 ms"),
            (u64::MAX, "@18446744073709551615 ms"),
        ] {
            assert_eq!(date(WallTime(ms)), expected);
        }
    }

    #[test]
    fn nothing_that_is_written_passes_for_something_else() {
        assert_eq!(text("Drachentöter 龍"), "Drachentöter 龍");
        assert_eq!(text("a\nb"), "a\\u{a}b");
        assert_eq!(text("a\u{2800}b\u{3164}"), "a\\u{2800}b\\u{3164}");
        assert_eq!(text("a\u{202e}b\\u{a}"), "a\\u{202e}b\\u{5c}u{a}");
    }
}
