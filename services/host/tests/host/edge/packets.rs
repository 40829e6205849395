//! Frames and datagrams of one tick leave in one packet, also if the frames come a moment later.

use std::net::SocketAddr;

use annals_host::edge::EdgeCommand;
use annals_node::ConnectionId;
use annals_wire::client::{CloseReason, PLAY_ALPN};
use quinn::{Connection, RecvStream, SendStream};

use crate::edge::{
    hostile::hello,
    raw,
    realm::{Realm, within},
};

const ROUNDS: u64 = 50;

/// The first connection of an edge.
const FIRST: ConnectionId = ConnectionId(1);

/// A client that has read the answer to its hello.
async fn connect(realm: &Realm, to: SocketAddr) -> (Connection, SendStream, RecvStream) {
    let (client, send, mut receive) = raw::send(to, realm.directory.path(), PLAY_ALPN, &hello()).await;
    let mut length = [0; 1];
    within("the answer", receive.read_exact(&mut length)).await.unwrap();
    let mut body = vec![0; usize::from(length[0])];
    within("its body", receive.read_exact(&mut body)).await.unwrap();
    (client, send, receive)
}

/// Times that other tasks run between a datagram and the frame after it: enough for the datagram to leave.
const TURNS: usize = 20;

/// On one thread: what a task sends leaves once it waits.
#[tokio::test]
async fn a_frame_and_a_datagram_share_a_packet() {
    let realm = Realm::start();
    let base = realm.start_base();
    let handle = base.handle();
    let (client, _send, mut receive) = connect(&realm, base.address()).await;
    let before = client.stats();
    for round in 0..ROUNDS {
        let number = u8::try_from(round).unwrap();
        handle.apply(EdgeCommand::Datagram {
            connection: FIRST,
            bytes: vec![number; 100],
        });
        if round % 2 == 0 {
            for _ in 0..TURNS {
                tokio::task::yield_now().await;
            }
        }
        handle.apply(EdgeCommand::Frame {
            connection: FIRST,
            body: vec![number; 100],
        });
        let mut frame = [0; 101];
        within("a frame", receive.read_exact(&mut frame)).await.unwrap();
        assert_eq!((frame[0], &frame[1..]), (100, &[number; 100][..]));
        let datagram = within("a datagram", client.read_datagram()).await.unwrap();
        assert_eq!(&datagram[..], [number; 100]);
    }
    let after = client.stats();
    assert_eq!(after.frame_rx.datagram - before.frame_rx.datagram, ROUNDS);
    let packets = after.udp_rx.datagrams - before.udp_rx.datagrams;
    // Some are probes of the path, or acknowledgements.
    assert!(packets < ROUNDS * 3 / 2, "{packets} packets for {ROUNDS} rounds");
}

#[tokio::test]
async fn a_datagram_without_a_frame_leaves_alone() {
    let realm = Realm::start();
    let base = realm.start_base();
    let (client, _send, _receive) = connect(&realm, base.address()).await;
    for number in 0..3 {
        base.handle().apply(EdgeCommand::Datagram {
            connection: FIRST,
            bytes: vec![number; 100],
        });
        let datagram = within("a datagram", client.read_datagram()).await.unwrap();
        assert_eq!(&datagram[..], [number; 100]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn frames_before_a_close_arrive_in_order() {
    let realm = Realm::start();
    let base = realm.start_base();
    let (client, _send, mut receive) = connect(&realm, base.address()).await;
    let frame = |number: u8| EdgeCommand::Frame {
        connection: FIRST,
        body: vec![number; 3],
    };
    let reason = CloseReason::Finished;
    let close = EdgeCommand::Close {
        connection: FIRST,
        reason,
    };
    base.handle().apply_all([frame(1), frame(2), frame(3), close, frame(4)]);
    let sent = within("all frames", receive.read_to_end(100)).await.unwrap();
    assert_eq!(sent, [3, 1, 1, 1, 3, 2, 2, 2, 3, 3, 3, 3]);
    assert_eq!(raw::closed_for(&client).await, reason);
}
