//! Processes that crash, and are restarted as by `annals up`; and a store that stands still for a time.

use std::collections::BTreeMap;

use annals_director::{SILENCE, read_owners};
use annals_host::{nats::ServerCount, process::BEAT};
use annals_ids::{Epoch, OwnerId, ProcessId};

use crate::played::{Played, are_built};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_processes_restart_and_play_continues_with_one_server() {
    if are_built() {
        kill_one_after_the_other(ServerCount::One).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn crashed_processes_restart_and_play_continues_with_three_servers() {
    if are_built() {
        kill_one_after_the_other(ServerCount::Three).await;
    }
}

/// The director waits for the store meanwhile, and receives no reports. One process does not report at once afterwards
/// either, which is a short silence.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_of_the_store_costs_no_process_its_owners() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start_timed(ServerCount::One, &[]).await;
    let (_, _, store) = realm.bus();
    let granted = async || -> BTreeMap<OwnerId, (Epoch, ProcessId)> {
        let owners = read_owners(&store).await.expect("the store answers");
        let grants = owners.into_iter();
        grants
            .map(|(owner, record)| (owner, (record.epoch, record.process)))
            .collect()
    };
    let before = granted().await;
    let pause = |realm: &Played, name| assert!(realm.realm.pause(name).expect("it runs"), "{name} is there");
    let resume = |realm: &Played, name| assert!(realm.realm.resume(name).expect("it runs"), "{name} is there");
    pause(&realm, "db");
    pause(&realm, "cell-1");
    tokio::time::sleep(2 * SILENCE).await;
    resume(&realm, "db");
    tokio::time::sleep(3 * BEAT).await;
    resume(&realm, "cell-1");
    realm.assert_playing("an outage of the store").await;
    assert_eq!(granted().await, before, "an owner was granted anew");
    let report = realm.stop_and_verify().await;
    let resumed = report.total(|bot| bot.resumed);
    assert_eq!(resumed, 0, "sessions were resumed");
}

async fn kill_one_after_the_other(servers: ServerCount) {
    let mut realm = Played::start(servers, &[]).await;
    for dead in [
        &["db", "login", "cell-1"][..],
        &["director", "base-1"],
        &["nats-server"],
    ] {
        for name in dead {
            match *name {
                "nats-server" => realm.realm.nats_servers().kill().expect("it can be killed"),
                name => assert!(realm.realm.kill(name).expect("it can be killed"), "{name} is there"),
            }
        }
        let mut restarted = Vec::new();
        while restarted.len() < dead.len() {
            restarted.extend(realm.supervise().await);
        }
        for name in dead {
            assert!(
                restarted.iter().any(|line| line.contains(name)),
                "{name} is not in {restarted:?}"
            );
        }
        realm.assert_playing(&dead.join(" and ")).await;
    }
    // A process that was stopped alone ended cleanly, and the realm still runs.
    realm.realm.stop_one("login").await.expect("it can be stopped");
    realm
        .supervise_until("login ended with exit status: 0 and was restarted")
        .await;
    realm.assert_playing("a login process that was stopped alone").await;
    let report = realm.stop_and_verify().await;
    assert!(report.bots.iter().all(|bot| bot.ended.is_empty()), "a session was lost");
}
