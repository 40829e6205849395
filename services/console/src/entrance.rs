//! Logging in and out.

use std::sync::Arc;

use annals_host::{clock, passwords::PasswordError, process::random, telemetry::Chain};
use axum::{
    Extension, Form,
    extract::{Path, Query, Request, State},
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Redirect, Response},
};
use serde::Deserialize;

use crate::{
    access::{self, SESSION, Visitor, cookie, set_cookie},
    pages::{Page, entrance},
    people::{NAME_BYTES, PASSWORD_BYTES, People, Person, hash_of},
    sessions::{Token, same},
    site::Site,
};

/// Cookie that accompanies the log-in form: another site can send the form, but not the cookie.
const FORM: &str = "annals-form";

/// Page to show after the log-in.
#[derive(Debug, Deserialize)]
pub(crate) struct Destination {
    next: Option<String>,
}

/// Credentials from the log-in form.
#[derive(Deserialize)]
pub(crate) struct Credentials {
    name: String,
    password: String,
    form: String,
    next: Option<String>,
}

/// A one-time link, from its form.
#[derive(Deserialize)]
pub(crate) struct SentLink {
    token: String,
    form: String,
}

/// Token that any form of a session contains.
#[derive(Deserialize)]
pub(crate) struct Sent {
    form: String,
}

/// Shows the log-in form.
pub(crate) async fn show(State(site): State<Arc<Site>>, Query(Destination { next }): Query<Destination>) -> Response {
    form(&site, StatusCode::OK, (next.as_deref(), ""), None)
}

/// Handles a log-in.
pub(crate) async fn enter(
    State(site): State<Arc<Site>>,
    Extension(CameFrom(from)): Extension<CameFrom>,
    headers: HeaderMap,
    Form(sent): Form<Credentials>,
) -> Response {
    let next = sent.next.as_deref();
    let again = |status, said| form(&site, status, (next, &sent.name), Some(said));
    if !cookie(&headers, FORM).is_some_and(|kept| !kept.is_empty() && same(&kept, &sent.form)) {
        return again(
            StatusCode::FORBIDDEN,
            "This form was too old, or not from here. Try again.",
        );
    }
    if sent.name.len() > NAME_BYTES || sent.password.len() > PASSWORD_BYTES {
        return again(StatusCode::UNPROCESSABLE_ENTITY, "Name or password is too long.");
    }
    let now = clock::mono();
    let counted = [format!("name {}", sent.name), format!("from {from}")];
    if !counted.iter().all(|counted| site.throttle().admits(now, counted)) {
        return again(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many wrong passwords. Wait a minute, and try again.",
        );
    }
    // Counted as a failure before the result is known, so that concurrent requests do not allow many guesses.
    counted.iter().for_each(|counted| site.throttle().blame(now, counted));
    let compared = compare(&site, &sent.name, sent.password.clone()).await;
    if let Err(PasswordError::Crowded) = compared {
        return again(
            StatusCode::SERVICE_UNAVAILABLE,
            "Too many people log in at this moment. Try again in a moment.",
        );
    }
    let Ok(Some(person)) = compared else {
        if let Err(error) = &compared {
            tracing::error!(%error, "a password cannot be checked");
        }
        // The name is not logged: a user may have typed the password there.
        tracing::warn!(from, "log-in refused");
        return again(StatusCode::UNAUTHORIZED, "Name or password is wrong.");
    };
    for counted in &counted {
        site.throttle().forgive(now, counted);
    }
    begin(&site, person, &from, (next, "logged in")).await
}

/// Shows the form that uses a one-time link. Only the form uses it up: programs that look ahead follow links too.
pub(crate) async fn show_link(State(site): State<Arc<Site>>, Path(token): Path<String>) -> Response {
    let form = Token::new(random());
    let body = entrance::link(form.text(), &token);
    let mut response = Page::new("Log in", None).show(StatusCode::OK, &body);
    let kept = set_cookie(&site, FORM, form.text());
    response.headers_mut().append(header::SET_COOKIE, kept);
    response
}

/// Handles a log-in by a one-time link.
pub(crate) async fn enter_by_link(
    State(site): State<Arc<Site>>,
    Extension(CameFrom(from)): Extension<CameFrom>,
    headers: HeaderMap,
    Form(sent): Form<SentLink>,
) -> Response {
    let again = |status, said| form(&site, status, (None, ""), Some(said));
    if !cookie(&headers, FORM).is_some_and(|kept| !kept.is_empty() && same(&kept, &sent.form)) {
        return again(
            StatusCode::FORBIDDEN,
            "This form was too old, or not from here. Use the link again.",
        );
    }
    let Some(person) = linked(&site, sent.token).await else {
        tracing::warn!(from, "log-in by link refused");
        return again(
            StatusCode::UNAUTHORIZED,
            "This link was used, has expired, or is none. Have another one made: annals-console link NAME.",
        );
    };
    begin(&site, person, &from, (None, "logged in by link")).await
}

