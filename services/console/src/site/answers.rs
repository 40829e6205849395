//! Handlers of the pages that answer questions.

use std::sync::Arc;

use annals_ids::{DatabaseId, EntityId, Serial, SessionId, TradeId};
use axum::{
    Extension,
    extract::{Path, Query, State},
    http::StatusCode,
    response::Response,
};
use serde::Deserialize;

use super::{Site, cases, refused, unclear};
use crate::{
    access::Visitor,
    pages::{Page, account, entity, item, session, trade},
};

/// Query that selects the part of an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    page: Option<usize>,
    at: Option<String>,
}

/// Parses a trade from an address.
pub(super) fn read_trade(entity: &str, number: &str) -> Option<TradeId> {
    annals_evidence::read_trade(&format!("{entity}/{number}"))
}

/// Expected form of a trade in an address.
pub(super) const NO_TRADE: &str = "A trade is written ENTITY/NUMBER, such as 1048580/3.";

/// The same for a number.
pub(super) const NO_NUMBER: &str = "That is no number.";

pub(super) async fn trade(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path((entity, number)): Path<(String, String)>,
    Query(part): Query<Part>,
) -> Response {
    let Some(id) = read_trade(&entity, &number) else {
        return unclear(&visitor, NO_TRADE);
    };
    match site.casework.trade(id).await {
        Ok(answered) => {
            let page = Page::new(format!("Trade {id}"), Some(&visitor)).resting(&answered);
            let cases = cases::about(&site, &visitor, &format!("/trade/{id}"));
            page.show(
                StatusCode::OK,
                &trade::page(&answered.answer, part.page, (visitor.form.as_str(), &cases)),
            )
        }
        Err(why) => refused(&visitor, &why),
    }
}

pub(super) async fn item(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path(serial): Path<String>,
    Query(part): Query<Part>,
) -> Response {
    let Ok(serial) = serial.parse().map(Serial) else {
        return unclear(&visitor, NO_NUMBER);
    };
    match site.casework.item(serial).await {
        Ok(answered) => {
            let page = Page::new(format!("Item {serial}"), Some(&visitor)).resting(&answered);
            let cases = cases::about(&site, &visitor, &format!("/item/{serial}"));
            page.show(
                StatusCode::OK,
                &item::page(&answered.answer, part.page, (visitor.form.as_str(), &cases)),
            )
        }
        Err(why) => refused(&visitor, &why),
    }
}

pub(super) async fn account(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path(number): Path<String>,
    Query(part): Query<Part>,
) -> Response {
    let Ok(holder) = number.parse().map(DatabaseId) else {
        return unclear(&visitor, NO_NUMBER);
    };
    match site.casework.owned(holder).await {
        Ok(answered) => {
            let page = Page::new(format!("Stored entity {holder}"), Some(&visitor)).resting(&answered);
            let cases = cases::about(&site, &visitor, &format!("/account/{holder}"));
            page.show(
                StatusCode::OK,
                &account::page(&answered.answer, part.page, (visitor.form.as_str(), &cases)),
            )
        }
        Err(why) => refused(&visitor, &why),
    }
}

pub(super) async fn entity(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path(number): Path<String>,
    Query(part): Query<Part>,
) -> Response {
    let Ok(number) = number.parse().map(EntityId) else {
        return unclear(&visitor, NO_NUMBER);
    };
    let at = part.at.map(|at| at.trim().to_owned()).filter(|at| !at.is_empty());
    match site.casework.entity(number, at.clone()).await {
        Ok(answered) => {
            let page = Page::new(format!("Entity {number}"), Some(&visitor)).resting(&answered);
            page.show(
                StatusCode::OK,
                &entity::page(&answered.answer, answered.began, at.as_deref()),
            )
        }
        Err(why) => refused(&visitor, &why),
    }
}

pub(super) async fn session(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path(number): Path<String>,
) -> Response {
    let Ok(number) = number.parse().map(SessionId) else {
        return unclear(&visitor, NO_NUMBER);
    };
    match site.casework.session(number).await {
        Ok(answered) => {
            let page = Page::new(format!("Session {number}"), Some(&visitor)).resting(&answered);
            page.show(StatusCode::OK, &session::page(number, &answered.answer))
        }
        Err(why) => refused(&visitor, &why),
    }
}
