//! An entity at a moment, which the visitor can move.

use std::ops::Range;

use annals_audit::{
    EntityEvent,
    names::{Names, held},
    past::{PartAt, PartOf},
};
use annals_evidence::{Until, words};
use annals_ids::{EntityId, Hash, WallTime};
use maud::{Markup, html};

use super::pieces;
use crate::{access::escape, casework::EntityAt, people::Role};

/// Maximum characters shown of a value: a game may make properties of any size.
const VALUE_CHARS: usize = 400;

/// Operators see what the entity was and what happened to it. Who the players were is for auditors.
pub(crate) fn page(found: &EntityAt, began: WallTime, at: Option<&str>, role: Role) -> Markup {
    let entity = found.log.entity;
    let parts: Vec<(PartOf, PartAt<'_>)> = found
        .past
        .parts()
        .into_iter()
        .filter(|((of, _), _)| *of == entity)
        .collect();
    html! {
        h1 { "Entity " (entity) @if let Some(name) = type_name(found, &parts) { " " span.quiet { (name) } } }
        (moment(found, at, began))
        (slider(found))
        section aria-labelledby="state" {
            h2 #state { "What it was then" }
            @if parts.is_empty() { p { "Nothing of it existed at that moment." } }
            @for (of, part) in &parts { (state(found, *of, part, role)) }
        }
        section aria-labelledby="around" {
            h2 #around { "What happened around that" }
            (around(found, role))
            @for (owner, batch) in &found.log.deleted {
                p.quiet {
                    "Retention deleted the events of owner " (owner) " up to batch " (batch)
                    ": some of them were of this entity."
                }
            }
        }
    }
}

fn type_name(found: &EntityAt, parts: &[(PartOf, PartAt<'_>)]) -> Option<String> {
    parts
        .iter()
        .find_map(|(_, part)| Some(part.entity_type(&found.schemas)?.name.clone()))
}

/// Address of an entity at the moment of an event.
fn place(entity: EntityId, event: &EntityEvent) -> String {
    format!("/entity/{entity}?at={}", event.at)
}

/// The moment, with controls to move it: event by event, by time steps, or by typing another one.
fn moment(found: &EntityAt, at: Option<&str>, began: WallTime) -> Markup {
    let (entity, events, before) = (found.log.entity, &found.log.events, found.before);
    let here = before.checked_sub(1).map(|last| &events[last]);
    let wall = match &found.until {
        Some(Until::Wall(wall)) => Some(*wall),
        _ => here.map(|event| event.wall),
    };
    // Several of its events may be in one batch, and a moment is the end of a batch.
    let earlier = here.and_then(|here| events[..before].iter().rev().find(|event| event.leaf != here.leaf));
    let later = events.get(before);
    let shifted = |wall: WallTime, by: i64| {
        let to = WallTime(wall.0.saturating_add_signed(by).max(began.0));
        format!("/entity/{entity}?at={}", escape(&words::date(to)))
    };
    let written = at.map_or_else(|| wall.map(words::date).unwrap_or_default(), ToOwned::to_owned);
    html! {
        section.moment aria-label="Moment" {
            p.lead {
                "As it was "
                @match (&found.until, wall) {
                    (None, _) => "by the end of what is verified",
                    (Some(_), Some(wall)) => { "at " (pieces::moment(wall)) },
                    (Some(_), None) => "before it began",
                }
                "."
            }
            nav.parts aria-label="Move the moment" {
                @if let Some(earlier) = earlier { a rel="prev" href=(place(entity, earlier)) { "← Event before" } }
                @if let Some(wall) = wall {
                    a href=(shifted(wall, -60_000)) { "−1 min" }
                    a href=(shifted(wall, -1_000)) { "−1 s" }
                    a href=(shifted(wall, 1_000)) { "+1 s" }
                    a href=(shifted(wall, 60_000)) { "+1 min" }
                }
                @if let Some(later) = later { a rel="next" href=(place(entity, later)) { "Next event →" } }
                @if found.until.is_some() { a href={ "/entity/" (entity) } { "Newest" } }
            }
            form.big action={ "/entity/" (entity) } method="get" {
                label for="at" { "Another moment" }
                div.row {
                    input #at name="at" value=(written) maxlength="60" autocomplete="off" spellcheck="false" aria-describedby="forms";
                    button type="submit" { "Go" }
                }
                p #forms .quiet {
                    "A date as " code { "2026-11-23T10:00:00Z" } ", the time since the realm began as " code { "00:12:30" }
                    ", or a batch as " code { "3@120" } "."
                }
            }
        }
    }
}

/// A slider over all events of the entity. It is a form, which the operators' script submits by itself.
fn slider(found: &EntityAt) -> Markup {
    let count = found.log.events.len();
    html! {
        form.slider action={ "/entity/" (found.log.entity) } method="get" {
            label for="event" { "After " output #events-before { (found.before) } " of " (pieces::count(count as u64)) " events" }
            div.row {
                input #event type="range" name="event" min="0" max=(count) value=(found.before);
                button.second type="submit" { "Show" }
            }
        }
    }
}

/// A part of the entity, with its state.
fn state(found: &EntityAt, (_, of): PartOf, part: &PartAt<'_>, role: Role) -> Markup {
    let heading = format!("part-{of}");
    html! {
        article aria-labelledby=(heading) {
            header { h3 id=(heading) { "Its " (of) " part" } }
            p.meta {
                "held by owner " (part.owner)
                @if let Some(to) = part.under_way { ", under way to owner " (to) }
                @if let Some(stored) = part.stored() {
                    " · "
                    @match role {
                        Role::Auditor => (pieces::stored(stored, found.lexicon.under(Hash::default()))),
                        Role::Operator => { "stored entity " (stored) },
                    }
                }
                @if let Some(client) = part.image.client { " · client session " (client.session) }
                @if let Some(cell) = part.image.cell() {
                    " · in space " (cell.place.space) " at (" (format!("{:.1}, {:.1}, {:.1}", cell.place.position.x, cell.place.position.y, cell.place.position.z)) ")"
                }
                br;
                "hash " (pieces::hash(part.hash()))
            }
            div.scroll tabindex="0" role="region" aria-labelledby=(heading) {
                table.properties {
                    thead { tr { th scope="col" { "Property" } th scope="col" { "Value" } } }
                    tbody {
                        @for (property, value) in part.properties(&found.schemas) {
                            tr { th scope="row" { (property.name) } td { (short(&held(property, &value))) } }
                        }
                    }
                }
            }
        }
    }
}

fn short(value: &str) -> String {
    let value = words::text(value);
    match value.char_indices().nth(VALUE_CHARS) {
        Some((end, _)) => format!("{}… ({} characters)", &value[..end], value.chars().count()),
        None => value,
    }
}

fn around(found: &EntityAt, role: Role) -> Markup {
    let (events, before) = (&found.log.events, found.before);
    let mut names = Names::new(found.schemas.values().cloned());
    for event in events {
        names.learn_event(event.schema, &event.event);
    }
    let Range { start: first, end } = found.around;
    html! {
        div.scroll tabindex="0" role="region" aria-labelledby="around" {
            table.wide {
                thead {
                    tr {
                        th scope="col" { "When" }
                        th scope="col" { "What" }
                        th scope="col" { "By" }
                        th scope="col" { "Event" }
                    }
                }
                tbody {
                    @for (place, event) in events.iter().enumerate().take(end).skip(first) {
                        @if place == before { tr.now { td colspan="4" { "the moment" } } }
                        tr.after[place >= before] { (row(found, event, &names, role)) }
                    }
                    @if before == end { tr.now { td colspan="4" { "the moment" } } }
                }
            }
        }
        p.quiet { (pieces::count(before as u64)) " events before the moment, " (pieces::count((events.len() - before) as u64)) " after it" }
    }
}

fn row(found: &EntityAt, event: &EntityEvent, names: &Names, role: Role) -> Markup {
    let said = names.under(event.schema);
    html! {
        td { (pieces::moment(event.wall)) }
        td { (short(&said.event(&event.event))) }
        td {
            @if event.calls.is_empty() { span.quiet { "by itself" } }
            @for (place, call) in event.calls.iter().enumerate() {
                @if place > 0 { ", because of " }
                @match role {
                    Role::Auditor => (pieces::caller(call, event.at)),
                    Role::Operator => (words::caller(call)),
                }
                @if let Some(came) = found.sessions.behind(call, event.leaf, event.wall) { br; (pieces::came_in(came)) }
            }
        }
        td.number { a href=(place(found.log.entity, event)) { (event.at) " #" (event.number) } }
    }
}
