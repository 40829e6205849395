//! Clients that violate the protocol.

use std::time::Duration;

use annals_def::split_mix;
use annals_event::put_number;
use annals_host::{
    edge::{Edge, EdgeCommand},
    violations::Violation,
};
use annals_ids::{CallNumber, Hash, Part, SessionId};
use annals_wire::client::{
    Call, CloseReason, Hello, LOGIN_ALPN, MAX_UPSTREAM_FRAME, PLAY_ALPN, Proof, Reads, Secret, ToServer, protocol_hash,
    put_frame,
};

use crate::edge::{
    raw::{self, closed_for},
    realm::{AVATAR, OWNER, Realm, SESSION, drive, schema, until_event, within},
};

fn framed(body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    put_frame(&mut bytes, body, MAX_UPSTREAM_FRAME).unwrap();
    bytes
}

pub(crate) fn hello() -> Vec<u8> {
    framed(&hello_body())
}

pub(crate) fn hello_body() -> Vec<u8> {
    let hello = Hello {
        protocol: protocol_hash(),
        schema: schema().client_fingerprint(),
        owner: OWNER,
        epoch: annals_ids::Epoch(1),
        session: SESSION,
        proof: Proof::Ticket(Secret([1; 32])),
        reads: Reads::Plain,
    };
    let mut body = Vec::new();
    hello.write(&mut body);
    body
}

pub(crate) fn call(number: u64, bytes: usize) -> Vec<u8> {
    framed(&call_body(number, bytes))
}

pub(crate) fn call_body(number: u64, bytes: usize) -> Vec<u8> {
    let (entity, part) = (AVATAR, Part::Cell);
    let call = Call {
        entity,
        part,
        number: CallNumber(number),
        is_oldest: false,
        message: vec![0; bytes + 1],
    };
    let mut body = Vec::new();
    ToServer::Call(call).write(&mut body);
    body
}

