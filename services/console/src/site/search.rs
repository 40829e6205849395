//! The search: leads from typed text to the page of what it means.

use std::sync::Arc;

use annals_audit::Who;
use annals_evidence::{Question, read_trade};
use annals_ids::{DatabaseId, EntityId, Serial, SessionId};
use axum::{
    Extension,
    extract::{Query, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use super::{Site, refused};
use crate::{
    access::{SEARCH, Visitor},
    casework::{Answered, Meant, NoAnswer},
    pages::{Page, search},
    people::Role,
};

/// Maximum bytes of a search: more than any name may have.
const TYPED_BYTES: usize = 300;

/// Text of a search.
#[derive(Deserialize)]
pub(super) struct Typed {
    #[serde(default)]
    q: String,
}

/// The first page.
pub(super) async fn home(State(site): State<Arc<Site>>, Extension(visitor): Extension<Visitor>) -> Response {
    if visitor.role == Role::Operator {
        return Redirect::to("/map").into_response();
    }
    let cases = site.views.open_cases();
    let page = Page::new("The auditor's desk", Some(&visitor)).without_box();
    let home = site.casework.home().await;
    let status = match &home {
        Err(NoAnswer::Wrong(_)) => StatusCode::INTERNAL_SERVER_ERROR,
        // Without the lists the search still works.
        Ok(_) | Err(_) => StatusCode::OK,
    };
    let page = match &home {
        Ok(answered) => page.resting(answered),
        Err(_) => page,
    };
    page.show(
        status,
        &search::home(home.as_ref().map(|answered| &answered.answer), &cases, &visitor.form),
    )
}

/// Redirects to the result if there is exactly one; otherwise lists the results.
pub(super) async fn find(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Query(Typed { q }): Query<Typed>,
) -> Response {
    let typed = q.trim();
    if typed.is_empty() {
        return Redirect::to("/").into_response();
    }
    if typed.len() > TYPED_BYTES {
        if let Err(unlogged) = visitor.note(&site, &led_to(None)).await {
            return unlogged;
        }
        return refused(
            &visitor,
            &NoAnswer::Unclear("That is longer than anything that could be found.".into()),
        );
    }
    let found = look(&site, typed).await;
    if let Err(unlogged) = visitor.note(&site, &led_to(found.as_ref().ok())).await {
        return unlogged;
    }
    match found {
        Ok(answered) => match answered.answer.as_slice() {
            [] => {
                let page = Page::new("Nothing found", Some(&visitor)).searched(typed);
                let page = page.resting(&answered);
                page.show(StatusCode::NOT_FOUND, &search::nothing(typed))
            }
            [one] => Redirect::to(&one.address()).into_response(),
            several => {
                let page = Page::new("Several things found", Some(&visitor)).searched(typed);
                let page = page.resting(&answered);
                page.show(StatusCode::OK, &search::several(typed, several))
            }
        },
        Err(why) => refused(&visitor, &why),
    }
}

/// A search as it is recorded: by its results, as the text may be a name, which could never be deleted.
fn led_to(found: Option<&Answered<Vec<SearchResult>>>) -> String {
    let found = found.map(|answered| answered.answer.iter().map(SearchResult::address).collect::<Vec<_>>());
    match found {
        None => format!("GET {SEARCH}, which had no answer"),
        Some(found) if found.is_empty() => format!("GET {SEARCH}, which found nothing"),
        Some(found) => format!("GET {SEARCH}, which led to {}", found.join(" ")),
    }
}

/// A search result.
pub(crate) struct SearchResult {
    pub(crate) what: Meant,
    /// Name by which an account was found.
    pub(crate) name: Option<String>,
}

impl SearchResult {
    /// Address of its page. It contains no name: browsers and the views keep addresses.
    pub(crate) fn address(&self) -> String {
        match self.what {
            Meant::Item(serial) => format!("/item/{serial}"),
            Meant::Trade(id) => format!("/trade/{id}"),
            Meant::Account(holder) => format!("/account/{holder}"),
            Meant::Entity(entity) => format!("/entity/{entity}"),
            Meant::Session(session) => format!("/session/{session}"),
        }
    }
}

async fn look(site: &Site, typed: &str) -> Result<Answered<Vec<SearchResult>>, NoAnswer> {
    let existing = site.casework.existing(candidates(typed)).await?;
    let mut found: Vec<SearchResult> = existing
        .answer
        .iter()
        .map(|what| SearchResult {
            what: *what,
            name: None,
        })
        .collect();
    let name = typed.strip_prefix("account ").unwrap_or(typed);
    if let Some(holder) = site.casework.named(name).await? {
        let (what, name) = (Meant::Account(holder), Some(name.to_owned()));
        found.retain(|found| found.what != what);
        found.push(SearchResult { what, name });
    }
    Ok(existing.with(found))
}

/// Possible meanings other than names; a word before a number selects one.
fn candidates(typed: &str) -> Vec<Meant> {
    if let Ok(question) = typed.parse::<Question>() {
        return vec![match question {
            Question::Item(serial) => Meant::Item(serial),
            Question::Trade(id) => Meant::Trade(id),
            Question::Account(holder) => Meant::Account(holder),
        }];
    }
    if let Some(number) = typed.strip_prefix("entity ").and_then(|number| number.parse().ok()) {
        return vec![Meant::Entity(EntityId(number))];
    }
    if let Some(number) = typed.strip_prefix("session ").and_then(|number| number.parse().ok()) {
        return vec![Meant::Session(SessionId(number))];
    }
    if let Some(id) = read_trade(typed) {
        return vec![Meant::Trade(id)];
    }
    if let Ok(Who::Stored(holder)) = typed.parse::<Who>() {
        return vec![Meant::Account(holder)];
    }
    match typed.parse::<u64>() {
        Ok(number) => vec![
            Meant::Item(Serial(number)),
            Meant::Entity(EntityId(number)),
            Meant::Account(DatabaseId(number)),
            Meant::Session(SessionId(number)),
        ],
        Err(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use annals_ids::{TradeId, TransferId, TransferNumber};

    use super::*;

    #[test]
    fn search_text_is_classified_by_its_form() {
        let trade = Meant::Trade(TradeId(TransferId {
            asker: EntityId(5),
            number: TransferNumber(1),
        }));
        for (typed, meant) in [
            ("5/1", vec![trade]),
            ("trade 5/1", vec![trade]),
            ("item 7", vec![Meant::Item(Serial(7))]),
            ("entity 7", vec![Meant::Entity(EntityId(7))]),
            ("session 7", vec![Meant::Session(SessionId(7))]),
            ("stored:7", vec![Meant::Account(DatabaseId(7))]),
            ("account stored:7", vec![Meant::Account(DatabaseId(7))]),
            ("merlin", vec![]),
            ("5/x", vec![]),
            ("stored:x", vec![]),
        ] {
            assert_eq!(candidates(typed), meant, "{typed}");
        }
        assert_eq!(candidates("7").len(), 4, "a number alone may be any of them");
    }
}
