//! Clients that speak HTTP/3 byte by byte.

use std::sync::Arc;

use annals_client::Trust;
use annals_def::split_mix;
use annals_host::{
    edge::{Arrival, Edge},
    violations::Violation,
};
use annals_wire::client::{CloseReason, PLAY_ALPN};
use quinn::{RecvStream, SendStream, crypto::rustls::QuicClientConfig};
use web_transport_proto::{Capsule, ConnectRequest, ConnectResponse, Frame, Settings, VarInt};

use super::Front;
use crate::edge::{
    hostile::{call, hello},
    raw,
    realm::{loopback, within},
};

/// Connects with the ALPN of browsers, and sends nothing.
async fn connect(front: &Front) -> quinn::Connection {
    let trust = Trust::Pinned(front.hashes()[0]);
    let (mut tls, name) = trust.tls().unwrap();
    tls.alpn_protocols = vec![b"h3".to_vec()];
    let config = quinn::ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls).unwrap()));
    let endpoint = quinn::Endpoint::client(loopback()).unwrap();
    let connecting = endpoint.connect_with(config, front.edge.address(), name).unwrap();
    within("the handshake", connecting).await.unwrap()
}

/// A session, as far as its streams.
struct Session {
    connection: quinn::Connection,
    _control: SendStream,
    request: (SendStream, RecvStream),
    stream: (SendStream, RecvStream),
}

impl Session {
    async fn open(front: &Front) -> Self {
        let connection = connect(front).await;
        let mut control = connection.open_uni().await.unwrap();
        let mut settings = Settings::default();
        settings.enable_webtransport(1);
        settings.write(&mut control).await.unwrap();
        let mut request = connection.open_bi().await.unwrap();
        let url = url::Url::parse("https://localhost/annals-play.2");
        let asked = ConnectRequest::new(url.unwrap());
        asked.write(&mut request.0).await.unwrap();
        let answer = within("the answer", ConnectResponse::read(&mut request.1)).await;
        assert!(answer.is_ok(), "{answer:?}");
        let mut stream = connection.open_bi().await.unwrap();
        stream.0.write_all(&[0x40, 0x41, 0]).await.unwrap();
        Self {
            connection,
            _control: control,
            request,
            stream,
        }
    }

    /// Sends capsules on the request's stream, in one frame.
    async fn send(&mut self, capsules: &[Capsule]) -> Result<(), quinn::WriteError> {
        let mut content = Vec::new();
        for capsule in capsules {
            capsule.encode(&mut content);
        }
        let mut frame = Vec::new();
        Frame::DATA.encode(&mut frame);
        VarInt::try_from(content.len()).unwrap().encode(&mut frame);
        self.request.0.write_all(&[frame, content].concat()).await
    }
}

