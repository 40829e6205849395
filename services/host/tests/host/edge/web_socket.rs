//! Clients that connect by WebSocket: the same frames, and the violations that are possible only there.

use std::{net::SocketAddr, path::Path, sync::Arc};

use annals_host::{
    edge::{Arrival, Edge, EdgeCommand, EdgeEvent, Identity, Serves, WebOrigins, bind, bind_with_web},
    violations::{Violation, Violations},
};
use annals_node::ConnectionId;
use annals_wire::client::{
    CloseReason, MAX_UPSTREAM_FRAME, PLAY_ALPN, ToServer, ToServerDatagram, volatile::MovementAck,
};
use futures::{SinkExt, StreamExt};
use rustls::pki_types::ServerName;
use tokio::{
    io::AsyncWriteExt,
    net::{TcpSocket, TcpStream},
    sync::mpsc,
};
use tokio_rustls::{TlsConnector, client::TlsStream};
use tokio_tungstenite::{
    WebSocketStream, client_async,
    tungstenite::{
        Error, Message,
        client::IntoClientRequest,
        http::{HeaderValue, StatusCode},
    },
};

use crate::edge::{
    hostile::{call_body, hello_body},
    raw::{self, roots},
    realm::{loopback, within},
};

const PAGE: &str = "https://game.example";

type Socket = WebSocketStream<TlsStream<TcpStream>>;

/// An edge for play, and its events.
struct Front {
    edge: Edge,
    events: mpsc::Receiver<EdgeEvent>,
    directory: tempfile::TempDir,
}

impl Front {
    fn start(serves: Serves) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let identity = Identity::development(directory.path()).unwrap();
        let sockets = bind_with_web(loopback(), WebOrigins::Only(vec![PAGE.to_owned()])).unwrap();
        let (sender, events) = mpsc::channel(16);
        let edge = Edge::start(sockets, &identity, (serves, Violations::default()), sender).unwrap();
        Self {
            edge,
            events,
            directory,
        }
    }

    async fn connect(&self) -> Socket {
        let (to, directory) = (self.edge.address(), self.directory.path());
        connect(to, directory, Some("annals-play.1"), None).await.unwrap()
    }

    async fn next(&mut self) -> EdgeEvent {
        within("an event", self.events.recv()).await.expect("the edge runs")
    }

    /// The next event but `Opened`.
    async fn arrival(&mut self) -> Arrival {
        loop {
            let event = self.next().await;
            if !matches!(event.what, Arrival::Opened { .. }) {
                return event.what;
            }
        }
    }
}

/// Connects with this subprotocol, as a page of this origin or as a program.
async fn connect(
    to: SocketAddr,
    directory: &Path,
    subprotocol: Option<&str>,
    origin: Option<&str>,
) -> Result<Socket, Error> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&rustls::version::TLS13])
        .unwrap()
        .with_root_certificates(roots(directory))
        .with_no_client_auth();
    let stream = TcpStream::connect(to).await.unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let stream = TlsConnector::from(Arc::new(tls)).connect(name, stream).await.unwrap();
    let mut request = format!("wss://localhost:{}/", to.port()).into_client_request().unwrap();
    let headers = [("sec-websocket-protocol", subprotocol), ("origin", origin)];
    for (name, value) in headers {
        if let Some(value) = value {
            request
                .headers_mut()
                .insert(name, HeaderValue::from_str(value).unwrap());
        }
    }
    let (socket, response) = within("the handshake", client_async(request, stream)).await?;
    let chosen = response.headers().get("sec-websocket-protocol");
    assert_eq!(chosen.map(HeaderValue::as_bytes), subprotocol.map(str::as_bytes));
    Ok(socket)
}

fn message(kind: u8, body: &[u8]) -> Message {
    Message::Binary([&[kind], body].concat().into())
}

/// The code of the server's close.
async fn close_code(socket: &mut Socket) -> u16 {
    loop {
        match within("the close", socket.next()).await {
            Some(Ok(Message::Close(Some(frame)))) => return frame.code.into(),
            Some(Ok(_)) => {}
            other => panic!("closed without a reason: {other:?}"),
        }
    }
}

