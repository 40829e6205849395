//! Access control: identifies the visitor, checks the role, and records the view before anything is shown.

use std::{net::SocketAddr, sync::Arc};

use annals_host::clock;
use axum::{
    Extension,
    extract::{Query, Request, State},
    http::{HeaderMap, HeaderValue, Method, StatusCode, header},
    middleware::Next,
    response::{IntoResponse, Redirect, Response},
};

use crate::{
    pages::{self, Page},
    people::{People, Role},
    site::Site,
    views::ViewRecord,
};

/// Path of the search page.
pub(crate) const SEARCH: &str = "/search";

/// Name of the session cookie.
pub(crate) const SESSION: &str = "annals-session";

/// Remote address of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// A person who has logged in and requests a page.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// Token that the visitor's forms contain.
    pub(crate) form: String,
    /// Token of the session.
    pub(crate) token: String,
    /// Address that the request comes from.
    pub(crate) from: String,
    /// Whether the browser can repeat the request by itself, which drops any request body.
    pub(crate) can_repeat: bool,
}

/// Query parameters that select a part of an answer. All others are left out of the views, which cannot be deleted: a
/// name would stay there.
const LOGGED: [&str; 3] = ["page", "at", "event"];

/// Middleware for pages that require a login: identifies the visitor and records the view. A search is recorded by [its
/// handler](crate::site), as its result.
pub(crate) async fn guard(State(site): State<Arc<Site>>, mut request: Request, next: Next) -> Response {
    let target = request
        .uri()
        .path_and_query()
        .map_or("/", |target| target.as_str())
        .to_owned();
    let from = address(&site, &request);
    let can_repeat = request.method() == Method::GET;
    let Some(visitor) = visitor(&site, request.headers(), from, can_repeat).await else {
        return match *request.method() {
            Method::GET => Redirect::to(&format!("/login?next={}", escape(&target))).into_response(),
            _ => Redirect::to("/login").into_response(),
        };
    };
    let is_search = request.uri().path() == SEARCH && visitor.role == Role::Auditor;
    let looked_at = looked_at(&request);
    if !is_search && let Err(refused) = visitor.note(&site, &looked_at).await {
        return refused;
    }
    request.extensions_mut().insert(visitor);
    next.run(request).await
}

/// Middleware that admits auditors only.
pub(crate) async fn audit(Extension(visitor): Extension<Visitor>, request: Request, next: Next) -> Response {
    if visitor.role != Role::Auditor {
        let page = Page::new("Not for your role", Some(&visitor));
        return page.show(StatusCode::FORBIDDEN, &pages::problem::role(visitor.role));
    }
    next.run(request).await
}

/// Middleware that admits operators only.
pub(crate) async fn operate(Extension(visitor): Extension<Visitor>, request: Request, next: Next) -> Response {
    if visitor.role != Role::Operator {
        let page = Page::new("Not for your role", Some(&visitor));
        return page.show(StatusCode::FORBIDDEN, &pages::problem::role(visitor.role));
    }
    next.run(request).await
}

/// Whether a request would still be answered as it was: for responses that last.
pub(crate) async fn is_admitted(site: &Arc<Site>, headers: &HeaderMap) -> bool {
    visitor(site, headers, String::new(), false)
        .await
        .is_some_and(|visitor| visitor.role == Role::Operator)
}

/// Description of the request, as it is recorded.
fn looked_at(request: &Request) -> String {
    let said = Query::<Vec<(String, String)>>::try_from_uri(request.uri());
    let said = said.map(|Query(said)| said).unwrap_or_default();
    let logged = said.iter().filter(|(name, _)| LOGGED.contains(&name.as_str()));
    let logged: Vec<String> = logged
        .map(|(name, value)| format!("{name}={}", escape(value)))
        .collect();
    let before = if logged.is_empty() { "" } else { "?" };
    let path = request.uri().path();
    format!("{} {path}{before}{}", request.method(), logged.join("&"))
}

impl Visitor {
    /// Records a view; on failure returns a page that says why nothing is shown.
    pub(crate) async fn note(&self, site: &Arc<Site>, what: &str) -> Result<(), Response> {
        note(site, (&self.name, self.role), &self.from, what).await
    }
}

