//! Global data and global bases among processes: every owner logs what another one wrote, also after kills.

use std::time::{Duration, Instant};

use annals_host::nats::ServerCount;

use crate::{
    bad_input::annals,
    played::{Played, are_built, run},
};

/// Timeout for an entry to be in the logs of all owners. Every 30 s the sample's space asks a fragment of the almanac for
/// the next weather.
const EVERYWHERE_TIMEOUT: Duration = Duration::from_secs(90);

/// Number of owners of the realm: two bases, two cells, and the ledger, in the order in which their processes came.
const OWNERS: u32 = 5;

/// Number of owners that have global data.
const BASES_AND_CELLS: usize = 4;

/// Number of events with these words in the log of each owner.
async fn logged(realm: &Played, words: &str) -> Vec<usize> {
    let mut counts = Vec::new();
    for owner in 1..=OWNERS {
        let mut command = annals(realm, "annals");
        let of_owner = ["log", "tail", "-n", "100000", "--owner", &owner.to_string()];
        let (status, said) = run(command.args(of_owner)).await;
        assert!(status.success(), "{said}");
        counts.push(said.lines().filter(|line| line.contains(words)).count());
    }
    counts
}

/// Waits until the log of every base and cell owner has more such events than before.
async fn wait_until_everywhere(realm: &Played, words: &str, before: &[usize]) -> Vec<usize> {
    let began = Instant::now();
    loop {
        let now = logged(realm, words).await;
        let more = now.iter().zip(before).filter(|(now, before)| now > before).count();
        if more == BASES_AND_CELLS {
            println!("{words}: {now:?} after {:.1} s", began.elapsed().as_secs_f32());
            return now;
        }
        assert!(
            began.elapsed() < EVERYWHERE_TIMEOUT,
            "{words}: {now:?} after {before:?}"
        );
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_owner_knows_the_registered_space_and_the_weather_over_kills() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let none = [0; OWNERS as usize];
    let registered = wait_until_everywhere(&realm, "global base \"space\" is", &none).await;
    assert!(registered.iter().all(|count| *count <= 1), "{registered:?}");
    let weather = "global data \"weather\" is";
    let before = wait_until_everywhere(&realm, weather, &none).await;
    for name in ["base-1", "base-2", "cell-1"] {
        realm.kill(name);
        realm.start_again(name);
        realm.assert_playing(name).await;
    }
    wait_until_everywhere(&realm, weather, &before).await;
    // Who holds it has not changed: no owner has logged another registration.
    assert_eq!(logged(&realm, "global base \"space\" is").await, registered);
    realm.stop_and_verify().await;
}
