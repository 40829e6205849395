//! `annals realm watch` on a realm of simulated processes, with a store that keeps what is changed.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::{
    future::pending,
    process::{Output, Stdio},
    sync::{
        Arc, LazyLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use annals_host::{
    config::LogFormat,
    health::{Announcement, Health, Readiness},
    log::History,
    nats::{Bus, Server, ServerOptions},
    process::FIRST_SHARD,
    telemetry::{self, ProcessLog},
    watched::{Registration, Setting, Unit},
};
use annals_ids::ProcessId;
use annals_store::{MemoryStore, Store, remote};
use annals_wire::Subjects;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
    task::JoinHandle,
    time::timeout,
};

const REALM: &str = "watched";

/// The log of this test program, which is that of all simulated processes.
static LOG: LazyLock<ProcessLog> =
    LazyLock::new(|| telemetry::init(&"info,async_nats=off".parse().unwrap(), LogFormat::Text).unwrap());

/// Maximum time for anything here, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A realm of a cell, a base and a director.
struct Realm {
    _folder: TempDir,
    server: Server,
    /// A setting of the base.
    limit: Arc<AtomicU64>,
    store: JoinHandle<()>,
    _processes: Vec<(Announcement, Health, Vec<Registration>)>,
}

impl Realm {
    async fn start() -> Self {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&ServerOptions::new(folder.path())).await.unwrap();
        let store = serve(&server, MemoryStore::new().store()).await;
        let limit = Arc::new(AtomicU64::new(100));
        let cell = announce(&server, "cell", Some(3), |health| {
            health.metrics.tick.record(Duration::from_millis(4));
            health.metrics.tick.record(Duration::from_millis(150));
            vec![health.watched.add("owners/12", |nodes| {
                nodes.put("entities", 7_u64, Unit::None, "entities of the owner");
            })]
        });
        let base = announce(&server, "base", Some(7), |health| {
            health.metrics.clients.add(5);
            let (read, set) = (Arc::clone(&limit), Arc::clone(&limit));
            vec![health.watched.add_setting(Setting {
                path: "edge/limit",
                unit: Unit::None,
                about: "most connections",
                allowed: "a number",
                read: Box::new(move || read.load(Ordering::Relaxed).into()),
                check: Box::new(move |text| {
                    let limit: u64 = text.parse().unwrap_or(0);
                    let set = Arc::clone(&set);
                    Ok((limit.into(), Box::new(move || set.store(limit, Ordering::Relaxed))))
                }),
            })]
        });
        let director = announce(&server, "director", None, |_| Vec::new());
        let processes = vec![cell.await, base.await, director.await];
        Self {
            _folder: folder,
            server,
            limit,
            store,
            _processes: processes,
        }
    }

    /// Exit code, standard output and standard error of `annals realm watch`.
    async fn watch(&self, arguments: &[&str]) -> (Option<i32>, String, String) {
        self.run(REALM, &[&["watch"], arguments].concat()).await
    }

    /// The same of any command of `annals realm`, on the realm of this name.
    async fn run(&self, realm: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
        command.args(["realm", "--realm", realm, "--nats", &self.server.url()]);
        let Output { status, stdout, stderr } = command.args(arguments).output().await.unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (status.code(), text(stdout), text(stderr))
    }

    /// The values by path, of an answer in JSON.
    async fn values(&self, arguments: &[&str]) -> Vec<(String, Value)> {
        let (code, said, error) = self.watch(&[arguments, &["--format", "json"]].concat()).await;
        assert_eq!(code, Some(0), "{error}");
        let said: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((&said["leftOut"], &said["silent"]), (&json!(0), &json!([])));
        let values = said["values"].as_array().unwrap().iter();
        values
            .map(|value| (value["path"].as_str().unwrap().to_owned(), value["value"].clone()))
            .collect()
    }
}

async fn announce(
    server: &Server,
    service: &str,
    number: Option<u64>,
    add: impl FnOnce(&Health) -> Vec<Registration>,
) -> (Announcement, Health, Vec<Registration>) {
    let bus = Bus::connect(&server.url(), service).await.unwrap();
    let health = Health {
        log: LOG.clone(),
        ..Health::default()
    };
    health.readiness.send_replace(Readiness::Ready);
    if let Some(number) = number {
        health.watched.set_number(ProcessId(number));
    }
    let registrations = add(&health);
    let announcement = Announcement::start(&bus, &REALM.parse().unwrap(), service, &health).await;
    (announcement.unwrap(), health, registrations)
}

