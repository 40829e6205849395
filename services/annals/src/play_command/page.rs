//! The web server of the page.
//!
//! | address | what |
//! |---|---|
//! | `/`, and paths of files | the page |
//! | `/login`, `/base/PORT` | WebSockets to the realm's login service and to the base at that port |
//! | `/transport` | how the page reaches the realm itself, by WebTransport |
//! | `/realm` | the bases and cells, and the bots |
//! | `/kill/NAME` | kills a base or a cell (POST) |
//! | `/receipt/ENTITY/NUMBER` | the receipt of a trade |
//!
//! The page may kill processes, and everything it shows comes from this machine. So requests are refused that name the
//! server differently (a name that another site has made to point here), and those that change something or open a
//! WebSocket and do not come from the page itself.

use std::{io, net::SocketAddr, path::PathBuf, sync::Arc, time::SystemTime};

use annals_bots::progress::Progress;
use annals_evidence::read_trade;
use annals_host::{edge::web_certificate_hashes, telemetry::Chain};
use annals_ids::Hash;
use axum::{
    Router,
    extract::{Path, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, Uri, header},
    middleware::{self, Next},
    response::{IntoResponse, Response},
    routing::{get, post},
};
use serde::Serialize;
use thiserror::Error;
use tokio::{
    net::TcpListener,
    sync::{Semaphore, mpsc, oneshot, watch},
};

use super::{
    files::{Files, PAGE},
    receipts::Receipts,
    relay::relay,
};
use crate::up::{NotKilled, RealmOrder, is_expendable};

/// Maximum WebSockets that are passed on at a time. A page has two for a moment.
const SOCKETS: usize = 128;

/// Maximum receipts that are made at a time, and that wait for that.
const RECEIPTS: usize = 4;

/// What a page is made of.
pub(crate) struct PageParts {
    /// The address that the server listens on.
    pub(crate) address: SocketAddr,
    /// The files of the page. Later ones replace them.
    pub(crate) files: watch::Receiver<Arc<Files>>,
    /// The address of the login service, and the certificate of the realm's processes.
    pub(crate) login: (SocketAddr, Hash),
    /// The realm's data folder, with its certificates for browsers.
    pub(crate) data: PathBuf,
    /// Orders to the realm.
    pub(crate) orders: mpsc::Sender<RealmOrder>,
    /// What the bots do.
    pub(crate) bots: watch::Receiver<Progress>,
    pub(crate) receipts: Receipts,
}

struct Page {
    parts: PageParts,
    /// The address as a `Host` header has it, and the origin of the page.
    host: String,
    origin: String,
    sockets: Arc<Semaphore>,
    making_receipts: Semaphore,
}

type At = State<Arc<Page>>;

/// The origin of the page of a server.
pub(crate) fn origin(address: SocketAddr) -> String {
    format!("http://{address}")
}

/// Why no page can be served.
#[derive(Debug, Error)]
pub(crate) enum NotListening {
    /// Everybody who reaches the page may kill processes.
    #[error("{0} is reachable from other machines; give a local address, such as --page 127.0.0.1:7790")]
    Open(SocketAddr),
    #[error("cannot listen on {address}; another process may use it, and --page names another address")]
    Taken {
        address: SocketAddr,
        #[source]
        source: io::Error,
    },
}

