//! Entries and updates of the ledger in words, for the command line.

use std::fmt::Write as _;

use annals_event::ledger::{Booking, Entry, LedgerUpdate, Outcome};
use annals_evidence::Terms;

/// The result of an order: its entry, or that there is none.
pub(super) fn entry(entry: Option<&Entry>) -> String {
    match entry {
        Some(entry) => format!(
            "entry {}, transfer {}: {}",
            entry.number,
            entry.of,
            outcome(entry.outcome)
        ),
        None => "a statement".to_owned(),
    }
}

/// Update for a base part, in words.
pub(super) fn update(update: &LedgerUpdate, terms: Terms<'_>) -> String {
    match update {
        LedgerUpdate::Statement(statement) => format!(
            "the statement of entity {} of the database, version {}",
            statement.holder, statement.holdings.version
        ),
        LedgerUpdate::Booking(booking) => {
            let Booking { entry, of, change, .. } = &**booking;
            let mut text = format!("entry {entry}, transfer {of}: {}", outcome(booking.outcome));
            for (slot, assets) in change.iter().flat_map(|change| &change.gone) {
                let _ = write!(text, "; {} left {}", terms.named(assets), terms.slot(*slot));
            }
            for (slot, assets) in change.iter().flat_map(|change| &change.come) {
                let _ = write!(text, "; {} came to {}", terms.named(assets), terms.slot(*slot));
            }
            text
        }
    }
}

fn outcome(outcome: Outcome) -> String {
    match outcome {
        Outcome::Posted => "done".to_owned(),
        Outcome::Pending => "open".to_owned(),
        Outcome::Voided => "ended, all went back".to_owned(),
        Outcome::Expired => "its time is over, all went back".to_owned(),
        Outcome::Refused(reason) => format!("refused: {reason}"),
    }
}
