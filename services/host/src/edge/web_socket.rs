//! Connections by WebSocket over TLS, for clients whose platform or network has no QUIC.
//!
//! The subprotocol is what the ALPN is for QUIC, with a dot for the slash, which it must not have. Each message is binary:
//!
//! ```text
//! message = 0:u8 body     ; a frame's body, without its length
//!         | 1:u8 bytes    ; a datagram
//!         | 2:u8          ; an echo request, which the server answers with the same message
//! ```
//! A close has the code 4000 plus that of a [`CloseReason`].

use std::{net::SocketAddr, sync::Arc, time::Duration};

use annals_wire::client::{CloseReason, MAX_UPSTREAM_FRAME, WebSocketMessage};
use bytes::Bytes;
use futures::{
    SinkExt, StreamExt,
    stream::{self, SplitSink, SplitStream},
};
use tokio::{
    io::AsyncReadExt,
    net::TcpStream,
    sync::mpsc,
    time::{Instant, interval, sleep_until, timeout},
};
use tokio_rustls::{TlsAcceptor, server::TlsStream};
use tokio_tungstenite::{
    WebSocketStream, accept_hdr_async_with_config,
    tungstenite::{
        Error, Message,
        error::ProtocolError,
        handshake::server::{ErrorResponse, Request, Response},
        http::{HeaderMap, HeaderValue, StatusCode, header::ORIGIN},
        protocol::{CloseFrame, WebSocketConfig},
    },
};

use super::{
    Arrival, Serves,
    accepting::Place,
    connection::{FIRST_FRAME_WITHIN, Intake, LAST_READ_WITHIN, READ_SIZE, Shared, note, send_event},
    origins::OriginCheck,
    registry::{Batch, Link, Orders, WriteCommand, count},
};

use crate::violations::Violation;

/// Code of a close with the reason 0.
const FIRST_CLOSE_CODE: u16 = 4_000;

/// Interval of pings, which a client's platform answers by itself.
const PING_EVERY: Duration = Duration::from_secs(10);

/// A connection on which nothing arrived for this long is lost.
const LOST_AFTER: Duration = Duration::from_secs(30);

/// Maximum datagrams that wait to be written; further ones are dropped.
const WAITING_DATAGRAMS: usize = 16;

/// The header that names the subprotocol.
const SUBPROTOCOL: &str = "sec-websocket-protocol";

type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// What accepts connections.
#[derive(Clone)]
pub(super) struct Acceptor {
    tls: TlsAcceptor,
    origins: OriginCheck,
}

impl Acceptor {
    pub(super) fn new(tls: rustls::ServerConfig, origins: OriginCheck) -> Self {
        Self {
            tls: TlsAcceptor::from(Arc::new(tls)),
            origins,
        }
    }

    /// Completes the handshakes of TLS and WebSocket.
    #[allow(clippy::result_large_err, reason = "the library's signature")]
    pub(super) async fn shake_hands(&self, stream: TcpStream, serves: Serves) -> Result<Socket, Violation> {
        // Frames are small, and are written when they are due.
        let stream = match stream.set_nodelay(true) {
            Ok(()) => self.tls.accept(stream).await,
            Err(error) => Err(error),
        };
        let stream = stream.map_err(|_| Violation::FailedHandshake)?;
        let mut violation = Violation::FailedHandshake;
        let check = |request: &Request, response| {
            let is_admitted = self.admits(request);
            if !is_admitted {
                violation = Violation::ForeignOrigin;
            }
            check(request, response, (is_admitted, serves))
        };
        let socket = accept_hdr_async_with_config(stream, check, Some(limits())).await;
        socket.map_err(|error| {
            tracing::debug!(%error, "no WebSocket");
            violation
        })
    }

    fn admits(&self, request: &Request) -> bool {
        let origin = request.headers().get(ORIGIN).map(HeaderValue::as_bytes);
        self.origins.admits(origin)
    }
}

/// Answers a request from an origin that is admitted or not, after checking the subprotocol.
#[allow(clippy::result_large_err, reason = "the library's signature")]
fn check(
    request: &Request,
    mut response: Response,
    (is_admitted, serves): (bool, Serves),
) -> Result<Response, ErrorResponse> {
    if !is_admitted {
        return Err(refusal(
            StatusCode::FORBIDDEN,
            "pages of this origin may not connect; add it to the setting web_origins",
        ));
    }
    let served = HeaderValue::from_static(match serves {
        Serves::Login => "annals-login.1",
        Serves::Play => "annals-play.1",
    });
    if !offers(request.headers(), &served) {
        return Err(refusal(
            StatusCode::BAD_REQUEST,
            "the WebSocket offers no subprotocol that is served here",
        ));
    }
    response.headers_mut().insert(SUBPROTOCOL, served);
    Ok(response)
}

