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
        let mut mended = Vec::new();
        while mended.len() < dead.len() {
            mended.extend(realm.realm.mend().await.expect("it can be started again"));
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
        println!("{mended:?}");
        for name in dead {
            assert!(
                mended.iter().any(|line| line.contains(name)),
                "{name} is not in {mended:?}"
            );
        }
        realm.assert_playing(&dead.join(" and ")).await;
    }
    let report = realm.stop_and_verify().await;
    assert!(report.bots.iter().all(|bot| bot.ended.is_empty()), "a session was lost");
}
