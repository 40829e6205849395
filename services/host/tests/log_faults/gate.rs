//! Log before show: with a log that withholds its answer nothing passes the gate, with one that fails the process
//! stops, and nothing was shown.

use std::time::Duration;

use annals_ids::Epoch;
use annals_node::writer::{FRESHNESS, Found, Stop};

use crate::actor::{Actor, eventually};
use crate::rig::{Book, OWNER, Rig, Wire};
use crate::{chain, check, one_node, three_nodes};

/// Time for data in flight inside a process to arrive.
const SETTLING: Duration = Duration::from_millis(200);

/// The log stores everything, and its answers do not arrive; then they do, or are lost with the connection.
async fn withheld_answers(rig: &mut Rig) {
    for lost in [false, true] {
        let (realm, book, wire) = (rig.new_realm(), Book::default(), Wire::to(&rig.url()).await);
        let direct = rig.history(&realm).await;
        let actor = Actor::take_over(rig.history_by(wire.url(), &realm).await, &book);
        actor.shows(20).await;
        wire.hold();
        // What was acknowledged before the wire was held may still pass.
        tokio::time::sleep(SETTLING).await;
        let (taken, logged) = (actor.screen.taken().len(), chain(&direct, &book).await.beyond.len());
        tokio::time::sleep(FRESHNESS).await;
        let shown = actor.screen.length();
        tokio::time::sleep(SETTLING).await;
        assert_eq!(actor.screen.taken().len(), taken, "what is not acknowledged leaves");
        assert_eq!(
            actor.screen.length(),
            shown,
            "what is volatile leaves although the writer is stale"
        );
        let stored = chain(&direct, &book).await.beyond.len();
        assert!(
            stored <= logged + 1,
            "one is in flight, {logged} and then {stored} were stored"
        );
        if lost {
            wire.cut();
        } else {
            wire.release();
        }
        actor.shows(20).await;
        check(&direct, &book, &[&actor.screen]).await;
    }
}

/// The log ends in an impossible message: the process stops, and its outputs since were never shown.
async fn failing_log(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let history = rig.history(&realm).await;
    let actor = Actor::take_over(history.clone(), &book);
    actor.shows(20).await;
    let subject = annals_wire::Subjects::new(&realm).log(annals_ids::Shard(0), OWNER);
    let stored = history
        .bus()
        .jetstream()
        .publish(subject, "no batch".into())
        .await
        .unwrap()
        .await
        .unwrap();
    let screen = actor.screen.clone();
    let found = Found::Stranger {
        sequence: stored.sequence,
    };
    let stop = actor.stops().await;
    assert_eq!(
        stop,
        Stop::Contradicted {
            owner: OWNER,
            epoch: Epoch(1),
            found
        }
    );
    assert!(stop.is_alarm());
    let shown = screen.length();
    check(&history, &book, &[&screen]).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(screen.length(), shown, "a stopped process shows nothing");
}

/// A frozen server: the writer goes stale, and its outputs wait or are dropped; then everything goes on.
async fn stalled_server(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let history = rig.history(&realm).await;
    let actor = Actor::take_over(history.clone(), &book);
    actor.shows(20).await;
    let server = rig.leader(&history).await;
    server.pause().unwrap();
    let mut last = actor.screen.length();
    let mut still = 0;
    // Volatile outputs go on until the writer is stale, and no longer.
    eventually("the writer goes stale", || {
        still = if actor.screen.length() == last { still + 1 } else { 0 };
        last = actor.screen.length();
        still == 40
    })
    .await;
    server.resume().unwrap();
    actor.shows(20).await;
    check(&history, &book, &[&actor.screen]).await;
}

#[tokio::test]
async fn withheld_answers_on_one_node() {
    withheld_answers(&mut *one_node().await).await;
}

#[tokio::test]
async fn withheld_answers_on_three_nodes() {
    withheld_answers(&mut *three_nodes().await).await;
}

#[tokio::test]
async fn failing_log_on_one_node() {
    failing_log(&mut *one_node().await).await;
}

#[tokio::test]
async fn failing_log_on_three_nodes() {
    failing_log(&mut *three_nodes().await).await;
}

#[tokio::test]
async fn stalled_server_on_one_node() {
    stalled_server(&mut *one_node().await).await;
}
