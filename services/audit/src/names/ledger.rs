//! Orders, entries and news of the ledger in words, for the command line.

use std::{collections::BTreeMap, fmt::Write as _};

use annals_event::ledger::{Assets, Booking, Entry, Goods, News, Order, Outcome};
use annals_evidence::{Terms, words};
use annals_ids::{AssetKind, Serial};

/// An order in words.
pub(super) fn order(order: &Order, terms: Terms<'_>) -> String {
    match order {
        Order::Mint { slot, goods, reason } => format!(
            "make {} in {}, for {reason:?}",
            to_be_made(goods, terms),
            terms.slot(*slot)
        ),
        Order::Burn { slot, assets, reason } => format!(
            "destroy {} of {}, for {reason:?}",
            named(assets, terms),
            terms.slot(*slot)
        ),
        Order::Move { from, to, assets } => format!(
            "move {} from {} to {}",
            named(assets, terms),
            terms.slot(*from),
            terms.slot(*to)
        ),
        Order::Give { slot, to, assets, .. } => {
            format!(
                "reserve {} of {} for entity {to} of the database",
                named(assets, terms),
                terms.slot(*slot)
            )
        }
        Order::Post { of } => format!("complete transfer {of}"),
        Order::Void { of } => format!("void transfer {of}"),
        Order::Propose { with, .. } => format!("open a trade with entity {with} of the database"),
        Order::Offer { trade, slot, assets } => format!(
            "offer {} of {} in trade {trade}",
            named(assets, terms),
            terms.slot(*slot)
        ),
        Order::Withdraw { trade, assets, .. } => format!("take back {} from trade {trade}", named(assets, terms)),
        Order::Accept { trade, version } => format!("accept version {version} of trade {trade}"),
        Order::Cancel { trade } => format!("cancel trade {trade}"),
        Order::Grant {
            slot,
            goods,
            restored,
            warrant,
        } => format!(
            "{} in {}, {}",
            granted(goods, restored, terms),
            terms.slot(*slot),
            words::warrant(warrant)
        ),
        Order::Take { slot, assets, warrant } => {
            format!(
                "destroy {} of {}, {}",
                named(assets, terms),
                terms.slot(*slot),
                words::warrant(warrant)
            )
        }
    }
}

/// Goods that an operator created, or restored.
fn granted(goods: &Goods, restored: &BTreeMap<Serial, AssetKind>, terms: Terms<'_>) -> String {
    let made = (goods.count() > 0).then(|| format!("make {}", to_be_made(goods, terms)));
    let back = (!restored.is_empty()).then(|| {
        let items = restored.clone();
        let back = Assets {
            items,
            ..Assets::default()
        };
        format!("give back {}", named(&back, terms))
    });
    let granted: Vec<String> = made.into_iter().chain(back).collect();
    granted.join(" and ")
}

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

/// News for a base part, in words.
pub(super) fn news(news: &News, terms: Terms<'_>) -> String {
    match news {
        News::Statement(statement) => format!(
            "the statement of entity {} of the database, version {}",
            statement.holder, statement.holdings.version
        ),
        News::Booking(booking) => {
            let Booking { entry, of, change, .. } = &**booking;
            let mut text = format!("entry {entry}, transfer {of}: {}", outcome(booking.outcome));
            for (slot, assets) in change.iter().flat_map(|change| &change.gone) {
                let _ = write!(text, "; {} left {}", named(assets, terms), terms.slot(*slot));
            }
            for (slot, assets) in change.iter().flat_map(|change| &change.come) {
                let _ = write!(text, "; {} came to {}", named(assets, terms), terms.slot(*slot));
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

fn named(assets: &Assets, terms: Terms<'_>) -> String {
    let units = assets.units.iter().map(|(kind, amount)| terms.units(*amount, *kind));
    let items = assets.items.iter().map(|(serial, kind)| terms.subject(*serial, *kind));
    listed(&units.chain(items).collect::<Vec<_>>())
}

fn to_be_made(goods: &Goods, terms: Terms<'_>) -> String {
    let units = goods.units.iter().map(|(kind, amount)| terms.units(*amount, *kind));
    let items = goods
        .items
        .iter()
        .map(|(kind, count)| format!("{count} items of {}", terms.kind(*kind)));
    listed(&units.chain(items).collect::<Vec<_>>())
}

fn listed(parts: &[String]) -> String {
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join(", ")
    }
}
