//! Processes that crash, and are restarted as by `annals up`.

use annals_host::nats::ServerCount;

use crate::played::{Played, are_built};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_dies_is_started_again_and_everybody_plays_on() {
    if are_built() {
        kill_one_after_the_other(ServerCount::One).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn it_is_so_where_three_servers_keep_the_log() {
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
        realm.plays_on(&dead.join(" and ")).await;
    }
    let report = realm.prove().await;
    assert!(report.bots.iter().all(|bot| bot.ended.is_empty()), "a session was lost");
}
