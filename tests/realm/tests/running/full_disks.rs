//! Full disks under three nats-servers with three replicas of every message: under the stream's leader, then under all
//! of them.

use annals_host::{health::Readiness, log::History, nats::ServerCount, process::FIRST_SHARD};

use crate::{
    bad_input::{NOTICE_TIMEOUT, skipped, wait_until_quiet},
    disks::SmallDisk,
    played::{Played, are_built, until},
};

/// The servers, and the path of each one's disk in the realm's folder.
const SERVERS: [(&str, &str); 3] = [("n1", "nats/n1"), ("n2", "nats/n2"), ("n3", "nats/n3")];

/// Events that bots must be shown while one of the disks is full.
const PLAYED: u64 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_realm_survives_full_disks_under_the_leader_and_all_three_servers() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::Three, &SERVERS.map(|(_, disk)| disk)).await;
    let disks = |realm: &Played| SERVERS.map(|(_, disk)| realm.disk(disk).is_some()) == [true; 3];
    if !disks(&realm) {
        realm.stop_and_verify().await;
        return skipped();
    }
    let leader = leader(&realm).await.expect("the stream has a leader");
    println!("{leader} leads");
    let (full, others): (Vec<_>, Vec<_>) = SERVERS.into_iter().partition(|(name, _)| *name == leader);
    disk(&realm, full[0].1).fill();
    let shown = realm.shown();
    until(NOTICE_TIMEOUT, "bots to play with one full disk of three", || {
        realm.shown() > shown + PLAYED
    })
    .await;
    realm.assert_playing("a full disk under one of three servers").await;
    println!("{:?} leads", self::leader(&realm).await);

    for (_, path) in others {
        disk(&realm, path).fill();
    }
    wait_until_quiet(&realm).await;
    for holder in ["base-1", "base-2", "cell-1", "cell-2"] {
        until(NOTICE_TIMEOUT, "holders to say why nothing is shown", || {
            realm.log_of(holder).contains("the log is blocked")
        })
        .await;
    }
    for service in ["base", "cell"] {
        realm
            .wait_for_state(service, 2, |is| matches!(is, Readiness::Waiting { .. }))
            .await;
    }
    realm
        .supervise_until("its nats-server is restarted when there is space")
        .await;
    for (_, path) in SERVERS {
        disk(&realm, path).free();
    }
    realm.supervise_until("was restarted").await;
    realm.assert_playing("full disks under all of three servers").await;
    let report = realm.stop_and_verify().await;
    assert!(
        report.bots.iter().all(|bot| bot.ended.is_empty()),
        "no session was lost"
    );
}

fn disk<'r>(realm: &'r Played, path: &str) -> &'r SmallDisk {
    realm.disk(path).expect("it is mounted")
}

/// Name of the server that leads the realm's stream.
async fn leader(realm: &Played) -> Option<String> {
    let (bus, ..) = realm.bus();
    let history = History::find(&bus, &realm.realm.plan().realm, FIRST_SHARD)
        .await
        .ok()??;
    let info = history.stream().get_info().await.ok()?;
    info.cluster?.leader
}
