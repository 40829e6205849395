//! Sessions by WebTransport, which is what browsers have for QUIC: on the same port, under the ALPN of HTTP/3.
//!
//! A connection has one session, and that one bidirectional stream and datagrams, with the same content as connections
//! of our own protocol. The path of the session's URL is what the ALPN is for these. A datagram of one byte, 0, is an
//! echo request, which is answered with the same: a page cannot see whether its connection is alive. A close has the
//! code of a [`CloseReason`]; the last frames of the stream have it too, as a browser may take a close for a loss.
//!
//! HTTP/3 itself is used as little as possible: one request, no dynamic header compression, and whatever else a peer
//! sends is bounded by the connection's window. So the crate for its encoding is used, and none for its connections.

use std::pin::pin;

use annals_wire::client::CloseReason;
use bytes::Bytes;
use quinn::{Connection, RecvStream, SendStream, VarInt, crypto::rustls::HandshakeData};
use tokio::{io::AsyncReadExt, time::timeout};
use web_transport_proto as proto;
use web_transport_proto::http::{HeaderValue, StatusCode, header::ORIGIN};

use super::{
    Arrival, Serves,
    accepting::Place,
    connection::{
        FIRST_FRAME_WITHIN, Intake, LAST_READ_WITHIN, Received, Shared, note, read, send_event, write, write_background,
    },
    origins::OriginCheck,
    registry::{Link, Orders},
};
use crate::violations::Violation;

/// The protocol under which browsers connect.
pub(super) const ALPN: &[u8] = b"h3";

/// Streams that a client may have open: the request of the session, and the session's own.
pub(super) const BIDIRECTIONAL_STREAMS: u32 = 2;

/// The streams that HTTP/3 needs in each direction: control, and two of header compression.
pub(super) const UNIDIRECTIONAL_STREAMS: u32 = 3;

/// Maximum bytes of a session's request stream after the request. A client sends a close there, and nothing else.
const REQUEST_BYTES: u64 = 16 << 10;

/// The session's number: that of its request's stream, which is the first stream of the connection.
const SESSION: proto::VarInt = proto::VarInt::from_u32(0);

/// The session's number in front of each datagram.
const DATAGRAM_HEADER: u8 = 0;

/// An echo request, and its answer. It is not empty: browsers may not pass an empty datagram on.
const ECHO: [u8; 1] = [0];

/// HTTP/3's code for a connection that ends without an error.
const NO_ERROR: u32 = 0x100;

/// A session that a client has opened.
#[derive(Debug)]
pub(super) struct Session {
    connection: Connection,
    request: (SendStream, RecvStream),
    /// Streams that must stay open as long as the connection.
    _control: (SendStream, Vec<RecvStream>),
}

/// Why there is no session: a word for the log.
type Refusal = &'static str;

/// The refusal of a page of another origin.
const FOREIGN_ORIGIN: Refusal = "pages of this origin may not connect";

/// Completes the handshakes of sessions.
#[derive(Clone, Debug)]
pub(super) struct Acceptor {
    origins: OriginCheck,
}

/// Whether the client of a connection speaks HTTP/3.
pub(super) fn is_web(connection: &Connection) -> bool {
    let data = connection.handshake_data().map(|data| data.downcast::<HandshakeData>());
    matches!(data, Some(Ok(data)) if data.protocol.as_deref() == Some(ALPN))
}

impl Acceptor {
    pub(super) fn new(origins: OriginCheck) -> Self {
        Self { origins }
    }

    /// Waits for the request of a session, and answers it.
    pub(super) async fn shake_hands(&self, connection: Connection, serves: Serves) -> Result<Session, Violation> {
        self.begin(connection, serves).await.map_err(|refusal| {
            tracing::debug!(reason = refusal, "no WebTransport session");
            match refusal {
                FOREIGN_ORIGIN => Violation::ForeignOrigin,
                _ => Violation::FailedHandshake,
            }
        })
    }

    async fn begin(&self, connection: Connection, serves: Serves) -> Result<Session, Refusal> {
        let mut control = connection.open_uni().await.map_err(|_| "the connection was lost")?;
        let mut settings = proto::Settings::default();
        settings.enable_webtransport(1);
        settings
            .write(&mut control)
            .await
            .map_err(|_| "the connection was lost")?;
        let held = receive_settings(&connection).await?;
        let (mut send, mut receive) = connection.accept_bi().await.map_err(|_| "no request came")?;
        let request = proto::ConnectRequest::read(&mut receive).await;
        let request = request.map_err(|_| "the request is malformed, or is none for WebTransport")?;
        let status = self.check(&request, serves);
        let answer = proto::ConnectResponse::new(status).write(&mut send).await;
        answer.map_err(|_| "the connection was lost")?;
        if status == StatusCode::OK {
            return Ok(Session {
                connection,
                request: (send, receive),
                _control: (control, held),
            });
        }
        if send.finish().is_ok() {
            // A close would overtake the answer.
            let _ = timeout(LAST_READ_WITHIN, send.stopped()).await;
        }
        connection.close(NO_ERROR.into(), &[]);
        match status {
            StatusCode::FORBIDDEN => Err(FOREIGN_ORIGIN),
            _ => Err("the path is not served here"),
        }
    }

