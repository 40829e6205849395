//! Serving of the pages, with limits on each connection and address.

use std::{io, net::SocketAddr, time::Duration};

use annals_host::http::{self, Limits};
use axum::{Router, body::Body};
use hyper::{Request, Response, StatusCode, body::Incoming};
use tokio::{net::TcpListener, sync::watch};

use crate::access::Peer;

/// Limits of the server: a browser opens six connections, and a bundle of 64 MiB takes 600 s at 1 Mbit/s.
const LIMITS: Limits = Limits {
    connections: 256,
    lifetime: Duration::from_secs(600),
};

/// Maximum bytes of an address: longer ones are rejected before any other processing.
pub const TARGET_BYTES: usize = 2 << 10;

/// Serves pages on a bound listener, until `stop` is set.
///
/// # Errors
/// If connections can no longer be accepted.
pub async fn serve(listener: TcpListener, site: Router, stop: watch::Receiver<bool>) -> io::Result<()> {
    let answer = move |request, peer| answer(request, peer, site.clone());
    http::serve(listener, LIMITS, answer, stop).await
}

async fn answer(request: Request<Incoming>, peer: SocketAddr, mut site: Router) -> Response<Body> {
    use tower_service::Service as _;
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > TARGET_BYTES {
        let mut response = Response::new(Body::from("This address is too long.\n"));
        *response.status_mut() = StatusCode::URI_TOO_LONG;
        return response;
    }
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Peer(peer));
    match site.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
