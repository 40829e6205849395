//! Routes of the pages.
//!
//! | address | page |
//! |---|---|
//! | `/` | one box to search; alarms, open cases and recent trades |
//! | `/search?q=` | redirects to the result, or lists several |
//! | `/trade/ENTITY/NUMBER` | a trade, with `/bundle` and `/receipt` below it |
//! | `/item/SERIAL`, `/account/NUMBER` | an item, an account, each with `/bundle` |
//! | `/entity/NUMBER?at=`, `?event=` | an entity at a moment, or after so many of its events |
//! | `/session/NUMBER` | identities behind a session |
//! | `/case/NUMBER`, `/cases` | a case; the form that opens one |
//! | `/verification` | what was verified, and what a kept checkpoint proves |
//! | `/map/SPACE`, `/processes`, `/logs` | for operators: the live realm, each with `/events` below it |
//! | `/entity?number=` | for operators: redirects to the entity |
//! | `/login`, `/logout`, `/enter/TOKEN` | log-in, log-out, and log-in by a one-time link |
//! | `/style.css`, `/map.js`, `/live.js`, `/moment.js` | the stylesheet, and the scripts of operators' pages |

mod answers;
mod cases;
mod evidence;
mod operator;
mod search;

pub(crate) use search::SearchResult;

use std::{
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use annals_host::passwords::Passwords;
use annals_login::{GUESS_EVERY, GUESSES, Throttle};
use axum::{
    Router,
    extract::DefaultBodyLimit,
    http::{StatusCode, header},
    middleware,
    response::{IntoResponse, Response},
    routing::{get, post},
};
use tokio::sync::{Semaphore, watch};

use crate::{
    access::{self, Visitor},
    casework::{Casework, NoAnswer},
    entrance,
    links::Links,
    pages::{self, Page},
    sessions::Sessions,
    views::ViewLog,
    watching::Watching,
};

/// Maximum bytes of a form: a checkpoint with its envelope.
const BODY_BYTES: usize = 128 << 10;

/// Maximum pages that are kept current: each holds a connection.
const STREAMS: usize = 64;

/// The stylesheet.
const STYLE: &str = include_str!("style.css");

/// State that all pages share.
pub struct Site {
    pub(crate) casework: Arc<Casework>,
    pub(crate) people: PathBuf,
    pub(crate) views: ViewLog,
    pub(crate) links: Links,
    pub(crate) behind_proxy: bool,
    pub(crate) passwords: Passwords,
    pub(crate) watching: Arc<Watching>,
    pub(crate) streams: Arc<Semaphore>,
    /// Set when the console is to stop.
    pub(crate) stop: watch::Receiver<bool>,
    sessions: Mutex<Sessions>,
    throttle: Mutex<Throttle<String>>,
}

/// Parts from which a console is built.
pub struct Parts {
    /// Answers the questions.
    pub casework: Arc<Casework>,
    /// Path of the file of people.
    pub people: PathBuf,
    /// The access log.
    pub views: ViewLog,
    /// The one-time sign-in links.
    pub links: Links,
    /// Whether a proxy in front ends TLS and reports the source address of requests.
    pub behind_proxy: bool,
    /// Set when the console is to stop: pages that are kept current end then.
    pub stop: watch::Receiver<bool>,
}

impl Site {
    pub(crate) fn sessions(&self) -> MutexGuard<'_, Sessions> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn throttle(&self) -> MutexGuard<'_, Throttle<String>> {
        self.throttle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Builds the router of all pages.
pub fn site(parts: Parts) -> Router {
    let Parts {
        casework,
        people,
        views,
        links,
        behind_proxy,
        stop,
    } = parts;
    let site = Arc::new(Site {
        watching: Watching::new(Arc::clone(&casework)),
        streams: Arc::new(Semaphore::new(STREAMS)),
        stop,
        casework,
        people,
        views,
        links,
        behind_proxy,
        passwords: Passwords::default(),
        sessions: Mutex::default(),
        throttle: Mutex::new(Throttle::new(GUESSES, GUESS_EVERY)),
    });
    let guarded = for_auditors()
        .merge(for_operators())
        .route("/", get(search::home))
        .route("/entity/{number}", get(answers::entity))
        .route("/logout", post(entrance::leave))
        .fallback(missing)
        .route_layer(middleware::from_fn_with_state(Arc::clone(&site), access::guard));
    let open = Router::new()
        .route("/login", get(entrance::show).post(entrance::enter))
        .route("/enter/{token}", get(entrance::show_link))
        .route("/enter", post(entrance::enter_by_link))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), entrance::locate))
        .route("/style.css", get(style));
    let open = operator::SCRIPTS
        .iter()
        .fold(open, |open, (address, _)| open.route(address, get(operator::script)));
    guarded
        .merge(open)
        .layer(DefaultBodyLimit::max(BODY_BYTES))
        .layer(middleware::from_fn_with_state(Arc::clone(&site), access::protect))
        .with_state(site)
}

