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

use super::{NO_NUMBER, Site, cases, operator::MOMENT, refused, unclear};
use crate::{
    access::Visitor,
    casework::EntityMoment,
    pages::{Page, account, entity, item, session, trade},
    people::Role,
};

/// Query that selects the part of an answer.
#[derive(Debug, Deserialize)]
pub(super) struct Part {
    page: Option<usize>,
    at: Option<String>,
    event: Option<usize>,
}

/// Parses a trade from an address.
pub(super) fn read_trade(entity: &str, number: &str) -> Option<TradeId> {
    annals_evidence::read_trade(&format!("{entity}/{number}"))
}

/// Expected form of a trade in an address.
pub(super) const NO_TRADE: &str = "A trade is written ENTITY/NUMBER, such as 1048580/3.";

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
    let moment = match (&at, part.event) {
        (Some(at), _) => EntityMoment::Written(at.clone()),
        (None, Some(events)) => EntityMoment::After(events),
        (None, None) => EntityMoment::Newest,
    };
    let role = visitor.role;
    match site.casework.entity(number, moment, role == Role::Auditor).await {
        Ok(answered) => {
            let page = Page::new(format!("Entity {number}"), Some(&visitor)).resting(&answered);
            let page = match role {
                Role::Auditor => page,
                Role::Operator => page.scripted(MOMENT),
            };
            page.show(
                StatusCode::OK,
                &entity::page(&answered.answer, answered.began, at.as_deref(), role),
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
