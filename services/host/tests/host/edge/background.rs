//! Frames in the background: they arrive in order, and no other frame waits for them.

use std::net::SocketAddr;

use annals_client::Event;
use annals_host::{
    edge::{EdgeCommand, EdgeHandle},
    violations::Violation,
};
use annals_ids::{CallNumber, Hash};
use annals_node::ConnectionId;
use annals_wire::client::{
    DownloadBegun, DownloadChunk, DownloadId, DownloadProgress, MAX_CHUNK_BYTES, PLAY_ALPN, ToClient, value_hash,
};
use quinn::{Connection, RecvStream, SendStream};

use crate::edge::{
    hostile::hello,
    raw,
    realm::{AVATAR, Realm, drive, until_event, within},
};

/// The first connection of an edge.
const FIRST: ConnectionId = ConnectionId(1);

/// More than a client's windows allow to be under way: 4 MB.
const FRAMES: usize = 500;

async fn connect(realm: &Realm, to: SocketAddr) -> (Connection, SendStream, RecvStream) {
    let (client, send, mut receive) = raw::send(to, realm.directory.path(), PLAY_ALPN, &hello()).await;
    frame(&mut receive).await;
    (client, send, receive)
}

/// The body of the next frame.
async fn frame(receive: &mut RecvStream) -> Vec<u8> {
    let (mut length, mut shift) = (0, 0);
    loop {
        let mut byte = [0; 1];
        within("a length", receive.read_exact(&mut byte)).await.unwrap();
        length |= usize::from(byte[0] & 0x7f) << shift;
        shift += 7;
        if byte[0] < 0x80 {
            break;
        }
    }
    let mut body = vec![0; length];
    within("a body", receive.read_exact(&mut body)).await.unwrap();
    body
}

fn background(number: usize) -> Vec<u8> {
    let mut body = vec![7; MAX_CHUNK_BYTES];
    body[..8].copy_from_slice(&(number as u64).to_le_bytes());
    body
}

fn send_background(handle: &EdgeHandle, connection: ConnectionId, body: Vec<u8>) {
    handle.apply(EdgeCommand::BackgroundFrame { connection, body });
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_frame_does_not_wait_for_those_beside_it() {
    let realm = Realm::start();
    let base = realm.start_base();
    let handle = base.handle();
    let (client, _send, mut receive) = connect(&realm, base.address()).await;
    for number in 0..FRAMES {
        send_background(&handle, FIRST, background(number));
    }
    handle.apply(EdgeCommand::Frame {
        connection: FIRST,
        body: vec![1, 2, 3],
    });
    assert_eq!(frame(&mut receive).await, [1, 2, 3], "nothing was read beside it");
    let mut beside = within("a stream", client.accept_uni()).await.unwrap();
    for number in 0..FRAMES {
        assert_eq!(frame(&mut beside).await, background(number));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_nothing_beside_its_stream_is_closed_before_memory_is_full() {
    let realm = Realm::start();
    let base = realm.start_base();
    let handle = base.handle();
    let (client, _send, _receive) = connect(&realm, base.address()).await;
    for number in 0..4 * FRAMES {
        send_background(&handle, FIRST, background(number));
    }
    within("the close", client.closed()).await;
    realm
        .until_counted(&base, "the close to be counted", |edge| {
            edge.violations().of(Violation::TooSlow) == 1
        })
        .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_sdk_downloads_over_its_own_stream_and_the_one_beside_it() {
    let realm = Realm::start();
    let _base = realm.start_base();
    realm.set_health(100);
    let mut client = realm.client();
    until_event(&mut client, "the session", |event| {
        matches!(event, Event::Connected { .. })
    })
    .await;
    let content: Vec<u8> = (0..=u8::MAX).cycle().take(2 * MAX_CHUNK_BYTES + 5).collect();
    let id = DownloadId {
        entity: AVATAR,
        number: CallNumber(1),
    };
    let begun = |hash: Hash| {
        ToClient::DownloadBegun(DownloadBegun {
            id,
            size: content.len() as u64,
            hash,
            description: "map".to_owned(),
        })
    };
    realm.world().send(&begun(value_hash(&content)));
    let progress = |upto: usize| DownloadProgress { id, upto: upto as u64 };
    drive(&mut client, &realm, "the client to ask", |world| {
        world.progress.contains(&progress(0))
    })
    .await;
    for (number, chunk) in content.chunks(MAX_CHUNK_BYTES).enumerate() {
        realm
            .world()
            .send_background_frame(&ToClient::DownloadChunk(DownloadChunk {
                id,
                offset: (number * MAX_CHUNK_BYTES) as u64,
                content: chunk.to_vec(),
            }));
    }
    let events = until_event(&mut client, "the download", |event| {
        matches!(event, Event::Downloaded { .. })
    })
    .await;
    let Some(Event::Downloaded {
        description,
        content: arrived,
        ..
    }) = events.last()
    else {
        panic!("{events:?}");
    };
    assert_eq!((description.as_str(), arrived), ("map", &content));
    drive(&mut client, &realm, "the answer", |world| {
        world.progress.contains(&progress(content.len()))
    })
    .await;
    // It is not sent again to a base that does not know that it has arrived.
    realm.world().send(&begun(value_hash(&content)));
    drive(&mut client, &realm, "the same answer", |world| {
        world
            .progress
            .iter()
            .filter(|has| **has == progress(content.len()))
            .count()
            == 2
    })
    .await;
}
