//! Processes stopped with SIGTERM, as an operator stops them, during play.

use std::time::{Duration, Instant};

use annals_host::{health::Readiness, nats::ServerCount};

use crate::{
    bad_input::skipped,
    played::{Played, are_built},
};

/// Maximum shutdown time of a process whose log works, on a machine that is busy with tests.
const ENDS: Duration = Duration::from_secs(3);

/// Maximum shutdown time of a process whose log accepts nothing.
const ENDS_ANYHOW: Duration = Duration::from_secs(9);

/// Maximum interruption of most players: less than the timeout for a killed process (3 s) plus its take-over (1.5 s).
const BACK: Duration = Duration::from_secs(4);

/// Play between two interruptions, so that they can be told apart.
const APART: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stopped_cell_and_a_stopped_base_hand_over_what_they_hold() {
    if are_built() {
        stop_one_after_the_other(ServerCount::One).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn they_do_so_where_three_servers_keep_the_log() {
    if are_built() {
        stop_one_after_the_other(ServerCount::Three).await;
    }
}

async fn stop_one_after_the_other(servers: ServerCount) {
    let mut realm = Played::start_alone(servers, &["nats"]).await;
    let mut stops = Vec::new();
    // Both bases in turn: all players may be on one of them.
    for (service, name) in [("cell", "cell-1"), ("base", "base-1"), ("base", "base-2")] {
        realm.say(service, 2, |is| *is == Readiness::Ready).await;
        let began = Instant::now();
        stops.push((name, began));
        let status = realm.stop(name).await;
        println!("{name} ended after {:.2} s", began.elapsed().as_secs_f32());
        assert_eq!(status.code(), Some(0), "{name}: {}", realm.log_of(name));
        assert!(began.elapsed() < ENDS, "{name} took {:?}", began.elapsed());
        realm.plays_on(name).await;
        realm.start_again(name);
        realm.say(service, 2, |is| *is == Readiness::Ready).await;
        println!("{name} is back after {:.2} s", began.elapsed().as_secs_f32());
        realm.plays_on("its return").await;
        tokio::time::sleep(APART).await;
    }
    stopped_while_the_log_stands_still(&mut realm).await;
    realm.trades().await;
    let report = realm.prove().await;
    for (stop, (name, at)) in stops.iter().enumerate() {
        let recovery = report.recovery_after(*at);
        println!("{name} stopped: {recovery}");
        // All bots were playing before the next stop, so a bot that returns after it was not interrupted by this one.
        let next = stops.get(stop + 1).map(|(_, next)| *next - *at);
        let is_back = recovery.p50 < BACK || next.is_some_and(|next| recovery.p50 > next);
        assert!(recovery.endless == 0 && is_back, "{name}: {recovery}");
    }
    let moved = report.bots.iter().all(|bot| bot.resumed > 0);
    assert!(moved, "every base was stopped, and somebody was not sent elsewhere");
    assert_eq!(
        report.total(|bot| bot.log_ins),
        report.bots.len() as u64,
        "nobody had to log in again"
    );
    assert!(
        report.bots.iter().all(|bot| bot.ended.is_empty()),
        "no session was lost"
    );
}

/// Events that cannot be logged are not shown, and do not block the shutdown indefinitely.
async fn stopped_while_the_log_stands_still(realm: &mut Played) {
    let Some(disk) = realm.disk("nats") else {
        return skipped();
    };
    disk.fill();
    realm.say("cell", 2, |is| matches!(is, Readiness::Waiting { .. })).await;
    let began = Instant::now();
    let status = realm.stop("cell-2").await;
    println!("cell-2 ended after {:.2} s", began.elapsed().as_secs_f32());
    assert_eq!(status.code(), Some(0), "{}", realm.log_of("cell-2"));
    assert!(began.elapsed() < ENDS_ANYHOW, "it took {:?}", began.elapsed());
    assert!(
        realm
            .log_of("cell-2")
            .contains("not everything could be logged in time")
    );
    realm.disk("nats").expect("it is mounted").free();
    realm.realm.nats_servers().restart().await.expect("it starts again");
    realm.plays_on("a stop while the log stood still").await;
}
