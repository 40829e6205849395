//! Traces of clients' calls, from real processes to a collector.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::{
    collector::{Collector, Stop, Stops, path},
    played::{Played, are_built, until, within},
};

/// Maximum time for something to be exported.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Calls to a cell that is stopped before it is killed.
const CALLS: usize = 4;

/// In the unit of spans.
const SECOND: u64 = 1_000_000_000;

/// Where the log says that a process serves its metrics.
const SERVING: &str = "serving probes and metrics address=";

/// A realm whose calls are all traced.
async fn traced(collector: &Collector) -> Played {
    Played::start_timed_with(vec![
        ("otlp", collector.url.clone()),
        ("trace_ratio", "1".to_owned()),
        ("http", "127.0.0.1:0".to_owned()),
        ("resource_attributes", "deployment.environment.name=test".to_owned()),
    ])
    .await
}

fn is_complete(stops: &Stops) -> bool {
    path(stops, "fold batch").is_some_and(|path| path.len() == 5) && path(stops, "process confirmation").is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_is_one_trace_through_all_services_and_across_a_death() {
    if !are_built() {
        return;
    }
    let mut collector = Collector::hanging().await;
    collector.answer();
    let mut realm = traced(&collector).await;
    until(TIMEOUT, "a complete trace", || {
        collector.traces().values().any(is_complete)
    })
    .await;
    let traces = collector.traces();
    let stops = traces.values().find(|stops| is_complete(stops)).expect("there is one");
    let names = |name: &str| -> Vec<String> {
        let path = path(stops, name).expect("it is complete");
        path.iter()
            .map(|(service, name)| format!("{service}: {name}"))
            .collect()
    };
    assert_eq!(
        names("fold batch"),
        [
            "annals-db: fold batch",
            "annals-cell: append batch",
            "annals-cell: process call",
            "annals-base: send call",
            "annals-base: client call",
        ]
    );
    assert_eq!(
        names("process confirmation"),
        [
            "annals-base: process confirmation",
            "annals-cell: send confirmation",
            "annals-cell: process call",
            "annals-base: send call",
            "annals-base: client call",
        ]
    );
    let root = stops
        .iter()
        .find(|stop| stop.span.parent_span_id.is_empty())
        .expect("a root");
    assert_eq!(root.text("annals.part").as_deref(), Some("cell"));
    let back = stops.iter().find(|stop| stop.span.name == "process confirmation");
    assert_eq!(
        back.map(|stop| &stop.instance),
        Some(&root.instance),
        "the answer comes back to the same process"
    );
    for stop in stops {
        let within = root.span.start_time_unix_nano <= stop.span.start_time_unix_nano;
        assert!(within, "{stop:?} begins before {root:?}");
    }
    continue_across_a_death(&mut realm, &collector).await;
    realm.verify().await;
    realm.realm.stop().await.expect("the realm stops");
    assert_metrics(&collector);
}

/// Each service has exported metrics: a process exports its last ones when it ends.
fn assert_metrics(collector: &Collector) {
    let metrics = collector.metrics();
    for (service, name) in [
        ("annals-base", "messaging.client.operation.duration"),
        ("annals-base", "annals.clients"),
        ("annals-cell", "annals.tick.duration"),
        ("annals-db", "messaging.process.duration"),
        ("annals-director", "annals.ready"),
        ("annals-login", "annals.log_ins"),
        ("annals-signer", "annals.ready"),
    ] {
        let names = metrics.get(service);
        assert!(names.is_some_and(|names| names.contains(name)), "{service}: {names:?}");
    }
}

/// Calls that were sent to a cell between its last work and its death are handled by the next holder of its owners,
/// within the same traces.
async fn continue_across_a_death(realm: &mut Played, collector: &Collector) {
    until(TIMEOUT, "calls to both cells", || holders(collector).len() >= 2).await;
    let holders = holders(collector);
    realm.realm.pause("cell-1").expect("it runs");
    let paused = now();
    // A call to a cell that works is handled, and that is exported, within a second.
    let is_waiting = |stops: &Stops, newest: u64| {
        let sent = began(stops, "send call").filter(|sent| *sent > paused);
        sent.is_some_and(|sent| sent + SECOND < newest) && began(stops, "process call").is_none()
    };
    until(TIMEOUT, "calls to the cell that is stopped", || {
        let traces = collector.traces();
        let starts = traces.values().flatten().map(|stop| stop.span.start_time_unix_nano);
        let newest = starts.max().unwrap_or_default();
        traces.values().filter(|stops| is_waiting(stops, newest)).count() >= CALLS
    })
    .await;
    let killed = now();
    realm.kill("cell-1");
    let continues = |stops: &Stops| {
        let moved = |stop: &Stop| {
            let before = stop.owner().and_then(|owner| holders.get(&owner));
            stop.span.name == "process call" && before.is_some_and(|holder| *holder != stop.instance)
        };
        let is_sent = began(stops, "send call").is_some_and(|sent| (paused..killed).contains(&sent));
        is_sent && is_complete(stops) && stops.iter().any(moved)
    };
    until(TIMEOUT, "a trace to continue after the death", || {
        collector.traces().values().any(continues)
    })
    .await;
    realm.start_again("cell-1");
    realm.assert_playing("the death of a cell").await;
}

/// The cell process that has handled the calls to each owner.
fn holders(collector: &Collector) -> BTreeMap<i64, String> {
    let stops = collector.traces().into_values().flatten();
    let handled = stops.filter(|stop| stop.service == "annals-cell" && stop.span.name == "process call");
    handled
        .filter_map(|stop| Some((stop.owner()?, stop.instance)))
        .collect()
}

/// When the first span of a name began.
fn began(stops: &Stops, name: &str) -> Option<u64> {
    let named = stops.iter().filter(|stop| stop.span.name == name);
    named.map(|stop| stop.span.start_time_unix_nano).min()
}

/// The time, as in spans.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later");
    u64::try_from(since.as_nanos()).expect("it fits until 2554")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_waits_for_a_collector() {
    if !are_built() {
        return;
    }
    let mut collector = Collector::hanging().await;
    let mut realm = traced(&collector).await;
    let dropping = async {
        while metric(&realm, "base-1", "annals_spans_dropped_total").await == 0 {
            realm.assert_playing("time without a collector").await;
        }
    };
    within(TIMEOUT, "dropped spans", dropping).await;
    assert_eq!(metric(&realm, "base-1", "annals_spans_exported_total").await, 0);
    let said = realm.log_of("base-1");
    assert!(said.contains("waiting for the collector http://127.0.0.1:"), "{said}");
    assert!(said.contains("check the collector, and otlp in the settings"), "{said}");
    collector.answer();
    until(TIMEOUT, "spans to be exported", || !collector.traces().is_empty()).await;
    until(TIMEOUT, "the report that the collector answers", || {
        realm.log_of("base-1").contains("no longer waiting for the collector")
    })
    .await;
    realm.stop_and_verify().await;
}

/// A metric of a process, summed over its labels.
async fn metric(realm: &Played, process: &str, name: &str) -> u64 {
    let log = realm.log_of(process);
    let address = log
        .lines()
        .find_map(|line| line.split_once(SERVING))
        .expect("it serves them")
        .1;
    let mut stream = TcpStream::connect(address.trim()).await.expect("it listens");
    let request = format!("GET /metrics HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it reads");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("it answers");
    let values = text.lines().filter(|line| line.starts_with(name));
    values
        .filter_map(|line| line.rsplit_once(' ')?.1.parse::<u64>().ok())
        .sum()
}
