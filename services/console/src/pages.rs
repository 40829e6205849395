//! The pages, as HTML. `maud` escapes all text written into a page; nothing here writes in any other way.

pub(crate) mod account;
pub(crate) mod case;
pub(crate) mod entity;
pub(crate) mod entrance;
pub(crate) mod item;
pub(crate) mod logs;
pub(crate) mod map;
mod pieces;
pub(crate) mod problem;
pub(crate) mod processes;
pub(crate) mod search;
pub(crate) mod session;
pub(crate) mod trade;
pub(crate) mod verification;

use annals_audit::Extent;
use axum::{
    http::{StatusCode, header},
    response::{Html, IntoResponse, Response},
};
use maud::{DOCTYPE, Markup, html};

use crate::{access::Visitor, casework::Answered, people::Role};

/// Frame of a page.
pub(crate) struct Page<'a> {
    title: String,
    visitor: Option<&'a Visitor>,
    searched: &'a str,
    has_box: bool,
    rests_on: Option<Extent>,
    /// Batches beyond the verified extent.
    newer: u64,
    script: Option<&'static str>,
}

/// Policy of pages without a script: no external content, no script, no frame.
pub(crate) const PLAIN: &str =
    "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Policy of pages with a script of this console, which may ask this console for more.
const SCRIPTED: &str = "default-src 'none'; script-src 'self'; connect-src 'self'; style-src 'self'; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'";

impl<'a> Page<'a> {
    pub(crate) fn new(title: impl Into<String>, visitor: Option<&'a Visitor>) -> Self {
        Self {
            title: title.into(),
            visitor,
            searched: "",
            has_box: true,
            rests_on: None,
            newer: 0,
            script: None,
        }
    }

    /// Adds a script, by its address.
    pub(crate) fn scripted(self, script: &'static str) -> Self {
        Self {
            script: Some(script),
            ..self
        }
    }

    /// Sets the text in the search box.
    pub(crate) fn searched(self, typed: &'a str) -> Self {
        Self {
            searched: typed,
            ..self
        }
    }

    /// Omits the search box from the page head: the page has one of its own.
    pub(crate) fn without_box(self) -> Self {
        Self { has_box: false, ..self }
    }

    /// Adds the archive state that the page's answer rests on.
    pub(crate) fn resting<T>(self, answered: &Answered<T>) -> Self {
        Self {
            rests_on: Some(answered.extent.clone()),
            newer: answered.newer,
            ..self
        }
    }

    /// Renders the page.
    pub(crate) fn show(self, status: StatusCode, body: &Markup) -> Response {
        let page = html! {
            (DOCTYPE)
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { (self.title) " · Annals console" }
                    link rel="stylesheet" href="/style.css";
                    @if let Some(script) = self.script { script src=(script) defer {} }
                }
                body {
                    a.skip href="#main" { "Skip to content" }
                    (self.header())
                    main #main tabindex="-1" { (body) }
                    (self.footer())
                }
            }
        };
        let policy = if self.script.is_some() { SCRIPTED } else { PLAIN };
        let headers = [(header::CONTENT_SECURITY_POLICY, policy)];
        (status, headers, Html(page.into_string())).into_response()
    }

    fn header(&self) -> Markup {
        html! {
            header.top {
                div.bar {
                    a.brand href="/" { "Annals" span.quiet { " console" } }
                    @if let Some(visitor) = self.visitor {
                        @match visitor.role {
                            Role::Auditor => (self.for_auditors()),
                            Role::Operator => (for_operators()),
                        }
                        form.leave action="/logout" method="post" {
                            input type="hidden" name="form" value=(visitor.form);
                            span.who { (visitor.name) span.quiet { ", " (visitor.role) } }
                            button.plain type="submit" { "Log out" }
                        }
                    }
                }
            }
        }
    }

    fn for_auditors(&self) -> Markup {
        html! {
            @if self.has_box {
                form.find role="search" action="/search" method="get" {
                    label.hidden for="q" { "Search" }
                    input #q type="search" name="q" value=(self.searched) maxlength="300" autocomplete="off" spellcheck="false";
                    button type="submit" { "Search" }
                }
            }
            nav aria-label="Main" {
                a href="/" { "Desk" }
                a href="/verification" { "Verification" }
            }
        }
    }

    fn footer(&self) -> Markup {
        html! {
            footer {
              div.foot {
                @if let Some(extent) = &self.rests_on {
                    p {
                        "Verified before this was answered: " (pieces::count(extent.leaves())) " batches of the archive and "
                        (pieces::count(extent.entry.0)) " entries of the ledger. "
                        @for (shard, tree) in &extent.trees {
                            "Root " @if extent.trees.len() > 1 { "of shard " (shard) " " } (pieces::hash(tree.root)) ". "
                        }
                        @if self.visitor.is_some_and(|visitor| visitor.role == Role::Auditor) {
                            a href="/verification" { "How this was verified" }
                        }
                    }
                }
                @if self.newer > 0 {
                    p.newer role="status" {
                        (pieces::count(self.newer)) @if self.newer == 1 { " newer batch is" } @else { " newer batches are" }
                        " not indexed yet, and not part of this answer. Reload in a moment."
                    }
                }
                p { "Times are UTC, by the clocks of the realm. Each view of this console is recorded." }
              }
            }
        }
    }
}

fn for_operators() -> Markup {
    html! {
        form.find role="search" action="/entity" method="get" {
            label.beside for="q" { "Entity" }
            input #q type="search" name="number" maxlength="20" inputmode="numeric" autocomplete="off" spellcheck="false";
            button type="submit" { "Show" }
        }
        nav aria-label="Main" {
            a href="/map" { "Map" }
            a href="/processes" { "Processes" }
            a href="/logs" { "Logs" }
        }
    }
}