/// Pages for auditors only.
fn for_auditors() -> Router<Arc<Site>> {
    Router::new()
        .route(access::SEARCH, get(search::find))
        .route("/trade/{entity}/{number}", get(answers::trade))
        .route(
            "/trade/{entity}/{number}/bundle",
            get(evidence::trade).post(evidence::trade_kept),
        )
        .route("/trade/{entity}/{number}/receipt", get(evidence::receipt))
        .route("/item/{serial}", get(answers::item))
        .route("/item/{serial}/bundle", get(evidence::item).post(evidence::item_kept))
        .route("/account/{number}", get(answers::account))
        .route(
            "/account/{number}/bundle",
            get(evidence::account).post(evidence::account_kept),
        )
        .route("/session/{number}", get(answers::session))
        .route("/cases", post(cases::open))
        .route("/case/{number}", get(cases::show).post(cases::write))
        .route(
            "/verification",
            get(evidence::verification).post(evidence::verification_kept),
        )
        .route_layer(middleware::from_fn(access::audit))
}

/// Pages for operators only.
fn for_operators() -> Router<Arc<Site>> {
    Router::new()
        .route("/map", get(operator::spaces))
        .route("/map/{space}", get(operator::space))
        .route("/map/{space}/events", get(operator::space_events))
        .route("/processes", get(operator::processes))
        .route("/processes/events", get(operator::process_events))
        .route("/logs", get(operator::logs))
        .route("/logs/events", get(operator::log_events))
        .route("/entity", get(operator::find))
        .route_layer(middleware::from_fn(access::operate))
}

async fn style() -> Response {
    let kept = [
        (header::CONTENT_TYPE, "text/css; charset=utf-8"),
        (header::CACHE_CONTROL, "max-age=300"),
    ];
    (kept, STYLE).into_response()
}

async fn missing() -> Response {
    let page = Page::new("No such page", None);
    page.show(StatusCode::NOT_FOUND, &pages::problem::missing())
}

/// Page that says why there is no answer.
fn refused(visitor: &Visitor, why: &NoAnswer) -> Response {
    let (status, title) = match why {
        NoAnswer::Nothing(_) => (StatusCode::NOT_FOUND, "Nothing found"),
        NoAnswer::Unclear(_) => (StatusCode::BAD_REQUEST, "Not a question"),
        NoAnswer::Wrong(_) => (StatusCode::INTERNAL_SERVER_ERROR, "Does not verify"),
        NoAnswer::Verifying { .. } => (StatusCode::SERVICE_UNAVAILABLE, "Being verified"),
        NoAnswer::Slow => (StatusCode::GATEWAY_TIMEOUT, "Too slow"),
        NoAnswer::Unavailable(_) => (StatusCode::SERVICE_UNAVAILABLE, "No answer"),
    };
    let body = pages::problem::no_answer(why, visitor.can_repeat);
    let mut response = Page::new(title, Some(visitor)).show(status, &body);
    if matches!(why, NoAnswer::Verifying { .. }) && visitor.can_repeat {
        let again = axum::http::HeaderValue::from_static("2");
        response.headers_mut().insert(header::REFRESH, again);
    }
    response
}

/// Says that an address has no number where it needs one.
const NO_NUMBER: &str = "That is no number.";

/// Response for an address that is not valid.
fn unclear(visitor: &Visitor, what: &str) -> Response {
    refused(visitor, &NoAnswer::Unclear(what.to_owned()))
}