    /// The answer to a request.
    fn check(&self, request: &proto::ConnectRequest, serves: Serves) -> StatusCode {
        if !self
            .origins
            .admits(request.headers.get(ORIGIN).map(HeaderValue::as_bytes))
        {
            return StatusCode::FORBIDDEN;
        }
        let served = match serves {
            Serves::Login => "/annals-login.2",
            Serves::Play => "/annals-play.2",
        };
        match request.url.path() == served {
            true => StatusCode::OK,
            false => StatusCode::NOT_FOUND,
        }
    }
}

/// Waits for the client's settings. Returns the streams that came until then.
async fn receive_settings(connection: &Connection) -> Result<Vec<RecvStream>, Refusal> {
    let mut held = Vec::new();
    for _ in 0..UNIDIRECTIONAL_STREAMS {
        let mut stream = connection.accept_uni().await.map_err(|_| "no settings came")?;
        let kind = proto::VarInt::read(&mut stream).await.map_err(|_| "no settings came")?;
        if proto::StreamUni(kind) != proto::StreamUni::CONTROL {
            held.push(stream);
            continue;
        }
        // The library reads the kind of the stream, too.
        let mut from_start = (&[0_u8][..]).chain(&mut stream);
        let settings = proto::Settings::read(&mut from_start)
            .await
            .map_err(|_| "the settings are malformed")?;
        let has = |setting| settings.get(&setting).is_some_and(|value| value.into_inner() == 1);
        if !has(proto::Setting::ENABLE_DATAGRAM) && !has(proto::Setting::ENABLE_DATAGRAM_DEPRECATED) {
            return Err("the client has no datagrams");
        }
        held.push(stream);
        return Ok(held);
    }
    Err("no settings came")
}

/// What ends the session's stream: an empty frame, and one with the code of the reason.
pub(super) fn last_frames(reason: CloseReason) -> [u8; 3] {
    [0, 1, reason.code()]
}

/// A datagram of the session with this content.
pub(super) fn datagram(content: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(1 + content.len());
    bytes.push(DATAGRAM_HEADER);
    bytes.extend_from_slice(content);
    bytes.into()
}

/// Takes a datagram of a client, and answers an echo request.
fn take_datagram(connection: &Connection, intake: &mut Intake<'_>, bytes: &[u8]) -> Result<(), CloseReason> {
    let mut content = bytes;
    match proto::VarInt::decode(&mut content) {
        Ok(SESSION) => {}
        _ => return Err(CloseReason::Malformed),
    }
    if content != ECHO {
        return intake.take_datagram(content);
    }
    intake.keep_pace(0)?;
    // If it cannot be sent now, the client asks again.
    let _ = connection.send_datagram(datagram(&ECHO));
    Ok(())
}

/// Which side ends a session, and why.
#[derive(Clone, Copy, Debug)]
enum End {
    Here(CloseReason),
    There(CloseReason),
}

/// Serves a session until it ends. Its first event is `Opened`, its last `Closed`.
pub(super) async fn serve(session: Session, newcomer: Place, shared: Shared) {
    let Session {
        connection,
        request: (answer, mut request),
        _control: _held,
    } = session;
    let from = connection.remote_address();
    let link = Link::WebTransport(connection.clone());
    let (id, orders) = shared.registry.open(from.ip().into(), link);
    let verdict = orders.verdict();
    if send_event(&shared, id, Arrival::Opened { from }).await.is_err() {
        shared.registry.remove(id);
        return close(&connection, (answer, request), CloseReason::ShuttingDown).await;
    }
    let end = converse(&connection, &mut request, orders, Intake::new(id, newcomer, &shared)).await;
    shared.registry.remove(id);
    let reason = match end {
        End::There(reason) => reason,
        End::Here(reason) => verdict().unwrap_or(reason),
    };
    note(&shared.registry, (id, from), reason);
    close(&connection, (answer, request), reason).await;
    // Without a receiver the process is shutting down.
    let _ = send_event(&shared, id, Arrival::Closed(reason)).await;
}

