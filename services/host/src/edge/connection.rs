//! One connection, from its first packet to its end.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Instant};

use annals_node::ConnectionId;
use annals_wire::client::{
    CloseReason, FrameBuffer, Hello, LoginRequest, MAX_DOWNSTREAM_FRAME, MAX_UPSTREAM_FRAME, ToClient, ToServer,
    ToServerDatagram, put_frame,
};
use quinn::{Connection, ConnectionError, RecvStream, SendStream};
use tokio::{
    sync::mpsc,
    time::{Duration, timeout},
};

use super::{
    Arrival, EdgeCommand, EdgeEvent, Serves,
    accepting::Place,
    handshakes::Host,
    pace::{Pace, Verdict},
    registry::{Link, Orders, Registry, WriteCommand, close, count},
    web_transport::last_frames,
};
use crate::violations::Violation;

/// Timeout of a handshake.
pub(super) const HANDSHAKE_WITHIN: Duration = Duration::from_secs(5);

/// Timeout for the first complete frame after it.
pub(super) const FIRST_FRAME_WITHIN: Duration = Duration::from_secs(5);

/// Timeout for a client to read what was written before a close.
pub(super) const LAST_READ_WITHIN: Duration = Duration::from_secs(5);

/// Priority of the background stream; that of the other is 0.
const BACKGROUND_PRIORITY: i32 = -1;

/// Typical bytes of a frame's length, for the size of a buffer.
const FRAME_LENGTH: usize = 2;

/// Maximum bytes per read.
pub(super) const READ_SIZE: usize = 16 << 10;

/// Common state of all connections of an edge.
#[derive(Clone, Debug)]
pub(super) struct Shared {
    pub(super) serves: Serves,
    pub(super) registry: Arc<Registry>,
    pub(super) events: mpsc::Sender<EdgeEvent>,
}

/// The message expected from the client next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// A [`LoginRequest`].
    Request,
    Hello,
    /// Any [`ToServer`].
    Frames,
    /// Nothing: it has sent its request, and waits for the answer.
    Answer,
}

/// Completes the handshake.
pub(super) async fn shake_hands(incoming: quinn::Incoming) -> Option<Connection> {
    incoming.accept().ok()?.await.ok()
}

/// Serves a connection until it ends. Its first event is `Opened`, its last `Closed`.
pub(super) async fn serve(connection: Connection, newcomer: Place, shared: Shared) {
    let from = connection.remote_address();
    let (id, orders) = shared.registry.open(from.ip().into(), Link::Quic(connection.clone()));
    let verdict = orders.verdict();
    if send_event(&shared, id, Arrival::Opened { from }).await.is_err() {
        shared.registry.remove(id);
        return close(&connection, CloseReason::ShuttingDown);
    }
    let reason = converse(&connection, orders, Intake::new(id, newcomer, &shared)).await;
    shared.registry.remove(id);
    let reason = closed_by_client(&connection).or_else(verdict).unwrap_or(reason);
    note(&shared.registry, (id, from), reason);
    // If the other side, or the registry, closed first, this changes nothing.
    close(&connection, reason);
    // Without a receiver the process is shutting down.
    let _ = send_event(&shared, id, Arrival::Closed(reason)).await;
}

/// Reads and writes until one side closes; returns the reason. What the client sent before it closed is read first.
async fn converse(connection: &Connection, mut orders: Orders, intake: Intake<'_>) -> CloseReason {
    let shared = intake.shared();
    let (send, receive) = match timeout(FIRST_FRAME_WITHIN, connection.accept_bi()).await {
        Ok(Ok(streams)) => streams,
        Ok(Err(_)) => return CloseReason::Lost,
        Err(_) => return CloseReason::Silent,
    };
    let take = |_: &Connection, intake: &mut Intake<'_>, bytes: &[u8]| intake.take_datagram(bytes);
    let reading = read(connection, receive, intake, take);
    let background = orders.take_background();
    let end = tokio::select! {
        end = write(send, orders, shared) => end,
        never = write_background(connection, &[], background, shared) => match never {},
        received = reading => match received {
            Received::Refused(reason) => Some(reason),
            // The client's close follows, and has the reason: one of ours would overtake it.
            Received::Ended => {
                let _ = timeout(LAST_READ_WITHIN, connection.closed()).await;
                Some(CloseReason::Lost)
            }
        },
    };
    match end {
        Some(reason) => reason,
        // The registry has removed the connection after closing it.
        None => {
            connection.closed().await;
            CloseReason::Lost
        }
    }
}

