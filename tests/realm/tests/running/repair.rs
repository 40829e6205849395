//! Processes that crash, and are restarted as by `annals up`.

use annals_host::nats::ServerCount;

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
