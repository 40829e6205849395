//! The first page, and search results.

use annals_ids::Hash;
use maud::{Markup, html};

use super::{case, pieces, problem, trade};
use crate::{
    cases::Case,
    casework::{Home, Meant, NoAnswer},
    site::SearchResult,
};

pub(crate) fn home(found: Result<&Home, &NoAnswer>, cases: &[Case], form: &str) -> Markup {
    html! {
        h1 { "The auditor's desk" }
        form.big role="search" aria-label="Search everything" action="/search" method="get" {
            label for="search" { "What is the complaint about?" }
            div.row {
                input #search type="search" name="q" maxlength="300" autocomplete="off" spellcheck="false" autofocus aria-describedby="kinds";
                button type="submit" { "Search" }
            }
        }
        @match found {
            Ok(home) => (alarms(home)),
            Err(NoAnswer::Wrong(what)) => (problem::wrong(what)),
            Err(why) => p.notice role="status" { "Alarms and recent trades cannot be listed at the moment: " (why) ". Load the page again." },
        }
        (open(cases, form))
        @if let Ok(home) = found { (trades(home)) }
        details {
        summary { "What can be searched for" }
        div.scroll tabindex="0" role="region" aria-label="What can be searched for" {
            table #kinds {
                thead { tr { th scope="col" { "To find" } th scope="col" { "write" } th scope="col" { "and see" } } }
                tbody {
                    tr { th scope="row" { "a trade" } td { code { "1048580/3" } } td { "each step, and what both held before and after it" } }
                    tr { th scope="row" { "an item" } td { code { "17" } " or " code { "item 17" } } td { "where it was made, and who has had it since" } }
                    tr { th scope="row" { "an account" } td { code { "merlin" } } td { "what it has had, and what was done with it" } }
                    tr { th scope="row" { "a stored entity" } td { code { "stored:17" } } td { "the same of any account or character" } }
                    tr { th scope="row" { "an entity" } td { code { "1048580" } " or " code { "entity 1048580" } } td { "what it was at any moment" } }
                    tr { th scope="row" { "a session" } td { code { "session 2097153" } } td { "the client's account and address" } }
                }
            }
        }
        }
    }
}

fn alarms(home: &Home) -> Markup {
    html! {
        section aria-labelledby="alarms" {
            h2 #alarms { "Alarms" }
            @if home.alarms.is_empty() {
                p.quiet {
                    "None: the archive verifies, it matches the signed checkpoint, and no log is known to have a hole."
                }
            }
            @else {
                (pieces::alarms(&home.alarms))
            }
        }
    }
}

fn open(cases: &[Case], form: &str) -> Markup {
    html! {
        section aria-labelledby="cases" {
            h2 #cases { "Open cases" }
            @if cases.is_empty() { p.quiet { "None." } } @else { (case::list(cases)) }
            (case::opening("", "Open a case", form))
        }
    }
}

fn trades(home: &Home) -> Markup {
    html! {
        section aria-labelledby="trades" {
            h2 #trades { "Recent trades" }
            @if home.trades.is_empty() { p.quiet { "None." } }
            @else {
                div.scroll tabindex="0" role="region" aria-labelledby="trades" {
                    table.wide {
                        thead { tr { th scope="col" { "Last changed" } th scope="col" { "Trade" } th scope="col" { "Between" } th scope="col" { "State" } } }
                        tbody {
                            @for line in &home.trades {
                                @let terms = home.lexicon.under(Hash::default());
                                tr {
                                    td { (pieces::moment(line.last)) }
                                    td { (pieces::trade(line.id)) }
                                    td { (pieces::stored(line.parties[0], terms)) " and " (pieces::stored(line.parties[1], terms)) }
                                    td { (trade::badge(line.stage)) }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

pub(crate) fn nothing(typed: &str) -> Markup {
    html! {
        h1 { "Nothing found" }
        p { "Neither an item, a trade, an entity nor a stored entity is called " b { (typed) } ", and no account logs in by that name." }
        p { "A trade is written " code { "ENTITY/NUMBER" } ", a stored entity " code { "stored:NUMBER" } ". Names are written as players write them, capitals included." }
    }
}

pub(crate) fn several(typed: &str, found: &[SearchResult]) -> Markup {
    html! {
        h1 { "Several things are called " (typed) }
        ul.found {
            @for found in found {
                li { a href=(found.address()) { (said(found)) } }
            }
        }
    }
}

fn said(found: &SearchResult) -> String {
    match (found.what, &found.name) {
        (Meant::Account(holder), Some(name)) => format!("the account {name}, stored entity {holder}"),
        (Meant::Account(holder), None) => format!("stored entity {holder}"),
        (Meant::Item(serial), _) => format!("item {serial}"),
        (Meant::Trade(id), _) => format!("trade {id}"),
        (Meant::Entity(entity), _) => format!("entity {entity}"),
        (Meant::Session(session), _) => format!("client session {session}"),
    }
}
