//! Processes stopped with SIGTERM, as an operator stops them, during play.

use std::time::{Duration, Instant};

use annals_host::{health::Readiness, nats::ServerCount, process::request};
use annals_wire::control::{BUS_VERSION, DirectorAsk, DirectorRequest, Register, Registered};
use tokio::process::Command;

use crate::{
    bad_input::skipped,
    played::{Played, REALM, are_built, binary, run, until},
};

/// Timeout for a process to end: it gives up what cannot be handed over or logged after less than that.
const STOP_TIMEOUT: Duration = Duration::from_secs(60);

/// Play between two interruptions, so that they can be distinguished.
const PLAY_BETWEEN: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_hand_over_their_owners_on_sigterm_with_one_server() {
    if are_built() {
        stop_one_after_the_other(ServerCount::One).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn processes_hand_over_their_owners_on_sigterm_with_three_servers() {
    if are_built() {
        stop_one_after_the_other(ServerCount::Three).await;
    }
}

async fn stop_one_after_the_other(servers: ServerCount) {
    let mut realm = Played::start_timed(servers, &["nats"]).await;
    // Both bases in turn: all players may be on one of them.
    for (service, name) in [("cell", "cell-1"), ("base", "base-1"), ("base", "base-2")] {
        realm.wait_for_state(service, 2, |is| *is == Readiness::Ready).await;
        let began = Instant::now();
        let status = realm.stop(name).await;
        println!("{name} ended after {:.2} s", began.elapsed().as_secs_f32());
        assert_eq!(status.code(), Some(0), "{name}: {}", realm.log_of(name));
        realm.assert_playing(name).await;
        realm.start_again(name);
        realm.wait_for_state(service, 2, |is| *is == Readiness::Ready).await;
        println!("{name} is back after {:.2} s", began.elapsed().as_secs_f32());
        realm.assert_playing("its return").await;
        tokio::time::sleep(PLAY_BETWEEN).await;
    }
    stop_during_a_log_outage(&mut realm).await;
    realm.wait_for_trade().await;
    let report = realm.stop_and_verify().await;
    let moved = report.bots.iter().all(|bot| bot.moved > 0);
    assert!(moved, "not all clients were moved when every base was stopped");
    assert_eq!(
        report.total(|bot| bot.resumed),
        0,
        "a client lost its connection when a process was stopped in order"
    );
    assert_eq!(
        report.total(|bot| bot.log_ins),
        report.bots.len() as u64,
        "a client had to log in again"
    );
    assert!(
        report.bots.iter().all(|bot| bot.ended.is_empty()),
        "no session was lost"
    );
}

/// Events that cannot be logged are not shown, and do not block the shutdown indefinitely.
async fn stop_during_a_log_outage(realm: &mut Played) {
    let Some(disk) = realm.disk("nats") else {
        return skipped();
    };
    disk.fill();
    realm
        .wait_for_state("cell", 2, |is| matches!(is, Readiness::Waiting { .. }))
        .await;
    let began = Instant::now();
    let status = realm.stop("cell-2").await;
    println!("cell-2 ended after {:.2} s", began.elapsed().as_secs_f32());
    assert_eq!(status.code(), Some(0), "{}", realm.log_of("cell-2"));
    assert!(
        realm
            .log_of("cell-2")
            .contains("not everything could be logged in time")
    );
    realm.disk("nats").expect("it is mounted").free();
    realm.realm.nats_servers().restart().await.expect("it starts again");
    realm.assert_playing("a stop while the log stood still").await;
}

/// Runs a command on the realm; returns exit code and output.
pub(crate) async fn annals(realm: &Played, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(binary("annals").expect("it is built"));
    command
        .args(arguments)
        .args(["--realm", REALM, "--nats", &realm.realm.nats()]);
    let (status, text) = run(&mut command).await;
    println!("{arguments:?}: {text}");
    (status.code(), text)
}

/// The numbers of the live processes of a service, in the order in which they registered.
async fn processes(realm: &Played, service: &str) -> Vec<String> {
    let (code, text) = annals(realm, &["realm", "processes", "--format", "json"]).await;
    assert_eq!(code, Some(0), "{text}");
    let listed: serde_json::Value = serde_json::from_str(&text).expect("a list");
    let listed = listed.as_array().expect("a list").iter();
    let of_it = listed.filter(|process| process["service"] == service);
    of_it.map(|process| process["process"].to_string()).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_drains_processes() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let (code, said) = annals(&realm, &["realm", "drain", "4711"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("there is no live process 4711"), "{said}");
    a_process_of_another_bus_version_is_refused(&realm).await;
    let db = processes(&realm, "db").await.remove(0);
    let (code, said) = annals(&realm, &["realm", "drain", &db]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("a db process hands nothing over: stop it with SIGTERM"),
        "{said}"
    );

    for service in ["cell", "base"] {
        let process = processes(&realm, service).await.remove(0);
        let (code, said) = annals(&realm, &["realm", "drain", &process]).await;
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("has handed everything over and ended"), "{said}");
        let left = processes(&realm, service).await;
        assert!(!left.contains(&process), "{left:?}");
        let [only] = &left[..] else { panic!("{left:?}") };
        let (code, said) = annals(&realm, &["realm", "drain", only]).await;
        assert_eq!(code, Some(2), "{said}");
        let refusal = format!(
            "process {only} is the only {service} process: start another one first, or use --force: its entities then \
             pause until one is started"
        );
        assert!(said.contains(&refusal), "{said}");
        // The first that registered may be either of the two.
        let of_it = if service == "cell" {
            ["cell-1", "cell-2"]
        } else {
            ["base-1", "base-2"]
        };
        let mut ended = None;
        until(STOP_TIMEOUT, "the drained process to end", || {
            ended = of_it.into_iter().find(|name| realm.has_ended(name));
            ended.is_some()
        })
        .await;
        realm.assert_playing(service).await;
        realm.start_again(ended.expect("one of them has ended"));
        realm.wait_for_state(service, 2, |is| *is == Readiness::Ready).await;
    }
    let cells = processes(&realm, "cell").await;
    let (code, said) = annals(&realm, &["realm", "drain", &cells[0]]).await;
    assert_eq!(code, Some(0), "{said}");
    let (code, said) = annals(&realm, &["realm", "drain", "--force", &cells[1]]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(
        said.contains("no other cell process was there")
            && said.contains("with all their entities, until one is started"),
        "{said}"
    );
    for name in ["cell-1", "cell-2"] {
        until(STOP_TIMEOUT, name, || realm.has_ended(name)).await;
        realm.start_again(name);
    }
    realm.assert_playing("a time without cells").await;
    let report = realm.stop_and_verify().await;
    assert_eq!(report.total(|bot| bot.resumed), 0, "a client lost its connection");
    assert!(report.bots.iter().all(|bot| bot.ended.is_empty() && bot.log_ins == 1));
}

async fn a_process_of_another_bus_version_is_refused(realm: &Played) {
    let (bus, subjects, _) = realm.bus();
    let register = Register {
        service: "cell".to_owned(),
        schema: vec![0; 32],
        bus: BUS_VERSION + 1,
    };
    let ask = DirectorRequest {
        ask: Some(DirectorAsk::Register(register)),
    };
    let subject = subjects.service("director");
    let answer: Registered = request(&bus, "director", subject, &ask).await.expect("an answer");
    let (other, own) = (BUS_VERSION + 1, BUS_VERSION);
    let why = format!("its messages are of version {other}, and those of the realm's director of version {own}");
    assert!(answer.refused.contains(&why), "{answer:?}");
    assert_eq!(answer.process, 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_outlasts_the_director() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    // While the first two are drained, the director is replaced; while the others are, there is none.
    for (drained, is_back_at_once) in [("base-1", true), ("cell-1", true), ("base-2", false), ("cell-2", false)] {
        let service = &drained[..4];
        realm.wait_for_state(service, 2, |is| *is == Readiness::Ready).await;
        realm.kill("director");
        realm.terminate(drained);
        if is_back_at_once {
            realm.start_again("director");
        }
        let status = realm.stop(drained).await;
        assert_eq!(status.code(), Some(0), "{drained}: {}", realm.log_of(drained));
        if !is_back_at_once {
            realm.start_again("director");
        }
        realm.start_again(drained);
        realm.wait_for_state(service, 2, |is| *is == Readiness::Ready).await;
        realm.assert_playing(drained).await;
    }
    end_with_all_sessions(realm).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_drain_is_interrupted_by_kills() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    for (drained, killed) in [("base-1", "base-1"), ("base-1", "base-2"), ("cell-1", "cell-2")] {
        let service = &drained[..4];
        realm.wait_for_state(service, 2, |is| *is == Readiness::Ready).await;
        realm.terminate(drained);
        // A base waits 300 ms for its clients, so this is in the midst of it; a cell may have ended.
        tokio::time::sleep(Duration::from_millis(100)).await;
        realm.kill(killed);
        let status = realm.stop(drained).await;
        println!("{drained} ended with {status} when {killed} was killed");
        for name in [drained, killed] {
            if realm.has_ended(name) {
                realm.start_again(name);
            }
        }
        realm.wait_for_state(service, 2, |is| *is == Readiness::Ready).await;
        realm.assert_playing(killed).await;
    }
    end_with_all_sessions(realm).await;
}

/// Ends the realm after another trade; no bot has lost its session.
async fn end_with_all_sessions(realm: Played) {
    realm.wait_for_trade().await;
    let report = realm.stop_and_verify().await;
    assert!(
        report.bots.iter().all(|bot| bot.ended.is_empty() && bot.log_ins == 1),
        "a session was lost"
    );
}
