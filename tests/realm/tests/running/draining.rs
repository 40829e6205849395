//! Processes stopped with SIGTERM, as an operator stops them, during play.

use std::time::{Duration, Instant};

use annals_host::{health::Readiness, nats::ServerCount};

use crate::{
    bad_input::skipped,
    played::{Played, are_built},
};

/// Maximum shutdown time of a process whose log works, on a machine that is busy with tests.
const STOP_TIMEOUT: Duration = Duration::from_secs(3);

/// Maximum shutdown time of a process whose log accepts nothing.
const STALLED_STOP_TIMEOUT: Duration = Duration::from_secs(9);

/// Maximum interruption of most players: less than the timeout for a killed process (3 s) plus its take-over (1.5 s).
const MAX_INTERRUPTION: Duration = Duration::from_secs(4);

/// Play between two interruptions, so that they can be told apart.
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
    let mut stops = Vec::new();
    // Both bases in turn: all players may be on one of them.
    for (service, name) in [("cell", "cell-1"), ("base", "base-1"), ("base", "base-2")] {
        realm.wait_for_state(service, 2, |is| *is == Readiness::Ready).await;
        let began = Instant::now();
        stops.push((name, began));
        let status = realm.stop(name).await;
        println!("{name} ended after {:.2} s", began.elapsed().as_secs_f32());
        assert_eq!(status.code(), Some(0), "{name}: {}", realm.log_of(name));
        assert!(began.elapsed() < STOP_TIMEOUT, "{name} took {:?}", began.elapsed());
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
    for (stop, (name, at)) in stops.iter().enumerate() {
        let recovery = report.recovery_after(*at);
        println!("{name} stopped: {recovery}");
        // All bots were playing before the next stop, so a bot that returns after it was not interrupted by this one.
        let next = stops.get(stop + 1).map(|(_, next)| *next - *at);
        let is_back = recovery.p50 < MAX_INTERRUPTION || next.is_some_and(|next| recovery.p50 > next);
        assert!(recovery.endless == 0 && is_back, "{name}: {recovery}");
    }
    let moved = report.bots.iter().all(|bot| bot.resumed > 0);
    assert!(moved, "not all clients were moved when every base was stopped");
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
    assert!(began.elapsed() < STALLED_STOP_TIMEOUT, "it took {:?}", began.elapsed());
    assert!(
        realm
            .log_of("cell-2")
            .contains("not everything could be logged in time")
    );
    realm.disk("nats").expect("it is mounted").free();
    realm.realm.nats_servers().restart().await.expect("it starts again");
    realm.assert_playing("a stop while the log stood still").await;
}