/// Whether a subprotocol is among those that a request offers.
fn offers(headers: &HeaderMap, wanted: &HeaderValue) -> bool {
    let offered = headers
        .get_all(SUBPROTOCOL)
        .iter()
        .filter_map(|value| value.to_str().ok());
    offered
        .flat_map(|value| value.split(','))
        .any(|name| name.trim().as_bytes() == wanted.as_bytes())
}

fn refusal(status: StatusCode, why: &str) -> ErrorResponse {
    let mut response = ErrorResponse::new(Some(format!("{why}\n")));
    *response.status_mut() = status;
    response
}

fn limits() -> WebSocketConfig {
    let most = MAX_UPSTREAM_FRAME + 1;
    WebSocketConfig::default()
        .max_message_size(Some(most))
        .max_frame_size(Some(most))
        .read_buffer_size(READ_SIZE)
        .write_buffer_size(0)
}

/// Serves a connection until it ends. Its first event is `Opened`, its last `Closed`.
pub(super) async fn serve(socket: Socket, from: SocketAddr, newcomer: Place, shared: Shared) {
    let (datagrams, waiting) = mpsc::channel(WAITING_DATAGRAMS);
    let (id, orders) = shared.registry.open(from.ip().into(), Link::WebSocket(datagrams));
    let verdict = orders.verdict();
    if send_event(&shared, id, Arrival::Opened { from }).await.is_err() {
        return shared.registry.remove(id);
    }
    let closed = orders.closed();
    let (mut sink, mut stream) = socket.split();
    let (echoes, asked) = mpsc::channel(1);
    let end = tokio::select! {
        reason = write(&mut sink, (orders, waiting, asked), &shared) => End::Here(reason),
        end = read(&mut stream, Intake::new(id, newcomer, &shared), &echoes) => end,
        () = closed => End::Here(CloseReason::Lost),
    };
    shared.registry.remove(id);
    let (End::Here(reason) | End::Unreadable(reason) | End::There(reason)) = end;
    let reason = verdict().unwrap_or(reason);
    note(&shared.registry, (id, from), reason);
    // A client that does not read is not waited for.
    let _ = timeout(LAST_READ_WITHIN, close(sink, stream, (end, reason))).await;
    // Without a receiver the process is shutting down.
    let _ = send_event(&shared, id, Arrival::Closed(reason)).await;
}

/// Which side ends a connection, and why.
#[derive(Clone, Copy, Debug)]
enum End {
    Here(CloseReason),
    /// The same, because of bytes after which no message can be read.
    Unreadable(CloseReason),
    There(CloseReason),
}

/// Sends the reason, and waits until the client has closed in turn: a reset could overtake it. If the client has closed,
/// answers that.
async fn close(
    mut sink: SplitSink<Socket, Message>,
    mut stream: SplitStream<Socket>,
    (end, reason): (End, CloseReason),
) {
    let sent = match end {
        End::There(_) => sink.flush().await,
        End::Here(_) | End::Unreadable(_) => sink.send(close_message(reason)).await,
    };
    match (sent, end) {
        (Ok(()), End::Here(_)) => while let Some(Ok(_)) = stream.next().await {},
        (Ok(()), End::Unreadable(_)) => {
            let Ok(socket) = sink.reunite(stream) else { return };
            let mut bytes = vec![0; READ_SIZE];
            let mut socket = socket.into_inner();
            while let Ok(1..) = socket.read(&mut bytes).await {}
        }
        _ => {}
    }
}

/// What is to be written: frames, datagrams, and answers to echo requests.
type Outgoing = (Orders, mpsc::Receiver<Vec<u8>>, mpsc::Receiver<()>);

