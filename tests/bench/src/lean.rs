//! Sessions that are driven frame by frame: the client library's core on a connection of its own, over QUIC or WebSocket.
//!
//! They have fewer timers and less memory than `annals_client::Client`, so that one process can hold thousands, and what
//! arrives is in sight. They expect a realm that runs: a session that is refused, moved or lost is a panic.

use std::{
    net::SocketAddr,
    sync::Arc,
    time::{Duration, Instant},
};

use annals_client::{Attempt, ClientCore, Credentials, Event, Input, Millis, Output, Reads, Trust};
use annals_def::Schema;
use annals_ids::{EntityId, Part};
use annals_wire::client::{
    FrameBuffer, LOGIN_ALPN, LoginAnswer, MAX_DOWNSTREAM_FRAME, MAX_UPSTREAM_FRAME, PLAY_ALPN, put_frame,
};
use futures::{SinkExt, StreamExt};
use quinn::{
    ClientConfig, Connection, ConnectionStats, Endpoint, IdleTimeout, RecvStream, SendStream, TransportConfig, VarInt,
    crypto::rustls::QuicClientConfig,
};
use tokio::{net::TcpStream, time::sleep_until};
use tokio_rustls::{TlsConnector, client::TlsStream, rustls::pki_types::ServerName};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{Message, client::IntoClientRequest, http::HeaderValue},
};

use crate::realm::{Realm, TIMEOUT};

/// Interval between packets that keep a connection alive: it is idle otherwise, and given up after three of these.
const KEEP_ALIVE: Duration = Duration::from_secs(10);

/// Idle timeout offered to the server, milliseconds: equal to the server's.
const IDLE_TIMEOUT_MS: u32 = 30_000;

/// Sessions for each UDP socket, whose buffers hold the packets of a burst.
const SESSIONS_PER_SOCKET: u64 = 100;

/// Bytes of one read.
const READ_SIZE: usize = 64 << 10;

/// First byte of a message on a WebSocket: a frame's body, or a datagram, follows.
const FRAME: u8 = 0;
const DATAGRAM: u8 = 1;

/// What carries a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    Quic,
    WebSocket,
}

/// What all sessions of a realm have in common.
#[derive(Clone, Debug)]
pub(crate) struct Means {
    login: SocketAddr,
    trust: Trust,
    schema: Arc<Schema>,
    transport: Transport,
    endpoints: Vec<Endpoint>,
}

impl Means {
    /// For this number of sessions in a realm.
    ///
    /// # Panics
    /// If no socket can be opened.
    pub(crate) fn new(realm: &Realm, schema: &Arc<Schema>, transport: Transport, sessions: u64) -> Self {
        let (login, certificate) = realm.login;
        let sockets = match transport {
            Transport::Quic => sessions.div_ceil(SESSIONS_PER_SOCKET).max(1),
            Transport::WebSocket => 0,
        };
        let endpoint = |_| annals_client::client_endpoint(login).expect("a socket");
        Self {
            login,
            trust: Trust::Pinned(certificate),
            schema: Arc::clone(schema),
            transport,
            endpoints: (0..sockets).map(endpoint).collect(),
        }
    }
}

/// What the core was given, in order: enough to repeat a session elsewhere.
pub(crate) type Record<'a> = &'a mut (dyn FnMut(&Received) + Send);

/// What was received.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Received {
    /// The login service's last answer.
    Answer(Vec<u8>),
    /// A frame's body.
    Frame(Vec<u8>),
    Datagram(Vec<u8>),
}

/// A session that is open.
pub(crate) struct Session {
    core: ClientCore,
    began: Instant,
    attempt: Attempt,
    link: Link,
}

impl Session {
    /// Logs in, and waits until the session controls an avatar and sees it.
    ///
    /// # Panics
    /// If that is refused, or takes too long.
    pub(crate) async fn open(means: &Means, number: u64, record: Record<'_>) -> Self {
        let opening = async {
            let mut session = Self::connect(means, number, record).await;
            while session.avatar().is_none() {
                let received = session.receive().await;
                record(&received);
                session.take(received).await;
            }
            session
        };
        tokio::time::timeout(TIMEOUT, opening)
            .await
            .expect("a session is opened in time")
    }