/// Writes queued orders, in order, until the connection is to be closed; returns the reason. `None` if the registry has
/// removed the connection.
pub(super) async fn write(mut send: SendStream, mut orders: Orders, shared: &Shared) -> Option<CloseReason> {
    while let Some(order) = orders.next().await {
        match order {
            WriteCommand::Write(batch) => {
                // Handed over as it is: a buffer that is kept would have the size of the largest batch so far.
                let mut bytes = Vec::with_capacity(batch.bytes() + batch.frames.len() * FRAME_LENGTH);
                for body in &batch.frames {
                    if put_frame(&mut bytes, body, MAX_DOWNSTREAM_FRAME).is_err() {
                        tracing::error!(
                            bytes = body.len(),
                            "a frame is larger than clients take; closing the connection"
                        );
                        return Some(CloseReason::TooLarge);
                    }
                }
                let queued = batch.bytes();
                // Without a wait in between, so that both leave in one packet.
                batch
                    .datagrams
                    .into_iter()
                    .for_each(|datagram| orders.link.send(datagram));
                let length = bytes.len() as u64;
                if send.write_chunk(bytes.into()).await.is_err() {
                    // The reader ends the connection, after what arrived before.
                    return std::future::pending().await;
                }
                orders.written(queued);
                count(&shared.registry.counts.bytes_out, length);
            }
            WriteCommand::Close(reason) => {
                let finishing = async {
                    if let Link::WebTransport(_) = orders.link {
                        send.write_all(&last_frames(reason)).await.ok();
                    }
                    // A close would overtake what was written, so wait until it was read.
                    if send.finish().is_ok() {
                        send.stopped().await.ok();
                    }
                };
                // A client that does not read is not waited for.
                let _ = timeout(LAST_READ_WITHIN, finishing).await;
                return Some(reason);
            }
        }
    }
    None
}

/// Writes frames on a stream of their own, which begins with `header` and gives way to all others of the connection.
pub(super) async fn write_background(
    connection: &Connection,
    header: &[u8],
    mut frames: mpsc::Receiver<Vec<u8>>,
    shared: &Shared,
) -> Infallible {
    let mut stream = None;
    while let Some(body) = frames.recv().await {
        let mut bytes = Vec::new();
        if stream.is_none() {
            let Ok(opened) = connection.open_uni().await else { break };
            if opened.set_priority(BACKGROUND_PRIORITY).is_err() {
                break;
            }
            bytes.extend_from_slice(header);
            stream = Some(opened);
        }
        let Some(send) = &mut stream else { break };
        if put_frame(&mut bytes, &body, MAX_DOWNSTREAM_FRAME).is_err() || send.write_all(&bytes).await.is_err() {
            break;
        }
        count(&shared.registry.counts.bytes_out, bytes.len() as u64);
    }
    // The connection has ended, which others report.
    std::future::pending().await
}

/// How reading from a client ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    /// The client has violated a rule, or was lost.
    Refused(CloseReason),
    /// The client has finished its stream, after a whole frame.
    Ended,
}

/// Takes a datagram.
type TakeDatagram = fn(&Connection, &mut Intake<'_>, &[u8]) -> Result<(), CloseReason>;

/// Reads frames and datagrams until the client closes.
pub(super) async fn read(
    connection: &Connection,
    mut receive: RecvStream,
    mut intake: Intake<'_>,
    take_datagram: TakeDatagram,
) -> Received {
    let mut buffer = FrameBuffer::new(MAX_UPSTREAM_FRAME);
    let mut takes_datagrams = true;
    let first_frame_by = tokio::time::Instant::now() + FIRST_FRAME_WITHIN;
    loop {
        let done = tokio::select! {
            // A connection that waits has no buffer to read into.
            read = receive.read_chunk(READ_SIZE, true) => match read {
                Ok(Some(chunk)) => {
                    buffer.push(&chunk.bytes);
                    take_frames(&mut buffer, &mut intake).await
                }
                Ok(None) if buffer.is_empty() => {
                    if intake.stage == Stage::Answer {
                        connection.closed().await;
                    }
                    return Received::Ended;
                }
                Ok(None) => Err(CloseReason::Malformed),
                Err(_) => Err(CloseReason::Lost),
            },
            datagram = connection.read_datagram(), if takes_datagrams => match datagram {
                Ok(datagram) => take_datagram(connection, &mut intake, &datagram),
                Err(_) => {
                    // The stream has the rest of what the client sent, and then the same error.
                    takes_datagrams = false;
                    Ok(())
                }
            },
            () = tokio::time::sleep_until(first_frame_by), if intake.awaits_first() => Err(CloseReason::Silent),
        };
        if let Err(reason) = done {
            return Received::Refused(reason);
        }
    }
}

async fn take_frames(buffer: &mut FrameBuffer, intake: &mut Intake<'_>) -> Result<(), CloseReason> {
    loop {
        match buffer.next_frame() {
            Ok(Some(body)) => intake.take_frame(body).await?,
            Ok(None) => return Ok(()),
            Err(_) => return Err(CloseReason::TooLarge),
        }
    }
}

/// What a client sends, on any transport: decoded, limited in rate, and passed to the core.
pub(super) struct Intake<'a> {
    id: ConnectionId,
    shared: &'a Shared,
    stage: Stage,
    pace: Pace,
    /// Its place among its host's newcomers, until its first frame.
    newcomer: Option<Place>,
}

