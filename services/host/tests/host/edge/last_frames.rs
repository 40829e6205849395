//! What one side sent before it closed arrives, however late the other reads it, and so does the reason.

use std::time::Duration;

use annals_client::{EndReason, Event};
use annals_def::Value;
use annals_host::edge::{Arrival, Identity, Serves};
use annals_ids::{Direction, Part, Position};
use annals_wire::client::{CloseReason, PLAY_ALPN};
use tokio::{sync::mpsc, time::timeout};

use crate::edge::{
    hostile::{call, hello},
    is_shown, raw,
    realm::{AVATAR, Realm, start_edge, until_event, within},
    shown,
};

/// Frames of a client or a server: more than either side keeps without reading on.
const FRAMES: u64 = 600;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_base_takes_all_calls_of_a_client_that_has_left() {
    let directory = tempfile::tempdir().unwrap();
    let identity = Identity::development(directory.path()).unwrap();
    let (events, mut taken) = mpsc::channel(1);
    let edge = start_edge(&identity, Serves::Play, events);
    let calls: Vec<u8> = (1..=FRAMES).flat_map(|number| call(number, 4)).collect();
    let bytes = [hello(), calls].concat();
    let (connection, mut send, _receive) = raw::send(edge.address(), directory.path(), PLAY_ALPN, &bytes).await;
    send.finish().unwrap();
    within("all to be received", send.stopped()).await.unwrap();
    connection.close(CloseReason::Finished.code().into(), &[]);
    let mut frames = 0;
    let reason = loop {
        let event = within("the next event", taken.recv()).await.expect("the edge runs");
        match event.what {
            Arrival::Frame(_) => frames += 1,
            Arrival::Closed(reason) => break reason,
            _ => {}
        }
    };
    assert_eq!((frames, reason), (FRAMES, CloseReason::Finished));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_has_finished_its_stream_closes_with_its_own_reason() {
    let directory = tempfile::tempdir().unwrap();
    let identity = Identity::development(directory.path()).unwrap();
    let (events, mut taken) = mpsc::channel(16);
    let edge = start_edge(&identity, Serves::Play, events);
    let bytes = [hello(), call(1, 4)].concat();
    let (connection, mut send, _receive) = raw::send(edge.address(), directory.path(), PLAY_ALPN, &bytes).await;
    send.finish().unwrap();
    loop {
        let event = within("the next event", taken.recv()).await.expect("the edge runs");
        match event.what {
            Arrival::Frame(_) => break,
            Arrival::Closed(reason) => panic!("closed by the base: {reason}"),
            _ => {}
        }
    }
    let by_the_base = timeout(Duration::from_millis(100), connection.closed()).await;
    assert!(by_the_base.is_err(), "{by_the_base:?}");
    connection.close(CloseReason::Finished.code().into(), &[]);
    let event = within("the close", taken.recv()).await.expect("the edge runs");
    assert!(
        matches!(event.what, Arrival::Closed(CloseReason::Finished)),
        "{:?}",
        event.what
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_moves_after_its_session_was_ended_learns_the_reason() {
    let realm = Realm::start();
    let base = realm.start_base();
    realm.set_health(0);
    let mut client = realm.client();
    until_event(&mut client, "the avatar", |event| {
        matches!(event, Event::Entered { part: Part::Cell, .. })
    })
    .await;
    realm.close(CloseReason::Ended);
    realm
        .until("the end of the connection", |world| world.closed.len() == 1)
        .await;
    // The client's connection ends in the meantime; the client has not processed that.
    for _ in 0..100 {
        client.move_to(Position::default(), Direction::default());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let end = Event::Ended(EndReason::Closed(CloseReason::Ended));
    let events = until_event(&mut client, "the end", |event| *event == end).await;
    let is_lost = |event: &&Event| matches!(event, Event::Lost(_));
    assert_eq!(events.iter().find(is_lost), None);
    base.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_client_is_shown_all_that_was_sent_before_its_end() {
    let realm = Realm::start();
    let base = realm.start_base();
    realm.set_health(0);
    let mut client = realm.client();
    until_event(&mut client, "the first change", is_shown(1)).await;
    for health in 1..=FRAMES {
        realm.set_health(i32::try_from(health).unwrap());
    }
    realm.close(CloseReason::Ended);
    realm
        .until("the end of the connection", |world| world.closed.len() == 1)
        .await;

    let end = Event::Ended(EndReason::Closed(CloseReason::Ended));
    let events = until_event(&mut client, "the end", |event| *event == end).await;
    let healths: Vec<i64> = shown(&events).into_iter().map(|(_, health)| health).collect();
    assert_eq!(healths, (1..=FRAMES.cast_signed()).collect::<Vec<_>>());
    base.shut_down().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_is_dropped_after_it_left_has_sent_its_calls() {
    // As many as a client sends without a confirmation.
    const CALLS: i64 = 32;
    let realm = Realm::start();
    let base = realm.start_base();
    for round in 1..=20 {
        realm.set_health(round);
        let mut client = realm.client();
        until_event(&mut client, "the avatar", |event| {
            matches!(event, Event::Entered { part: Part::Cell, .. })
        })
        .await;
        realm.world().taken.clear();
        for amount in 1..=CALLS {
            client.call(AVATAR, Part::Cell, "hit", &[Value::Int(amount)]).unwrap();
            realm.set_health(round);
        }
        client.leave();
        drop(client);
        realm
            .until("all calls to be taken", |world| world.taken.len() == CALLS as usize)
            .await;
    }
    base.shut_down().await;
}
