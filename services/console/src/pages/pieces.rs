//! Shared parts of pages: moments, places, assets, and pages of long answers.

use annals_audit::CameIn;
use annals_event::{
    Consumed,
    ledger::{AssetSlot, Assets, Holder, Order, Outcome, Slots},
};
use annals_evidence::{Cited, Terms, words};
use annals_ids::{Address, AssetKind, DatabaseId, EntityId, Hash, LogPosition, Serial, Slot, TradeId, WallTime};
use maud::{Markup, html};

use crate::{alarms::Alarm, casework::Known};

/// Conditions that need attention.
pub(crate) fn alarms(alarms: &[Alarm]) -> Markup {
    html! {
        ul.lines.alarms {
            @for alarm in alarms { li { b { (alarm.what) } br; (alarm.advice) } }
        }
    }
}

/// Whether the figures of a page are current, which its script says.
pub(crate) fn live_state() -> Markup {
    html! {
        p.under {
            span #live-state role="status" { "As of the time of loading" }
            noscript { span.quiet { "Without scripts, load the page again for newer figures." } }
        }
    }
}

/// Steps per page.
pub(crate) const STEPS: usize = 50;

/// Maximum characters of a text shown in one line.
pub(crate) const LINE_CHARS: usize = 120;

/// Maximum assets listed per slot; the rest is shown as a count.
const LISTED: usize = 40;

/// A moment: date and time of day, with the full timestamp for machines.
pub(crate) fn moment(wall: WallTime) -> Markup {
    let date = words::date(wall);
    match date.strip_suffix('Z').and_then(|date| date.split_once('T')) {
        Some((day, time)) => html! { time datetime=(date) { (day) " " b { (time) } } },
        None => html! { (date) },
    }
}

/// A number with separators.
pub(crate) fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push('\u{202f}');
        }
        grouped.push(digit);
    }
    grouped
}

/// A full hash, which wraps on narrow pages.
pub(crate) fn hash(hash: Hash) -> Markup {
    html! { code.hash { (hash) } }
}

/// A stored entity, by name and number.
pub(crate) fn stored(holder: DatabaseId, terms: Terms<'_>) -> Markup {
    html! {
        @match terms.stored_name(holder) {
            Some(name) => { a href={ "/account/" (holder) } { (name) } " " span.quiet { "(stored entity " (holder) ")" } },
            None => a href={ "/account/" (holder) } { "stored entity " (holder) },
        }
    }
}

/// An amount of units of a kind.
fn units(amount: u64, kind: AssetKind, terms: Terms<'_>) -> Markup {
    html! {
        b { (count(amount)) } " "
        @match terms.kind_name(kind) {
            Some(name) => { (name) " " span.quiet { "(kind " (kind) ")" } },
            None => { "of kind " (kind) },
        }
    }
}

/// A slot, by name.
fn slot(slot: Slot, terms: Terms<'_>) -> Markup {
    html! { span.quiet { (terms.slot(slot)) } }
}

/// Link to a trade.
pub(crate) fn trade(id: TradeId) -> Markup {
    html! { a href={ "/trade/" (id) } { "trade " (id) } }
}

/// Link to an entity, at a position in the archive.
pub(crate) fn entity(entity: EntityId, at: LogPosition) -> Markup {
    html! { a href={ "/entity/" (entity) "?at=" (at) } { "entity " (entity) } }
}

/// Place of an asset.
pub(crate) fn place(place: AssetSlot, terms: Terms<'_>) -> Markup {
    match place.holder {
        Holder::Stored(holder) => html! { (stored(holder, terms)) ", " (terms.slot(place.slot)) },
        Holder::Trade(id, _) => {
            let said = terms.place(place);
            let side = said.rsplit_once(", ").map_or("", |(_, side)| side);
            html! { "table of " (trade(id)) ", " (side) }
        }
        _ => html! { (terms.place(place)) },
    }
}

/// Outcome of an entry, distinguished by more than colour.
pub(crate) fn outcome(outcome: Outcome) -> Markup {
    let (class, sign) = match outcome {
        Outcome::Posted => ("good", "✓"),
        Outcome::Pending => ("open", "…"),
        Outcome::Voided | Outcome::Expired => ("ended", "↩"),
        Outcome::Refused(_) => ("bad", "✗"),
    };
    html! { span.badge.(class) { span aria-hidden="true" { (sign) " " } (words::outcome(outcome)) } }
}

/// Entity that asked, its call and where that is recorded, and the identity behind the session.
pub(crate) fn asker(cited: &Cited, known: &Known) -> Markup {
    let Some(asked) = &cited.asked else {
        return html! { "nobody: time expired" };
    };
    let warrant = cited.entry.order.as_ref().and_then(Order::warrant);
    let call = asked.call.as_ref();
    html! {
        @match (warrant, call) {
            (Some(warrant), _) => { (words::operator(warrant)) ": " (words::text(&warrant.reason)) },
            (None, Some(by)) => (caller(by, asked.at)),
            (None, None) => "by itself",
        }
        ", for " (entity(cited.entry.of.asker, asked.at))
        " " span.quiet { "(" (asked.at) " #" (asked.event) ")" }
        @if let Some(came) = call.and_then(|call| known.sessions.behind(call, asked.leaf, cited.entry.wall)) {
            br; (came_in(came))
        }
    }
}