/// Writes what is due until the connection is to be closed; returns the reason.
async fn write(
    sink: &mut SplitSink<Socket, Message>,
    (mut orders, mut datagrams, mut echoes): Outgoing,
    shared: &Shared,
) -> CloseReason {
    let mut ping = interval(PING_EVERY);
    let mut background = orders.take_background();
    loop {
        let (messages, queued) = tokio::select! {
            // What is written in the background waits for everything else.
            biased;
            order = orders.next() => match order {
                Some(WriteCommand::Write(batch)) => (messages_of(&batch), batch.bytes()),
                Some(WriteCommand::Close(reason)) => return reason,
                // The registry has removed the connection after closing it.
                None => return CloseReason::Lost,
            },
            Some(datagram) = datagrams.recv() => (vec![message(WebSocketMessage::Datagram(&datagram))], 0),
            Some(()) = echoes.recv() => (vec![message(WebSocketMessage::Echo)], 0),
            _ = ping.tick() => (vec![Message::Ping(Bytes::new())], 0),
            Some(body) = background.recv() => {
                count(&shared.registry.counts.bytes_out, body.len() as u64);
                (vec![message(WebSocketMessage::Frame(&body))], 0)
            }
        };
        let mut messages = stream::iter(messages.into_iter().map(Ok));
        if sink.send_all(&mut messages).await.is_err() {
            // The reader ends the connection, after what arrived before.
            return std::future::pending().await;
        }
        orders.written(queued);
        count(&shared.registry.counts.bytes_out, queued as u64);
    }
}

fn messages_of(batch: &Batch) -> Vec<Message> {
    let frames = batch.frames.iter().map(|body| message(WebSocketMessage::Frame(body)));
    let datagrams = batch
        .datagrams
        .iter()
        .map(|bytes| message(WebSocketMessage::Datagram(bytes)));
    frames.chain(datagrams).collect()
}

fn message(message: WebSocketMessage<'_>) -> Message {
    Message::Binary(message.bytes().into())
}

fn close_message(reason: CloseReason) -> Message {
    let code = FIRST_CLOSE_CODE + u16::from(reason.code());
    Message::Close(Some(CloseFrame {
        code: code.into(),
        reason: reason.to_string().into(),
    }))
}

/// Reads messages until the client closes, violates the protocol, or sends nothing any more.
async fn read(stream: &mut SplitStream<Socket>, mut intake: Intake<'_>, echoes: &mpsc::Sender<()>) -> End {
    let first_frame_by = Instant::now() + FIRST_FRAME_WITHIN;
    loop {
        let (due, overdue) = match intake.awaits_first() {
            true => (first_frame_by, CloseReason::Silent),
            false => (Instant::now() + LOST_AFTER, CloseReason::Lost),
        };
        let received = tokio::select! {
            received = stream.next() => received,
            () = sleep_until(due) => return End::Here(overdue),
        };
        let done = match received {
            Some(Ok(Message::Binary(bytes))) => take(&mut intake, &bytes, echoes).await,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => intake.keep_pace(0),
            Some(Ok(Message::Close(frame))) => return End::There(close_reason(frame.as_ref())),
            None => return End::There(CloseReason::Lost),
            Some(Ok(Message::Text(_) | Message::Frame(_))) => Err(CloseReason::Malformed),
            Some(Err(Error::Capacity(_))) => return End::Unreadable(CloseReason::TooLarge),
            // The client has ended TLS without a close.
            Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) => {
                return End::There(CloseReason::Lost);
            }
            Some(Err(Error::Protocol(_) | Error::Utf8(_))) => return End::Unreadable(CloseReason::Malformed),
            Some(Err(_)) => return End::There(CloseReason::Lost),
        };
        if let Err(reason) = done {
            return End::Here(reason);
        }
    }
}

/// Our reason for a close by the client; its own is not trusted.
fn close_reason(frame: Option<&CloseFrame>) -> CloseReason {
    match frame {
        Some(frame) if u16::from(frame.code) == FIRST_CLOSE_CODE => CloseReason::Finished,
        _ => CloseReason::Lost,
    }
}

async fn take(intake: &mut Intake<'_>, bytes: &[u8], echoes: &mpsc::Sender<()>) -> Result<(), CloseReason> {
    match WebSocketMessage::read(bytes) {
        Some(WebSocketMessage::Frame(body)) => intake.take_frame(body).await,
        Some(WebSocketMessage::Datagram(datagram)) => intake.take_datagram(datagram),
        Some(WebSocketMessage::Echo) => {
            intake.keep_pace(0)?;
            // One answer serves all requests that wait.
            let _ = echoes.try_send(());
            Ok(())
        }
        None => Err(CloseReason::Malformed),
    }
}
