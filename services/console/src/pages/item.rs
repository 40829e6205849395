//! An item: where it was made, and who has had it since.

use annals_audit::Sessions;
use annals_evidence::{Item, Span, words};
use maud::{Markup, html};

use super::pieces::{self, Otherwise, Part};

pub(crate) fn page((item, sessions): &(Item, Sessions), wanted: Option<usize>, form: &str) -> Markup {
    let part = Part::of(item.steps.len(), wanted, Otherwise::First);
    let now = item.place_within(&Span::default());
    html! {
        h1 { "Item " (item.serial) " " span.quiet { "kind " (item.kind) } }
        p.lead { "It is with: " @if let Some(now) = now { (pieces::place(now)) } @else { "nobody" } "." }
        section aria-labelledby="steps" {
            h2 #steps { "Who has had it" }
            (part.links())
            div.scroll tabindex="0" role="region" aria-labelledby="steps" {
                table.wide {
                    thead {
                        tr {
                            th scope="col" { "When" }
                            th scope="col" { "From" }
                            th scope="col" { "To" }
                            th scope="col" { "Why" }
                            th scope="col" { "Asked by" }
                            th scope="col" { "Entry" }
                        }
                    }
                    tbody {
                        @for step in &item.steps[part.first..part.end] {
                            tr {
                                td { (pieces::moment(step.cited.entry.wall)) }
                                td { (pieces::place(step.from)) }
                                td { (pieces::place(step.to)) }
                                td { (words::order(&step.cited)) br; (pieces::outcome(step.cited.entry.outcome)) }
                                td { (pieces::asker(&step.cited, sessions)) }
                                td.number { (step.cited.entry.number) }
                            }
                        }
                    }
                }
            }
            (part.links())
        }
        (pieces::evidence(&format!("/item/{}", item.serial), form, false))
    }
}
