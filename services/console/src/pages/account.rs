//! What somebody has had.

use annals_event::ledger::Order;
use annals_evidence::{Cited, Span, words};
use annals_ids::TradeId;
use maud::{Markup, html};

use super::pieces::{self, Otherwise, Part};
use crate::desk::OwnedShown;

pub(crate) fn page(shown: &OwnedShown, wanted: Option<usize>, form: &str) -> Markup {
    let OwnedShown { owned, sessions } = shown;
    let part = Part::of(owned.steps.len(), wanted, Otherwise::Last);
    html! {
        h1 { "Stored entity " (owned.holder) }
        section.result aria-labelledby="has" {
            h2 #has { "What it has" }
            @match owned.within(&Span::default()) {
                Some(last) => (pieces::slots(&last.held.after)),
                None => p { "Nothing yet." },
            }
        }
        section aria-labelledby="steps" {
            h2 #steps { "What it did, and what others did" }
            (part.links())
            div.scroll tabindex="0" role="region" aria-labelledby="steps" {
                table.wide {
                    thead {
                        tr {
                            th scope="col" { "When" }
                            th scope="col" { "What" }
                            th scope="col" { "Change" }
                            th scope="col" { "Held after" }
                            th scope="col" { "Asked by" }
                            th scope="col" { "Entry" }
                        }
                    }
                    tbody {
                        @for step in &owned.steps[part.first..part.end] {
                            tr {
                                td { (pieces::moment(step.cited.entry.wall)) }
                                td {
                                    (words::order(&step.cited)) br; (pieces::outcome(step.cited.entry.outcome))
                                    @if let Some(id) = trade_of(&step.cited) { " " (pieces::trade(id)) }
                                }
                                td { (pieces::difference(&step.held.before, &step.held.after)) }
                                td { (pieces::slots(&step.held.after)) }
                                td { (pieces::asker(&step.cited, sessions)) }
                                td.number { (step.cited.entry.number) }
                            }
                        }
                    }
                }
            }
            (part.links())
        }
        (pieces::evidence(&format!("/account/{}", owned.holder), form, false))
    }
}

/// The trade that something was done in.
fn trade_of(cited: &Cited) -> Option<TradeId> {
    match cited.entry.order.as_ref()? {
        Order::Propose { .. } => Some(TradeId(cited.entry.of)),
        Order::Offer { trade, .. }
        | Order::Withdraw { trade, .. }
        | Order::Accept { trade, .. }
        | Order::Cancel { trade } => Some(*trade),
        _ => None,
    }
}