/// Binds the address of a page, which must be a local one.
///
/// # Errors
/// When it is not, or is taken.
pub(crate) async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), NotListening> {
    if !address.ip().is_loopback() {
        return Err(NotListening::Open(address));
    }
    let failed = |source| NotListening::Taken { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    let bound = listener.local_addr().map_err(failed)?;
    Ok((listener, bound))
}

/// Routes of the page.
pub(crate) fn site(parts: PageParts) -> Router {
    let page = Arc::new(Page {
        host: parts.address.to_string(),
        origin: origin(parts.address),
        parts,
        sockets: Arc::new(Semaphore::new(SOCKETS)),
        making_receipts: Semaphore::new(RECEIPTS),
    });
    Router::new()
        .route("/", get(file))
        .route("/login", get(login))
        .route("/base/{port}", get(base))
        .route("/transport", get(transport))
        .route("/realm", get(realm))
        .route("/kill/{name}", post(kill))
        .route("/receipt/{entity}/{number}", get(receipt))
        .fallback(get(file))
        .layer(middleware::from_fn_with_state(Arc::clone(&page), protect))
        .with_state(page)
}

/// Middleware that refuses requests of other sites, and adds the security headers.
async fn protect(State(page): At, request: Request, next: Next) -> Response {
    let mut response = match page.refusal(&request) {
        None => next.run(request).await,
        Some(why) => (StatusCode::FORBIDDEN, why).into_response(),
    };
    // The WebSockets are named beside 'self': not every browser counts them to that. WebTransport reaches each base at
    // a port of its own.
    let (login, _) = page.parts.login;
    let policy = format!(
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self' ws://{} https://{}:*; \
         img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        page.host,
        login.ip()
    );
    let headers = response.headers_mut();
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    for (name, value) in [
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    response
}

impl Page {
    /// Why a request is refused.
    fn refusal(&self, request: &Request) -> Option<String> {
        if !says(request.headers(), header::HOST, &self.host) {
            return Some(format!("This server is {}; open that address.\n", self.origin));
        }
        let changes = request.method() != Method::GET && request.method() != Method::HEAD;
        let upgrades = request.headers().contains_key(header::UPGRADE);
        if (changes || upgrades) && !says(request.headers(), header::ORIGIN, &self.origin) {
            return Some(format!("Only the page of {} may do that.\n", self.origin));
        }
        None
    }

    /// Sends an order to the realm, and waits for the answer; `None` if the realm is being stopped.
    async fn order<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> RealmOrder) -> Option<T> {
        let (answer, answered) = oneshot::channel();
        self.parts.orders.send(order(answer)).await.ok()?;
        answered.await.ok()
    }

    async fn pass_on(&self, request: Request, to: SocketAddr) -> Response {
        if !request.headers().contains_key(header::UPGRADE) {
            return (StatusCode::BAD_REQUEST, "A WebSocket is expected here.\n").into_response();
        }
        let Ok(permit) = Arc::clone(&self.sockets).try_acquire_owned() else {
            return (StatusCode::SERVICE_UNAVAILABLE, "Too many players; close a page.\n").into_response();
        };
        let (_, certificate) = self.parts.login;
        match relay(request, (to, certificate), permit).await {
            Ok(response) => response,
            Err(error) => (StatusCode::BAD_GATEWAY, format!("{}\n", Chain(&error))).into_response(),
        }
    }
}

/// Whether a request has exactly this value of a header.
fn says(headers: &HeaderMap, name: header::HeaderName, value: &str) -> bool {
    let mut said = headers.get_all(name).iter();
    said.next().is_some_and(|said| said.as_bytes() == value.as_bytes()) && said.next().is_none()
}

/// A file of the page.
async fn file(State(page): At, uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    let files = Arc::clone(&page.parts.files.borrow());
    match files.get(if path.is_empty() { PAGE } else { path }) {
        Some(file) => ([(header::CONTENT_TYPE, file.kind)], file.bytes.clone()).into_response(),
        None => (StatusCode::NOT_FOUND, "There is no such page.\n").into_response(),
    }
}

async fn login(State(page): At, request: Request) -> Response {
    let (to, _) = page.parts.login;
    page.pass_on(request, to).await
}

/// Bases listen on the address of the login service.
async fn base(State(page): At, Path(port): Path<u16>, request: Request) -> Response {
    let (login, _) = page.parts.login;
    page.pass_on(request, SocketAddr::new(login.ip(), port)).await
}

/// How WebTransport reaches the realm.
#[derive(Serialize)]
struct Transport {
    login: String,
    /// SHA-256 hashes of the certificates to accept, in hexadecimal digits.
    certificates: [String; 2],
}

async fn transport(State(page): At) -> Response {
    let (login, _) = page.parts.login;
    match web_certificate_hashes(&page.parts.data, SystemTime::now()) {
        Ok(hashes) => json(&Transport {
            login: format!("https://{login}"),
            certificates: hashes.map(|hash| hash.to_string()),
        }),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, Chain(&error).to_string()).into_response(),
    }
}

/// The state of the realm, as the page shows it.
#[derive(Serialize)]
struct RealmShown {
    /// Names and process ids of bases and cells.
    processes: Vec<(String, u32)>,
    bots: u64,
    connected: u64,
}

async fn realm(State(page): At) -> Response {
    let Some(listed) = page.order(RealmOrder::List).await else {
        return stopping();
    };
    let expendable = listed.into_iter().filter(|listed| is_expendable(listed.service));
    let processes = expendable.map(|listed| (listed.name, listed.process)).collect();
    let bots = *page.parts.bots.borrow();
    let shown = RealmShown {
        processes,
        bots: bots.bots,
        connected: bots.connected,
    };
    json(&shown)
}

async fn kill(State(page): At, Path(name): Path<String>) -> Response {
    match page.order(|answer| RealmOrder::Kill(name, answer)).await {
        Some(Ok(())) => StatusCode::NO_CONTENT.into_response(),
        Some(Err(error)) => {
            let status = match error {
                NotKilled::Unknown(_) => StatusCode::NOT_FOUND,
                NotKilled::TooSoon(_) => StatusCode::CONFLICT,
                NotKilled::Failed(..) => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, Chain(&error).to_string()).into_response()
        }
        None => stopping(),
    }
}

async fn receipt(State(page): At, Path((entity, number)): Path<(String, String)>) -> Response {
    let Some(id) = read_trade(&format!("{entity}/{number}")) else {
        return (StatusCode::BAD_REQUEST, "That is no number of a trade.").into_response();
    };
    let Ok(_permit) = page.making_receipts.acquire().await else {
        return stopping();
    };
    match page.parts.receipts.receipt(id).await {
        Ok(receipt) => json(&receipt),
        Err(error) => {
            let status = match error.may_come() {
                true => StatusCode::SERVICE_UNAVAILABLE,
                false => StatusCode::INTERNAL_SERVER_ERROR,
            };
            (status, Chain(&error).to_string()).into_response()
        }
    }
}

fn json(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(text) => ([(header::CONTENT_TYPE, "application/json")], text).into_response(),
        Err(error) => (StatusCode::INTERNAL_SERVER_ERROR, error.to_string()).into_response(),
    }
}

fn stopping() -> Response {
    (StatusCode::SERVICE_UNAVAILABLE, "The realm is being stopped.").into_response()
}
