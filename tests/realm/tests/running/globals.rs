//! Global data and global bases among processes: every owner logs what another one wrote, also after kills.

use std::{
    fs,
    process::Stdio,
    time::{Duration, Instant},
};

use annals_host::nats::ServerCount;
use tempfile::NamedTempFile;
use tokio::process::Child;

use crate::{
    bad_input::annals,
    played::{Played, are_built},
};

/// Timeout for an entry to be in the logs of all owners. Every 30 s the sample's space asks a fragment of the almanac for
/// the next weather.
const EVERYWHERE_TIMEOUT: Duration = Duration::from_secs(90);

/// Number of owners of the realm: two bases, two cells, and the ledger, in the order in which their processes came.
const OWNERS: u32 = 5;

/// Number of owners that have global data.
const BASES_AND_CELLS: usize = 4;

/// The logs of all owners, each printed by a command that follows it.
struct Logs {
    printed: Vec<NamedTempFile>,
    /// Killed when dropped.
    commands: Vec<Child>,
}

impl Logs {
    fn follow(realm: &Played) -> Self {
        let (mut printed, mut commands) = (Vec::new(), Vec::new());
        for owner in 1..=OWNERS {
            let file = NamedTempFile::new().expect("a file");
            let output = file.reopen().expect("it can be opened again");
            let mut command = annals(realm, "annals");
            let of_owner = ["log", "tail", "-n", "100000", "--follow", "--owner", &owner.to_string()];
            let command = command.args(of_owner).stdin(Stdio::null()).stdout(output);
            commands.push(command.kill_on_drop(true).spawn().expect("it can be run"));
            printed.push(file);
        }
        Self { printed, commands }
    }

    /// Number of events with these words in the log of each owner.
    fn count(&mut self, words: &str) -> Vec<usize> {
        for command in &mut self.commands {
            let ended = command.try_wait().expect("it can be waited for");
            assert!(ended.is_none(), "a command ended: {ended:?}");
        }
        let text = |file: &NamedTempFile| fs::read_to_string(file.path()).expect("the printed log");
        let count = |text: String| text.lines().filter(|line| line.contains(words)).count();
        self.printed.iter().map(|file| count(text(file))).collect()
    }

    /// Waits until the log of every base and cell owner has more such events than before.
    async fn wait_until_everywhere(&mut self, words: &str, before: &[usize]) -> Vec<usize> {
        let began = Instant::now();
        loop {
            let now = self.count(words);
            let more = now.iter().zip(before).filter(|(now, before)| now > before).count();
            if more == BASES_AND_CELLS {
                println!("{words}: {now:?} after {:.1} s", began.elapsed().as_secs_f32());
                return now;
            }
            assert!(
                began.elapsed() < EVERYWHERE_TIMEOUT,
                "{words}: {now:?} after {before:?}"
            );
            tokio::time::sleep(Duration::from_millis(200)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_owner_knows_the_registered_space_and_the_weather_over_kills() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let mut logs = Logs::follow(&realm);
    let none = [0; OWNERS as usize];
    let registered = logs.wait_until_everywhere("global base \"space\" is", &none).await;
    assert!(registered.iter().all(|count| *count <= 1), "{registered:?}");
    let weather = "global data \"weather\" is";
    logs.wait_until_everywhere(weather, &none).await;
    for name in ["base-1", "base-2", "cell-1"] {
        realm.kill(name);
        realm.start_again(name);
        realm.assert_playing(name).await;
    }
    // What is printed of each log then reaches beyond the kills.
    let before = logs.count(weather);
    logs.wait_until_everywhere(weather, &before).await;
    // Who holds it has not changed: no owner has logged another registration.
    assert_eq!(logs.count("global base \"space\" is"), registered);
    realm.stop_and_verify().await;
}