/// A well-behaved client is still served.
async fn still_serves(realm: &Realm) {
    let mut client = realm.client();
    until_event(&mut client, "a good client to be served", |event| {
        matches!(event, annals_client::Event::Entered { part: Part::Cell, .. })
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_frames_close_the_connection() {
    let realm = Realm::start();
    let base = realm.start_base();
    let directory = realm.directory.path();
    let mut too_long = Vec::new();
    put_number(&mut too_long, MAX_UPSTREAM_FRAME as u64 + 1);
    let after_hello = |bytes: &[u8]| [hello(), bytes.to_vec()].concat();
    let malformed_first = framed(b"GET / HTTP/1.1\r\n");
    let cases: [(&str, Vec<u8>, CloseReason); 7] = [
        ("another protocol", malformed_first, CloseReason::Malformed),
        ("a length above the limit", too_long.clone(), CloseReason::TooLarge),
        ("a length without end", vec![0xff; 12], CloseReason::TooLarge),
        ("an unknown frame", after_hello(&framed(&[99])), CloseReason::Malformed),
        (
            "a frame with more behind it",
            after_hello(&framed(&[3, 0])),
            CloseReason::Malformed,
        ),
        (
            "a large frame after the hello",
            after_hello(&too_long),
            CloseReason::TooLarge,
        ),
        ("a second hello", after_hello(&hello()), CloseReason::Malformed),
    ];
    for (what, bytes, reason) in &cases {
        let (connection, _send, _receive) = raw::send(base.address(), directory, PLAY_ALPN, bytes).await;
        assert_eq!(closed_for(&connection).await, *reason, "{what}");
    }
    // The stream ends in the middle of a frame.
    let (connection, mut send, _receive) = raw::send(base.address(), directory, PLAY_ALPN, &hello()[..40]).await;
    send.finish().unwrap();
    assert_eq!(closed_for(&connection).await, CloseReason::Malformed);
    // A malformed datagram.
    let (connection, _send, _receive) = raw::send(base.address(), directory, PLAY_ALPN, &hello()).await;
    realm
        .until("the hello to be taken", |world| world.closed.len() == 8)
        .await;
    within("datagrams to be refused", async {
        while connection.close_reason().is_none() {
            let _ = connection.send_datagram(vec![0xee; 30].into());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(closed_for(&connection).await, CloseReason::Malformed);

    realm
        .until("all ends to be reported", |world| world.closed.len() == 9)
        .await;
    let counters = base.counters();
    let of = |violation| base.violations().of(violation);
    assert_eq!(
        (of(Violation::Malformed), of(Violation::TooLarge), counters.accepted),
        (6, 3, 9)
    );
    still_serves(&realm).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_login_service_takes_one_request_and_nothing_else() {
    let realm = Realm::start();
    let _base = realm.start_base();
    let directory = realm.directory.path();
    let to = realm.login.address();
    let locate = framed(&[2, 9, 77]);
    let (connection, _send, mut receive) = raw::send(to, directory, LOGIN_ALPN, &locate).await;
    let answer = within("the answer", receive.read_to_end(1_000)).await.unwrap();
    assert_eq!(answer[1], 2, "it is located: {answer:?}");
    drop(connection);
    let (connection, _send, _receive) = raw::send(to, directory, LOGIN_ALPN, &hello()).await;
    assert_eq!(closed_for(&connection).await, CloseReason::Malformed);
    let twice = [framed(&[2, 9, 77]), framed(&[2, 9, 77])].concat();
    let (connection, _send, _receive) = raw::send(to, directory, LOGIN_ALPN, &twice).await;
    assert_eq!(closed_for(&connection).await, CloseReason::Malformed);
    still_serves(&realm).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn another_alpn_and_noise_are_rejected() {
    let realm = Realm::start();
    let base = realm.start_base();
    let directory = realm.directory.path();
    for alpn in [LOGIN_ALPN, b"h3", b""] {
        let refused = raw::connect(base.address(), directory, alpn).await;
        assert!(refused.is_err(), "a base speaks {:?}", String::from_utf8_lossy(alpn));
    }
    let failed = |edge: &Edge| edge.violations().of(Violation::FailedHandshake) == 3;
    realm.until_counted(&base, "three failed handshakes", failed).await;

    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut dice = split_mix(7);
    for round in 0..500 {
        let length = (dice() % 1_400) as usize;
        let mut noise: Vec<u8> = (0..length).map(|_| dice().to_le_bytes()[0]).collect();
        if let (true, Some(first)) = (round % 2 == 0, noise.first_mut()) {
            // Make it look like the first packet of a connection, which is parsed further.
            *first |= 0xc0;
        }
        socket.send_to(&noise, base.address()).unwrap();
    }
    still_serves(&realm).await;
}

/// One host starts more handshakes than there are slots, and completes none of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stalled_handshakes_do_not_delay_others() {
    let realm = Realm::start();
    let base = realm.start_base();
    let directory = realm.directory.path();
    let stalled = raw::Stalled::start(40, base.address(), PLAY_ALPN);
    within("handshakes to stall", async {
        while stalled.count() < 8 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
    // From another address: loopback has many.
    let elsewhere = (std::net::Ipv4Addr::new(127, 0, 0, 2), 0).into();
    for _ in 0..20 {
        let connected = raw::connect_from(elsewhere, base.address(), directory, PLAY_ALPN).await;
        assert!(connected.is_ok(), "{connected:?}");
    }
    let counters = base.counters();
    assert_eq!(
        (stalled.count(), base.violations().of(Violation::FailedHandshake)),
        (8, 0),
        "all that while, no place of a stalled handshake became free: {counters:?}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_silent_client_is_disconnected() {
    let realm = Realm::start();
    let base = realm.start_base();
    let directory = realm.directory.path();
    let mute = raw::connect(base.address(), directory, PLAY_ALPN).await.unwrap();
    let (slow, _send, _receive) = raw::send(base.address(), directory, PLAY_ALPN, &hello()[..10]).await;
    assert_eq!(closed_for(&mute).await, CloseReason::Silent);
    assert_eq!(closed_for(&slow).await, CloseReason::Silent);
    realm
        .until_counted(&base, "two silent clients", |edge| {
            edge.violations().of(Violation::Silent) == 2
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_above_the_rate_limit_is_warned_then_disconnected() {
    let realm = Realm::start();
    let base = realm.start_base();
    realm.world().withholds = true;
    let (connection, mut send, mut receive) =
        raw::send(base.address(), realm.directory.path(), PLAY_ALPN, &hello()).await;
    // Between the two rates, averaged over 4 s.
    for number in 1..=1_500 {
        send.write_all(&call(number, 4)).await.unwrap();
    }
    within("the warning", async {
        let mut received = Vec::new();
        while !received.windows(2).any(|pair| pair == [1, 8]) {
            let chunk = receive.read_chunk(1_000, true).await.unwrap().unwrap();
            received.extend_from_slice(&chunk.bytes);
        }
    })
    .await;
    for number in 1_501..=4_000 {
        if send.write_all(&call(number, 4)).await.is_err() {
            break;
        }
    }
    assert_eq!(closed_for(&connection).await, CloseReason::TooFast);
    let counters = base.counters();
    let too_fast = base.violations().of(Violation::TooFast);
    assert!(too_fast == 1 && counters.warned >= 1, "{too_fast}, {counters:?}");

    let (connection, mut send, _receive) = raw::send(base.address(), realm.directory.path(), PLAY_ALPN, &hello()).await;
    for number in 1..=4 {
        if send.write_all(&call(number, 60_000)).await.is_err() {
            break;
        }
    }
    assert_eq!(closed_for(&connection).await, CloseReason::TooFast);
    still_serves(&realm).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_does_not_read_is_disconnected() {
    let realm = Realm::start();
    let base = realm.start_base();
    let mut good = realm.client();
    drive(&mut good, &realm, "a good client", |world| world.is_played()).await;
    let handle = base.handle();
    let (connection, _send, _receive) = raw::send(base.address(), realm.directory.path(), PLAY_ALPN, &hello()).await;
    // Connections are numbered from 1: this is the second.
    let lazy = annals_node::ConnectionId(2);
    let body = vec![0; 64 << 10];
    within("the queue to overflow", async {
        while connection.close_reason().is_none() {
            handle.apply(EdgeCommand::Frame {
                connection: lazy,
                body: body.clone(),
            });
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    })
    .await;
    assert_eq!(closed_for(&connection).await, CloseReason::TooSlow);
    realm
        .until("its end to be reported", |world| {
            world.closed.contains(&CloseReason::TooSlow)
        })
        .await;
    realm
        .until_counted(&base, "one slow client", |edge| {
            edge.violations().of(Violation::TooSlow) == 1
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_unknown_session_is_rejected() {
    let realm = Realm::start();
    let base = realm.start_base();
    let hello = Hello {
        protocol: protocol_hash(),
        schema: Hash([0; 32]),
        owner: OWNER,
        epoch: annals_ids::Epoch(1),
        session: SessionId(1),
        proof: Proof::Resume(Secret([9; 32])),
        reads: Reads::Predicted,
    };
    let mut body = Vec::new();
    hello.write(&mut body);
    let (_connection, _send, mut receive) =
        raw::send(base.address(), realm.directory.path(), PLAY_ALPN, &framed(&body)).await;
    let mut answer = [0; 3];
    within("the answer", receive.read_exact(&mut answer)).await.unwrap();
    assert_eq!(answer, [2, 2, 2], "rejected: unknown session");
}
