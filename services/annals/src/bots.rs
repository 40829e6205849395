//! Bots: players that log in over the real transport, play any world, and write down what they were shown.
//!
//! A bot knows nothing but the schema. It moves as people do ([`annals_client::walk`]), calls the exposed methods of
//! what it controls with generated arguments, first those that bots have called least, and those of others in view now and then;
//! it and speaks where the world has a method for it. It resumes by
//! itself, as every client does. What it was shown goes into a file of its own ([`crate::showings`]), for the checker.

mod bot;
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

pub use annals_client::{Reads, walk::REACH};
use annals_client::{Trust, client_endpoint};
use annals_def::Schema;
pub use coverage::ToDrive;
use thiserror::Error;
use tokio::{sync::watch, task::JoinSet, time::sleep};

use crate::progress::Progress;
use coverage::Coverage;
pub use report::{BotReport, BotsReport, Driven, Gap, Interruption, Recovery, TradeEnd};

/// Log-ins per second: with many at once handshakes are lost and tried again, which takes longer.
pub const LOG_INS_PER_SECOND: u32 = 30;

/// Bots that share a UDP socket: each socket has a receive buffer of its own, which a burst of frames must fit.
const BOTS_PER_SOCKET: usize = 10;

/// How often progress is told.
const TELL_EVERY: Duration = Duration::from_millis(500);

/// What bots are to do.
#[derive(Clone, Debug)]
pub struct BotPlan {
    /// Where the login service listens.
    pub login: SocketAddr,
    /// Whose certificate is believed there.
    pub trust: Trust,
    /// The password of the accounts: `bot0`, `bot1` and so on.
    pub password: String,
    /// The definitions the realm runs with.
    pub schema: Arc<Schema>,
    /// How many bots.
    pub bots: usize,
    /// The number of the first one's account.
    pub first: usize,
    /// Until when they play. It may be moved while they do.
    pub until: watch::Receiver<Instant>,
    /// Whether they only look on, and do nothing themselves, until it says otherwise.
    pub resting: watch::Receiver<bool>,
    /// Makes them do the same again.
    pub seed: u64,
    /// The folder for what they were shown; it must be there.
    pub files: PathBuf,
    /// Which ways of telling movements they read.
    pub reads: Reads,
}

/// Why a run of bots was broken off.
#[derive(Debug, Error)]
pub enum BotsError {
    /// No socket can be had.
    #[error("no UDP socket can be had for the bots")]
    Socket(#[source] io::Error),
    /// What a bot was shown cannot be written down.
    #[error("cannot write {}; a demonstration that is not written down proves nothing", path.display())]
    Write {
        /// Where.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A bot came to grief.
    #[error("a bot stopped; this is a defect")]
    Stopped(#[source] tokio::task::JoinError),
}

/// What all bots have done so far.
#[derive(Debug, Default)]
struct Tally {
    connected: AtomicU64,
    interrupted: AtomicU64,
    calls: AtomicU64,
    shown: AtomicU64,
    resumed: AtomicU64,
    /// Under which numbers they trade.
    traders: Mutex<BTreeSet<u64>>,
    coverage: Coverage,
}

/// Lets bots play, and tells how it goes meanwhile.
///
/// # Errors
/// When there is no socket, or what is shown cannot be written down. A bot that cannot log in is no error: see
/// [`BotReport::ended`] and [`BotReport::log_ins`].
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
            sleep(Duration::from_secs(1) * u32::try_from(number).unwrap_or(u32::MAX) / LOG_INS_PER_SECOND).await;
            let played = bot::play(&plan, plan.first + number, endpoint, &tally).await;
            played.map(|report| (number, report))
        });
    }
    let mut told = tokio::time::interval(TELL_EVERY);
    let mut last = Progress::default();
    let mut reports = Vec::new();
    loop {
        tokio::select! {
            ended = playing.join_next() => match ended {
                Some(ended) => reports.push(ended.map_err(BotsError::Stopped)??),
                None => break,
            },
            _ = told.tick() => {
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

impl Tally {
    /// Notes that a bot trades under this number: under which the others do.
    fn traders_beside(&self, own: u64) -> Vec<u64> {
        let mut traders = self.traders.lock().unwrap_or_else(PoisonError::into_inner);
        // Whose avatar stands for no account has none.
        if own != 0 {
            traders.insert(own);
        }
        traders.iter().copied().filter(|trader| *trader != own).collect()
    }

    /// How it goes, given how it went.
    fn read(&self, elapsed: Duration, bots: usize, before: &Progress) -> Progress {
        let read = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let (calls, shown) = (read(&self.calls), read(&self.shown));
        let seconds = (elapsed - before.elapsed).as_secs_f64().max(f64::EPSILON);
        Progress {
            elapsed,
            connected: read(&self.connected),
            interrupted: read(&self.interrupted),
            bots: bots as u64,
            calls,
            calls_per_second: (calls - before.calls) as f64 / seconds,
            shown,
            shown_per_second: (shown - before.shown) as f64 / seconds,
            resumed: read(&self.resumed),
        }
    }
}
