//! Bots that play in a realm until a test stops them.

use std::{
    fs,
    net::SocketAddr,
    path::Path,
    sync::Arc,
    time::{Duration, Instant},
};

use annals_bots::{
    bots::{self, BotPlan, BotsError, BotsReport, Conduct, Reads},
    progress::Progress,
};
use annals_client::Trust;
use annals_def::Schema;
use annals_ids::Hash;
use tokio::{sync::watch, task::JoinHandle};

use crate::played::within;

/// Longer than any test: bots play until they are stopped.
const UNLIMITED: Duration = Duration::from_secs(3_600);

/// Maximum time for bots to log off.
const LOG_OFF_TIMEOUT: Duration = Duration::from_secs(120);

/// Running bots, with the accounts `bot0`, `bot1` and so on.
pub(crate) struct Playing {
    bots: u64,
    until: watch::Sender<Instant>,
    progress: watch::Receiver<Progress>,
    task: JoinHandle<Result<BotsReport, BotsError>>,
}

impl Playing {
    /// Starts bots that log in at this address. What they are shown is written to files in this folder, which is
    /// created.
    pub(crate) fn start(
        (login, certificate): (SocketAddr, Hash),
        schema: &Arc<Schema>,
        bots: usize,
        files: &Path,
    ) -> Self {
        fs::create_dir_all(files).expect("a folder for what is shown");
        let (until, playing_until) = watch::channel(Instant::now() + UNLIMITED);
        let (sender, progress) = watch::channel(Progress::default());
        let plan = BotPlan {
            login,
            trust: Trust::Pinned(certificate),
            password: "a password for bots".to_owned(),
            schema: Arc::clone(schema),
            bots,
            conduct: Conduct::default(),
            first: 0,
            until: playing_until,
            resting: watch::channel(false).1,
            seed: 1,
            files: files.to_owned(),
            prefix: String::new(),
            reads: Reads::Predicted,
        };
        Self {
            bots: bots as u64,
            until,
            progress,
            task: tokio::spawn(bots::run(plan, sender)),
        }
    }

    /// Their progress.
    pub(crate) fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Waits until all are connected and were shown this many more events; returns whether that happened in time.
    pub(crate) async fn wait_until_shown(&mut self, more: u64, timeout: Duration) -> bool {
        let wanted = self.progress().shown + more;
        let bots = self.bots;
        let shown = self
            .progress
            .wait_for(|now| now.shown >= wanted && now.connected == bots);
        tokio::time::timeout(timeout, shown)
            .await
            .is_ok_and(|ended| ended.is_ok())
    }

    /// Has them log off. Bots that have lost the realm wait for it a while.
    pub(crate) async fn end(&mut self) -> BotsReport {
        self.end_at(Instant::now()).await
    }

    /// Stops them although their realm has stopped: as if the time for which they wait for it were over.
    pub(crate) async fn end_without_realm(&mut self) -> BotsReport {
        let now = Instant::now();
        self.end_at(now.checked_sub(LOG_OFF_TIMEOUT).unwrap_or(now)).await
    }

    async fn end_at(&mut self, until: Instant) -> BotsReport {
        self.until.send_replace(until);
        let report = within(LOG_OFF_TIMEOUT, "the bots to log off", &mut self.task).await;
        report.expect("bots do not panic").expect("bots can write")
    }
}