async fn serve(server: &Server, store: Store) -> JoinHandle<()> {
    let bus = Bus::connect(&server.url(), "db").await.unwrap();
    History::ensure(&bus, REALM, FIRST_SHARD, 1).await.unwrap();
    let subject = Subjects::new(REALM).service("store");
    let client = bus.client().clone();
    tokio::spawn(async move {
        remote::serve(client, subject, store, pending()).await.unwrap();
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn values_are_listed_and_read_by_path() {
    let realm = Realm::start().await;
    let (code, tree, error) = realm.watch(&[]).await;
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let line = |begin: &str| tree.lines().find(|line| line.starts_with(begin)).unwrap_or_default();
    assert!(tree.starts_with("path "), "{tree}");
    assert!(
        line("cell/3/tick/p99 ").ends_with("work of a tick: 99 of 100 take at most this, since the start"),
        "{tree}"
    );
    assert!(
        line("base/7/edge/limit ").ends_with("most connections (can be set: a number)"),
        "{tree}"
    );
    assert!(line("director/").contains("/cpu "), "{tree}");

    let count = |count: u64| json!(count);
    assert_eq!(
        realm.values(&["cell/3/tick/overruns", "*/*/clients"]).await,
        [
            ("base/7/clients".to_owned(), count(5)),
            ("cell/3/tick/overruns".to_owned(), count(1)),
        ]
    );
    assert_eq!(
        realm.values(&["cell/3/owners"]).await,
        [("cell/3/owners/12/entities".to_owned(), count(7))]
    );

    let (code, said, _) = realm
        .watch(&["base/7/clients", "--every", "0.1", "--count", "3", "--format", "json"])
        .await;
    assert_eq!(code, Some(0));
    let rounds: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(rounds.len(), 3, "{said}");
    assert!(rounds.iter().all(|round| round["values"][0]["value"] == 5), "{said}");
    assert!(rounds[0]["at"].as_str() < rounds[2]["at"].as_str(), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_path_is_refused_with_what_there_is() {
    let realm = Realm::start().await;
    for (path, expected) in [
        (
            "cell/3/tick/p98",
            "there is no value cell/3/tick/p98; did you mean cell/3/tick/p9",
        ),
        ("base/9/clients", "there is no value base/9/clients; there are base/7"),
        (
            "cell/3/owners/99/load",
            "there is no value cell/3/owners/99/load; there are cell/3/owners/12",
        ),
        ("cell/[3", "\"cell/[3\" is not a path"),
    ] {
        let (code, _, error) = realm.watch(&[path]).await;
        assert_eq!(code, Some(2), "{error}");
        assert!(error.contains(expected), "{path}: {error}");
    }
    let elsewhere = realm.run("elsewhere", &["watch"]).await;
    assert_eq!(elsewhere.0, Some(2));
    assert!(
        elsewhere.2.contains("no process of this realm answers"),
        "{elsewhere:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_recorded_before_it_is_made() {
    let realm = Realm::start().await;
    let word = ["--by", "Grace", "--reason", "case 9: a rush"];
    let set = async |path: &str, value: &str| realm.watch(&[&[path, "--set", value], &word[..]].concat()).await;

    let (code, said, error) = set("base/*/edge/limit", "50").await;
    assert_eq!(code, Some(0), "{error}");
    assert_eq!(said, "base/7/edge/limit: 100 → 50 (recorded as change 0)\n");
    assert_eq!(realm.limit.load(Ordering::Relaxed), 50);

    for (path, value, expected) in [
        (
            "base/7/clients",
            "9",
            "base/7/clients cannot be set; there are base/7/edge/limit, base/7/log/filter",
        ),
        ("*/*/log/filter", "a=b=c", "log/filter cannot be \"a=b=c\""),
    ] {
        let (code, said, error) = set(path, value).await;
        assert_eq!((code, said.as_str()), (Some(2), ""), "{path}");
        assert!(error.contains(expected), "{error}");
    }
    let (code, _, error) = realm.watch(&["base/7/edge/limit", "--set", "60"]).await;
    assert!(code == Some(2) && error.contains("--by"), "{error}");

    let (code, said, _) = realm.watch(&["--changes", "--format", "json"]).await;
    assert_eq!(code, Some(0));
    let said: Value = serde_json::from_str(&said).unwrap();
    assert_eq!(said["all"], 1, "what was refused is not recorded: {said}");
    let change = &said["changes"][0];
    assert_eq!(
        (
            &change["path"],
            &change["before"],
            &change["after"],
            &change["by"],
            &change["reason"]
        ),
        (
            &json!("base/7/edge/limit"),
            &json!("100"),
            &json!("50"),
            &json!("Grace"),
            &json!("case 9: a rush")
        )
    );

    assert_audited(&realm).await;

    realm.store.abort();
    let (code, _, error) = set("base/7/edge/limit", "70").await;
    assert_eq!(code, Some(2), "{error}");
    assert!(error.contains("record"), "{error}");
    assert_eq!(
        realm.limit.load(Ordering::Relaxed),
        50,
        "what cannot be recorded is not changed"
    );
}

/// An auditor is given the change that was made.
async fn assert_audited(realm: &Realm) {
    let asked = async |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
        command.args(["audit", "--realm", REALM, "--nats", &realm.server.url(), "settings"]);
        let Output { status, stdout, stderr } = command.args(arguments).output().await.unwrap();
        assert_eq!(status.code(), Some(0), "{}", String::from_utf8_lossy(&stderr));
        String::from_utf8(stdout).unwrap()
    };
    let audited: Value = serde_json::from_str(&asked(&["--format", "json"]).await).unwrap();
    let change = &audited["changes"][0];
    assert_eq!(audited["verified"], Value::Null);
    assert_eq!(
        (&change["path"], &change["after"], &change["operator"]),
        (
            &json!("base/7/edge/limit"),
            &json!("50"),
            &json!({ "name": "Grace", "why": "case 9: a rush" })
        )
    );
    let table = asked(&[]).await;
    assert!(table.starts_with("1 of 1 changes of settings by operators"), "{table}");
    assert!(
        table.contains("not verified: these are records of the store"),
        "{table}"
    );
    let before = asked(&["--until", "@1", "--format", "csv"]).await;
    assert_eq!(before, "change,when,setting,before,after,operator,reason\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn top_prints_a_table_of_all_processes() {
    let realm = Realm::start().await;
    let (code, said, error) = realm.run(REALM, &["top", "--once", "--sort", "tick"]).await;
    assert_eq!((code, error.as_str()), (Some(0), ""));
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(
        lines[0],
        "realm watched: 3 of 3 processes ready, 5 clients, 7 entities, db 0 messages behind"
    );
    assert!(
        lines[2].starts_with("process") && lines[2].contains("tick p99*"),
        "{said}"
    );
    assert!(lines[3].starts_with("cell/3 ") && lines[3].ends_with("ready"), "{said}");
    assert_eq!(lines.len(), 6, "{said}");

    let (_, said, _) = realm.run(REALM, &["top", "--once", "--format", "json"]).await;
    let said: Value = serde_json::from_str(&said).unwrap();
    let cell = &said["processes"][1];
    assert_eq!(
        (&cell["process"], &cell["overruns"], &cell["owners"]),
        (&json!("cell/3"), &json!(1), &json!(1))
    );
    assert!(cell["memoryBytes"].as_u64().unwrap() > 1 << 20, "{cell}");
}

#[tokio::test(flavor = "multi_thread")]
async fn log_lines_of_all_processes_are_searched() {
    let realm = Realm::start().await;
    tracing::warn!(owner = 4_711, "the log is blocked");
    tracing::info!(owner = 4_712, "took over the owner");
    let logs = async |arguments: &[&str]| realm.run(REALM, &[&["logs"], arguments].concat()).await;

    let (code, said, error) = logs(&["--text", "owner=4711", "--process", "cell"]).await;
    assert_eq!((code, error.as_str()), (Some(0), ""));
    assert!(
        said.ends_with("  WARN cell/3  watching: the log is blocked owner=4711\n"),
        "{said}"
    );
    assert_eq!(said.lines().count(), 1, "{said}");

    let (_, said, _) = logs(&["--grep", "owner=471[12]", "--level", "warn", "--format", "json"]).await;
    let lines: Vec<Value> = said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let of: Vec<&str> = lines.iter().map(|line| line["process"].as_str().unwrap()).collect();
    assert!(
        of.len() == 3 && of[..2] == ["base/7", "cell/3"] && of[2].starts_with("director/"),
        "{said}"
    );
    assert!(
        lines
            .iter()
            .all(|line| line["owner"] == 4_711 && line["level"] == "WARN"),
        "{said}"
    );

    let (_, said, error) = logs(&["--grep", "owner=471[12]", "--limit", "1"]).await;
    assert!(
        said.lines().count() == 1 && said.contains("owner=4712"),
        "the newest: {said}"
    );
    assert!(error.contains("raise --limit"), "{error}");

    for (arguments, expected) in [
        (["--grep", "("], "refused the request: regex parse error"),
        (
            ["--process", "bell"],
            "there is no process bell; there are base/7, cell/3, director/",
        ),
        (["--since", "soon"], "invalid value 'soon'"),
    ] {
        let (code, _, error) = logs(&arguments).await;
        assert!(code == Some(2) && error.contains(expected), "{arguments:?}: {error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn new_log_lines_are_followed() {
    let realm = Realm::start().await;
    tracing::info!(owner = 4_713, "before");
    let mut command = Command::new(env!("CARGO_BIN_EXE_annals"));
    command.args([
        "realm",
        "logs",
        "--follow",
        "--process",
        "base",
        "--grep",
        "owner=471[34]",
    ]);
    command.args(["--realm", REALM, "--nats", &realm.server.url()]);
    let mut following = command.stdout(Stdio::piped()).kill_on_drop(true).spawn().unwrap();
    let mut lines = BufReader::new(following.stdout.take().unwrap()).lines();
    let mut next = async || timeout(TIMEOUT, lines.next_line()).await.unwrap().unwrap().unwrap();
    assert!(next().await.ends_with("before owner=4713"));
    tracing::info!(owner = 4_714, "after");
    assert!(next().await.ends_with("after owner=4714"));
}