    async fn connect(means: &Means, number: u64, record: Record<'_>) -> Self {
        let credentials = Credentials::password(format!("lean{number}"), "a password for benches");
        let mut core = ClientCore::new(Arc::clone(&means.schema), credentials, number).reading(Reads::Predicted);
        let began = Instant::now();
        core.start(millis(began));
        loop {
            match core.poll_output() {
                Some(Output::Login { attempt, request }) => {
                    let mut body = Vec::new();
                    request.write(&mut body);
                    let answer = ask(means, number, &body).await;
                    let input = Input::LoginAnswered {
                        attempt,
                        answer: LoginAnswer::read(&answer).ok(),
                    };
                    record(&Received::Answer(answer));
                    core.handle(millis(began), input);
                }
                Some(Output::Connect {
                    attempt,
                    address,
                    certificate,
                }) => {
                    let trust = certificate.map_or_else(|| means.trust.clone(), Trust::Pinned);
                    let link = Link::open(means, number, (address, &trust), PLAY_ALPN).await;
                    core.handle(millis(began), Input::Connected { attempt });
                    let mut session = Self {
                        core,
                        began,
                        attempt,
                        link,
                    };
                    session.carry_out().await;
                    return session;
                }
                Some(other) => panic!("before it has a connection, a session asks for {other:?}"),
                None => {
                    let due = core.deadline().expect("a session that is not open waits for something");
                    sleep_until((began + Duration::from_millis(due.0)).into()).await;
                    core.tick(millis(began));
                }
            }
        }
    }

    /// The avatar that the session controls, once it is in view.
    fn avatar(&self) -> Option<EntityId> {
        let (entity, type_id) = self.core.controls()?;
        let avatar = self.core.schema().type_named("Avatar")?.id;
        let is_seen = self.core.view(Part::Cell).entities().contains_key(&entity);
        (type_id == avatar && is_seen).then_some(entity)
    }

    /// The next frame or datagram; meanwhile the core does what is due. It is not applied before [`Self::take`].
    pub(crate) async fn receive(&mut self) -> Received {
        loop {
            let due = self
                .core
                .deadline()
                .map(|due| self.began + Duration::from_millis(due.0));
            tokio::select! {
                received = self.link.receive() => return received,
                () = sleep_until(due.unwrap_or(self.began).into()), if due.is_some() => {
                    self.core.tick(millis(self.began));
                }
            }
            self.carry_out().await;
        }
    }

    /// Applies what was received, and sends the core's answers.
    pub(crate) async fn take(&mut self, received: Received) {
        let attempt = self.attempt;
        let input = match received {
            Received::Answer(_) => return,
            Received::Frame(body) => Input::Frame { attempt, body },
            Received::Datagram(bytes) => Input::Datagram { attempt, bytes },
        };
        self.core.handle(millis(self.began), input);
        while let Some(event) = self.core.poll_event() {
            if let Event::Ended(reason) = event {
                panic!("a session ended: {reason}");
            }
        }
        self.carry_out().await;
    }

    pub(crate) fn core(&self) -> &ClientCore {
        &self.core
    }

    /// Statistics of the QUIC connection.
    pub(crate) fn stats(&self) -> Option<ConnectionStats> {
        match &self.link {
            Link::Quic { connection, .. } => Some(connection.stats()),
            Link::WebSocket(_) => None,
        }
    }

    /// Stays until it is dropped.
    pub(crate) async fn stay(mut self) {
        loop {
            let received = self.receive().await;
            self.take(received).await;
        }
    }

    async fn carry_out(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Frame(body) => self.link.send_frame(&body).await,
                Output::Datagram(bytes) => self.link.send_datagram(bytes).await,
                other => panic!("a session left its connection: {other:?}"),
            }
        }
    }
}

/// Sends a request to the login service, and returns its answer.
async fn ask(means: &Means, number: u64, request: &[u8]) -> Vec<u8> {
    let mut link = Link::open(means, number, (means.login, &means.trust), LOGIN_ALPN).await;
    link.send_frame(request).await;
    loop {
        if let Received::Frame(answer) = link.receive().await
            && !matches!(LoginAnswer::read(&answer), Ok(LoginAnswer::Queued(_)))
        {
            link.close().await;
            return answer;
        }
    }
}

/// A connection.
enum Link {
    Quic {
        connection: Connection,
        send: SendStream,
        receive: RecvStream,
        buffer: FrameBuffer,
    },
    WebSocket(Box<WebSocketStream<TlsStream<TcpStream>>>),
}

impl Link {
    async fn open(means: &Means, number: u64, to: (SocketAddr, &Trust), alpn: &[u8]) -> Self {
        match means.transport {
            Transport::Quic => {
                let at = usize::try_from(number).expect("there are few sessions") % means.endpoints.len();
                Self::open_quic(&means.endpoints[at], to, alpn).await
            }
            Transport::WebSocket => Self::open_web_socket(to, alpn).await,
        }
    }

