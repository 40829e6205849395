//! Cases: complaint, notes and verdict.

use annals_evidence::words;
use maud::{Markup, html};

use super::pieces;
use crate::cases::{Case, TEXT_BYTES};

/// Notice shown beside each text field of a case.
const FOR_GOOD: &str =
    "It is kept for good, and nothing can be taken out again: write numbers and no names of players.";

pub(crate) fn page(case: &Case, form: &str) -> Markup {
    html! {
        h1 { "Case " (case.number) " " (badge(case)) }
        @if let Some(about) = &case.about { p.lead { "About " a href=(about) { (named(about)) } "." } }
        section aria-labelledby="steps" {
            h2 #steps { "What was written" }
            ol.steps.said {
                @for step in &case.steps {
                    li {
                        article {
                            header { h3 { (words::text(&step.text)) } }
                            p.meta { (step.act) " by " (step.who) " · " (when(&step.when)) }
                        }
                    }
                }
            }
        }
        @if case.is_open() {
            section aria-labelledby="write" {
                h2 #write { "Write into it" }
                form action={ "/case/" (case.number) } method="post" {
                    (text(form, "A note, or the verdict"))
                    p.actions {
                        button type="submit" name="act" value="noted" { "Note it" }
                        button.second type="submit" name="act" value="closed" { "Close the case with it" }
                    }
                }
            }
        }
    }
}

/// Open cases about a page, and a form to open another one.
pub(crate) fn about(address: &str, open: &[Case], form: &str) -> Markup {
    html! {
        section aria-labelledby="cases" {
            h2 #cases { "Cases" }
            @if !open.is_empty() { (list(open)) }
            (opening(address, "Open a case about this", form))
        }
    }
}

/// Form that opens a case, with or without a page that it is about.
pub(crate) fn opening(address: &str, label: &str, form: &str) -> Markup {
    html! {
        details {
            summary { (label) }
            form action="/cases" method="post" {
                input type="hidden" name="about" value=(address);
                (text(form, "The complaint"))
                button type="submit" { "Open the case" }
            }
        }
    }
}

/// List of cases, one line each.
pub(crate) fn list(cases: &[Case]) -> Markup {
    html! {
        ul.lines {
            @for case in cases {
                li {
                    a href={ "/case/" (case.number) } { "Case " (case.number) }
                    @if let Some(about) = &case.about { " about " a href=(about) { (named(about)) } }
                    @if let Some(opened) = case.steps.first() {
                        ": " (shortened(&opened.text)) br;
                        span.quiet { "opened by " (opened.who) " · " (when(&opened.when)) @if let notes @ 1.. = case.steps.len() - 1 { " · " (notes) @if notes == 1 { " note" } @else { " notes" } } }
                    }
                }
            }
        }
    }
}

fn badge(case: &Case) -> Markup {
    match case.is_open() {
        true => html! { span.badge.open { "open" } },
        false => html! { span.badge.ended { "closed" } },
    }
}

fn text(form: &str, label: &str) -> Markup {
    html! {
        input type="hidden" name="form" value=(form);
        div.field {
            label for="text" { (label) }
            textarea #text name="text" rows="3" maxlength=(TEXT_BYTES) required aria-describedby="for-good" {}
            p #for-good .quiet { (FOR_GOOD) }
        }
    }
}

/// `/account/17` as `account 17`.
fn named(address: &str) -> String {
    let address = address.trim_start_matches('/');
    match address.split_once('/') {
        Some(("account", number)) => format!("stored entity {number}"),
        Some((what, number)) => format!("{what} {number}"),
        None => address.to_owned(),
    }
}

/// Renders a recorded time.
fn when(date: &str) -> Markup {
    match date.strip_suffix('Z').and_then(|date| date.split_once('T')) {
        Some((day, time)) => html! { time datetime=(date) { (day) " " b { (time) } } },
        None => html! { (date) },
    }
}

fn shortened(text: &str) -> String {
    let text = words::text(text);
    match text.char_indices().nth(pieces::LINE_CHARS) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
