//! Probes and metrics of a process over HTTP, on an address of its own, for orchestrators and Prometheus.
//!
//! | path | answer |
//! |---|---|
//! | `/livez` | 200 while the process runs |
//! | `/readyz` | 200 if it is ready, else 503 with what it waits for |
//! | `/metrics` | its metrics, in the text format of OpenMetrics |
//!
//! It answers from the start of the process on, before a bus is reached: a process that waits is alive.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
};
use thiserror::Error;
use tokio::{net::TcpListener, sync::watch, task::JoinHandle};

use crate::{
    config::{Realm, Service},
    health::{Health, Readiness},
    http::{self, Limits},
    telemetry::exposition::{self, Exposition},
};

/// Limits of the server: a few monitors, and none that holds a connection for long, or probes would not be answered.
const LIMITS: Limits = Limits {
    connections: 32,
    lifetime: Duration::from_secs(15),
};

/// The address cannot be listened on.
#[derive(Debug, Error)]
#[error("cannot listen on {address} for probes and metrics; choose another address with --http")]
pub struct ListenError {
    address: SocketAddr,
    source: io::Error,
}

/// A server of probes and metrics. It ends when this is dropped.
#[derive(Debug)]
pub struct Monitoring {
    /// Its address.
    pub address: SocketAddr,
    task: JoinHandle<()>,
}

impl Monitoring {
    /// Listens on `address`, and reports `health` of a process of `service`.
    ///
    /// # Errors
    /// When the address cannot be listened on.
    pub async fn start(
        address: SocketAddr,
        (realm, service): (&Realm, Service),
        health: Health,
    ) -> Result<Self, ListenError> {
        let failed = |source| ListenError { address, source };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        tracing::info!(%address, "serving probes and metrics");
        let exposition = Arc::new(Exposition::new(realm, service, health.clone()));
        let answer = move |request: Request<Incoming>, _| {
            let answered = answer(request.method(), request.uri().path(), &health, &exposition);
            std::future::ready(answered)
        };
        let task = tokio::spawn(async move {
            // Nothing stops it but the end of the task.
            let (_keep, stop) = watch::channel(false);
            if let Err(error) = http::serve(listener, LIMITS, answer, stop).await {
                tracing::error!(%error, "probes and metrics are no longer served");
            }
        });
        Ok(Self { address, task })
    }
}

impl Drop for Monitoring {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn answer(method: &Method, path: &str, health: &Health, exposition: &Exposition) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    if !matches!(*method, Method::GET | Method::HEAD) {
        let mut response = response(StatusCode::METHOD_NOT_ALLOWED, TEXT, "only GET and HEAD\n".to_owned());
        response
            .headers_mut()
            .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    match path {
        "/livez" => response(StatusCode::OK, TEXT, "alive\n".to_owned()),
        "/readyz" => {
            let readiness = health.readiness.borrow().clone();
            let status = match readiness {
                Readiness::Ready => StatusCode::OK,
                _ => StatusCode::SERVICE_UNAVAILABLE,
            };
            response(status, TEXT, format!("{readiness}\n"))
        }
        "/metrics" => response(StatusCode::OK, exposition::CONTENT_TYPE, exposition.text()),
        _ => {
            let paths = "there are /livez, /readyz and /metrics\n".to_owned();
            response(StatusCode::NOT_FOUND, TEXT, paths)
        }
    }
}

fn response(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}
