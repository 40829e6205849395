//! Clients whose process is stopped with SIGSTOP and continued later, like a sleeping laptop. They resume their
//! sessions or learn why these have ended, nothing that they were shown is lost, and other players notice nothing.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    time::Duration,
};

use annals_bots::scenario::{PhaseReport, ScenarioReport};
use annals_host::{
    child::{self, Child},
    nats::ServerCount,
};
use annals_realm::Folder;
use tokio::{process::Command, time::sleep};

use crate::played::{Played, are_built, binary, repository, run, until};

/// Bots of each process.
const BOTS: u64 = 3;

/// Play after a process was continued.
const PLAY_AFTER: Duration = Duration::from_secs(20);

/// Maximum time for its bots to log in.
const LOG_IN_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum time to end, beyond its run time.
const EXIT_TIMEOUT: Duration = Duration::from_secs(60);

/// Interval between looks at the archive.
const POLL_INTERVAL: Duration = Duration::from_millis(250);

/// `annals bots` as a process of its own.
struct Paused {
    stop: Duration,
    process: Child,
    files: PathBuf,
}

impl Paused {
    /// Starts bots whose accounts are numbered from `first` on.
    fn start(realm: &Played, folder: &Path, first: u64, stop: Duration) -> Self {
        let files = folder.join(first.to_string());
        fs::create_dir_all(&files).expect("a folder for what is shown");
        let mut command = child::command(binary("annals").expect("it is built"));
        let (login, certificate) = realm.realm.login;
        let duration = LOG_IN_TIMEOUT + stop + PLAY_AFTER;
        command
            .args(["bots", "--bots", &BOTS.to_string(), "--first", &first.to_string()])
            .arg("--report")
            .arg(files.join("report"))
            .args(["--duration", &duration.as_secs().to_string()])
            .args(["--login", &login.to_string(), "--certificate", &certificate.to_string()])
            .arg("--world")
            .arg(repository().join("defs"))
            .arg("--files")
            .arg(&files)
            .stdout(File::create(files.join("said")).expect("a file"))
            .stderr(File::create(files.join("progress")).expect("a file"));
        let process = Child::spawn(command).expect("it starts");
        Self { stop, process, files }
    }

    fn said(&self, file: &str) -> String {
        fs::read_to_string(self.files.join(file)).unwrap_or_default()
    }

    /// Stops the process once all of its bots play, continues it, and waits for its end. Returns whether no session was
    /// lost, and its report.
    async fn stop_and_continue(mut self) -> (bool, PhaseReport) {
        let all = format!("{BOTS}/{BOTS} bots play");
        until(LOG_IN_TIMEOUT, "bots to log in", || {
            self.said("progress").contains(&all)
        })
        .await;
        self.process.pause().expect("it runs");
        sleep(self.stop).await;
        self.process.resume().expect("it is stopped");
        let mut status = None;
        until(PLAY_AFTER + LOG_IN_TIMEOUT + EXIT_TIMEOUT, "bots to end", || {
            status = self.process.ended().expect("it is ours");
            status.is_some()
        })
        .await;
        println!(
            "stopped for {} s: {}{}",
            self.stop.as_secs(),
            self.said("said"),
            self.said("progress")
        );
        let report = ScenarioReport::read(&self.files.join("report"));
        let mut report = report.unwrap_or_else(|error| panic!("{error}"));
        let report = report.phases.pop().expect("a phase");
        (status.is_some_and(|status| status.success()), report)
    }
}

/// Waits until the archive has everything that these bots were shown.
async fn wait_until_archived(realm: &Played, files: &Path) {
    let plan = realm.realm.plan();
    let (mut complete, mut said) = (false, String::new());
    for _ in 0..80 {
        let mut check = Command::new(binary("annals").expect("it is built"));
        check.args(["check", "--realm", &plan.realm, "--nats", &realm.realm.nats()]);
        check.arg("--world").arg(&plan.build.world).arg("--files").arg(files);
        let (status, now) = run(&mut check).await;
        (complete, said) = (status.success(), now);
        if complete {
            break;
        }
        sleep(POLL_INTERVAL).await;
    }
    assert!(complete, "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn paused_clients_return_and_do_not_affect_others() {
    if !are_built() {
        return;
    }
    let mut realm = Played::start(ServerCount::One, &[]).await;
    let folder = Folder::create();
    let [short, long] = [(100, 10), (200, 60)]
        .map(|(first, stop)| Paused::start(&realm, folder.path(), first, Duration::from_secs(stop)));
    let files = [&short, &long].map(|paused| paused.files.clone());
    let ((kept, short), (_, long)) = tokio::join!(short.stop_and_continue(), long.stop_and_continue());

    // Ten seconds are within the time for which a session is kept.
    assert!(kept, "a session was lost: {short}");
    assert_eq!(short.log_ins, BOTS, "{short}");
    // After sixty the session may have ended; the client is then notified, and logs in again.
    let again: usize = long.ended.values().map(Vec::len).sum();
    assert_eq!(long.log_ins, BOTS + again as u64, "{long}");
    for reason in long.ended.values().flatten() {
        assert!(reason.contains("session"), "the reason is not clear: {reason}");
    }
    assert!(
        long.log_ins + long.resumed >= 2 * BOTS,
        "not every bot was interrupted and resumed: {long}"
    );

    for files in &files {
        wait_until_archived(&realm, files).await;
    }
    realm.assert_playing("two processes of clients that were stopped").await;
    let report = realm.stop_and_verify().await;
    assert_eq!(report.total(|bot| bot.log_ins), report.bots.len() as u64);
    assert_eq!(report.total(|bot| bot.resumed), 0, "another client lost its connection");
    assert!(
        report.bots.iter().all(|bot| bot.ended.is_empty()),
        "another client lost its session"
    );
}
