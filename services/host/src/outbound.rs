//! Outbound calls: performs calls of behaviour to services outside the realm, over HTTP or NATS.
//!
//! A core repeats a call until it is answered, so an attempt that fails is simply forgotten here, and so is a call that
//! comes while too many are under way. Each attempt of a call has the same idempotency key, in all processes.

mod file;

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use annals_db::accounts;
use annals_event::{CallError, Outcome};
use annals_ids::{Address, CallNumber};
use annals_node::outbound::{MAX_OUTBOUND_BYTES, OutboundAnswer, OutboundCall, answered};
use annals_store::{Store, StoreError};
use async_nats::{HeaderMap, Request};
use reqwest::{StatusCode, header, redirect::Policy};
use sha2::{Digest as _, Sha256};
use thiserror::Error;
use tokio::sync::{OnceCell, Semaphore};

pub use file::{FileError, HttpTarget, Target};

use crate::{
    nats::Bus,
    process::{Process, random},
    telemetry::Chain,
};

/// Maximum calls of a process that are under way.
const AT_ONCE: usize = 64;

/// Minimum time between two warnings about a service.
const WARNED_EVERY: Duration = Duration::from_secs(10);

/// The header with a call's key, over HTTP and NATS. The key is the same in each attempt.
pub const KEY_HEADER: &str = "Idempotency-Key";

/// The services outside the realm, and the calls under way. By default there are no services.
pub struct Outbound {
    services: BTreeMap<String, Target>,
    /// `None` if there are no services.
    http: Option<reqwest::Client>,
    under_way: Mutex<BTreeSet<(Address, CallNumber)>>,
    room: Semaphore,
    warned: Mutex<BTreeMap<String, Instant>>,
    /// The realm's name and secret, once read.
    realm: OnceCell<Vec<u8>>,
}

/// Why no outbound calls can be made.
#[derive(Debug, Error)]
pub enum OutboundError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the HTTP client for outbound calls cannot be created")]
    Client(#[from] reqwest::Error),
}

