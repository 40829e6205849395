//! Handlers that open, annotate and close cases.

use std::sync::Arc;

use annals_host::{clock, telemetry::Chain};
use axum::{
    Extension, Form,
    extract::{Path, State},
    http::StatusCode,
    response::{IntoResponse, Redirect, Response},
};
use maud::Markup;
use serde::Deserialize;

use super::{NO_NUMBER, Site, refused, unclear};
use crate::{
    access::{self, Visitor},
    cases::{Act, CaseError},
    casework::NoAnswer,
    pages::{Page, case as page},
    sessions::same,
    views::ViewRecord,
};

/// Form that opens a case.
#[derive(Deserialize)]
pub(super) struct Complaint {
    form: String,
    #[serde(default)]
    about: String,
    text: String,
}

/// Form that adds to a case.
#[derive(Deserialize)]
pub(super) struct Written {
    form: String,
    act: String,
    text: String,
}

/// Open cases about a page, for display on it.
pub(super) fn about(site: &Site, visitor: &Visitor, address: &str) -> Markup {
    let mut open = site.views.open_cases();
    open.retain(|case| case.about.as_deref() == Some(address));
    page::about(address, &open, &visitor.form)
}

pub(super) async fn show(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path(number): Path<String>,
) -> Response {
    let Ok(number) = number.parse::<u64>() else {
        return unclear(&visitor, NO_NUMBER);
    };
    let views = Arc::clone(&site);
    let found = tokio::task::spawn_blocking(move || views.views.case(number)).await;
    match found {
        Ok(Ok(Some(case))) => {
            let title = Page::new(format!("Case {number}"), Some(&visitor));
            title.show(StatusCode::OK, &page::page(&case, &visitor.form))
        }
        Ok(Ok(None)) => refused(&visitor, &NoAnswer::Nothing(format!("there is no case {number}"))),
        Ok(Err(error)) => refused(&visitor, &NoAnswer::Wrong(Chain(&error).to_string())),
        Err(error) => refused(&visitor, &NoAnswer::Unavailable(error.to_string())),
    }
}

pub(super) async fn open(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Form(sent): Form<Complaint>,
) -> Response {
    if !same(&sent.form, &visitor.form) {
        return unclear(&visitor, OLD_FORM);
    }
    let about = Some(sent.about).filter(|about| !about.is_empty());
    let act = move |site: &Site, seen: ViewRecord<'_>| {
        site.views
            .open_case(clock::wall(), seen, about.as_deref(), sent.text.trim())
    };
    done(&site, &visitor, act).await
}

pub(super) async fn write(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Path(number): Path<String>,
    Form(sent): Form<Written>,
) -> Response {
    let (Ok(number), Some(act)) = (number.parse::<u64>(), act_of(&sent.act)) else {
        return unclear(&visitor, NO_NUMBER);
    };
    if !same(&sent.form, &visitor.form) {
        return unclear(&visitor, OLD_FORM);
    }
    let act = move |site: &Site, seen: ViewRecord<'_>| {
        let written = site
            .views
            .go_on_with_case(clock::wall(), seen, (number, act), sent.text.trim());
        written.map(|()| number)
    };
    done(&site, &visitor, act).await
}

/// Step that a button stands for.
fn act_of(button: &str) -> Option<Act> {
    match button {
        "noted" => Some(Act::Noted),
        "closed" => Some(Act::Closed),
        _ => None,
    }
}

const OLD_FORM: &str = "This form was too old, or not from here. Load the page again.";

/// Performs a step, and redirects to the case.
async fn done<F>(site: &Arc<Site>, visitor: &Visitor, act: F) -> Response
where
    F: FnOnce(&Site, ViewRecord<'_>) -> Result<u64, CaseError> + Send + 'static,
{
    let (shared, who, from) = (Arc::clone(site), visitor.name.clone(), visitor.from.clone());
    let role = visitor.role.to_string();
    let writing = tokio::task::spawn_blocking(move || {
        let seen = ViewRecord {
            who: &who,
            role: &role,
            from: &from,
            what: "",
        };
        act(&shared, seen)
    });
    match writing.await {
        Ok(Ok(number)) => Redirect::to(&format!("/case/{number}")).into_response(),
        Ok(Err(CaseError::Unwritten(error))) => access::unwritten(&Chain(&error).to_string()),
        Ok(Err(error)) => unclear(visitor, &format!("{error}.")),
        Err(error) => access::unwritten(&error.to_string()),
    }
}
