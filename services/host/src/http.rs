//! An HTTP server: accepts connections, and enforces limits on each. A connection that a handler upgrades to another
//! protocol is the handler's from then on, and no longer counted or ended here.

use std::{convert::Infallible, error::Error, io, net::SocketAddr, sync::Arc, time::Duration};

use hyper::{
    Request, Response,
    body::{Body, Incoming},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::timeout,
};

use crate::process::stopped;

/// How long a client may take to send the request headers.
const HEADERS_WITHIN: Duration = Duration::from_secs(10);

/// How long open connections may take to end when the server stops.
const ENDS_WITHIN: Duration = Duration::from_secs(5);

/// Maximum bytes of request headers, including the address.
const HEADER_BYTES: usize = 16 << 10;

/// Limits of a server.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Maximum connections. Each takes some kilobytes; further clients wait to be accepted.
    pub connections: usize,
    /// Maximum duration of a connection.
    pub lifetime: Duration,
}

/// Answers requests on a bound listener with `answer`, until `stop` is set.
///
/// # Errors
/// If connections can no longer be accepted.
pub async fn serve<F, A, B>(
    listener: TcpListener,
    limits: Limits,
    answer: F,
    stop: watch::Receiver<bool>,
) -> io::Result<()>
where
    F: Fn(Request<Incoming>, SocketAddr) -> A + Clone + Send + 'static,
    A: Future<Output = Response<B>> + Send + 'static,
    B: Body + Send + 'static,
    B::Data: Send,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let permits = Arc::new(Semaphore::new(limits.connections));
    let (ending, ends) = watch::channel(false);
    let mut connections = JoinSet::new();
    let stop = stopped(stop);
    tokio::pin!(stop);
    loop {
        let accepted = tokio::select! {
            () = &mut stop => break,
            Some(_) = connections.join_next() => continue,
            accepted = accept(&listener, &permits) => accepted?,
        };
        let (stream, peer, permit) = accepted;
        let (answer, ends) = (answer.clone(), ends.clone());
        connections.spawn(async move {
            let _permit = permit;
            if timeout(limits.lifetime, hold(stream, peer, answer, ends))
                .await
                .is_err()
            {
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
    permits: &Arc<Semaphore>,
) -> io::Result<(TcpStream, SocketAddr, ConnectionPermit)> {
    let permit = Arc::clone(permits).acquire_owned().await.map_err(io::Error::other)?;
    loop {
        match listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are written whole. A failure costs time, not the connection.
                let _ = stream.set_nodelay(true);
                return Ok((stream, peer, permit));
            }
            // The client has disconnected, or too many files are open for the moment.
            Err(error) => {
                tracing::debug!(%error, "a connection cannot be accepted");
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    }
}

async fn hold<F, A, B>(stream: TcpStream, peer: SocketAddr, answer: F, mut ends: watch::Receiver<bool>)
where
    F: Fn(Request<Incoming>, SocketAddr) -> A,
    A: Future<Output = Response<B>>,
    B: Body + 'static,
    B::Error: Into<Box<dyn Error + Send + Sync>>,
{
    let service = service_fn(move |request| {
        let answered = answer(request, peer);
        async move { Ok::<_, Infallible>(answered.await) }
    });
    let mut http = http1::Builder::new();
    let http = http
        .timer(TokioTimer::new())
        .header_read_timeout(HEADERS_WITHIN)
        .max_buf_size(HEADER_BYTES);
    let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
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