async fn until(front: &Front, what: &str, holds: impl Fn(&Edge) -> bool) {
    within(what, async {
        while !holds(&front.edge) {
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_was_sent_before_a_close_is_read() {
    let mut front = Front::start();
    let mut session = Session::open(&front).await;
    session.stream.0.write_all(&hello()).await.unwrap();
    session.stream.0.write_all(&call(1, 1)).await.unwrap();
    session.stream.0.finish().unwrap();
    let close = Capsule::CloseWebTransportSession {
        code: 0,
        reason: String::new(),
    };
    session.send(&[close]).await.unwrap();
    session.request.0.finish().unwrap();
    assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    assert!(matches!(front.arrival().await, Arrival::Frame(_)));
    assert_eq!(front.arrival().await, Arrival::Closed(CloseReason::Finished));
    within("the end of the connection", session.connection.closed()).await;

    // A page that is closed says no reason.
    let mut session = Session::open(&front).await;
    session.stream.0.write_all(&hello()).await.unwrap();
    session.request.0.finish().unwrap();
    assert_eq!(front.closed().await, CloseReason::Lost);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_takes_few_capsules_and_one_stream() {
    let mut front = Front::start();
    let mut session = Session::open(&front).await;
    session.stream.0.write_all(&hello()).await.unwrap();
    assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    let another = tokio::time::timeout(std::time::Duration::from_millis(200), session.connection.open_bi()).await;
    assert!(another.is_err(), "a second stream");
    let unknown = Capsule::Unknown {
        typ: VarInt::from_u32(0x7777),
        payload: vec![1; 1_000].into(),
    };
    for _ in 0..20 {
        if session.send(std::slice::from_ref(&unknown)).await.is_err() {
            break;
        }
    }
    assert_eq!(front.closed().await, CloseReason::Lost);
    // A datagram of another session.
    let mut session = Session::open(&front).await;
    session.stream.0.write_all(&hello()).await.unwrap();
    assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    session.connection.send_datagram(vec![1, 0].into()).unwrap();
    assert_eq!(front.closed().await, CloseReason::Malformed);
    // A stream of another kind.
    let session = Session::open(&front).await;
    drop(session);
    assert_eq!(front.closed().await, CloseReason::Lost);
    assert_eq!(front.edge.violations().of(Violation::Malformed), 1);
}

/// TLS is complete, and the request of a session does not come.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn handshakes_that_stall_in_http_delay_only_their_host() {
    let front = Front::start();
    let mut stalled = Vec::new();
    for _ in 0..8 {
        stalled.push(connect(&front).await);
    }
    let ninth = tokio::time::timeout(std::time::Duration::from_millis(300), connect(&front)).await;
    assert!(ninth.is_err(), "a host has eight handshakes at a time");
    let elsewhere = (std::net::Ipv4Addr::new(127, 0, 0, 2), 0).into();
    let (to, directory) = (front.edge.address(), front.directory.path());
    let connected = raw::connect_from(elsewhere, to, directory, PLAY_ALPN).await;
    assert!(connected.is_ok(), "{connected:?}");
    until(&front, "it to be accepted", |edge| edge.counters().accepted == 1).await;
    assert_eq!(
        front.edge.violations().of(Violation::FailedHandshake),
        0,
        "no slot had to be freed for it"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_ends_the_handshake_and_nothing_else() {
    let mut front = Front::start();
    let mut dice = split_mix(11);
    let mut noise = |most: u64| -> Vec<u8> {
        let length = dice() % most;
        (0..length).map(|_| dice().to_le_bytes()[0]).collect()
    };
    let mut ended = 0;
    for round in 0..60 {
        let connection = connect(&front).await;
        for _ in 0..round % 4 {
            let Ok(Ok(mut control)) =
                tokio::time::timeout(std::time::Duration::from_millis(50), connection.open_uni()).await
            else {
                break;
            };
            let _ = control.write_all(&noise(200)).await;
            let _ = control.finish();
        }
        if let Ok((mut send, _receive)) = connection.open_bi().await {
            let _ = send.write_all(&noise(300)).await;
            let _ = send.finish();
        }
        connection.close(0_u8.into(), b"");
        ended += 1;
    }
    until(&front, "all to have failed", |edge| {
        edge.violations().of(Violation::FailedHandshake) == ended
    })
    .await;
    // A frame of the greatest length, of which nothing follows; and a client that says nothing.
    let long = connect(&front).await;
    let mut control = long.open_uni().await.unwrap();
    control.write_all(&[0, 4, 0xbf, 0xff, 0xff, 0xff]).await.unwrap();
    let mute = connect(&front).await;
    until(&front, "both to have failed", |edge| {
        edge.violations().of(Violation::FailedHandshake) == ended + 2
    })
    .await;
    drop((long, mute));
    let mut session = Session::open(&front).await;
    session.stream.0.write_all(&hello()).await.unwrap();
    assert!(matches!(front.arrival().await, Arrival::Hello(_)));
    assert_eq!(front.edge.counters().accepted, 1);
}
