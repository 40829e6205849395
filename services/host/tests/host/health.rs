//! Service discovery on a real server.

use std::sync::Arc;
use std::time::Duration;

use annals_host::config::Realm;
use annals_host::health::{Announcement, Health, Instance, Readiness, Report, discover};
use annals_host::nats::{Bus, Server, ServerOptions};
use annals_host::release;
use annals_host::telemetry::{Metrics, trace};
use annals_ids::Hash;
use futures::StreamExt;
use tempfile::TempDir;
use tokio::sync::watch;

/// Upper bound for anything here on a slow machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Long enough for every process to answer.
const A_MOMENT: Duration = Duration::from_secs(1);

async fn realm_on_a_server() -> (TempDir, Server, Bus, Realm) {
    let dir = tempfile::tempdir().unwrap();
    let server = Server::start(&ServerOptions::new(dir.path())).await.unwrap();
    let bus = Bus::connect(&server.url(), "test").await.unwrap();
    (dir, server, bus, "aldmoor".parse().unwrap())
}

/// A process that is announced as `service`, with the readiness that the sender sets.
async fn announce(bus: &Bus, realm: &Realm, service: &str) -> (Announcement, watch::Sender<Readiness>, Arc<Metrics>) {
    let health = Health::default();
    let announcement = Announcement::start(bus, realm, service, &health).await.unwrap();
    (announcement, health.readiness, health.metrics)
}

async fn ask(bus: &Bus, realm: &Realm, count: usize) -> Vec<Instance> {
    discover(bus, realm, TIMEOUT, |found| found.len() == count)
        .await
        .unwrap()
}

#[tokio::test]
async fn processes_are_found_with_their_state_and_figures() {
    let (_dir, _server, bus, realm) = realm_on_a_server().await;
    let (_cell, cell_state, cell_metrics) = announce(&bus, &realm, "cell").await;
    let (base, _base_state, _) = announce(&bus, &realm, "base").await;
    let elsewhere: Realm = "elsewhere".parse().unwrap();
    let (_other, _other_state, _) = announce(&bus, &elsewhere, "cell").await;

    cell_state.send_replace(Readiness::Ready);
    cell_metrics.events.add(41);
    cell_metrics.tick.record(Duration::from_millis(3));
    let found = ask(&bus, &realm, 2).await;
    assert_eq!(
        found
            .iter()
            .map(|instance| instance.service.as_str())
            .collect::<Vec<_>>(),
        ["base", "cell"]
    );
    assert!(!found[0].report.ready);
    assert_eq!(found[0].report.readiness, Readiness::Starting);
    assert!(found[1].report.ready);
    assert_eq!(found[1].report.metrics.events, 41);
    assert_eq!(found[1].report.metrics.tick.count, 1);

    cell_state.send_replace(Readiness::Waiting {
        reason: "the store is away".to_owned(),
    });
    let found = ask(&bus, &realm, 2).await;
    assert!(!found[1].report.ready);
    assert_eq!(found[1].report.readiness.to_string(), "waiting: the store is away");

    base.withdraw().await.unwrap();
    let found = discover(&bus, &realm, A_MOMENT, |_| false).await.unwrap();
    assert_eq!(found.len(), 1, "a withdrawn process is no longer found: {found:?}");
}

#[tokio::test]
async fn an_instance_can_be_asked_directly_and_is_known_to_the_standard_tools() {
    let (_dir, _server, bus, realm) = realm_on_a_server().await;
    let health = Health {
        schema: Some(Hash([7; 32])),
        ..Health::default()
    };
    let cell = Announcement::start(&bus, &realm, "cell", &health).await.unwrap();
    health.readiness.send_replace(Readiness::Ready);

    let answer = bus
        .client()
        .request(format!("annals.aldmoor.health.{}", cell.id()), "".into())
        .await
        .unwrap();
    let report: Report = serde_json::from_slice(&answer.payload).unwrap();
    assert!(report.ready);

    let answer = bus.client().request("$SRV.PING.annals-cell", "".into()).await.unwrap();
    let pong: serde_json::Value = serde_json::from_slice(&answer.payload).unwrap();
    assert_eq!(pong["metadata"]["realm"], "aldmoor");
    assert_eq!(pong["metadata"]["schema"], "07".repeat(32));
    assert_eq!(pong["version"], release::VERSION);
    assert_eq!(pong["metadata"]["commit"].as_str(), release::COMMIT);
    let answer = bus.client().request("$SRV.STATS.annals-cell", "".into()).await.unwrap();
    let stats: serde_json::Value = serde_json::from_slice(&answer.payload).unwrap();
    let endpoints = stats["endpoints"].as_array().unwrap();
    let named = |name: &str| endpoints.iter().find(|endpoint| endpoint["name"] == name).unwrap();
    assert_eq!(named("health")["data"]["ready"], true);
    assert_eq!(named("health")["data"]["state"], "ready");
    assert_eq!(
        named("costs")["data"],
        serde_json::Value::Null,
        "they are sent only on request"
    );
}

#[tokio::test]
async fn an_announcement_survives_the_server() {
    let (_dir, mut server, bus, realm) = realm_on_a_server().await;
    let (_cell, state, _) = announce(&bus, &realm, "cell").await;
    state.send_replace(Readiness::Ready);
    server.kill().unwrap();
    server.restart().await.unwrap();
    let again = async {
        while bus.barrier().await.is_err() {}
        ask(&bus, &realm, 1).await
    };
    let found = tokio::time::timeout(TIMEOUT, again).await.unwrap();
    assert_eq!(found.len(), 1);
}

#[tokio::test]
async fn traces_cross_the_bus() {
    let (_dir, _server, bus, _) = realm_on_a_server().await;
    let mut messages = bus.client().subscribe("traced").await.unwrap();
    let sent = [trace::root_context([3; 16]), trace::root_context([4; 16])];
    let mut headers = async_nats::HeaderMap::new();
    trace::inject(&sent, &mut headers);
    bus.client()
        .publish_with_headers("traced", headers, "".into())
        .await
        .unwrap();
    let message = tokio::time::timeout(TIMEOUT, messages.next()).await.unwrap().unwrap();
    assert_eq!(trace::extract(message.headers.as_ref()), sent);
}
