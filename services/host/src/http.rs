//! The listener: accepts connections, and enforces limits on each.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use annals_host::process::stopped;
use axum::{Router, body::Body};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};

use crate::access::Peer;

/// Maximum connections. Each takes some kilobytes, and a browser opens six.
const CONNECTIONS: usize = 256;

/// How long a client may take to send the request headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);

/// Maximum duration of a connection: enough for a bundle of 64 MiB at 1 Mbit/s.
const CONNECTION_FOR: Duration = Duration::from_secs(600);

/// How long open connections may take to end when the console stops.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Maximum bytes of request headers, including the address.
const HEADER_BYTES: usize = 16 << 10;

/// Maximum bytes of an address: longer ones are rejected before any other processing.
pub const TARGET_BYTES: usize = 2 << 10;

/// Serves pages on a bound listener, until `stop` is set.
///
/// # Errors
/// If connections can no longer be accepted.
pub async fn serve(listener: TcpListener, site: Router, stop: watch::Receiver<bool>) -> io::Result<()> {
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let (ending, ends) = watch::channel(false);
    let mut connections = JoinSet::new();
    let stop = stopped(stop);
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &places) => accepted?,
        };
        let (stream, peer, place) = accepted;
        let (site, ends) = (site.clone(), ends.clone());
        connections.spawn(async move {
            let _place = place;
            if timeout(CONNECTION_FOR, hold(stream, peer, site, ends)).await.is_err() {
                tracing::debug!(%peer, "connection closed: maximum lifetime reached");
            }
        });
    }
    ending.send_replace(true);
    let ended = timeout(ENDS_WITHIN, async { while connections.join_next().await.is_some() {} });
    if ended.await.is_err() {
        tracing::warn!("some connections were closed by force");
    }
    Ok(())
}

type ConnectionPermit = tokio::sync::OwnedSemaphorePermit;

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, ConnectionPermit)> {
    let place = Arc::clone(places).acquire_owned().await.map_err(io::Error::other)?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => return Ok((stream, peer, place)),
            // The client has disconnected, or too many files are open for the moment.
            Err(error) => {
                tracing::debug!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn hold(stream: TcpStream, peer: SocketAddr, site: Router, mut ends: watch::Receiver<bool>) {
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let site = site.clone();
        async move { Ok::<_, std::convert::Infallible>(answer(request, peer, site).await) }
    });
    let mut http = http1::Builder::new();
    let http = http
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEADER_BYTES);
    let connection = http.serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let held = tokio::select! {
        held = connection.as_mut() => Some(held),
        () = async { drop(ends.wait_for(|ends| *ends).await) } => None,
    };
    let held = match held {
        Some(held) => held,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = held {
        tracing::debug!(%peer, %error, "a connection ended");
    }
}

async fn answer(request: hyper::Request<Incoming>, peer: SocketAddr, site: Router) -> hyper::Response<Body> {
    use tower_service::Service as _;
    let target = request.uri().path_and_query().map_or(0, |target| target.as_str().len());
    if target > TARGET_BYTES {
        let mut response = hyper::Response::new(Body::from("This address is too long.\n"));
        *response.status_mut() = hyper::StatusCode::URI_TOO_LONG;
        return response;
    }
    let mut request = request.map(Body::new);
    request.extensions_mut().insert(Peer(peer));
    let mut site = site;
    match site.call(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
