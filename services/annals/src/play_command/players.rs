//! The bots beside the people.

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
use annals_client::{Trust, walk::Gathering};
use annals_def::Schema;
use annals_host::telemetry::Chain;
use annals_ids::Hash;
use tokio::{sync::watch, task::JoinHandle, time::timeout};

use crate::bots_command::PASSWORD;

/// Where the bots gather: the middle of the plaza where newcomers appear.
const MARKET: Gathering = Gathering {
    centre: [0.0, 0.0],
    radius: 25.0,
};

/// Longer than anybody plays: bots stay until they are stopped.
const UNLIMITED: Duration = Duration::from_secs(365 * 24 * 3_600);

/// Maximum time for bots to log off.
const LOG_OFF_WITHIN: Duration = Duration::from_secs(10);

/// Running bots, with the accounts `bot0`, `bot1` and so on.
pub(super) struct Players {
    until: watch::Sender<Instant>,
    progress: watch::Receiver<Progress>,
    task: JoinHandle<Result<BotsReport, BotsError>>,
}

impl Players {
    /// Starts bots. The records of what they are shown, the input of `annals check`, are in the folder `bots`; those of
    /// an earlier run are replaced.
    pub(super) fn start(
        (login, certificate): (SocketAddr, Hash),
        schema: &Arc<Schema>,
        bots: usize,
        folder: &Path,
    ) -> Self {
        let files = folder.join("bots");
        // If it cannot be created, the bots say so.
        let _ = fs::create_dir_all(&files);
        let (until, playing_until) = watch::channel(Instant::now() + UNLIMITED);
        let (sender, progress) = watch::channel(Progress::default());
        let plan = BotPlan {
            login,
            trust: Trust::Pinned(certificate),
            password: PASSWORD.to_owned(),
            schema: Arc::clone(schema),
            bots,
            conduct: Conduct::Market(MARKET),
            first: 0,
            until: playing_until,
            resting: watch::channel(false).1,
            seed: 1,
            files,
            prefix: String::new(),
            reads: Reads::Predicted,
        };
        let task = tokio::spawn(async move {
            let ended = bots::run(plan, sender).await;
            if let Err(error) = &ended {
                println!("the bots have ended: {}", Chain(error));
            }
            ended
        });
        Self { until, progress, task }
    }

    /// What they do.
    pub(super) fn progress(&self) -> watch::Receiver<Progress> {
        self.progress.clone()
    }

    /// Logs them off, while the realm still runs.
    pub(super) async fn stop(mut self) {
        self.until.send_replace(Instant::now());
        if timeout(LOG_OFF_WITHIN, &mut self.task).await.is_err() {
            self.task.abort();
        }
    }
}
