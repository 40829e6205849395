//! The map of a space: a picture for those who run the script, and tables for all.

use maud::{Markup, html};

use crate::watching::{MapCell, MapFrame};

/// Maximum alarms on this page; the page of processes has all.
const ALARMS: usize = 3;

pub(crate) fn page(frame: &MapFrame) -> Markup {
    html! {
        h1 { "Space " (frame.space) " " span.quiet { "of " (frame.realm) } }
        @if frame.spaces.len() > 1 {
            nav.parts aria-label="Spaces" {
                @for space in &frame.spaces {
                    @if *space == frame.space { span aria-current="page" { "Space " (space) } }
                    @else { a href={ "/map/" (space) } { "Space " (space) } }
                }
            }
        }
        div #alarms data-limit=(ALARMS) {
            @if !frame.alarms.is_empty() {
                ul.lines.alarms {
                    @for what in frame.alarms.iter().take(ALARMS) { li { b { (what) } } }
                    li { a href="/processes" { (frame.alarms.len()) " alarms in all" } }
                }
            }
        }
        section #map-page aria-label="Map" data-space=(frame.space) {
            div.map {
                canvas #map tabindex="0" role="application" aria-label={ "Map of space " (frame.space) ", from above" } aria-describedby="keys" {}
                div.tools {
                    button #closer.second type="button" aria-label="Zoom in" { "+" }
                    button #farther.second type="button" aria-label="Zoom out" { "−" }
                    button #fit.second type="button" { "Fit" }
                }
            }
            noscript { p.notice { "The picture and the list of entities need scripts. The table of cells does not." } }
            p.under {
                span #live-state role="status" { "Connecting" }
                span #picked aria-live="polite" { "Choose an entity to see what it is." }
            }
            ul #legend.legend aria-label="Entities by type" {}
            p #keys.quiet {
                "Drag to move, turn the wheel to zoom. With the keyboard: arrows, " kbd { "+" } " and " kbd { "−" } ", "
                kbd { "0" } " to see everything, " kbd { "Enter" } " to choose what is in the middle. North is up; "
                "the stronger the colour of a cell, the higher its load."
            }
        }
        (cells(frame))
        (entities())
    }
}

fn cells(frame: &MapFrame) -> Markup {
    html! {
        section aria-labelledby="cells-heading" {
            h2 #cells-heading { "Cells" }
            @if frame.cells.is_empty() { p.quiet { "This space has no cells." } }
            div.scroll tabindex="0" role="region" aria-labelledby="cells-heading" {
                table #cells.figures {
                    thead {
                        tr {
                            @for heading in ["Owner", "West", "East", "South", "North", "Load", "Entities", "Clients", "Moved"] {
                                th scope="col" { (heading) }
                            }
                        }
                    }
                    tbody { @for cell in &frame.cells { (row(cell)) } }
                }
            }
            p.quiet { "Edges in metres; the load is the share of one core." }
        }
    }
}

/// Filled by the script, which knows what is in view.
fn entities() -> Markup {
    html! {
        section {
            details {
                summary { "Entities in view" }
                div.scroll tabindex="0" role="region" aria-label="Entities in view" {
                    table #entities.figures {
                        thead {
                            tr {
                                @for heading in ["Entity", "Type", "x", "z", "Client"] { th scope="col" { (heading) } }
                            }
                        }
                        tbody {}
                    }
                }
                p.quiet { "The fifty that are nearest to the middle of the picture." }
            }
        }
    }
}

fn row(cell: &MapCell) -> Markup {
    let edge = |at: Option<f32>| at.map_or_else(|| "–".to_owned(), |at| format!("{at:.1}"));
    let moved = cell
        .moved_seconds_ago
        .map_or_else(|| "–".to_owned(), |seconds| format!("{seconds} s ago"));
    html! {
        tr {
            th scope="row" { (cell.owner) }
            @for at in [cell.west, cell.east, cell.south, cell.north] { td.number { (edge(at)) } }
            td.number { (format!("{:.3}", cell.load)) }
            td.number { (cell.entities) }
            td.number { (cell.clients) }
            td.number { @if cell.is_retiring { "is being retired" } @else { (moved) } }
        }
    }
}
