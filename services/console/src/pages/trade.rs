//! A trade, step by step.

use annals_event::ledger::{Slots, Stage};
use annals_evidence::{Inventory, Span, Terms, Trade, TradeSide, TradeStage, TradeStep, words};
use annals_ids::DatabaseId;
use maud::{Markup, html};

use super::pieces::{self, Otherwise, Part};
use crate::casework::{Known, TradeShown};

const SETTLED: TradeStage = TradeStage::Begun(Stage::Settled);

pub(crate) fn page(shown: &TradeShown, wanted: Option<usize>, (form, cases): (&str, &Markup)) -> Markup {
    let TradeShown { trade, held, known } = shown;
    let terms =
        |step: Option<&TradeStep>| step.map_or_else(Terms::default, |step| known.lexicon.under(step.cited.schema));
    let first = terms(trade.steps.first());
    let part = Part::of(trade.steps.len(), wanted, Otherwise::First);
    let stage = trade
        .stage_within(&Span::default())
        .unwrap_or(TradeStage::Begun(Stage::Open));
    let address = format!("/trade/{}", trade.id);
    html! {
        h1 { "Trade " (trade.id) " " (badge(stage)) }
        p.lead { (pieces::stored(trade.proposer, first)) " proposed it to " (pieces::stored(trade.partner, first)) "." }
        (result(trade, stage, terms(trade.steps.last())))
        section aria-labelledby="steps" {
            h2 #steps { "What was done" }
            (part.links())
            ol.steps start=(part.first + 1) {
                @for (place, (step, held)) in trade.steps.iter().zip(held).enumerate().take(part.end).skip(part.first) {
                    li { (one((place + 1, step), held, (trade, known))) }
                }
            }
            (part.links())
        }
        (cases)
        (pieces::evidence(&address, form, stage == SETTLED))
    }
}

pub(super) fn badge(stage: TradeStage) -> Markup {
    let class = match stage {
        TradeStage::Refused(_) => "bad",
        TradeStage::Begun(Stage::Open) => "open",
        SETTLED => "good",
        TradeStage::Begun(Stage::Cancelled | Stage::Expired) => "ended",
    };
    html! { span.badge.(class) { (words::stage(stage)) } }
}

/// Result of the trade, shown first: settling a dispute starts from it.
fn result(trade: &Trade, stage: TradeStage, terms: Terms<'_>) -> Markup {
    // Contents of the tables before settlement, which empties them.
    let settled = trade.steps.iter().position(|step| step.stage == SETTLED);
    let last = settled.and_then(|settled| trade.steps.get(settled.checked_sub(1)?));
    let tables = last
        .filter(|step| !is_empty(step))
        .map(|step| (&step.proposer.table, &step.partner.table));
    html! {
        section.result aria-labelledby="result" {
            h2 #result { "What came of it" }
            @match (stage, tables) {
                (SETTLED, Some((proposer, partner))) => {
                    dl.gave {
                        div { dt { (pieces::stored(trade.proposer, terms)) " gave" } dd { (pieces::slots(proposer, terms)) } }
                        div { dt { (pieces::stored(trade.partner, terms)) " gave" } dd { (pieces::slots(partner, terms)) } }
                    }
                }
                (SETTLED, None) => p { "It was settled with nothing on the table." },
                (TradeStage::Refused(reason), _) => p { "The proposal was refused, and so there was no trade: " (reason) "." },
                (TradeStage::Begun(Stage::Open), _) => p { "It is open: nothing has changed hands." },
                (TradeStage::Begun(Stage::Cancelled), _) => p {
                    "It was cancelled: the assets on the table were returned."
                },
                (TradeStage::Begun(Stage::Expired), _) => p { "It expired: the assets on the table were returned." },
            }
        }
    }
}

fn is_empty(step: &TradeStep) -> bool {
    let holds = |slots: &Slots| slots.values().any(|assets| !assets.is_empty());
    !holds(&step.proposer.table) && !holds(&step.partner.table)
}

fn one((number, step): (usize, &TradeStep), held: &[Inventory; 2], (trade, known): (&Trade, &Known)) -> Markup {
    let terms = known.lexicon.under(step.cited.schema);
    let [proposer, partner] = held;
    let heading = format!("step-{number}");
    html! {
        article aria-labelledby=(heading) {
            header {
                h3 id=(heading) { (terms.order(&step.cited)) }
                (pieces::outcome(step.cited.entry.outcome))
            }
            p.meta {
                (pieces::moment(step.cited.entry.wall))
                " · entry " (step.cited.entry.number)
                " · offers version " (step.version)
                br;
                "asked by " (pieces::asker(&step.cited, known))
            }
            div.scroll tabindex="0" role="region" aria-label={ "Inventories at step " (number) } {
                table.inventories {
                    thead {
                        tr {
                            th scope="col" { "Party" }
                            th scope="col" { "Then on the table" }
                            th scope="col" { "Held before" }
                            th scope="col" { "Held after" }
                            th scope="col" { "Change" }
                        }
                    }
                    tbody {
                        (side("Proposer", trade.proposer, (&step.proposer, proposer), terms))
                        (side("Partner", trade.partner, (&step.partner, partner), terms))
                    }
                }
            }
        }
    }
}

fn side(name: &str, holder: DatabaseId, (side, held): (&TradeSide, &Inventory), terms: Terms<'_>) -> Markup {
    html! {
        tr {
            th scope="row" { (name) br; span.light { (pieces::stored(holder, terms)) } }
            td { (pieces::slots(&side.table, terms)) @if side.accepted { div.accepted { "✓ accepted" } } }
            td { (pieces::slots(&held.before, terms)) }
            td { (pieces::slots(&held.after, terms)) }
            td { (pieces::difference(&held.before, &held.after, terms)) }
        }
    }
}
