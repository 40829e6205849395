//! History of a stored entity's holdings.

use annals_evidence::{Cited, Span};
use annals_ids::{Hash, TradeId};
use maud::{Markup, html};

use super::pieces::{self, Otherwise, Part};
use crate::casework::OwnedShown;

pub(crate) fn page(shown: &OwnedShown, wanted: Option<usize>, (form, cases): (&str, &Markup)) -> Markup {
    let OwnedShown { owned, known } = shown;
    let lexicon = &known.lexicon;
    // The current name, independent of the definitions of the time.
    let name = lexicon.under(Hash::default()).stored_name(owned.holder);
    let part = Part::of(owned.steps.len(), wanted, Otherwise::Last);
    html! {
        h1 {
            @match name {
                Some(name) => { (name) " " span.quiet { "stored entity " (owned.holder) } },
                None => { "Stored entity " (owned.holder) },
            }
        }
        section.result aria-labelledby="has" {
            h2 #has { "What it has" }
            @match owned.within(&Span::default()) {
                Some(last) => (pieces::slots(&last.held.after, lexicon.under(last.cited.schema))),
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
                        @for (step, terms) in owned.steps[part.first..part.end].iter().map(|step| (step, lexicon.under(step.cited.schema))) {
                            tr {
                                td { (pieces::moment(step.cited.entry.wall)) }
                                td {
                                    (terms.order(&step.cited)) br; (pieces::outcome(step.cited.entry.outcome))
                                    @if let Some(id) = trade_of(&step.cited) { " " (pieces::trade(id)) }
                                }
                                td { (pieces::difference(&step.held.before, &step.held.after, terms)) }
                                td { (pieces::slots(&step.held.after, terms)) }
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
        (pieces::evidence(&format!("/account/{}", owned.holder), form, false))
    }
}

/// Trade that a step was part of.
fn trade_of(cited: &Cited) -> Option<TradeId> {
    cited.entry.order.as_ref()?.trade(cited.entry.of)
}
