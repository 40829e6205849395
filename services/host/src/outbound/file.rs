//! The file of services outside the realm.
//!
//! ```toml
//! [payments]                                # the name that behaviour uses
//! url = "https://pay.example.org/annals"    # each call is a POST to it
//! content_type = "application/json"         # default: application/octet-stream
//! authorization = "/etc/annals/payments"    # a file with the value of the header Authorization; default: none
//! attempt_seconds = 5                       # time for an attempt; default: 10
//!
//! [scores]
//! subject = "scores.reached"                # or a request on the realm's nats-servers
//! ```

use std::{
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    time::Duration,
};

use annals_node::outbound::MAX_SERVICE_NAME;
use reqwest::{Url, header::HeaderValue};
use serde::Deserialize;
use thiserror::Error;

/// Default and maximum of `attempt_seconds`.
const ATTEMPT_SECONDS: u64 = 10;
const MAX_ATTEMPT_SECONDS: u64 = 300;

/// How a service is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// By a POST.
    Http(HttpTarget),
    /// By a request on the realm's nats-servers.
    Nats {
        subject: String,
        /// Timeout of an attempt.
        attempt: Duration,
    },
}

/// How a service is reached over HTTP.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpTarget {
    pub url: Url,
    pub content_type: String,
    /// File with the value of the header `Authorization`.
    pub authorization: Option<PathBuf>,
    /// Timeout of an attempt.
    pub attempt: Duration,
}

/// What is wrong with the file.
#[derive(Debug, Error)]
pub enum FileError {
    #[error("{} with the services of outbound calls cannot be read", path.display())]
    Unreadable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{} with the services of outbound calls is invalid: {problem}", path.display())]
    Invalid { path: PathBuf, problem: String },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    url: Option<String>,
    subject: Option<String>,
    content_type: Option<String>,
    authorization: Option<PathBuf>,
    attempt_seconds: Option<u64>,
}

/// Reads the services of a file.
///
/// # Errors
/// When it cannot be read, or has errors: all of them are named.
pub(super) fn read(path: &Path) -> Result<BTreeMap<String, Target>, FileError> {
    let text = fs::read_to_string(path).map_err(|source| FileError::Unreadable {
        path: path.to_owned(),
        source,
    })?;
    parse(&text).map_err(|problem| FileError::Invalid {
        path: path.to_owned(),
        problem,
    })
}

fn parse(text: &str) -> Result<BTreeMap<String, Target>, String> {
    let entries: BTreeMap<String, Entry> = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut services = BTreeMap::new();
    let mut problems = Vec::new();
    for (name, entry) in entries {
        match target(&name, entry) {
            Ok(target) => drop(services.insert(name, target)),
            Err(problem) => problems.push(format!("{name}: {problem}")),
        }
    }
    match problems.is_empty() {
        true => Ok(services),
        false => Err(problems.join("; ")),
    }
}

fn target(name: &str, entry: Entry) -> Result<Target, String> {
    if name.is_empty() || name.len() > MAX_SERVICE_NAME {
        return Err(format!("a name has 1 to {MAX_SERVICE_NAME} bytes"));
    }
    let seconds = entry.attempt_seconds.unwrap_or(ATTEMPT_SECONDS);
    if !(1..=MAX_ATTEMPT_SECONDS).contains(&seconds) {
        return Err(format!("attempt_seconds must be from 1 to {MAX_ATTEMPT_SECONDS}"));
    }
    let attempt = Duration::from_secs(seconds);
    match (entry.url, entry.subject) {
        (Some(url), None) => {
            let url = Url::parse(&url).map_err(|error| format!("url {url:?}: {error}"))?;
            if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
                return Err(format!("url {:?} must begin with https:// or http://", url.as_str()));
            }
            let content_type = entry.content_type.unwrap_or("application/octet-stream".to_owned());
            HeaderValue::from_str(&content_type)
                .map_err(|_| format!("content_type {content_type:?} has characters that a header cannot have"))?;
            Ok(Target::Http(HttpTarget {
                url,
                content_type,
                authorization: entry.authorization,
                attempt,
            }))
        }
        (None, Some(_)) if entry.content_type.is_some() || entry.authorization.is_some() => {
            Err("content_type and authorization are for a url".to_owned())
        }
        (None, Some(subject)) => {
            let is_subject = |token: &str| !token.is_empty() && !token.contains(['*', '>', ' ', '\t', '\r', '\n']);
            match subject.split('.').all(is_subject) {
                true => Ok(Target::Nats { subject, attempt }),
                false => Err(format!(
                    "subject {subject:?} must be words separated by dots, without wildcards"
                )),
            }
        }
        _ => Err("give it either a url or a subject".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_are_read() {
        let text = r#"
            [payments]
            url = "https://pay.example.org/annals"
            content_type = "application/json"
            authorization = "/etc/annals/payments"
            attempt_seconds = 5
            [scores]
            subject = "scores.reached"
        "#;
        let services = parse(text).expect("it is valid");
        let payments = Target::Http(HttpTarget {
            url: Url::parse("https://pay.example.org/annals").expect("a URL"),
            content_type: "application/json".to_owned(),
            authorization: Some("/etc/annals/payments".into()),
            attempt: Duration::from_secs(5),
        });
        let scores = Target::Nats {
            subject: "scores.reached".to_owned(),
            attempt: Duration::from_secs(10),
        };
        assert_eq!(
            services.into_iter().collect::<Vec<_>>(),
            [("payments".to_owned(), payments), ("scores".to_owned(), scores)]
        );
    }

    #[test]
    fn all_errors_are_named() {
        let text = r#"
            [a]
            url = "ftp://example.org"
            [b]
            subject = "scores.*"
            [c]
            url = "https://example.org"
            subject = "scores"
            [d]
            attempt_seconds = 0
            subject = "scores"
            [e]
            subject = "scores"
            authorization = "file"
        "#;
        let problem = parse(text).expect_err("all are wrong");
        for part in [
            "a: url \"ftp://example.org/\" must begin with https://",
            "b: subject \"scores.*\" must be words",
            "c: give it either a url or a subject",
            "d: attempt_seconds must be from 1 to 300",
            "e: content_type and authorization are for a url",
        ] {
            assert!(problem.contains(part), "{problem}");
        }
        let problem = parse("[a]\nurl = \"https://example.org\"\nmethod = \"PUT\"").expect_err("there is no such key");
        assert!(problem.contains("method"), "{problem}");
    }
}