    async fn open_quic(endpoint: &Endpoint, (address, trust): (SocketAddr, &Trust), alpn: &[u8]) -> Self {
        let (mut tls, name) = trust.tls().expect("TLS is set up");
        tls.alpn_protocols = vec![alpn.to_vec()];
        let crypto = QuicClientConfig::try_from(tls).expect("TLS is that of QUIC");
        let mut transport = TransportConfig::default();
        transport
            .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS))))
            .keep_alive_interval(Some(KEEP_ALIVE))
            .max_concurrent_bidi_streams(VarInt::from_u32(0))
            .max_concurrent_uni_streams(VarInt::from_u32(1));
        let mut config = ClientConfig::new(Arc::new(crypto));
        config.transport_config(Arc::new(transport));
        let connecting = endpoint
            .connect_with(config, address, name)
            .expect("it can be connected to");
        let connection = connecting.await.expect("a connection is accepted");
        let (send, receive) = connection.open_bi().await.expect("a stream is opened");
        Self::Quic {
            connection,
            send,
            receive,
            buffer: FrameBuffer::new(MAX_DOWNSTREAM_FRAME),
        }
    }

    async fn open_web_socket((address, trust): (SocketAddr, &Trust), alpn: &[u8]) -> Self {
        let stream = TcpStream::connect(address).await.expect("a connection is accepted");
        stream.set_nodelay(true).expect("a socket option is set");
        let (tls, name) = trust.tls().expect("TLS is set up");
        let name = ServerName::try_from(name.to_owned()).expect("it is a name");
        let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await;
        let stream = stream.expect("TLS is set up with the server");
        let request = format!("wss://localhost:{}/", address.port()).into_client_request();
        let mut request = request.expect("it is a URL");
        // As the ALPN, with a dot for the slash, which a subprotocol must not have.
        let protocol = String::from_utf8_lossy(alpn).replace('/', ".");
        let protocol = HeaderValue::from_str(&protocol).expect("it is a header");
        request.headers_mut().insert("sec-websocket-protocol", protocol);
        let (socket, _) = client_async(request, stream).await.expect("a WebSocket is accepted");
        Self::WebSocket(Box::new(socket))
    }

    async fn send_frame(&mut self, body: &[u8]) {
        match self {
            Self::Quic { send, .. } => {
                let mut bytes = Vec::new();
                put_frame(&mut bytes, body, MAX_UPSTREAM_FRAME).expect("the core's frames are small");
                send.write_all(&bytes).await.expect("the connection is open");
            }
            Self::WebSocket(socket) => {
                let message = Message::Binary([&[FRAME], body].concat().into());
                socket.send(message).await.expect("the connection is open");
            }
        }
    }

    async fn send_datagram(&mut self, bytes: Vec<u8>) {
        match self {
            Self::Quic { connection, .. } => connection.send_datagram(bytes.into()).expect("the connection is open"),
            Self::WebSocket(socket) => {
                let message = Message::Binary([&[DATAGRAM], bytes.as_slice()].concat().into());
                socket.send(message).await.expect("the connection is open");
            }
        }
    }

    /// The next frame or datagram. Cancel-safe.
    async fn receive(&mut self) -> Received {
        match self {
            Self::Quic {
                connection,
                receive,
                buffer,
                ..
            } => loop {
                if let Some(body) = buffer.next_frame().expect("the server's frames are in bounds") {
                    return Received::Frame(body.to_vec());
                }
                tokio::select! {
                    chunk = receive.read_chunk(READ_SIZE, true) => {
                        let chunk = chunk.expect("the connection is open").expect("the stream is open");
                        buffer.push(&chunk.bytes);
                    }
                    // Of a connection that was closed, the stream has the rest of what the server sent.
                    Ok(datagram) = connection.read_datagram() => return Received::Datagram(datagram.to_vec()),
                }
            },
            Self::WebSocket(socket) => loop {
                let message = socket
                    .next()
                    .await
                    .expect("the connection is open")
                    .expect("it can be read");
                match message {
                    Message::Binary(bytes) => match bytes.split_first() {
                        Some((&FRAME, body)) => return Received::Frame(body.to_vec()),
                        Some((&DATAGRAM, bytes)) => return Received::Datagram(bytes.to_vec()),
                        other => panic!("a message of an unknown kind: {other:?}"),
                    },
                    Message::Ping(_) => socket.flush().await.expect("the connection is open"),
                    other => panic!("the server sent {other:?}"),
                }
            },
        }
    }

    async fn close(self) {
        match self {
            Self::Quic { connection, .. } => connection.close(VarInt::from_u32(0), &[]),
            // The server has the request, and closes by itself if this does not arrive.
            Self::WebSocket(mut socket) => drop(socket.close().await),
        }
    }
}

fn millis(began: Instant) -> Millis {
    Millis(u64::try_from(began.elapsed().as_millis()).unwrap_or(u64::MAX))
}