impl<'a> Intake<'a> {
    pub(super) fn new(id: ConnectionId, newcomer: Place, shared: &'a Shared) -> Self {
        let stage = match shared.serves {
            Serves::Login => Stage::Request,
            Serves::Play => Stage::Hello,
        };
        let pace = Pace::new(Instant::now());
        Self {
            id,
            shared,
            stage,
            pace,
            newcomer: Some(newcomer),
        }
    }

    pub(super) fn shared(&self) -> &'a Shared {
        self.shared
    }

    /// Whether the client has not sent its first frame.
    pub(super) fn awaits_first(&self) -> bool {
        matches!(self.stage, Stage::Request | Stage::Hello)
    }

    /// Takes a frame's body.
    pub(super) async fn take_frame(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        count(&self.shared.registry.counts.bytes_in, body.len() as u64);
        let malformed = |_| CloseReason::Malformed;
        let (arrival, next) = match self.stage {
            Stage::Request => (
                Arrival::LoginRequest(LoginRequest::read(body).map_err(malformed)?),
                Stage::Answer,
            ),
            Stage::Hello => (Arrival::Hello(Hello::read(body).map_err(malformed)?), Stage::Frames),
            Stage::Frames => (Arrival::Frame(ToServer::read(body).map_err(malformed)?), Stage::Frames),
            Stage::Answer => return Err(CloseReason::Malformed),
        };
        self.stage = next;
        self.newcomer = None;
        self.keep_pace(body.len())?;
        // While the core is busy the client is not read, and its transport slows it down.
        send_event(self.shared, self.id, arrival)
            .await
            .map_err(|_| CloseReason::ShuttingDown)
    }

    pub(super) fn take_datagram(&mut self, bytes: &[u8]) -> Result<(), CloseReason> {
        count(&self.shared.registry.counts.bytes_in, bytes.len() as u64);
        self.keep_pace(bytes.len())?;
        match self.stage {
            Stage::Frames => {}
            // It may overtake the hello.
            Stage::Hello => return Ok(()),
            Stage::Request | Stage::Answer => return Err(CloseReason::Malformed),
        }
        let datagram = ToServerDatagram::read(bytes).map_err(|_| CloseReason::Malformed)?;
        let event = EdgeEvent {
            connection: self.id,
            what: Arrival::Datagram(datagram),
        };
        if self.shared.events.try_send(event).is_err() {
            count(&self.shared.registry.counts.dropped_datagrams, 1);
        }
        Ok(())
    }

    pub(super) fn keep_pace(&mut self, bytes: usize) -> Result<(), CloseReason> {
        match self.pace.take(Instant::now(), bytes) {
            Verdict::Fine => Ok(()),
            Verdict::TooFast => Err(CloseReason::TooFast),
            Verdict::Warn => {
                count(&self.shared.registry.counts.warned, 1);
                let mut body = Vec::new();
                ToClient::RateWarned.write(&mut body);
                self.shared.registry.apply([EdgeCommand::Frame {
                    connection: self.id,
                    body,
                }]);
                Ok(())
            }
        }
    }
}

pub(super) async fn send_event(
    shared: &Shared,
    connection: ConnectionId,
    what: Arrival,
) -> Result<(), mpsc::error::SendError<EdgeEvent>> {
    shared.events.send(EdgeEvent { connection, what }).await
}

/// Our reason for a close by the client, if it was the client that closed. Its own reason is not trusted.
fn closed_by_client(connection: &Connection) -> Option<CloseReason> {
    match connection.close_reason()? {
        ConnectionError::ApplicationClosed(close) if close.error_code.into_inner() == 0 => Some(CloseReason::Finished),
        ConnectionError::LocallyClosed => None,
        _ => Some(CloseReason::Lost),
    }
}

/// Logs the end of a connection, and counts it if the client violated the protocol.
pub(super) fn note(registry: &Registry, (id, from): (ConnectionId, SocketAddr), reason: CloseReason) {
    tracing::debug!(connection = id.0, %from, %reason, "client connection closed");
    if let Some(violation) = Violation::of_close(reason) {
        registry.violations.count(violation, Host::from(from.ip()));
    }
}
