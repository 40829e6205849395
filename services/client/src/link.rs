//! Connections: one request to the login service, or a session's connection to its base.

use std::{collections::VecDeque, future::pending, net::SocketAddr, sync::Arc};

use annals_wire::client::{
    CloseReason, FrameBuffer, LoginAnswer, LoginRequest, MAX_CHUNK_BYTES, MAX_DOWNSTREAM_FRAME, MAX_UPSTREAM_FRAME,
    put_frame,
};
use bytes::Bytes;
use quinn::{Connection, ConnectionError, IdleTimeout, RecvStream, SendStream, TransportConfig, VarInt};
use tokio::{
    sync::mpsc,
    time::{Duration, interval, timeout},
};

use crate::{
    event::{Attempt, Input},
    trust::{Trust, TrustError},
};

/// Maximum bytes of the login service's answer.
const MAX_ANSWER: usize = 1 << 10;

/// Keep-alive interval.
const KEEP_ALIVE: Duration = Duration::from_secs(1);

/// After this long without a packet, the server is considered dead. Until then the
/// connection may be slow, and the client asks for its base.
const SILENT_AFTER: Duration = Duration::from_secs(3);

/// A connection over which [`LIVELY`] packets arrived in the last second is reported as silent after this long: the
/// client then asks whether another process serves it. Two updates of a view may be missing by then.
const SILENT_WHILE_LIVELY: Duration = Duration::from_millis(250);

/// Packets per second from which on silence is unusual: a view in which anything moves has ten updates per second.
const LIVELY: u64 = 5;

/// Interval of the checks for silence.
const LISTEN_EVERY: Duration = Duration::from_millis(50);

/// Checks for silence per second.
const CHECKS_PER_SECOND: usize = 20;

/// The idle timeout offered to the server, milliseconds: equal to the server's.
const IDLE_TIMEOUT_MS: u32 = 30_000;

/// Timeout for a server to read what was written before a close.
const LAST_READ_WITHIN: Duration = Duration::from_secs(3);

/// Timeout for a server that has finished its stream to close the connection.
const CLOSE_WITHIN: Duration = Duration::from_secs(3);

/// Streams that the server may open: one in the background, for downloads.
const UNIDIRECTIONAL_STREAMS: u32 = 1;

/// Maximum size of a frame on that stream, bytes: a chunk of a download, and what names it.
const MAX_BACKGROUND_FRAME: usize = MAX_CHUNK_BYTES + 64;

/// Maximum bytes per read.
const READ_SIZE: usize = 64 << 10;

/// An order to a connection.
#[derive(Debug)]
pub(crate) enum WriteCommand {
    /// Write a frame with this body.
    Frame(Vec<u8>),
    /// Send this datagram.
    Datagram(Vec<u8>),
    /// Close when everything before is written.
    Close(CloseReason),
}

/// The address and TLS configuration of a connection.
#[derive(Debug)]
pub(crate) struct Target {
    address: SocketAddr,
    config: quinn::ClientConfig,
    name: String,
}

impl Target {
    pub(crate) fn new(address: SocketAddr, trust: &Trust, alpn: &[u8]) -> Result<Self, TrustError> {
        let (crypto, name) = trust.quic(alpn)?;
        let mut transport = TransportConfig::default();
        transport
            .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS))))
            .keep_alive_interval(Some(KEEP_ALIVE))
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(UNIDIRECTIONAL_STREAMS));
        let mut config = quinn::ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport));
        Ok(Self {
            address,
            config,
            name: name.to_owned(),
        })
    }

    async fn connect(self, endpoint: &quinn::Endpoint) -> Result<(Connection, SendStream, RecvStream), CloseReason> {
        let Self { address, config, name } = self;
        let connecting = endpoint.connect_with(config, address, &name).map_err(|error| {
            tracing::debug!(%address, %error, "cannot connect");
            CloseReason::Lost
        })?;
        let connection = connecting.await.map_err(|error| {
            tracing::debug!(%address, %error, "could not connect");
            close_reason(&error)
        })?;
        let (send, receive) = connection.open_bi().await.map_err(|error| close_reason(&error))?;
        Ok((connection, send, receive))
    }
}

