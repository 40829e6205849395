//! Bots: players that log in over the real transport, play any world, and record what they were shown.
//!
//! A bot knows only the schema. It moves as people do ([`annals_client::walk`]), and calls the exposed methods of what
//! it controls with generated arguments, those least called by all bots first; from time to time it calls those of
//! others in view. It speaks where the world has a method for that. It resumes its session by itself, as every client
//! does. What it was shown is recorded in a file per bot ([`crate::showings`]), for the checker.

mod bot;
mod conduct;
mod coverage;
mod repertoire;
mod report;
mod session;
mod trader;

use std::{
    collections::BTreeSet,
    io,
    net::SocketAddr,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

pub use annals_client::Reads;
use annals_client::{Trust, client_endpoint};
use annals_def::Schema;
pub use conduct::{Conduct, Visits};
pub use coverage::ToDrive;
use thiserror::Error;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::progress::Progress;
use coverage::Coverage;
pub(crate) use trader::can_trade;

/// Number of exposed methods of a world.
pub(crate) fn exposed_methods(schema: &Schema) -> usize {
    schema
        .types()
        .iter()
        .map(|found| repertoire::exposed(found).len())
        .sum()
}
pub use report::{BotReport, BotsReport, Driven, Gap, Interruption, Recovery, TradeEnd};

/// Log-ins per second. With more at once, handshakes are lost and retried, which takes longer.
pub(crate) const LOG_INS_PER_SECOND: u32 = 30;

/// Bots per UDP socket: each socket has its own receive buffer, which must hold a burst of frames.
const BOTS_PER_SOCKET: usize = 10;

/// Interval between progress updates.
const PROGRESS_EVERY: Duration = Duration::from_millis(500);

/// The plan of a run of bots.
#[derive(Clone, Debug)]
pub struct BotPlan {
    /// Address of the login service.
    pub login: SocketAddr,
    /// The certificate that is trusted there.
    pub trust: Trust,
    /// The password of the accounts: `bot0`, `bot1` and so on.
    pub password: String,
    /// The definitions of the realm.
    pub schema: Arc<Schema>,
    /// Number of bots.
    pub bots: usize,
    /// What they do.
    pub conduct: Conduct,
    /// The number of the first bot's account.
    pub first: usize,
    /// When they stop playing. It may be moved while they play.
    pub until: watch::Receiver<Instant>,
    /// While true, they only watch.
    pub resting: watch::Receiver<bool>,
    /// Seed that makes a run repeatable.
    pub seed: u64,
    /// The folder for the records of what they were shown; it must exist.
    pub files: PathBuf,
    /// First part of the names of these records, so that several runs can use one folder.
    pub prefix: String,
    /// The movement encodings that they read.
    pub reads: Reads,
}

/// Why a run of bots was aborted.
#[derive(Debug, Error)]
pub enum BotsError {
    /// No socket could be opened.
    #[error("the bots' UDP socket cannot be opened")]
    Socket(#[source] io::Error),
    /// A bot's record cannot be written.
    #[error("cannot write {}; the demonstration needs a record of what bots were shown", path.display())]
    Write {
        path: PathBuf,
        /// The underlying error.
        #[source]
        source: io::Error,
    },
    /// A bot's task failed.
    #[error("a bot task ended early; this is a defect")]
    Stopped(#[source] tokio::task::JoinError),
}

/// The totals of all bots so far.
#[derive(Debug, Default)]
struct Tally {
    connected: AtomicU64,
    interrupted: AtomicU64,
    queued: AtomicU64,
    calls: AtomicU64,
    shown: AtomicU64,
    resumed: AtomicU64,
    /// The numbers under which they trade.
    traders: Mutex<BTreeSet<u64>>,
    coverage: Coverage,
}

/// Lets bots play, and reports progress meanwhile.
///
/// # Errors
/// When no socket can be opened, or a record cannot be written. A failed log-in is no error: see [`BotReport::ended`]
/// and [`BotReport::log_ins`].
pub async fn run(plan: BotPlan, progress: watch::Sender<Progress>) -> Result<BotsReport, BotsError> {
    let began = Instant::now();
    let (plan, tally) = (Arc::new(plan), Arc::new(Tally::default()));
    let mut playing = JoinSet::new();
    let mut endpoint = None;
    for number in 0..plan.bots {
        if number % BOTS_PER_SOCKET == 0 {
            endpoint = Some(client_endpoint(plan.login).map_err(BotsError::Socket)?);
        }
        let endpoint = endpoint.clone().expect("invariant: the first bot makes one");
        let (plan, tally) = (Arc::clone(&plan), Arc::clone(&tally));
        playing.spawn(async move {
            sleep(plan.at_rate(number)).await;
            let played = bot::play(&plan, plan.first + number, endpoint, &tally).await;
            played.map(|report| (number, report))
        });
    }
    let mut ticks = tokio::time::interval(PROGRESS_EVERY);
    let mut last = Progress::default();
    let mut reports = Vec::new();
    loop {
        tokio::select! {
            ended = playing.join_next() => match ended {
                Some(ended) => reports.push(ended.map_err(BotsError::Stopped)??),
                None => break,
            },
            _ = ticks.tick() => {
                last = tally.read(began.elapsed(), plan.bots, &last);
                progress.send_replace(last);
            }
        }
    }
    reports.sort_by_key(|(number, _)| *number);
    Ok(BotsReport {
        bots: reports.into_iter().map(|(_, report)| report).collect(),
        elapsed: began.elapsed(),
    })
}

impl BotPlan {
    /// The time that so many log-ins take.
    fn at_rate(&self, log_ins: usize) -> Duration {
        let rate = match self.conduct {
            Conduct::LogInStorm(visits) => visits.rate.max(1),
            _ => LOG_INS_PER_SECOND,
        };
        Duration::from_secs(1) * u32::try_from(log_ins).unwrap_or(u32::MAX) / rate
    }
}

impl Tally {
    /// Notes the number under which a bot trades; returns the numbers of the others.
    fn traders_beside(&self, own: u64) -> Vec<u64> {
        let mut traders = self.traders.lock().unwrap_or_else(PoisonError::into_inner);
        // An avatar without an account has no number.
        if own != 0 {
            traders.insert(own);
        }
        traders.iter().copied().filter(|trader| *trader != own).collect()
    }

    /// The current progress, given the previous.
    fn read(&self, elapsed: Duration, bots: usize, before: &Progress) -> Progress {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let (calls, shown) = (read(&self.calls), read(&self.shown));
        let seconds = (elapsed - before.elapsed).as_secs_f64().max(f64::EPSILON);
        Progress {
            elapsed,
            connected: read(&self.connected),
            interrupted: read(&self.interrupted),
            queued: read(&self.queued),
            bots: bots as u64,
            calls,
            calls_per_second: (calls - before.calls) as f64 / seconds,
            shown,
            shown_per_second: (shown - before.shown) as f64 / seconds,
            resumed: read(&self.resumed),
        }
    }
}
