//! Passes the page's WebSockets on to the realm.
//!
//! A browser does not trust the realm's development certificate, and a page cannot make it. So the page connects without
//! TLS to the server that it came from, on this machine, and this server connects with TLS to the realm's process. It
//! trusts exactly the realm's certificate: a port at which another program listens is not reached.

use std::{io, net::SocketAddr, sync::Arc, time::Duration};

use annals_client::Trust;
use annals_ids::Hash;
use axum::{
    body::Body,
    http::{HeaderMap, HeaderName, Request, Response, StatusCode, header},
};
use hyper::{client::conn::http1, upgrade};
use hyper_util::rt::TokioIo;
use thiserror::Error;
use tokio::{io::copy_bidirectional, net::TcpStream, sync::OwnedSemaphorePermit, time::timeout};
use tokio_rustls::{
    TlsConnector,
    rustls::pki_types::{InvalidDnsNameError, ServerName},
};

/// Maximum time for the realm's process to answer.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);

/// The headers of a WebSocket's handshake that are passed on.
const PASSED_ON: [HeaderName; 6] = [
    header::CONNECTION,
    header::UPGRADE,
    header::ORIGIN,
    header::SEC_WEBSOCKET_KEY,
    header::SEC_WEBSOCKET_VERSION,
    header::SEC_WEBSOCKET_PROTOCOL,
];

/// The same of the answer.
const PASSED_BACK: [HeaderName; 4] = [
    header::CONNECTION,
    header::UPGRADE,
    header::SEC_WEBSOCKET_ACCEPT,
    header::SEC_WEBSOCKET_PROTOCOL,
];

/// Why a WebSocket was not passed on.
#[derive(Debug, Error)]
pub(super) enum RelayError {
    #[error("TLS cannot be set up")]
    Tls(#[from] tokio_rustls::rustls::Error),
    #[error("TLS cannot be set up")]
    Name(#[from] InvalidDnsNameError),
    #[error("no process of the realm listens there")]
    Connect(#[from] io::Error),
    #[error("the realm's process does not speak HTTP")]
    Http(#[from] hyper::Error),
    #[error("the realm's process does not answer")]
    Slow,
}

/// Connects to a process of the realm, and passes the handshake on and the answer back. If that accepts the WebSocket,
/// bytes are passed on in both directions until either side closes, as long as `permit` is held.
pub(super) async fn relay(
    request: Request<Body>,
    (to, certificate): (SocketAddr, Hash),
    permit: OwnedSemaphorePermit,
) -> Result<Response<Body>, RelayError> {
    let handshake = timeout(ANSWERS_WITHIN, shake_hands(request.headers(), to, certificate));
    let answer = handshake.await.map_err(|_| RelayError::Slow)??;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = answer.status();
    copy(answer.headers(), response.headers_mut(), &PASSED_BACK);
    if answer.status() == StatusCode::SWITCHING_PROTOCOLS {
        tokio::spawn(async move {
            let _permit = permit;
            let (Ok(page), Ok(realm)) = tokio::join!(upgrade::on(request), upgrade::on(answer)) else {
                return;
            };
            // However it ends, both sides are closed: the client resumes its session.
            let _ = copy_bidirectional(&mut TokioIo::new(page), &mut TokioIo::new(realm)).await;
        });
    }
    Ok(response)
}

async fn shake_hands(
    headers: &HeaderMap,
    to: SocketAddr,
    certificate: Hash,
) -> Result<Response<hyper::body::Incoming>, RelayError> {
    let stream = TcpStream::connect(to).await?;
    stream.set_nodelay(true)?;
    let trust = Trust::Pinned(certificate);
    let (tls, name) = trust.tls()?;
    let name = ServerName::try_from(name)?.to_owned();
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await?;
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    tokio::spawn(connection.with_upgrades());
    let mut asked = Request::new(Body::empty());
    copy(headers, asked.headers_mut(), &PASSED_ON);
    if let Ok(host) = to.to_string().parse() {
        asked.headers_mut().insert(header::HOST, host);
    }
    Ok(sender.send_request(asked).await?)
}

fn copy(from: &HeaderMap, to: &mut HeaderMap, names: &[HeaderName]) {
    for name in names {
        for value in from.get_all(name) {
            to.append(name, value.clone());
        }
    }
}
