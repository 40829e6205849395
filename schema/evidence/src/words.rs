//! Outcomes, callers and times in words; assets and places are in [terms](crate::Terms). Text written by players or
//! games is escaped, so that it cannot pass for anything else.

use annals_event::{
    Consumed,
    ledger::{Order, Outcome, Stage, Warrant},
};
use annals_ids::{Address, WallTime};
pub use annals_proof::shown as text;

use crate::{Asked, Cited, TradeStage};

/// Length of a day (ms).
const DAY: u64 = 24 * 3600 * 1000;

/// An outcome in words.
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

/// The requester, and the call that caused the order.
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

/// An operator, and the action.
#[must_use]
pub fn operator(warrant: &Warrant) -> String {
    let (operator, tool, action) = (text(&warrant.operator), text(&warrant.tool), warrant.action);
    format!("operator {operator} with {tool}, action {action}")
}

/// An operator, the action, and the reason.
#[must_use]
pub fn warrant(warrant: &Warrant) -> String {
    format!("by {}: {}", operator(warrant), text(&warrant.reason))
}

/// The caller, and the call.
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

/// The stage of a trade in words.
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

/// A wall-clock time with its date, in UTC.
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
    // Later dates do not fit this form.
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
    fn user_text_cannot_imitate_report_text() {
        assert_eq!(text("Drachentöter 龍"), "Drachentöter 龍");
        assert_eq!(text("a\nb"), "a\\u{a}b");
        assert_eq!(text("a\u{2800}b\u{3164}"), "a\\u{2800}b\\u{3164}");
        assert_eq!(text("a\u{202e}b\\u{a}"), "a\\u{202e}b\\u{5c}u{a}");
    }
}
