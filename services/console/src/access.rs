//! Who asks, whether they may, and that it is written down before anything is shown.

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
    views::Seen,
};

/// Where one searches.
pub(crate) const SEARCH: &str = "/search";

/// The cookie of a session.
pub(crate) const SESSION: &str = "annals-session";

/// From which address a connection came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Peer(pub(crate) SocketAddr);

/// Somebody who has logged in, and asks for a page.
#[derive(Clone, Debug)]
pub(crate) struct Visitor {
    pub(crate) name: String,
    pub(crate) role: Role,
    /// What their forms have in them.
    pub(crate) form: String,
    /// Their session's token.
    pub(crate) token: String,
    /// From which address they ask.
    pub(crate) from: String,
    /// Whether their browser may ask again by itself: it does so without what was sent along.
    pub(crate) can_repeat: bool,
}

/// What of an address tells which part of an answer is looked at. Everything else that may stand behind it is left out of the
/// views, which nothing can be removed from: a name would stay there.
const LOGGED: [&str; 2] = ["page", "at"];

/// A page that waits for whoever has logged in: who asks is found, and the view is written down. A search is written down by
/// [itself](crate::site), as what it has led to.
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

/// Lets auditors pass, and nobody else.
pub(crate) async fn audit(Extension(visitor): Extension<Visitor>, request: Request, next: Next) -> Response {
    if visitor.role != Role::Auditor {
        let page = Page::new("Not for your role", Some(&visitor));
        return page.show(StatusCode::FORBIDDEN, &pages::problem::role(visitor.role));
    }
    next.run(request).await
}

/// What is asked for, as it is written down.
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
    /// Writes down what they look at; a page that says why nothing is shown, if that cannot be done.
    pub(crate) async fn note(&self, site: &Arc<Site>, what: &str) -> Result<(), Response> {
        note(site, (&self.name, self.role), &self.from, what).await
    }
}

/// Writes a view down; a page that says why nothing is shown, if that cannot be done.
pub(crate) async fn note(site: &Arc<Site>, (who, role): (&str, Role), from: &str, what: &str) -> Result<(), Response> {
    let (site, who, from, what) = (Arc::clone(site), who.to_owned(), from.to_owned(), what.to_owned());
    let role = role.to_string();
    let writing = tokio::task::spawn_blocking(move || {
        let seen = Seen {
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

/// Says that something could not be written down, so that nothing is shown.
pub(crate) fn unwritten(reason: &str) -> Response {
    tracing::error!(reason, "a view could not be written down");
    let page = Page::new("Nothing can be shown", None);
    page.show(StatusCode::SERVICE_UNAVAILABLE, &pages::problem::unlogged())
}

/// Whose session a request belongs to. Whoever was removed, or has another password or role since, has none any more.
async fn visitor(site: &Arc<Site>, headers: &HeaderMap, from: String, can_repeat: bool) -> Option<Visitor> {
    let token = cookie(headers, SESSION)?;
    let session = site.sessions().find(clock::mono(), &token)?;
    let path = site.people.clone();
    let people = tokio::task::spawn_blocking(move || People::read(&path)).await.ok()?;
    let people = people.map_err(|error| {
        let reason = annals_host::telemetry::Chain(&error).to_string();
        tracing::error!(reason, "nobody is let in");
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

/// From where a request came: behind a proxy, what that says last, as what stands before it anybody may have written.
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

/// The cookie of that name.
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

/// A cookie as it is set: no script sees it, and it goes with no request from another site.
pub(crate) fn set_cookie(site: &Site, name: &str, value: &str) -> HeaderValue {
    let secure = if site.behind_proxy { "; Secure" } else { "" };
    let ended = if value.is_empty() { "; Max-Age=0" } else { "" };
    let text = format!("{name}={value}; Path=/; HttpOnly; SameSite=Strict{secure}{ended}");
    HeaderValue::from_str(&text).unwrap_or_else(|_| HeaderValue::from_static("invalid=1; Max-Age=0"))
}

/// What every answer says to browsers: nothing from elsewhere, no script, no frame, no copy kept.
pub(crate) async fn protect(State(site): State<Arc<Site>>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in [
        (
            header::CONTENT_SECURITY_POLICY,
            "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
        ),
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

/// A text as a value in an address.
pub(crate) fn escape(text: &str) -> String {
    let escaped = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    });
    escaped.collect()
}
