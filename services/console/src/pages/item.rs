//! An item: its creation and its owners since.

use annals_evidence::{Item, Span, Terms};
use maud::{Markup, html};

use super::pieces::{self, Otherwise, Part};
use crate::casework::Known;

pub(crate) fn page((item, known): &(Item, Known), wanted: Option<usize>, (form, cases): (&str, &Markup)) -> Markup {
    let part = Part::of(item.steps.len(), wanted, Otherwise::First);
    let lexicon = &known.lexicon;
    let last = item.steps.last();
    let terms = last.map_or_else(Terms::default, |step| lexicon.under(step.cited.schema));
    let now = item.place_within(&Span::default());
    html! {
        h1 { "Item " (item.serial) " " span.quiet { @if let Some(name) = terms.kind_name(item.kind) { (name) ", " } "kind " (item.kind) } }
        p.lead { "It is with: " @if let Some(now) = now { (pieces::place(now, terms)) } @else { "nobody" } "." }
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
                        @for (step, terms) in item.steps[part.first..part.end].iter().map(|step| (step, lexicon.under(step.cited.schema))) {
                            tr {
                                td { (pieces::moment(step.cited.entry.wall)) }
                                td { (pieces::place(step.from, terms)) }
                                td { (pieces::place(step.to, terms)) }
                                td { (terms.order(&step.cited)) br; (pieces::outcome(step.cited.entry.outcome)) }
                                td { (pieces::asker(&step.cited, known)) }
                                td.number { (step.cited.entry.number) }
                            }
                        }
                    }
                }
            }
            (part.links())
        }
        (cases)
        (pieces::evidence(&format!("/item/{}", item.serial), form, false))
    }
}