/// Reads and writes until one side closes. What the client sent before it closed is read first: the close is on another
/// stream, and may arrive before.
async fn converse(connection: &Connection, request: &mut RecvStream, mut orders: Orders, intake: Intake<'_>) -> End {
    let closed_here = orders.closed();
    let mut closed_there = pin!(closed_by_client(request));
    let mut accepting = pin!(timeout(FIRST_FRAME_WITHIN, accept_stream(connection)));
    let (stream, mut end) = tokio::select! {
        stream = &mut accepting => (stream, None),
        reason = &mut closed_there => match timeout(LAST_READ_WITHIN, accepting).await {
            Ok(stream) => (stream, Some(reason)),
            Err(_) => return End::There(reason),
        },
    };
    let (send, receive) = match (stream, end) {
        (Ok(Ok(stream)), _) => stream,
        (_, Some(reason)) => return End::There(reason),
        (Ok(Err(reason)), None) => return End::Here(reason),
        (Err(_), None) => return End::Here(CloseReason::Silent),
    };
    let shared = intake.shared();
    let mut reading = pin!(read(connection, receive, intake, take_datagram));
    let (header, background) = (background_header(), orders.take_background());
    if end.is_none() {
        tokio::select! {
            never = write_background(connection, &header, background, shared) => match never {},
            reason = write(send, orders, shared) => return End::Here(reason.unwrap_or(CloseReason::Lost)),
            received = &mut reading => return match received {
                Received::Refused(reason) => End::Here(reason),
                // The close that follows has the reason.
                Received::Ended => match timeout(LAST_READ_WITHIN, closed_there).await {
                    Ok(reason) => End::There(reason),
                    Err(_) => End::Here(CloseReason::Lost),
                },
            },
            reason = &mut closed_there => end = Some(reason),
            () = closed_here => return End::Here(CloseReason::Lost),
        }
    }
    let _ = timeout(LAST_READ_WITHIN, reading).await;
    End::There(end.unwrap_or(CloseReason::Lost))
}

/// What begins a stream of the session that the server opens.
fn background_header() -> Vec<u8> {
    let mut header = Vec::new();
    proto::StreamUni::WEBTRANSPORT.encode(&mut header);
    SESSION.encode(&mut header);
    header
}

/// The session's stream, which the client opens.
async fn accept_stream(connection: &Connection) -> Result<(SendStream, RecvStream), CloseReason> {
    let (send, mut receive) = connection.accept_bi().await.map_err(|_| CloseReason::Lost)?;
    let mut header = async || {
        proto::VarInt::read(&mut receive)
            .await
            .map_err(|_| CloseReason::Malformed)
    };
    let (kind, session) = (header().await?, header().await?);
    if proto::Frame(kind) != proto::Frame::WEBTRANSPORT || session != SESSION {
        return Err(CloseReason::Malformed);
    }
    Ok((send, receive))
}

/// Waits until the client closes the session, and returns our reason for that: its own is not trusted.
async fn closed_by_client(request: &mut RecvStream) -> CloseReason {
    let mut capsules = proto::Http3CapsuleReader::new(request.take(REQUEST_BYTES));
    loop {
        match capsules.read().await {
            Ok(Some(proto::Capsule::CloseWebTransportSession { code: 0, .. })) => return CloseReason::Finished,
            Ok(Some(proto::Capsule::CloseWebTransportSession { .. }) | None) | Err(_) => return CloseReason::Lost,
            Ok(Some(_)) => {}
        }
    }
}

/// Sends the reason, and waits until the client has closed in turn: a close of the connection would overtake it. Until
/// then its request stays open, since a client that is asked to stop sending it reports an error instead of the reason.
async fn close(connection: &Connection, (mut answer, mut request): (SendStream, RecvStream), reason: CloseReason) {
    let mut capsule = Vec::new();
    let close = proto::Capsule::CloseWebTransportSession {
        code: reason.code().into(),
        reason: reason.to_string(),
    };
    close.encode(&mut capsule);
    let mut frame = Vec::new();
    proto::Frame::DATA.encode(&mut frame);
    proto::VarInt::from_u32(u32::try_from(capsule.len()).unwrap_or(0)).encode(&mut frame);
    frame.extend_from_slice(&capsule);
    let said = async {
        if answer.write_all(&frame).await.is_ok() && answer.finish().is_ok() {
            let mut rest = [0; 64];
            while let Ok(Some(_)) = request.read(&mut rest).await {}
        }
    };
    // A client that does not read is not waited for.
    let _ = timeout(LAST_READ_WITHIN, said).await;
    let code = proto::error_to_http3(reason.code().into());
    connection.close(VarInt::from_u64(code).unwrap_or(VarInt::from_u32(NO_ERROR)), &[]);
}