/// The person that a link signs in, which is used up by that.
async fn linked(site: &Arc<Site>, token: String) -> Option<Person> {
    let (links, path) = (site.links.clone(), site.people.clone());
    let taking = tokio::task::spawn_blocking(move || {
        let Some(name) = links
            .take(clock::wall(), &token)
            .map_err(|error| Chain(&error).to_string())?
        else {
            return Ok(None);
        };
        let people = People::read(&path).map_err(|error| Chain(&error).to_string())?;
        Ok::<_, String>(people.named(&name).cloned())
    });
    match taking.await {
        Ok(Ok(person)) => person,
        Ok(Err(reason)) => {
            tracing::error!(reason, "a sign-in link cannot be used");
            None
        }
        Err(error) => {
            tracing::error!(%error, "a sign-in link cannot be used");
            None
        }
    }
}

/// Begins a session, once the log-in is recorded.
async fn begin(site: &Arc<Site>, person: Person, from: &str, (next, how): (Option<&str>, &str)) -> Response {
    if let Err(refused) = access::note(site, (&person.name, person.role), from, how).await {
        return refused;
    }
    let tokens = (Token::new(random()), Token::new(random()));
    site.sessions().begin(clock::mono(), person, (&tokens.0, &tokens.1));
    let mut response = Redirect::to(destination(next)).into_response();
    for cookie in [set_cookie(site, SESSION, tokens.0.text()), set_cookie(site, FORM, "")] {
        response.headers_mut().append(header::SET_COOKIE, cookie);
    }
    response
}

/// Handles a log-out.
pub(crate) async fn leave(
    State(site): State<Arc<Site>>,
    Extension(visitor): Extension<Visitor>,
    Form(Sent { form }): Form<Sent>,
) -> Response {
    if !same(&form, &visitor.form) {
        return Redirect::to("/").into_response();
    }
    site.sessions().end(&visitor.token);
    let mut response = Redirect::to("/login").into_response();
    let ended = set_cookie(&site, SESSION, "");
    response.headers_mut().append(header::SET_COOKIE, ended);
    response
}

/// Source address of a log-in.
#[derive(Clone, Debug)]
pub(crate) struct CameFrom(pub(crate) String);

/// Middleware that determines the source address of a log-in.
pub(crate) async fn locate(
    State(site): State<Arc<Site>>,
    mut request: Request,
    next: axum::middleware::Next,
) -> Response {
    let from = CameFrom(access::address(&site, &request));
    request.extensions_mut().insert(from);
    next.run(request).await
}

/// The person with this name and password.
async fn compare(site: &Arc<Site>, name: &str, password: String) -> Result<Option<Person>, PasswordError> {
    let (path, name) = (site.people.clone(), name.to_owned());
    let reading = tokio::task::spawn_blocking(move || {
        let people = People::read(&path).map_err(|error| {
            let reason = Chain(&error).to_string();
            tracing::error!(reason, "log-ins are refused");
        });
        people.unwrap_or_default().named(&name).cloned()
    });
    let person = reading.await.map_err(|_| PasswordError::BrokenOff)?;
    // An unknown name takes as long, so that response times do not reveal names.
    let hash = hash_of(person.as_ref()).to_owned();
    let fits = site.passwords.fits(password, hash).await?;
    Ok(person.filter(|_| fits))
}

fn form(site: &Site, status: StatusCode, (next, name): (Option<&str>, &str), said: Option<&str>) -> Response {
    let token = Token::new(random());
    let body = entrance::form(token.text(), destination(next), name, said);
    let mut response = Page::new("Log in", None).show(status, &body);
    let kept = set_cookie(site, FORM, token.text());
    response.headers_mut().append(header::SET_COOKIE, kept);
    response
}

/// A path on this console, whatever the request says.
fn destination(next: Option<&str>) -> &str {
    let is_here = |next: &&str| {
        let is_plain = next.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\');
        is_plain && next.starts_with('/') && !next.starts_with("//")
    };
    next.filter(is_here).unwrap_or("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_in_redirects_only_within_the_console() {
        assert_eq!(destination(Some("/trade/5/1?page=2")), "/trade/5/1?page=2");
        for elsewhere in [
            "//evil.example",
            "https://evil.example",
            "/\\evil.example",
            "",
            "x",
            "/a\r\nb",
        ] {
            assert_eq!(destination(Some(elsewhere)), "/", "{elsewhere:?}");
        }
        assert_eq!(destination(None), "/");
    }
}