/// Sends one request to the login service, and reports the answer, and before it the positions in the queue. The core
/// gives up on it when it takes too long.
pub(crate) async fn ask(
    endpoint: quinn::Endpoint,
    target: Result<Target, TrustError>,
    attempt: Attempt,
    request: LoginRequest,
    inputs: mpsc::Sender<Input>,
) {
    let answer = match target {
        Ok(target) => exchange(&endpoint, target, &request, (attempt, &inputs)).await,
        Err(error) => {
            tracing::error!(%error, "cannot log in");
            None
        }
    };
    // If the client was dropped, no answer is needed.
    let _ = inputs.send(Input::LoginAnswered { attempt, answer }).await;
}

async fn exchange(
    endpoint: &quinn::Endpoint,
    target: Target,
    request: &LoginRequest,
    (attempt, inputs): (Attempt, &mpsc::Sender<Input>),
) -> Option<LoginAnswer> {
    let (connection, mut send, mut receive) = target.connect(endpoint).await.ok()?;
    let mut body = Vec::new();
    request.write(&mut body);
    let mut bytes = Vec::new();
    put_frame(&mut bytes, &body, MAX_UPSTREAM_FRAME).ok()?;
    send.write_all(&bytes).await.ok()?;
    let mut buffer = FrameBuffer::new(MAX_ANSWER);
    let mut chunk = [0; MAX_ANSWER];
    let answer = loop {
        if let Some(body) = buffer.next_frame().ok()? {
            let answer = LoginAnswer::read(body).ok();
            if !matches!(answer, Some(LoginAnswer::Queued(_))) {
                break answer;
            }
            inputs.send(Input::LoginAnswered { attempt, answer }).await.ok()?;
            continue;
        }
        let length = receive.read(&mut chunk).await.ok()??;
        buffer.push(&chunk[..length]);
    };
    close(&connection, CloseReason::Finished);
    answer
}

/// Connects to a base and carries frames and datagrams both ways until the connection ends, then reports the reason.
/// What either side wrote before it closed is carried first, also after the client was dropped.
pub(crate) async fn play(
    endpoint: quinn::Endpoint,
    target: Result<Target, TrustError>,
    attempt: Attempt,
    mut orders: mpsc::Receiver<WriteCommand>,
    inputs: mpsc::Sender<Input>,
) {
    let reason = match target {
        Ok(target) => {
            let connected = tokio::select! {
                connected = target.connect(&endpoint) => connected,
                // There is nothing to write yet, so any order means that the core has given up.
                _ = orders.recv() => Err(CloseReason::Silent),
            };
            match connected {
                Ok((connection, send, receive)) => {
                    let reason = converse(&connection, send, receive, attempt, orders, &inputs).await;
                    let reason = connection.close_reason().map_or(reason, |error| close_reason(&error));
                    close(&connection, reason);
                    reason
                }
                Err(reason) => reason,
            }
        }
        Err(error) => {
            tracing::error!(%error, "cannot connect to the base");
            CloseReason::Lost
        }
    };
    // If the client was dropped, no report is needed.
    let _ = inputs.send(Input::Disconnected { attempt, reason }).await;
}

async fn converse(
    connection: &Connection,
    send: SendStream,
    receive: RecvStream,
    attempt: Attempt,
    orders: mpsc::Receiver<WriteCommand>,
    inputs: &mpsc::Sender<Input>,
) -> CloseReason {
    if inputs.send(Input::Connected { attempt }).await.is_err() {
        return CloseReason::Lost;
    }
    tokio::select! {
        reason = write(connection, send, orders) => reason,
        reason = read(connection, receive, attempt, inputs) => reason,
        reason = read_datagrams(connection, attempt, inputs) => reason,
        reason = read_background(connection, attempt, inputs) => reason,
        () = fall_silent(connection, attempt, inputs) => CloseReason::Lost,
    }
}

async fn write(connection: &Connection, mut send: SendStream, mut orders: mpsc::Receiver<WriteCommand>) -> CloseReason {
    let mut bytes = Vec::new();
    let mut is_open = true;
    while let Some(order) = orders.recv().await {
        match order {
            WriteCommand::Frame(body) => {
                bytes.clear();
                if put_frame(&mut bytes, &body, MAX_UPSTREAM_FRAME).is_err() {
                    return CloseReason::Lost;
                }
                // After an error the reader ends the connection, once it has read what arrived before.
                is_open = is_open && send.write_all(&bytes).await.is_ok();
            }
            WriteCommand::Datagram(datagram) => {
                // A datagram that cannot be sent now is not worth sending later.
                let _ = connection.send_datagram(Bytes::from(datagram));
            }
            WriteCommand::Close(reason) => {
                if send.finish().is_ok() {
                    let _ = timeout(LAST_READ_WITHIN, send.stopped()).await;
                }
                close(connection, reason);
                return reason;
            }
        }
    }
    CloseReason::Lost
}