/// Caller, and number of the call.
pub(crate) fn caller(call: &Consumed, at: LogPosition) -> Markup {
    let number = call.number;
    match call.from {
        Address::Client(session) => {
            html! { a href={ "/session/" (session) } { "client session " (session) } ", call " (number) }
        }
        Address::Base(by) | Address::Cell(by) => html! { (entity(by, at)) ", call " (number) },
        Address::Owner(_) => html! { (words::caller(call)) },
    }
}

/// Identity behind a session, and its address.
pub(crate) fn came_in(came: &CameIn) -> Markup {
    html! { span.client { (came.said()) } }
}

/// An item, with its kind.
fn item(serial: Serial, kind: AssetKind, terms: Terms<'_>) -> Markup {
    html! {
        a href={ "/item/" (serial) } { "item " (serial) } " "
        span.quiet { "(" @if let Some(name) = terms.kind_name(kind) { (name) ", " } "kind " (kind) ")" }
    }
}

/// Units and items of one slot.
fn assets(assets: &Assets, terms: Terms<'_>) -> Markup {
    let held: Vec<_> = assets.units.iter().filter(|(_, amount)| **amount > 0).collect();
    let more_kinds = held.len().saturating_sub(LISTED);
    let more_items = assets.items.len().saturating_sub(LISTED);
    html! {
        ul.assets {
            @for (kind, amount) in held.into_iter().take(LISTED) { li { (units(*amount, *kind, terms)) } }
            @if more_kinds > 0 { li.quiet { "and " (more_kinds) " kinds more" } }
            @for (serial, kind) in assets.items.iter().take(LISTED) {
                li { (item(*serial, *kind, terms)) }
            }
            @if more_items > 0 { li.quiet { "and " (more_items) " items more" } }
        }
    }
}

/// Holdings by slot.
pub(crate) fn slots(slots: &Slots, terms: Terms<'_>) -> Markup {
    let held: Vec<_> = slots.iter().filter(|(_, assets)| !assets.is_empty()).collect();
    html! {
        @if held.is_empty() { span.quiet { "nothing" } }
        @for (number, held) in held {
            div.slot { (slot(*number, terms)) (assets(held, terms)) }
        }
    }
}

/// Gains and losses between two states, with signs.
pub(crate) fn difference(before: &Slots, after: &Slots, terms: Terms<'_>) -> Markup {
    let changes = changes(before, after, terms);
    html! {
        @if changes.is_empty() { span.quiet { "no change" } }
        @else {
            ul.changes {
                @for (came, what) in changes.iter().take(LISTED) {
                    @if *came { li.came { ins { "+\u{2009}" (what) } } } @else { li.gone { del { "−\u{2009}" (what) } } }
                }
                @if changes.len() > LISTED { li.quiet { "and " (changes.len() - LISTED) " changes more" } }
            }
        }
    }
}

/// Changes, each with whether it is a gain.
fn changes(before: &Slots, after: &Slots, terms: Terms<'_>) -> Vec<(bool, String)> {
    let (none, mut found) = (Assets::default(), Vec::new());
    let mut all: Vec<_> = before.keys().chain(after.keys()).collect();
    all.sort_unstable();
    all.dedup();
    for slot in all {
        let (was, is) = (before.get(slot).unwrap_or(&none), after.get(slot).unwrap_or(&none));
        let mut kinds: Vec<_> = was.units.keys().chain(is.units.keys()).collect();
        kinds.sort_unstable();
        kinds.dedup();
        for kind in kinds {
            let held = |assets: &Assets| assets.units.get(kind).copied().unwrap_or(0);
            let (was, is) = (held(was), held(is));
            if was != is {
                let amount = count(was.abs_diff(is));
                let units = match terms.kind_name(*kind) {
                    Some(_) => format!("{amount} {}", terms.kind(*kind)),
                    None => format!("{amount} of kind {kind}"),
                };
                found.push((is > was, format!("{units}, {}", terms.slot(*slot))));
            }
        }
        let said = |serial: &Serial, kind: &AssetKind| format!("{}, {}", terms.item(*serial, *kind), terms.slot(*slot));
        let lost = was.items.iter().filter(|(serial, _)| !is.items.contains_key(*serial));
        found.extend(lost.map(|(serial, kind)| (false, said(serial, kind))));
        let got = is.items.iter().filter(|(serial, _)| !was.items.contains_key(*serial));
        found.extend(got.map(|(serial, kind)| (true, said(serial, kind))));
    }
    found
}

