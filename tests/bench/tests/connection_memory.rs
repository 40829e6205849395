//! Memory that an edge takes for each idle connection, beyond that of QUIC itself.

use std::{alloc::System, net::SocketAddr, sync::Arc, time::Duration};

use annals_bench::quic_echo;
use annals_client::Trust;
use annals_host::{
    edge::{Arrival, Edge, Identity, Serves, bind},
    violations::Violations,
};
use annals_ids::{Epoch, Hash, OwnerId, SessionId};
use annals_wire::client::{Hello, MAX_UPSTREAM_FRAME, PLAY_ALPN, Proof, Reads, Secret, protocol_hash, put_frame};
use quinn::{
    ClientConfig, Connection, Endpoint, RecvStream, SendStream, TransportConfig, VarInt,
    crypto::rustls::QuicClientConfig,
};
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};
use tokio::{sync::mpsc, time::timeout};

#[global_allocator]
static GLOBAL: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

const CONNECTIONS: usize = 200;

/// Maximum bytes of a connection beyond those of a bare one: its queues, tasks and tables, but no buffers.
const MOST: f64 = 10_000.0;

const TIMEOUT: Duration = Duration::from_secs(60);

/// Until acknowledgements have arrived on both sides, after which QUIC frees what it kept for retransmission. It has no
/// event for that.
const QUIET: Duration = Duration::from_millis(500);

/// Bytes that are allocated now.
fn held() -> f64 {
    let so_far = GLOBAL.stats();
    so_far.bytes_allocated as f64 - so_far.bytes_deallocated as f64
}

type Open = (Connection, SendStream, RecvStream);

/// A connection on whose stream the bytes were sent.
async fn connect(endpoint: &Endpoint, (to, certificate): (SocketAddr, Hash), alpn: &[u8], bytes: &[u8]) -> Open {
    let trust = Trust::Pinned(certificate);
    let (mut tls, name) = trust.tls().expect("TLS is set up");
    tls.alpn_protocols = Some(alpn.to_vec())
        .filter(|alpn| !alpn.is_empty())
        .into_iter()
        .collect();
    let crypto = QuicClientConfig::try_from(tls).expect("TLS is that of QUIC");
    let mut transport = TransportConfig::default();
    transport
        .max_concurrent_bidi_streams(VarInt::from_u32(0))
        .max_concurrent_uni_streams(VarInt::from_u32(1));
    let mut config = ClientConfig::new(Arc::new(crypto));
    config.transport_config(Arc::new(transport));
    let connecting = endpoint.connect_with(config, to, name);
    let connection = connecting
        .expect("it can be connected to")
        .await
        .expect("it is accepted");
    let (mut send, receive) = connection.open_bi().await.expect("a stream is opened");
    send.write_all(bytes).await.expect("it is sent");
    (connection, send, receive)
}

fn hello() -> Vec<u8> {
    let hello = Hello {
        protocol: protocol_hash(),
        schema: Hash([1; 32]),
        owner: OwnerId(1),
        epoch: Epoch(1),
        session: SessionId(1),
        proof: Proof::Ticket(Secret([1; 32])),
        reads: Reads::Plain,
    };
    let (mut body, mut frame) = (Vec::new(), Vec::new());
    hello.write(&mut body);
    put_frame(&mut frame, &body, MAX_UPSTREAM_FRAME).expect("it is small");
    frame
}

/// Bytes for each connection to a server that returns what it receives, both sides together.
async fn of_bare_connections(bytes: &[u8]) -> f64 {
    let server = quic_echo::serve();
    let endpoint = annals_client::client_endpoint(server.address().0).expect("a socket");
    let mut open = Vec::with_capacity(CONNECTIONS);
    let mut before = 0.0;
    // The first connection pays for what all share.
    for number in 0..=CONNECTIONS {
        let mut one = connect(&endpoint, server.address(), &[], bytes).await;
        let mut back = vec![0; bytes.len()];
        one.2.read_exact(&mut back).await.expect("it comes back");
        open.push(one);
        if number == 0 {
            before = held();
        }
    }
    tokio::time::sleep(QUIET).await;
    (held() - before) / CONNECTIONS as f64
}

/// The same for each connection to an edge, after its first frame.
async fn of_an_edge(bytes: &[u8]) -> f64 {
    let directory = tempfile::tempdir().expect("a folder");
    let identity = Identity::development(directory.path()).expect("a certificate");
    let (events, mut arriving) = mpsc::channel(64);
    let sockets = bind(([127, 0, 0, 1], 0).into()).expect("a socket");
    let edge = Edge::start(sockets, &identity, (Serves::Play, Violations::default()), events).expect("it starts");
    let target = (
        edge.address(),
        identity.pinned().expect("a development certificate is pinned"),
    );
    let endpoint = annals_client::client_endpoint(edge.address()).expect("a socket");
    let mut open = Vec::with_capacity(CONNECTIONS);
    let mut before = 0.0;
    for number in 0..=CONNECTIONS {
        open.push(connect(&endpoint, target, PLAY_ALPN, bytes).await);
        loop {
            let event = timeout(TIMEOUT, arriving.recv())
                .await
                .expect("in time")
                .expect("the edge runs");
            match event.what {
                Arrival::Opened { .. } => {}
                Arrival::Hello(_) => break,
                other => panic!("instead of a hello came {other:?}"),
            }
        }
        if number == 0 {
            before = held();
        }
    }
    tokio::time::sleep(QUIET).await;
    assert_eq!(edge.counters().open, open.len() as u64);
    (held() - before) / CONNECTIONS as f64
}

/// Runs it to its end, and frees everything that it has left behind.
fn alone(measurement: impl Future<Output = f64>) -> f64 {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    runtime.expect("a runtime").block_on(measurement)
}

#[test]
fn an_idle_connection_has_no_buffers() {
    let bytes = hello();
    let bare = alone(of_bare_connections(&bytes));
    let edge = alone(of_an_edge(&bytes));
    println!("bytes for each connection, client included: {bare:.0} bare, {edge:.0} of an edge");
    assert!(bare > 0.0);
    assert!(edge - bare < MOST, "{bare:.0}, {edge:.0}");
}