async fn read(
    connection: &Connection,
    mut receive: RecvStream,
    attempt: Attempt,
    inputs: &mpsc::Sender<Input>,
) -> CloseReason {
    if read_frames(&mut receive, MAX_DOWNSTREAM_FRAME, attempt, inputs)
        .await
        .is_ok()
    {
        // The server has finished its stream; its close has the reason.
        let _ = timeout(CLOSE_WITHIN, connection.closed()).await;
    }
    CloseReason::Lost
}

/// The stream could not be read to its end.
#[derive(Debug)]
struct Broken;

/// Passes the frames of a stream to the core, until the stream is finished.
async fn read_frames(
    receive: &mut RecvStream,
    most: usize,
    attempt: Attempt,
    inputs: &mpsc::Sender<Input>,
) -> Result<(), Broken> {
    let mut buffer = FrameBuffer::new(most);
    loop {
        match receive.read_chunk(READ_SIZE, true).await {
            Ok(Some(chunk)) => buffer.push(&chunk.bytes),
            Ok(None) => return Ok(()),
            Err(_) => return Err(Broken),
        }
        loop {
            let body = match buffer.next_frame() {
                Ok(Some(body)) => body.to_vec(),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!(%error, "the server sent a frame that is too large");
                    return Err(Broken);
                }
            };
            if inputs.send(Input::Frame { attempt, body }).await.is_err() {
                // The client was dropped. What it sent before is written first.
                return pending().await;
            }
        }
    }
}

/// Reads the frames that the server sends in the background. If that fails, the connection does: no chunk of a download
/// may be missing.
async fn read_background(connection: &Connection, attempt: Attempt, inputs: &mpsc::Sender<Input>) -> CloseReason {
    while let Ok(mut receive) = connection.accept_uni().await {
        if read_frames(&mut receive, MAX_BACKGROUND_FRAME, attempt, inputs)
            .await
            .is_err()
            && connection.close_reason().is_none()
        {
            return CloseReason::Lost;
        }
    }
    // The stream has the rest of what the server sent, and its reader ends the connection.
    pending().await
}

async fn read_datagrams(connection: &Connection, attempt: Attempt, inputs: &mpsc::Sender<Input>) -> CloseReason {
    while let Ok(datagram) = connection.read_datagram().await {
        // A busy client drops movements, which would be outdated.
        let _ = inputs.try_send(Input::Datagram {
            attempt,
            bytes: datagram.to_vec(),
        });
    }
    // The stream has the rest of what the server sent, and its reader ends the connection.
    pending().await
}

/// Returns when nothing was received for too long, and reports a silence before, if much was received until then. The
/// server's QUIC itself answers keep-alives, so datagrams of a live server arrive even if it sends nothing.
async fn fall_silent(connection: &Connection, attempt: Attempt, inputs: &mpsc::Sender<Input>) {
    let mut listen = interval(LISTEN_EVERY);
    let mut received = connection.stats().udp_rx.datagrams;
    let mut silent_since = listen.tick().await;
    // The packets received until each check of the last second.
    let mut second = VecDeque::from([received]);
    let mut is_reported = false;
    loop {
        let now = listen.tick().await;
        if connection.close_reason().is_some() {
            return pending().await;
        }
        let datagrams = connection.stats().udp_rx.datagrams;
        if datagrams != received {
            (received, silent_since, is_reported) = (datagrams, now, false);
        }
        second.push_back(datagrams);
        if second.len() > CHECKS_PER_SECOND {
            second.pop_front();
        }
        let silent = now.duration_since(silent_since);
        if silent >= SILENT_AFTER {
            return;
        }
        let lively = second.front().is_some_and(|first| received - first >= LIVELY);
        if silent >= SILENT_WHILE_LIVELY && lively && !is_reported {
            // A client that is too busy to read this is not waiting for anything.
            is_reported = inputs.try_send(Input::Silent { attempt }).is_ok();
        }
    }
}

fn close(connection: &Connection, reason: CloseReason) {
    connection.close(reason.code().into(), &[]);
}

fn close_reason(error: &ConnectionError) -> CloseReason {
    match error {
        ConnectionError::ApplicationClosed(close) => CloseReason::from_code(close.error_code.into_inner()),
        _ => CloseReason::Lost,
    }
}
