//! Clients that connect by WebTransport: the same frames, and the violations that are possible only there.

mod hostile;

use std::time::SystemTime;

use annals_host::{
    edge::{
        Arrival, Edge, EdgeCommand, EdgeEvent, Identity, Serves, WebOrigins, bind_with_web, web_certificate_hashes,
    },
    violations::{Violation, Violations},
};
use annals_ids::Hash;
use annals_node::ConnectionId;
use annals_wire::client::{CloseReason, MAX_UPSTREAM_FRAME, PLAY_ALPN, ToServer, ToServerDatagram};
use tokio::{io::AsyncReadExt, sync::mpsc};
use wtransport::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream,
    endpoint::{ConnectOptions, endpoint_side},
    error::{ConnectingError, ConnectionError},
    tls::Sha256Digest,
};

use crate::edge::{
    hostile::{call, hello},
    raw,
    realm::{loopback, within},
};

const PAGE: &str = "https://game.example";
const PLAY: &str = "/annals-play.2";

/// An edge for play, and its events.
struct Front {
    edge: Edge,
    events: mpsc::Receiver<EdgeEvent>,
    directory: tempfile::TempDir,
}

/// A client. Dropping the endpoint would close it.
struct Player {
    connection: Connection,
    _endpoint: Endpoint<endpoint_side::Client>,
}

impl Front {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let identity = Identity::development(directory.path()).unwrap();
        let sockets = bind_with_web(loopback(), WebOrigins::Only(vec![PAGE.to_owned()])).unwrap();
        let (sender, events) = mpsc::channel(16);
        let edge = Edge::start(sockets, &identity, (Serves::Play, Violations::default()), sender).unwrap();
        Self {
            edge,
            events,
            directory,
        }
    }

    /// The hashes that pages are given.
    fn hashes(&self) -> [Hash; 2] {
        web_certificate_hashes(self.directory.path(), SystemTime::now()).unwrap()
    }

    /// Connects with a certificate that is checked as browsers do.
    async fn try_connect(&self, path: &str, origin: Option<&str>) -> Result<Player, ConnectingError> {
        let hashes = self.hashes().map(|hash| Sha256Digest::new(hash.0));
        let config = ClientConfig::builder()
            .with_bind_address(loopback())
            .with_server_certificate_hashes(hashes)
            .build();
        let endpoint = Endpoint::client(config).unwrap();
        let mut options = ConnectOptions::builder(format!("https://{}{path}", self.edge.address()));
        if let Some(origin) = origin {
            options = options.add_header("origin", origin);
        }
        let connection = within("the handshake", endpoint.connect(options.build())).await?;
        Ok(Player {
            connection,
            _endpoint: endpoint,
        })
    }

    async fn connect(&self) -> Player {
        self.try_connect(PLAY, None).await.unwrap()
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

    /// The reason of the next close.
    async fn closed(&mut self) -> CloseReason {
        loop {
            if let Arrival::Closed(reason) = self.arrival().await {
                return reason;
            }
        }
    }
}

impl Player {
    /// Opens the stream, and sends these bytes on it.
    async fn send(&self, bytes: &[u8]) -> (SendStream, RecvStream) {
        let opening = self.connection.open_bi().await.unwrap();
        let (mut send, receive) = opening.await.unwrap();
        send.write_all(bytes).await.unwrap();
        (send, receive)
    }

    /// The code with which the server closes.
    async fn closed(&self) -> CloseReason {
        // The server opens no streams: this waits until the session ends.
        match within("the close", self.connection.accept_uni()).await {
            Err(ConnectionError::ApplicationClosed(close)) => CloseReason::from_code(close.code().into_inner()),
            other => panic!("closed without a reason: {:?}", other.map(|_| "a stream")),
        }
    }