/// Records a view; on failure returns a page that says why nothing is shown.
pub(crate) async fn note(site: &Arc<Site>, (who, role): (&str, Role), from: &str, what: &str) -> Result<(), Response> {
    let (site, who, from, what) = (Arc::clone(site), who.to_owned(), from.to_owned(), what.to_owned());
    let role = role.to_string();
    let writing = tokio::task::spawn_blocking(move || {
        let seen = ViewRecord {
            who: &who,
            role: &role,
            from: &from,
            what: &what,
        };
        site.views.write(clock::wall(), seen)
    });
    let written = match writing.await {
        Ok(Ok(_)) => return Ok(()),
        Ok(Err(error)) => annals_host::telemetry::Chain(&error).to_string(),
        Err(error) => error.to_string(),
    };
    Err(unwritten(&written))
}

/// Response for a view that could not be recorded, so that nothing is shown.
pub(crate) fn unwritten(reason: &str) -> Response {
    tracing::error!(reason, "a view cannot be recorded");
    let page = Page::new("Nothing can be shown", None);
    page.show(StatusCode::SERVICE_UNAVAILABLE, &pages::problem::unlogged())
}

/// The visitor that a request's session belongs to: none if the person was removed, or has a new password or role since
/// login.
async fn visitor(site: &Arc<Site>, headers: &HeaderMap, from: String, can_repeat: bool) -> Option<Visitor> {
    let token = cookie(headers, SESSION)?;
    let session = site.sessions().find(clock::mono(), &token)?;
    let path = site.people.clone();
    let people = tokio::task::spawn_blocking(move || People::read(&path)).await.ok()?;
    let people = people.map_err(|error| {
        let reason = annals_host::telemetry::Chain(&error).to_string();
        tracing::error!(reason, "log-ins are refused");
    });
    if people.ok()?.named(&session.person.name) != Some(&session.person) {
        site.sessions().end(&token);
        return None;
    }
    Some(Visitor {
        name: session.person.name,
        role: session.person.role,
        form: session.form,
        token,
        from,
        can_repeat,
    })
}

/// Source address of a request. Behind a proxy it is the last entry of the header, as a client can forge the entries
/// before it.
pub(crate) fn address(site: &Site, request: &Request) -> String {
    let peer = request.extensions().get::<Peer>();
    let peer = peer.map_or_else(|| "nowhere".to_owned(), |Peer(peer)| peer.ip().to_string());
    if !site.behind_proxy {
        return peer;
    }
    let said = request.headers().get_all("x-forwarded-for").iter().next_back();
    let said = said
        .and_then(|said| said.to_str().ok())
        .and_then(|said| said.rsplit(',').next());
    said.and_then(|said| said.trim().parse::<std::net::IpAddr>().ok())
        .map_or(peer, |said| said.to_string())
}

/// Value of the cookie with this name.
pub(crate) fn cookie(headers: &HeaderMap, name: &str) -> Option<String> {
    let all = headers
        .get_all(header::COOKIE)
        .iter()
        .filter_map(|value| value.to_str().ok());
    let mut pairs = all
        .flat_map(|value| value.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(found, _)| *found == name)
        .map(|(_, value)| value.to_owned())
}

/// A `Set-Cookie` value: hidden from scripts, and not sent with requests from other sites.
pub(crate) fn set_cookie(site: &Site, name: &str, value: &str) -> HeaderValue {
    let secure = if site.behind_proxy { "; Secure" } else { "" };
    let ended = if value.is_empty() { "; Max-Age=0" } else { "" };
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{ended}");
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("invalid=1; Max-Age=0"))
}

/// Adds the security headers to each response: no external content, no frame, no caching, and no script unless the page
/// has one.
pub(crate) async fn protect(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(pages::PLAIN));
    for (name, value) in [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("same-origin"));
    headers.insert("cross-origin-resource-policy", HeaderValue::from_static("same-origin"));
    headers
        .entry(header::CACHE_CONTROL)
        .or_insert(HeaderValue::from_static("no-store"));
    if site.behind_proxy {
        let lasting = HeaderValue::from_static("max-age=31536000");
        headers.insert(header::STRICT_TRANSPORT_SECURITY, lasting);
    }
    response
}

/// Percent-encodes a text as a value in a URL.
pub(crate) fn escape(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    });
    escaped.collect()
}