fn code(reason: CloseReason) -> u16 {
    4_000 + u16::from(reason.code())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_and_datagrams_travel_both_ways() {
    let mut front = Front::start(Serves::Play);
    let mut socket = front.connect().await;
    let opened = front.next().await;
    assert!(matches!(opened.what, Arrival::Opened { from } if from.ip().is_loopback()));
    let connection = opened.connection;

    socket.send(message(0, &hello_body())).await.unwrap();
    assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    socket.send(message(0, &call_body(1, 9))).await.unwrap();
    assert!(matches!(front.arrival().await, Arrival::Frame(ToServer::Call(call)) if call.number.0 == 1));
    let mut ack = Vec::new();
    let read = MovementAck { tick: 9, before: 1 };
    ToServerDatagram::MovementAck { view: 3, ack: read }.write(&mut ack);
    socket.send(message(1, &ack)).await.unwrap();
    assert!(matches!(
        front.arrival().await,
        Arrival::Datagram(ToServerDatagram::MovementAck { view: 3, .. })
    ));

    let edge = front.edge.handle();
    edge.apply(EdgeCommand::Frame {
        connection,
        body: vec![7; 100_000],
    });
    assert_eq!(received(&mut socket).await, message(0, &[7; 100_000]));
    edge.apply(EdgeCommand::Datagram {
        connection,
        bytes: vec![8, 9],
    });
    assert_eq!(received(&mut socket).await, message(1, &[8, 9]));
    edge.apply(EdgeCommand::BackgroundFrame {
        connection,
        body: vec![5, 6],
    });
    assert_eq!(received(&mut socket).await, message(0, &[5, 6]), "there is one stream");
    socket.send(message(2, &[])).await.unwrap();
    assert_eq!(received(&mut socket).await, message(2, &[]));

    edge.apply(EdgeCommand::Frame {
        connection,
        body: vec![1],
    });
    edge.apply(EdgeCommand::Close {
        connection,
        reason: CloseReason::Ended,
    });
    assert_eq!(
        received(&mut socket).await,
        message(0, &[1]),
        "what was sent before the close"
    );
    assert_eq!(close_code(&mut socket).await, code(CloseReason::Ended));
    assert_eq!(front.arrival().await, Arrival::Closed(CloseReason::Ended));
    assert_eq!(front.edge.counters().accepted, 1);
}

/// The next message but pings.
async fn received(socket: &mut Socket) -> Message {
    loop {
        match within("a message", socket.next()).await.unwrap().unwrap() {
            Message::Ping(_) => {}
            message => return message,
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_leaves_or_is_lost() {
    let mut front = Front::start(Serves::Play);
    let mut leaves = front.connect().await;
    leaves.send(message(0, &hello_body())).await.unwrap();
    leaves.send(message(0, &call_body(1, 1))).await.unwrap();
    let frame = tokio_tungstenite::tungstenite::protocol::CloseFrame {
        code: code(CloseReason::Finished).into(),
        reason: "".into(),
    };
    leaves.close(Some(frame)).await.unwrap();
    assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    assert!(matches!(front.arrival().await, Arrival::Frame(_)));
    assert_eq!(front.arrival().await, Arrival::Closed(CloseReason::Finished));

    let mut page_is_closed = front.connect().await;
    page_is_closed.close(None).await.unwrap();
    assert_eq!(front.arrival().await, Arrival::Closed(CloseReason::Lost));
    drop(front.connect().await);
    assert_eq!(front.arrival().await, Arrival::Closed(CloseReason::Lost));
    // TLS is ended properly, without a close of the WebSocket.
    let mut ends = front.connect().await;
    ends.get_mut().shutdown().await.unwrap();
    assert_eq!(front.arrival().await, Arrival::Closed(CloseReason::Lost));
    assert_eq!(front.edge.violations().of(Violation::Malformed), 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn violations_close_the_connection_with_the_reason() {
    let mut front = Front::start(Serves::Play);
    let after_hello = |message: Message| vec![self::message(0, &hello_body()), message];
    let cases = [
        ("text", vec![Message::Text("hello".into())], CloseReason::Malformed),
        (
            "an empty message",
            vec![Message::Binary(Vec::new().into())],
            CloseReason::Malformed,
        ),
        ("another kind", vec![message(3, &[])], CloseReason::Malformed),
        (
            "an echo request with a body",
            after_hello(message(2, &[0])),
            CloseReason::Malformed,
        ),
        ("no hello", vec![message(0, &[1, 2, 3])], CloseReason::Malformed),
        (
            "a second hello",
            after_hello(message(0, &hello_body())),
            CloseReason::Malformed,
        ),
        (
            "an unknown frame",
            after_hello(message(0, &[99])),
            CloseReason::Malformed,
        ),
        (
            "a malformed datagram",
            after_hello(message(1, &[0xee; 30])),
            CloseReason::Malformed,
        ),
        (
            "a large message",
            after_hello(message(0, &vec![0; MAX_UPSTREAM_FRAME + 1])),
            CloseReason::TooLarge,
        ),
        (
            "a rush of messages",
            after_hello(message(2, &[]))
                .into_iter()
                .chain(vec![message(2, &[]); 3_000])
                .collect(),
            CloseReason::TooFast,
        ),
    ];
    for (what, messages, reason) in cases {
        let said = provoke(&mut front, what, messages).await;
        let reported = loop {
            if let Arrival::Closed(reason) = front.arrival().await {
                break reason;
            }
        };
        assert_eq!((said, reported), (code(reason), reason), "{what}");
    }
}

/// Sends messages until the server closes; returns the code of its close.
async fn provoke(front: &mut Front, what: &str, messages: Vec<Message>) -> u16 {
    let (mut sink, mut stream) = front.connect().await.split();
    let sending = tokio::spawn(async move {
        for message in messages {
            // Once the server has closed, the rest cannot be sent.
            if sink.send(message).await.is_err() {
                break;
            }
        }
        sink
    });
    let closed = async {
        loop {
            match stream.next().await {
                Some(Ok(Message::Close(Some(frame)))) => return u16::from(frame.code),
                Some(Ok(_)) => {}
                other => panic!("{what}: closed without a reason: {other:?}"),
            }
        }
    };
    let code = within(what, closed).await;
    drop(sending.await);
    code
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_pages_and_protocols_are_refused() {
    let front = Front::start(Serves::Play);
    let (to, directory) = (front.edge.address(), front.directory.path());
    let play = Some("annals-play.1");
    let refused = async |subprotocol, origin| match connect(to, directory, subprotocol, origin).await {
        Err(Error::Http(response)) => response.status(),
        other => panic!("{subprotocol:?} {origin:?}: {other:?}"),
    };
    assert_eq!(refused(play, Some("https://evil.example")).await, StatusCode::FORBIDDEN);
    assert_eq!(refused(play, Some("null")).await, StatusCode::FORBIDDEN);
    assert_eq!(refused(Some("annals-login.1"), None).await, StatusCode::BAD_REQUEST);
    assert_eq!(refused(None, Some(PAGE)).await, StatusCode::BAD_REQUEST);
    connect(to, directory, play, Some(PAGE)).await.unwrap();
    connect(to, directory, play, None).await.unwrap();
    let of = |violation| front.edge.violations().of(violation);
    assert_eq!(front.edge.counters().accepted, 2);
    assert_eq!((of(Violation::ForeignOrigin), of(Violation::FailedHandshake)), (2, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_closed_as_too_slow() {
    let mut front = Front::start(Serves::Play);
    let mut socket = front.connect().await;
    socket.send(message(0, &hello_body())).await.unwrap();
    let connection = front.next().await.connection;
    let edge = front.edge.handle();
    while front.edge.violations().of(Violation::TooSlow) == 0 {
        edge.apply(EdgeCommand::Frame {
            connection,
            body: vec![0; 1 << 20],
        });
        tokio::task::yield_now().await;
    }
    loop {
        if let Arrival::Closed(reason) = front.arrival().await {
            assert_eq!(reason, CloseReason::TooSlow);
            break;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_connections_are_closed_when_the_edge_shuts_down() {
    let mut front = Front::start(Serves::Play);
    let mut socket = front.connect().await;
    assert_eq!(front.next().await.connection, ConnectionId(1));
    let closed = tokio::spawn(async move { close_code(&mut socket).await });
    front.edge.shut_down().await;
    assert_eq!(closed.await.unwrap(), code(CloseReason::ShuttingDown));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_web_handshakes_do_not_delay_clients_by_quic() {
    let front = Front::start(Serves::Play);
    let to = front.edge.address();
    let mut stalled = Vec::new();
    // As many hosts as it takes to hold all slots, with as many connections as each may have in a handshake.
    for host in 2..10_u8 {
        for _ in 0..8 {
            let socket = TcpSocket::new_v4().unwrap();
            socket.bind(SocketAddr::from(([127, 0, 0, host], 0))).unwrap();
            stalled.push(socket.connect(to).await.unwrap());
        }
    }
    within("the handshakes to begin", async {
        while front.edge.counters().open < 32 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let bytes = crate::edge::hostile::hello();
    let (_connection, ..) = raw::send(to, front.directory.path(), PLAY_ALPN, &bytes).await;
    within("the client to be accepted", async {
        while front.edge.counters().accepted == 0 {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert_eq!(
        front.edge.violations().of(Violation::FailedHandshake),
        0,
        "no slot had to be freed for it"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tcp_port_in_use_is_reported() {
    let taken = std::net::TcpListener::bind(loopback()).unwrap();
    let address = taken.local_addr().unwrap();
    let error = bind_with_web(address, WebOrigins::Any).unwrap_err().to_string();
    assert!(
        error.contains("cannot listen on TCP port") && error.contains("web_origins"),
        "{error}"
    );
    drop(bind(address).expect("the UDP port is free"));
}
