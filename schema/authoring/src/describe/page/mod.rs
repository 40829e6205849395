//! A description as one self-contained HTML page: no other file, no network, no server.
//!
//! All text from files goes through [`Text`] or [`anchor`]. Should that fail, the page's own policy allows only this
//! script and this style sheet.

mod escape;
mod kinds;
mod members;

use std::collections::BTreeSet;

use annals_def::INDEXED_BYTES;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{Description, Sum, TypeDescription, marks::part_marks};
use escape::{Text, anchor, link, source_hash};

/// The style sheet and the search script.
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// What the sections of a page refer to.
struct Page<'d> {
    description: &'d Description,
    /// The names that link to an alias, and to a type.
    aliases: BTreeSet<&'d str>,
    types: BTreeSet<&'d str>,
}

/// The description as a page with this title.
#[must_use]
pub fn to_page(description: &Description, title: &str) -> String {
    let page = Page {
        description,
        aliases: description.aliases.iter().map(|alias| alias.name.as_str()).collect(),
        types: description.types.iter().map(|one| one.name.as_str()).collect(),
    };
    page.whole(title).into_string()
}

impl Page<'_> {
    fn whole(&self, title: &str) -> Markup {
        let description = self.description;
        let policy = format!(
            "default-src 'none'; style-src {}; script-src {}; base-uri 'none'; form-action 'none'",
            source_hash(STYLE),
            source_hash(SCRIPT)
        );
        html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta http-equiv="Content-Security-Policy" content=(policy);
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    title { (Text(title)) " – definitions" }
                    style { (PreEscaped(STYLE)) }
                }
                body {
                    a.skip href="#content" { "To the content" }
                    (header(title))
                    div.layout {
                        (self.navigation())
                        main id="content" {
                            (self.overview())
                            @for one in &description.types { (self.entity_type(one)) }
                            @for service in &description.services { (self.service(service)) }
                            @for object in &description.user_data_objects { (self.object(object)) }
                            (self.definitions())
                            (self.ledger_table())
                            (self.alias_table())
                            p.nothing id="nothing" hidden { "Nothing here has all these words." }
                        }
                    }
                    script { (PreEscaped(SCRIPT)) }
                }
            }
        }
    }

    fn navigation(&self) -> Markup {
        let description = self.description;
        let types: Vec<&str> = description.types.iter().map(|one| one.name.as_str()).collect();
        let services = description.services.iter().map(|one| one.name.as_str()).collect();
        let objects = description.user_data_objects.iter().map(|one| one.name.as_str());
        let kinds = [
            ("Entity types", "type", types),
            ("Services", "service", services),
            ("User data objects", "object", objects.collect()),
        ];
        let lists = [
            (description.definitions.is_empty(), "definitions", "Parents, interfaces"),
            (description.ledger_names.is_empty(), "ledger", "Ledger"),
            (description.aliases.is_empty(), "aliases", "Aliases"),
        ];
        html! {
            nav aria-label="Contents" {
                details open {
                    summary { "Contents" }
                    h2 hidden {}
                    ul { li { a href="#overview" { "Overview" } } }
                    @for (title, kind, names) in kinds.iter().filter(|(.., names)| !names.is_empty()) {
                        h2 { (title) }
                        ul { @for name in names { li { (link(&anchor(&[kind, name]), name)) } } }
                    }
                    h2 { "Shared" }
                    ul {
                        @for (_, anchor, title) in lists.iter().filter(|(is_empty, ..)| !is_empty) {
                            li { (link(anchor, title)) }
                        }
                    }
                }
            }
        }
    }

    /// An overview of all types.
    fn overview(&self) -> Markup {
        html! {
            section id="overview" data-block {
                h2 { "Overview" }
                p.place { "schema " (self.description.fingerprint.to_string()) }
                p.doc {
                    "Bytes are those of values; a + marks the least of what varies, and behind it stands what the \
                     defaults take. Identifiers and lengths of messages come on top. The store keeps an entity as one \
                     value: the name of its type, and each persistent property by its name. It finds entities by their \
                     database id, and by the first " (INDEXED_BYTES) " bytes of their identifier."
                }
                table data-table {
                    thead {
                        tr {
                            th.number { "id" } th { "type" } th { "parts" } th.number { "own client" }
                            th.number { "other clients" } th.number { "ghosts" } th.number { "stored" }
                            th.number { "advice" }
                        }
                    }
                    @for one in &self.description.types { (overview_of(one)) }
                }
            }
        }
    }
}

fn header(title: &str) -> Markup {
    html! {
        header {
            h1 { a href="#overview" { (Text(title)) } }
            div.search hidden {
                label for="search" { "Search" }
                input id="search" type="search" autocomplete="off" spellcheck="false" aria-describedby="matches hint";
                output id="matches" aria-live="polite" {}
                span id="hint" { "a name, a type, ALL_CLIENTS, stored, lint … " kbd { "/" } }
            }
        }
    }
}

fn overview_of(one: &TypeDescription) -> Markup {
    let totals = &one.totals;
    let sums = [
        ("own client", &totals.own_client),
        ("other clients", &totals.other_clients),
        ("ghosts", &totals.ghosts),
        ("stored", &totals.stored),
    ];
    let advice = one.all_advice().count();
    html! {
        tbody {
            tr {
                td.number data-label="id" { (one.id) }
                td.name { (link(&anchor(&["type", &one.name]), &one.name)) }
                td data-label="parts" { (parts(one)) }
                @for (label, sum) in sums {
                    td.number.none[sum.members == 0] data-label=(label) { (bytes(sum)) }
                }
                td.number.none[advice == 0] data-label="advice" {
                    @if advice == 0 { "–" } @else { (advice) }
                }
            }
        }
    }
}

fn parts(one: &TypeDescription) -> Markup {
    // The colour of properties on that part.
    let class = |part| if part == "client" { "own" } else { part };
    html! {
        span.chips {
            @for part in part_marks(one.parts) { span class={ "chip " (class(part)) } { (part) } }
        }
    }
}

/// `41 B`, `23+ B (31)`, or a dash for an empty sum.
fn bytes(sum: &Sum) -> Markup {
    html! {
        @if sum.members == 0 {
            "–"
        } @else if sum.is_fixed {
            (sum.least) " B"
        } @else {
            span { (sum.least) "+ B " small { "(" (sum.of_defaults) ")" } }
        }
    }
}