    async fn datagram(&self) -> Vec<u8> {
        let received = within("a datagram", self.connection.receive_datagram()).await;
        received.unwrap().payload().to_vec()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_and_datagrams_travel_both_ways() {
    let mut front = Front::start();
    let player = front.try_connect(PLAY, Some(PAGE)).await.unwrap();
    let opened = front.next().await;
    assert!(matches!(opened.what, Arrival::Opened { from } if from.ip().is_loopback()));
    let connection = opened.connection;

    let (mut send, mut receive) = player.send(&hello()).await;
    assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    send.write_all(&call(1, 9)).await.unwrap();
    assert!(matches!(front.arrival().await, Arrival::Frame(ToServer::Call(call)) if call.number.0 == 1));
    player.connection.send_datagram([2, 3, 9, 0, 1, 0]).unwrap();
    assert!(matches!(
        front.arrival().await,
        Arrival::Datagram(ToServerDatagram::MovementAck { view: 3, .. })
    ));
    player.connection.send_datagram([0]).unwrap();
    assert_eq!(player.datagram().await, [0], "an echo");

    let edge = front.edge.handle();
    edge.apply(EdgeCommand::Datagram {
        connection,
        bytes: vec![8, 9],
    });
    assert_eq!(player.datagram().await, [8, 9]);
    edge.apply(EdgeCommand::BackgroundFrame {
        connection,
        body: vec![5, 6],
    });
    let mut beside = within("a stream", player.connection.accept_uni()).await.unwrap();
    let mut received = [0; 3];
    within("a frame", beside.read_exact(&mut received)).await.unwrap();
    assert_eq!(received, [2, 5, 6], "on a stream of the session");
    edge.apply(EdgeCommand::Frame {
        connection,
        body: vec![7; 100_000],
    });
    edge.apply(EdgeCommand::Close {
        connection,
        reason: CloseReason::Ended,
    });
    let mut received = vec![0; 100_003];
    within("a frame", receive.read_exact(&mut received)).await.unwrap();
    assert_eq!(received[..3], [0xa0, 0x8d, 0x06], "the length");
    assert!(received[3..].iter().all(|byte| *byte == 7));
    let mut last = Vec::new();
    within("the end of the stream", receive.read_to_end(&mut last))
        .await
        .unwrap();
    assert_eq!(
        last,
        [0, 1, CloseReason::Ended.code()],
        "an empty frame, and one with the reason"
    );
    assert_eq!(player.closed().await, CloseReason::Ended);
    assert_eq!(front.arrival().await, Arrival::Closed(CloseReason::Ended));
    assert_eq!(front.edge.counters().accepted, 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn both_protocols_are_served_on_one_port_with_certificates_of_their_own() {
    let mut front = Front::start();
    let _player = front.connect().await;
    let directory = front.directory.path().to_owned();
    // It trusts the development certificate, which does not change.
    let (_connection, ..) = raw::send(front.edge.address(), &directory, PLAY_ALPN, &hello()).await;
    assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    let pinned = Identity::development(&directory).unwrap().pinned().unwrap();
    assert!(!front.hashes().contains(&pinned));
    assert_eq!(front.edge.counters().accepted, 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn violations_close_the_session_with_the_reason() {
    let mut front = Front::start();
    let after_hello = |bytes: &[u8]| [&hello(), bytes].concat();
    let mut too_long = Vec::new();
    annals_event::put_number(&mut too_long, MAX_UPSTREAM_FRAME as u64 + 1);
    for (what, bytes, reason) in [
        ("no hello", vec![3, 1, 2, 3], CloseReason::Malformed),
        ("a second hello", after_hello(&hello()), CloseReason::Malformed),
        ("an unknown frame", after_hello(&[1, 99]), CloseReason::Malformed),
        (
            "a length above the limit",
            after_hello(&too_long),
            CloseReason::TooLarge,
        ),
    ] {
        let player = front.connect().await;
        let _stream = player.send(&bytes).await;
        assert_eq!(
            (player.closed().await, front.closed().await),
            (reason, reason),
            "{what}"
        );
    }
    let player = front.connect().await;
    let (mut send, _receive) = player.send(&hello()[..40]).await;
    send.finish().await.unwrap();
    assert_eq!(front.closed().await, CloseReason::Malformed, "half a frame");
    for (what, datagram, reason) in [
        ("a malformed datagram", vec![0xee; 30], CloseReason::Malformed),
        ("an empty datagram", vec![], CloseReason::Malformed),
        ("a rush of echo requests", vec![0], CloseReason::TooFast),
    ] {
        let player = front.connect().await;
        let _stream = player.send(&hello()).await;
        assert!(matches!(front.arrival().await, Arrival::Hello(_)));
        // Datagrams get lost, more of them on a busy machine: they are sent until the server closes.
        let sending = async {
            loop {
                let _ = player.connection.send_datagram(&datagram);
                tokio::task::yield_now().await;
            }
        };
        let closed = tokio::select! {
            closed = player.closed() => closed,
            () = sending => unreachable!("it is sent for ever"),
        };
        assert_eq!((closed, front.closed().await), (reason, reason), "{what}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_without_a_first_frame_is_closed() {
    let mut front = Front::start();
    let (mute, slow) = (front.connect().await, front.connect().await);
    let _stream = slow.send(&hello()[..10]).await;
    assert_eq!(mute.closed().await, CloseReason::Silent);
    assert_eq!(slow.closed().await, CloseReason::Silent);
    assert_eq!(front.closed().await, CloseReason::Silent);
    assert_eq!(front.closed().await, CloseReason::Silent);
    assert_eq!(front.edge.violations().of(Violation::Silent), 2);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_host_may_have_more_clients_that_have_sent_their_first_frame_than_others() {
    let mut front = Front::start();
    let (address, directory) = (front.edge.address(), front.directory.path().to_owned());
    let mut playing = Vec::new();
    for _ in 0..260 {
        playing.push(raw::send(address, &directory, PLAY_ALPN, &hello()).await);
        assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    }
    let player = front.connect().await;
    let _stream = player.send(&hello()).await;
    assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    assert_eq!(front.edge.counters().accepted, 261);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_pages_and_services_are_refused() {
    let front = Front::start();
    let refused = async |path, origin| match front.try_connect(path, origin).await {
        Err(error) => assert!(matches!(error, ConnectingError::SessionRejected), "{error}"),
        Ok(_) => panic!("{path} {origin:?} is accepted"),
    };
    refused(PLAY, Some("https://evil.example")).await;
    refused(PLAY, Some("null")).await;
    refused("/annals-login.2", None).await;
    // Of earlier clients, which expect no last frames: they fall back to a WebSocket.
    refused("/annals-play.1", None).await;
    refused("/", Some(PAGE)).await;
    let _page = front.try_connect(PLAY, Some(PAGE)).await.unwrap();
    let _program = front.connect().await;
    within("all to be counted", async {
        let of = |violation| front.edge.violations().of(violation);
        let counted = || (of(Violation::ForeignOrigin), of(Violation::FailedHandshake));
        while (counted(), front.edge.counters().accepted) != ((2, 3), 2) {
            tokio::task::yield_now().await;
        }
    })
    .await;
    front.edge.handle().set_limit(2);
    assert!(front.try_connect(PLAY, None).await.is_err(), "there are too many");
    assert_eq!(front.edge.violations().of(Violation::Refused), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_closed_as_too_slow() {
    let mut front = Front::start();
    let player = front.connect().await;
    let _stream = player.send(&hello()).await;
    let connection = front.next().await.connection;
    let edge = front.edge.handle();
    while front.edge.violations().of(Violation::TooSlow) == 0 {
        edge.apply(EdgeCommand::Frame {
            connection,
            body: vec![0; 1 << 20],
        });
        tokio::task::yield_now().await;
    }
    assert_eq!(front.closed().await, CloseReason::TooSlow);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_sessions_are_closed_when_the_edge_shuts_down() {
    let mut front = Front::start();
    let player = front.connect().await;
    let _stream = player.send(&hello()).await;
    assert_eq!(front.next().await.connection, ConnectionId(1));
    let closed = tokio::spawn(async move { player.closed().await });
    front.edge.shut_down().await;
    assert_eq!(closed.await.unwrap(), CloseReason::ShuttingDown);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_killed_client_is_lost() {
    let mut front = Front::start();
    let player = front.connect().await;
    let _stream = player.send(&hello()).await;
    assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    drop(player);
    assert_eq!(front.arrival().await, Arrival::Closed(CloseReason::Lost));
}
