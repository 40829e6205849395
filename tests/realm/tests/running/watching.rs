//! An operator watches a realm, searches its logs, and changes settings while players play.

use std::time::Duration;

use annals_client::Event;
use annals_host::nats::ServerCount;
use serde_json::{Value, json};

use crate::{
    draining::annals,
    played::{Played, are_built, until_event, within},
};

/// Maximum time for anything here, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Values by path, of `annals realm watch`.
async fn values(realm: &Played, paths: &[&str]) -> Vec<(String, Value)> {
    let (code, said) = annals(realm, &[&["realm", "watch", "--format", "json"], paths].concat()).await;
    assert_eq!(code, Some(0), "{said}");
    let said: Value = serde_json::from_str(&said).expect("an object");
    let values = said["values"].as_array().expect("a list").iter();
    let value = |value: &Value| {
        (
            value["path"].as_str().expect("a path").to_owned(),
            value["value"].clone(),
        )
    };
    values.map(value).collect()
}

/// Sum of the values at these paths.
async fn sum(realm: &Played, path: &str) -> u64 {
    let values = values(realm, &[path]).await;
    values.iter().map(|(_, value)| value.as_u64().expect("a number")).sum()
}

/// Asks until it is so: each question takes a second.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    within(TIMEOUT, what, async { while !is_so().await {} }).await;
}

async fn set(realm: &Played, path: &str, value: &str) {
    let word = ["--set", value, "--by", "Grace", "--reason", "case 9"];
    let (code, said) = annals(realm, &[&["realm", "watch", path], &word[..]].concat()).await;
    assert_eq!(code, Some(0), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_watches_a_realm() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let found = values(
        &realm,
        &[
            "cell/*/tick/p99",
            "cell/*/owners/*/entities",
            "director/*/cells",
            "*/*/state",
        ],
    )
    .await;
    let of = |end: &str| found.iter().filter(|(path, _)| path.ends_with(end)).collect::<Vec<_>>();
    assert!(
        of("/tick/p99").iter().all(|(_, value)| value.as_u64() > Some(0)),
        "{found:?}"
    );
    assert_eq!((of("/tick/p99").len(), of("/load").len()), (2, 2), "{found:?}");
    assert!(of("/entities").len() >= 4, "of each cell, and of each owner: {found:?}");
    let services = ["base", "cell", "db", "director", "login", "signer"];
    for service in services {
        let state = found
            .iter()
            .find(|(path, _)| path.starts_with(service) && path.ends_with("/state"));
        assert_eq!(
            state.map(|(_, value)| value),
            Some(&json!("ready")),
            "{service}: {found:?}"
        );
    }
    assert_eq!(sum(&realm, "base/*/clients").await, 6, "all bots are connected");

    pause_log_ins(&realm).await;
    search_logs(&realm).await;

    let (code, said) = annals(&realm, &["realm", "top", "--once", "--sort", "clients"]).await;
    assert_eq!(code, Some(0), "{said}");
    let first = said.lines().nth(3).expect("a table");
    assert!(said.contains(", 6 clients, ") && first.starts_with("base/"), "{said}");
    realm.assert_playing("an operator's look").await;
    let report = realm.stop_and_verify().await;
    assert!(report.bots.iter().all(|bot| bot.ended.is_empty() && bot.log_ins == 1));
}

async fn pause_log_ins(realm: &Played) {
    set(realm, "login/*/logins/paused", "true").await;
    let before = sum(realm, "login/*/logins/refused").await;
    let mut client = realm.client("late", "the password");
    let is_refused = until("a refused log-in", async || {
        sum(realm, "login/*/logins/refused").await > before
    });
    tokio::select! {
        event = until_event(&mut client, "a log-in", |event| matches!(event, Event::Connected { .. })) => {
            panic!("log-ins are paused: {event:?}")
        }
        () = is_refused => {}
    }
    set(realm, "login/*/logins/paused", "false").await;
    until_event(&mut client, "the log-in", |event| {
        matches!(event, Event::Connected { .. })
    })
    .await;
    let (code, said) = annals(realm, &["realm", "watch", "--changes", "--format", "json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let said: Value = serde_json::from_str(&said).expect("an object");
    let after = said["changes"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|change| &change["after"]);
    assert_eq!(after.collect::<Vec<_>>(), [&json!("true"), &json!("false")], "{said}");
}

async fn search_logs(realm: &Played) {
    let (code, said) = annals(
        realm,
        &["realm", "logs", "--process", "cell", "--text", "took over the owner"],
    )
    .await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.lines().count() >= 2, "each cell has taken an owner over: {said}");
    let (_, said) = annals(
        realm,
        &[
            "realm",
            "logs",
            "--text",
            "an operator changed a setting",
            "--level",
            "warn",
        ],
    )
    .await;
    assert!(
        said.contains("path=logins/paused") && said.contains("operator=Grace"),
        "{said}"
    );
    set(realm, "base/*/log/filter", "debug").await;
    until("a line of level DEBUG", async || {
        let (_, said) = annals(realm, &["realm", "logs", "--process", "base", "--limit", "2000"]).await;
        said.contains(" DEBUG base/")
    })
    .await;
    set(realm, "base/*/log/filter", "info").await;
}