/// Why an attempt has failed. The call is tried again.
#[derive(Debug, Error)]
enum Failed {
    #[error("the service cannot be reached, or does not answer in time")]
    Http(#[source] reqwest::Error),
    #[error("the service answers with status {0}: it is to be tried again")]
    Status(StatusCode),
    #[error("no answer on the realm's nats-servers")]
    Nats(#[from] async_nats::RequestError),
    #[error("the realm's secret cannot be read")]
    Store(#[from] StoreError),
    #[error("the file {path} with the authorization cannot be used: {why}")]
    Authorization { path: String, why: String },
}

impl From<reqwest::Error> for Failed {
    /// A URL may have a secret in it.
    fn from(error: reqwest::Error) -> Self {
        Self::Http(error.without_url())
    }
}

impl Default for Outbound {
    fn default() -> Self {
        Self::new(BTreeMap::new(), None)
    }
}

impl Outbound {
    fn new(services: BTreeMap<String, Target>, http: Option<reqwest::Client>) -> Self {
        Self {
            services,
            http,
            under_way: Mutex::default(),
            room: Semaphore::new(AT_ONCE),
            warned: Mutex::default(),
            realm: OnceCell::new(),
        }
    }

    /// Reads the file of services; without one there are none.
    ///
    /// # Errors
    /// When the file has errors, all of which are named.
    pub fn open(file: Option<&Path>) -> Result<Self, OutboundError> {
        let Some(file) = file else {
            return Ok(Self::default());
        };
        let services = file::read(file)?;
        // One is installed already if this fails, which serves as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        // A redirect would take a call, and its authorization, to a place that nobody has configured.
        let http = reqwest::Client::builder().redirect(Policy::none()).build()?;
        Ok(Self::new(services, Some(http)))
    }

    /// Performs a call. `None` if it is under way already or cannot be made now: it comes again.
    pub async fn perform(&self, process: &Process, call: OutboundCall) -> Option<OutboundAnswer> {
        let OutboundCall { from, number, .. } = call;
        let _permit = self.room.try_acquire().ok()?;
        if !self.lock().insert((from, number)) {
            return None;
        }
        let place = (process.realm.as_str(), &process.store, &process.bus);
        let attempted = self.attempt(place, &call).await;
        self.lock().remove(&(from, number));
        match attempted {
            Ok(outcome) => Some(OutboundAnswer { from, number, outcome }),
            Err(failed) => {
                self.warn(&call, &failed);
                None
            }
        }
    }

    async fn attempt(&self, place: (&str, &Store, &Bus), call: &OutboundCall) -> Result<Outcome, Failed> {
        let (name, store, bus) = place;
        let Some(target) = self.services.get(&call.service) else {
            let service = &call.service;
            return Ok(Err(CallError::Internal(format!(
                "there is no service {service}: add it to the file of the setting outbound"
            ))));
        };
        let realm = self.realm.get_or_try_init(|| identity(name, store)).await?;
        let key = key(realm, call);
        match (target, &self.http) {
            (Target::Http(target), Some(http)) => over_http(http, target, call, &key).await,
            (Target::Http(_), None) => Ok(Err(CallError::Internal("there is no HTTP client".to_owned()))),
            (Target::Nats { subject, attempt }, _) => {
                let mut headers = HeaderMap::new();
                headers.insert(KEY_HEADER, key.as_str());
                let request = Request::new().payload(call.body.clone().into()).headers(headers);
                let request = request.timeout(Some(*attempt));
                let answer = bus.client().send_request(subject.clone(), request).await?;
                let status = service_status(answer.headers.as_ref());
                if is_temporary(status) {
                    return Err(Failed::Status(status));
                }
                Ok(limited(status, answer.payload.to_vec()))
            }
        }
    }

    fn warn(&self, call: &OutboundCall, failed: &Failed) {
        let (service, from) = (&call.service, call.from);
        let mut warned = self.warned.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let is_due = warned
            .get(service)
            .is_none_or(|last| now.duration_since(*last) >= WARNED_EVERY);
        if is_due {
            warned.insert(service.clone(), now);
            tracing::warn!(%service, %from, error = %Chain(failed), "an outbound call failed and is repeated");
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<(Address, CallNumber)>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An attempt over HTTP.
async fn over_http(
    http: &reqwest::Client,
    target: &HttpTarget,
    call: &OutboundCall,
    key: &str,
) -> Result<Outcome, Failed> {
    let request = http.post(target.url.clone()).timeout(target.attempt);
    let mut request = request
        .header(KEY_HEADER, key)
        .header(header::CONTENT_TYPE, &target.content_type)
        .body(call.body.clone());
    if let Some(path) = &target.authorization {
        // Read each time: secrets are replaced while the process runs.
        let failed = |why: String| Failed::Authorization {
            path: path.display().to_string(),
            why,
        };
        let secret = tokio::fs::read_to_string(path).await;
        let secret = secret.map_err(|error| failed(error.to_string()))?;
        let mut value = header::HeaderValue::from_str(secret.trim())
            .map_err(|_| failed("it has characters that a header cannot have".to_owned()))?;
        value.set_sensitive(true);
        request = request.header(header::AUTHORIZATION, value);
    }
    let mut response = request.send().await?;
    let status = response.status();
    if is_temporary(status) {
        return Err(Failed::Status(status));
    }
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        body.extend_from_slice(&chunk);
        if body.len() > MAX_OUTBOUND_BYTES {
            break;
        }
    }
    Ok(limited(status, body))
}

/// Whether a service is expected to answer otherwise if it is asked again.
fn is_temporary(status: StatusCode) -> bool {
    status.is_server_error()
        || [
            StatusCode::REQUEST_TIMEOUT,
            StatusCode::TOO_EARLY,
            StatusCode::TOO_MANY_REQUESTS,
        ]
        .contains(&status)
}

fn limited(status: StatusCode, body: Vec<u8>) -> Outcome {
    if body.len() > MAX_OUTBOUND_BYTES {
        return Err(CallError::Internal(format!(
            "the service's answer, with status {status}, has more than {MAX_OUTBOUND_BYTES} bytes"
        )));
    }
    answered(status.as_u16(), body)
}

/// Status of an answer over NATS: the error code of a service that reports one.
fn service_status(headers: Option<&HeaderMap>) -> StatusCode {
    let code = headers.and_then(|headers| headers.get("Nats-Service-Error-Code"));
    let code = code.map(|code| {
        code.as_str()
            .parse()
            .ok()
            .and_then(|code| StatusCode::from_u16(code).ok())
    });
    code.map_or(StatusCode::OK, |code| code.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR))
}

/// What distinguishes the realm from others of its name, such as one that was there before: the random key of its account
/// names, which a realm has for ever.
async fn identity(name: &str, store: &Store) -> Result<Vec<u8>, StoreError> {
    let secret = accounts::name_key(store, random()).await?;
    Ok([name.as_bytes(), &secret].concat())
}

/// The key of a call: of the realm, the part, the call's number, and what is asked.
fn key(realm: &[u8], call: &OutboundCall) -> String {
    let mut hash = Sha256::new();
    let (from, number) = (call.from.to_string(), call.number.0.to_le_bytes());
    for part in [realm, from.as_bytes(), &number, call.service.as_bytes(), &call.body] {
        hash.update((part.len() as u64).to_le_bytes());
        hash.update(part);
    }
    let digest: [u8; 32] = hash.finalize().into();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use annals_ids::{EntityId, Hash, WallTime};
    use annals_store::{Transaction, embedded::EmbeddedStore, layout::director};

    use super::*;

    /// A stop in order and a start move the beginning of game time.
    async fn begin(store: &Store, began: u64) {
        let realm = director::Realm {
            began: WallTime(began),
            schema: Hash::ZERO,
        };
        let value = realm.encode();
        let write = |transaction: Transaction| {
            let value = value.clone();
            async move { transaction.set(&director::realm_key(), &value) }
        };
        let written: Result<_, StoreError> = store.run_repeatable(write).await;
        written.expect("the store works");
    }

    #[tokio::test]
    async fn a_realm_keeps_its_identity_when_it_is_started_again() {
        let folders = [(); 2].map(|()| tempfile::tempdir().expect("a folder"));
        let open = |folder: &tempfile::TempDir| EmbeddedStore::open(folder.path()).expect("it opens");
        let opened = open(&folders[0]);
        begin(&opened.store(), 1).await;
        let first = identity("annals", &opened.store()).await.expect("the store works");
        begin(&opened.store(), 2).await;
        drop(opened);
        let (again, other) = (open(&folders[0]), open(&folders[1]));
        assert_eq!(
            identity("annals", &again.store()).await.expect("the store works"),
            first
        );
        assert_ne!(
            identity("annals", &other.store()).await.expect("the store works"),
            first
        );
    }

    fn call() -> OutboundCall {
        OutboundCall {
            from: Address::Base(EntityId(7)),
            number: CallNumber(3),
            service: "shop".to_owned(),
            body: b"one".to_vec(),
        }
    }

    #[test]
    fn a_call_has_the_same_key_each_time_and_another_call_another() {
        assert_eq!(key(b"annals/1", &call()), key(b"annals/1", &call()));
        let others = [
            OutboundCall {
                from: Address::Cell(EntityId(7)),
                ..call()
            },
            OutboundCall {
                number: CallNumber(4),
                ..call()
            },
            OutboundCall {
                service: "shops".to_owned(),
                body: b"ne".to_vec(),
                ..call()
            },
            OutboundCall {
                body: b"two".to_vec(),
                ..call()
            },
        ];
        let mut keys: BTreeSet<String> = others.iter().map(|call| key(b"annals/1", call)).collect();
        keys.insert(key(b"annals/1", &call()));
        keys.insert(key(b"annals/2", &call()));
        assert_eq!(keys.len(), 6);
    }
}