/// Which page of a long answer is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Part {
    /// Page number, from 1.
    page: usize,
    pages: usize,
    /// Range of steps on the page.
    pub(crate) first: usize,
    pub(crate) end: usize,
}

impl Part {
    /// Part for the requested page of so many steps, or for the first or last one, by `otherwise`.
    pub(crate) fn of(steps: usize, wanted: Option<usize>, otherwise: Otherwise) -> Self {
        let pages = steps.div_ceil(STEPS).max(1);
        let page = match (wanted, otherwise) {
            (Some(page), _) => page.clamp(1, pages),
            (None, Otherwise::First) => 1,
            (None, Otherwise::Last) => pages,
        };
        Self {
            page,
            pages,
            first: (page - 1) * STEPS,
            end: steps.min(page * STEPS),
        }
    }

    /// Links to the other pages, if there are any.
    pub(crate) fn links(&self) -> Markup {
        let link = |page: usize| format!("?page={page}");
        html! {
            @if self.pages > 1 {
                nav.parts aria-label="Parts of this answer" {
                    @if self.page > 1 {
                        a href=(link(1)) { "First" }
                        a rel="prev" href=(link(self.page - 1)) { "Earlier" }
                    }
                    span { "part " (self.page) " of " (self.pages) }
                    @if self.page < self.pages {
                        a rel="next" href=(link(self.page + 1)) { "Later" }
                        a href=(link(self.pages)) { "Last" }
                    }
                }
            }
        }
    }
}

/// Page shown if the request names none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Otherwise {
    First,
    Last,
}

/// Links to download the answer as evidence, with or without a proof from a kept checkpoint.
pub(crate) fn evidence(address: &str, form: &str, receipt: bool) -> Markup {
    html! {
        section.evidence aria-labelledby="evidence" {
            h2 #evidence { "Hand it on" }
            p {
                "The bundle has this answer in words and everything needed to check it without the realm, with "
                code { "annals-verify" } "."
            }
            p.actions {
                a.button href={ (address) "/bundle" } download { "Download the bundle" }
                @if receipt { a.button.second href={ (address) "/receipt" } download { "Download the receipt" } }
            }
            details {
                summary { "Link the bundle to a kept checkpoint" }
                form action={ (address) "/bundle" } method="post" enctype="multipart/form-data" {
                    (checkpoint(form))
                    button type="submit" { "Download the bundle that leads to it" }
                }
            }
        }
    }
}

/// Form fields for a checkpoint.
pub(crate) fn checkpoint(form: &str) -> Markup {
    html! {
        input type="hidden" name="form" value=(form);
        div.field {
            label for="pasted" { "The checkpoint, as it was kept" }
            textarea #pasted name="pasted" rows="6" spellcheck="false" autocomplete="off" {}
        }
        div.field {
            label for="file" { "or the file it is in" }
            input #file type="file" name="file";
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped() {
        assert_eq!(count(0), "0");
        assert_eq!(count(999), "999");
        assert_eq!(count(1_000), "1\u{202f}000");
        assert_eq!(count(1_234_567), "1\u{202f}234\u{202f}567");
    }

    #[test]
    fn omitted_items_are_counted() {
        let of = |kinds: u32, items: u64| {
            let units = (1..=kinds).map(|kind| (AssetKind(kind), 5));
            // Kinds with an amount of zero are neither listed nor counted.
            let spent = (1_001..=1_100).map(|kind| (AssetKind(kind), 0));
            let held = Assets {
                units: units.chain(spent).collect(),
                items: (1..=items).map(|serial| (Serial(serial), AssetKind(1))).collect(),
            };
            slots(&[(Slot(0), held)].into(), Terms::default()).into_string()
        };
        for (kinds, items, said) in [
            (41, 0, ["<li class=\"quiet\">and 1 kinds more</li>", ""]),
            (100, 41, ["and 60 kinds more", "and 1 items more"]),
        ] {
            let shown = of(kinds, items);
            assert!(said.iter().all(|said| shown.contains(said)), "{shown}");
            assert_eq!(shown.matches("</b> of kind ").count(), LISTED);
        }
        let all = of(40, 40);
        assert!(
            !all.contains("more") && all.contains("of kind 40") && all.contains("item 40"),
            "{all}"
        );
    }

    #[test]
    fn each_step_is_on_one_page() {
        for steps in [0, 1, STEPS - 1, STEPS, STEPS + 1, 3 * STEPS] {
            let pages = Part::of(steps, None, Otherwise::Last).page;
            let mut seen = 0;
            for page in 1..=pages {
                let part = Part::of(steps, Some(page), Otherwise::First);
                assert_eq!(part.first, seen);
                seen = part.end;
            }
            assert_eq!(seen, steps);
            assert_eq!(Part::of(steps, Some(usize::MAX), Otherwise::First).page, pages);
            assert_eq!(Part::of(steps, Some(0), Otherwise::Last).page, 1);
        }
    }
}
