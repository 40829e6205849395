//! Dashboards and alerts on a Prometheus that scrapes a live realm: no panel is empty, no alert fires in calm, and
//! alerts fire under their faults.

use std::{fs, net::SocketAddr, path::Path, time::Duration};

use annals_ids::{AssetKind, DatabaseId, Slot};
use annals_realm::Folder;
use annals_store::layout::ledger;
use annals_wire::client::{CloseReason, LOGIN_ALPN};
use serde_json::Value;
use tokio::process::Command;

use crate::{
    played::{Played, are_built, repository, run, within},
    prometheus::{POLL_INTERVAL, Prometheus, TIMEOUT, program, serves_metrics, targets},
    strangers::{Stranger, framed},
};

/// How long a slow log is away, and how long it works in between. Its answers take longer than the alert allows.
const STALL: Duration = Duration::from_millis(400);
const WORK: Duration = Duration::from_millis(100);

/// Strangers between two looks at the alert, which is about more than five a second.
const STRANGERS: usize = 20;

/// The queries of all dashboards, as Grafana would send them: dashboard, panel and query.
fn queries() -> Vec<(String, String, String)> {
    let folder = repository().join("ops/telemetry/grafana");
    let mut queries = Vec::new();
    for file in fs::read_dir(folder).expect("the dashboards") {
        let text = fs::read_to_string(file.expect("a file").path()).expect("a dashboard");
        let dashboard: Value = serde_json::from_str(&text).expect("JSON");
        let title = dashboard["title"].as_str().expect("a title");
        for panel in dashboard["panels"].as_array().expect("panels") {
            let targets = panel["targets"].as_array().expect("queries");
            assert!(!targets.is_empty(), "{title}: {panel}");
            for target in targets {
                let query = target["expr"].as_str().expect("a query");
                let query = query.replace("\"$realm\"", "\"played\"");
                let query = query
                    .replace("=\"$instance\"", "=~\".+\"")
                    .replace("$__rate_interval", "5s");
                let panel = panel["title"].as_str().expect("a title").to_owned();
                queries.push((title.to_owned(), panel, query));
            }
        }
    }
    queries
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_panel_is_empty_and_alerts_fire_under_faults_only() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start_with(serves_metrics()).await;
    let folder = Folder::create();
    let Some(prometheus) = Prometheus::start(&targets(&realm), folder.path()).await else {
        return;
    };
    let mut checking = Command::new(program("promtool").expect("it comes with Prometheus"));
    checking
        .args(["test", "rules", "ops/telemetry/alerts.test.yml"])
        .current_dir(repository());
    let (status, said) = run(&mut checking).await;
    assert!(status.success(), "{said}");
    let queries = queries();
    assert!(queries.len() > 40, "{queries:?}");
    for (dashboard, panel, query) in &queries {
        within(TIMEOUT, &format!("{dashboard}: {panel}: {query}"), async {
            while !prometheus.has_data(query).await {
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await;
    }
    let rules = prometheus.get("rules").await;
    for rule in rules["groups"][0]["rules"].as_array().expect("the alerts") {
        assert_eq!(rule["health"], "ok", "{rule}");
    }
    assert!(prometheus.firing().await.is_empty(), "{:?}", prometheus.firing().await);
    realm.assert_playing("a calm time").await;
    let ((login, _), data) = (realm.realm.login, realm.data());
    until_alerted(&prometheus, "AnnalsClientsViolate", async || {
        for _ in 0..STRANGERS {
            knock(login, &data).await;
        }
    })
    .await;
    realm.assert_playing("strangers at the door").await;
    realm.kill("login");
    prometheus.wait_for_alert("AnnalsProcessDown").await;
    prometheus.wait_for_alert("AnnalsServiceNotReady").await;
    realm.start_again("login");
    realm.realm.nats_servers().each()[0].pause().expect("it runs");
    prometheus.wait_for_alert("AnnalsLogBlocked").await;
    realm.realm.nats_servers().each()[0].resume().expect("it is paused");
    realm.assert_playing("a pause of the log").await;
    until_alerted(&prometheus, "AnnalsAppendSlow", async || stall(&mut realm).await).await;
    realm.assert_playing("a slow log").await;
    unbalance(&mut realm).await;
    realm.stop_and_verify().await;
}

/// The ledger gets a balance that no entry explains, which the audit of the next db finds; it is removed again.
async fn unbalance(realm: &mut Played) {
    let (_, _, store) = realm.bus();
    let account = ledger::account_key(DatabaseId(u64::MAX), Slot(0), AssetKind(1));
    let added = store.begin();
    added
        .set(&account, &ledger::encode_balance(5))
        .expect("a row of usual size");
    added.commit().await.expect("the store answers");
    realm.kill("db");
    realm.start_again("db");
    realm.assert_playing("a crash of db").await;
    let folder = Folder::create();
    let prometheus = Prometheus::start(&targets(realm), folder.path()).await;
    let prometheus = prometheus.expect("there was one before");
    prometheus.wait_for_alert("AnnalsLedgerUnbalanced").await;
    let removed = store.begin();
    removed.clear(&account).expect("a row of usual size");
    removed.commit().await.expect("the store answers");
}

/// Repeats a fault until its alert fires.
async fn until_alerted(prometheus: &Prometheus, alert: &str, mut fault: impl AsyncFnMut()) {
    within(TIMEOUT, alert, async {
        while !prometheus.is_firing(alert).await {
            fault().await;
        }
    })
    .await;
}

/// The log answers nothing for a moment.
async fn stall(realm: &mut Played) {
    let server = &mut realm.realm.nats_servers().each()[0];
    server.pause().expect("it runs");
    tokio::time::sleep(STALL).await;
    server.resume().expect("it is paused");
    tokio::time::sleep(WORK).await;
}

/// A stranger connects to the log-in service, and speaks another protocol.
async fn knock(login: SocketAddr, data: &Path) {
    let stranger = Stranger::sending(login, data, LOGIN_ALPN, &framed(b"GET / HTTP/1.1\r\n")).await;
    assert_eq!(stranger.closed_for().await, CloseReason::Malformed);
}
