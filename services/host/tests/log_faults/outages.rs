//! Servers that crash, and leader changes.

use crate::actor::Actor;
use crate::rig::{Book, Rig};
use crate::{check, one_node, three_nodes};
use annals_host::log::History;
use annals_host::nats::Servers;
use std::time::Duration;

/// What a server answers while the leader of the metadata is not known ("JetStream system temporarily unavailable").
const NOT_AVAILABLE: &str = r#""err_code":10008"#;

/// The server that stores the log is killed while appends are in flight, twice, and restarted.
async fn killed_server(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let history = rig.history(&realm).await;
    let actor = Actor::take_over(history.clone(), &book);
    for _ in 0..2 {
        actor.shows(20).await;
        let server = rig.leader(&history).await;
        server.kill().unwrap();
        server.relaunch().unwrap();
        server.ready().await.unwrap();
    }
    actor.shows(20).await;
    check(&history, &book, &[&actor.screen]).await;
}

/// Makes another server lead the log. A busy cluster refuses a step-down while it elects the leader of its metadata.
async fn step_down(history: &History) {
    const TRIES: u32 = 50;
    let subject = format!("$JS.API.STREAM.LEADER.STEPDOWN.{}", history.name());
    let mut refused = Vec::new();
    for _ in 0..TRIES {
        let answer = history
            .bus()
            .client()
            .request(subject.clone(), "".into())
            .await
            .unwrap();
        let answer = String::from_utf8_lossy(&answer.payload).into_owned();
        if answer.contains(r#""success":true"#) {
            return;
        }
        assert!(answer.contains(NOT_AVAILABLE), "{answer}");
        refused.push(answer);
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    panic!("no step-down in {TRIES} tries: {}", refused.last().unwrap());
}

/// Another server leads: after a request to step down, and after the leader was killed and while it is down.
async fn leader_change(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let history = rig.history(&realm).await;
    let actor = Actor::take_over(history.clone(), &book);
    for _ in 0..3 {
        actor.shows(20).await;
        step_down(&history).await;
    }
    actor.shows(20).await;
    let leader = rig.leader(&history).await;
    leader.kill().unwrap();
    actor.shows(20).await;
    check(&history, &book, &[&actor.screen]).await;
}

/// The server is stopped as an operator would, and restarted.
async fn server_restart(rig: &mut Rig) {
    let (realm, book) = (rig.new_realm(), Book::default());
    let history = rig.history(&realm).await;
    let actor = Actor::take_over(history.clone(), &book);
    actor.shows(20).await;
    let Servers::One(server) = &mut rig.servers else {
        unreachable!("one node")
    };
    server.stop().await.unwrap();
    server.restart().await.unwrap();
    actor.shows(20).await;
    check(&history, &book, &[&actor.screen]).await;
}

#[tokio::test]
async fn killed_server_on_one_node() {
    killed_server(&mut *one_node().await).await;
}

#[tokio::test]
async fn killed_server_on_three_nodes() {
    killed_server(&mut *three_nodes().await).await;
}

#[tokio::test]
async fn restart_on_one_node() {
    server_restart(&mut *one_node().await).await;
}

#[tokio::test]
async fn leader_change_on_three_nodes() {
    leader_change(&mut *three_nodes().await).await;
}
