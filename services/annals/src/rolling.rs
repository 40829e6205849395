//! A rolling restart: every process of a realm in turn is stopped in order, and started again, while bots play.

mod hand_overs;

use std::{
    collections::BTreeMap,
    io,
    path::PathBuf,
    time::{Duration, Instant},
};

use annals_bots::bots::{BotReport, BotsReport};
use annals_client::GAP;
use annals_def::split_mix;
use annals_host::{
    config::Realm as RealmName,
    health::{DiscoveryError, Instance, Readiness, discover},
    nats::Bus,
};
use thiserror::Error;

use crate::up::{GameBuild, NoConsole, Realm, UpError, log_of};

use hand_overs::HandOvers;

/// The name of the console, which is no member of the realm.
const CONSOLE: &str = "console";

/// Play between two stops, so that their effects can be distinguished.
const PLAY_BETWEEN: Duration = Duration::from_secs(2);

/// Timeout for a process that was started again.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Interval between two looks at what is ready.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// How long after the end of a process its effect on clients can begin.
const AFTERMATH: Duration = Duration::from_secs(1);

/// Why a rolling restart was aborted.
#[derive(Debug, Error)]
pub(crate) enum RollingError {
    #[error(transparent)]
    Up(#[from] UpError),
    #[error("the console was not started again")]
    Console(#[from] NoConsole),
    #[error("{name} could not be stopped")]
    Stop { name: String, source: io::Error },
    #[error("the processes' logs in {} cannot be read", .logs.display())]
    Logs { logs: PathBuf, source: io::Error },
    #[error("the realm's processes could not be found")]
    Discover(#[from] DiscoveryError),
    #[error("{name} was started again and is not ready after {} s; see {log}", READY_WITHIN.as_secs(), log = log.display())]
    NotReady { name: String, log: PathBuf },
}

/// One process that was stopped and started again.
struct Replaced {
    name: String,
    /// When it was asked to stop.
    asked: Instant,
    /// When it had ended.
    ended: Instant,
    /// When the realm was whole again.
    whole: Instant,
}

/// How a realm is restarted.
pub(crate) struct Course {
    /// How often every process is replaced.
    pub(crate) rounds: usize,
    /// What the order of the processes depends on.
    pub(crate) seed: u64,
    /// The builds from which they are started, in turns: the first round uses the first one.
    pub(crate) builds: Vec<GameBuild>,
}

/// What a rolling restart did.
pub(crate) struct Restart {
    replaced: Vec<Replaced>,
    hand_overs: HandOvers,
}

/// Stops and starts again every process, in random order, and the console if there is one.
///
/// # Errors
/// When a process cannot be stopped or started, or does not become ready, or the logs cannot be read.
pub(crate) async fn roll(
    realm: &mut Realm,
    (bus, name): (&Bus, &RealmName),
    Course { rounds, seed, builds }: &Course,
    note: impl Fn(&str),
) -> Result<Restart, RollingError> {
    let mut dice = split_mix(*seed);
    let mut builds = builds.iter().cycle();
    let wanted = counts(discover(bus, name, LOOK_EVERY * 5, |_| false).await?.iter());
    let mut replaced = Vec::new();
    for _ in 0..*rounds {
        let build = builds.next();
        let mut names: Vec<String> = realm.members().map(|(name, _)| name.to_owned()).collect();
        names.extend(realm.console().map(|_| CONSOLE.to_owned()));
        for last in (1..names.len()).rev() {
            let with = usize::try_from(dice() % (last as u64 + 1)).unwrap_or(last);
            names.swap(last, with);
        }
        for process in names {
            tokio::time::sleep(PLAY_BETWEEN).await;
            let asked = Instant::now();
            stop(realm, &process).await?;
            let ended = Instant::now();
            start(realm, &process, build).await?;
            wait_until_whole(realm, (bus, name), &wanted, &process).await?;
            let whole = Instant::now();
            note(&format!(
                "rolling: {process} stopped in {} ms; the realm is whole after {} ms",
                ended.duration_since(asked).as_millis(),
                whole.duration_since(asked).as_millis()
            ));
            replaced.push(Replaced {
                name: process,
                asked,
                ended,
                whole,
            });
        }
    }
    tokio::time::sleep(PLAY_BETWEEN).await;
    realm.watch(&[])?;
    let logs = realm.plan().data.join("logs");
    let hand_overs = HandOvers::read(&logs).map_err(|source| RollingError::Logs { logs, source })?;
    Ok(Restart { replaced, hand_overs })
}

async fn stop(realm: &mut Realm, process: &str) -> Result<(), RollingError> {
    let stopped = match process {
        CONSOLE => realm.end_console().await,
        name => realm.stop_one(name).await.map(drop),
    };
    stopped.map_err(|source| RollingError::Stop {
        name: process.to_owned(),
        source,
    })
}

/// Starts a process again, from this build if one is named. A console is always of this release.
async fn start(realm: &mut Realm, process: &str, build: Option<&GameBuild>) -> Result<(), RollingError> {
    if process == CONSOLE {
        return Ok(realm.start_console_again().await?);
    }
    if let Some(build) = build {
        realm.set_build_of(process, build);
    }
    realm.start_again(process)?;
    Ok(())
}

/// Waits until as many processes of each service are ready as there were before. Fails if one has ended, a standby among
/// them.
async fn wait_until_whole(
    realm: &mut Realm,
    (bus, name): (&Bus, &RealmName),
    wanted: &BTreeMap<String, usize>,
    process: &str,
) -> Result<(), RollingError> {
    let is_whole = |found: &[Instance]| {
        let ready = counts(found.iter());
        wanted.iter().all(|(service, count)| ready.get(service) >= Some(count))
    };
    let until = Instant::now() + READY_WITHIN;
    while Instant::now() < until {
        let found = discover(bus, name, LOOK_EVERY, is_whole).await?;
        realm.watch(&[])?;
        if is_whole(&found) {
            return Ok(());
        }
    }
    Err(RollingError::NotReady {
        name: process.to_owned(),
        log: log_of(&realm.plan().data, process),
    })
}

/// The number of ready processes of each service. Of directors, one leads and is ready.
fn counts<'a>(found: impl Iterator<Item = &'a Instance>) -> BTreeMap<String, usize> {
    let ready = found.filter(|instance| instance.report.readiness == Readiness::Ready);
    ready.fold(BTreeMap::new(), |mut counts, instance| {
        *counts.entry(instance.service.clone()).or_default() += 1;
        counts
    })
}

/// Prints what each stop was to the bots: of the longest time that each was shown nothing, the median, the 99th
/// percentile and the maximum, where ten updates per second are due; and how long entities stood still.
pub(crate) fn print(report: &BotsReport, Restart { replaced, hand_overs }: &Restart) {
    println!("  process       stopped in  whole after  longest pause of each bot: p50   p99   max");
    for Replaced {
        name,
        asked,
        ended,
        whole,
    } in replaced
    {
        let pauses = report.pauses(*asked, *ended + AFTERMATH);
        let at = |percent: usize| pauses.get((pauses.len() * percent / 100).min(pauses.len().saturating_sub(1)));
        let text = |pause: Option<&Duration>| match pause.map(Duration::as_millis) {
            None | Some(0) => format!("<{GAP} ms"),
            Some(pause) => format!("{pause} ms"),
        };
        println!(
            "  {name:<12}  {:>7} ms  {:>8} ms  {:>30}  {}  {}",
            ended.duration_since(*asked).as_millis(),
            whole.duration_since(*asked).as_millis(),
            text(at(50)),
            text(at(99)),
            text(pauses.last())
        );
    }
    print!("{hand_overs}");
    println!(
        "  silences of 1.5 s {}, sessions resumed {}, handed over without an interruption {}",
        report.total(|bot| bot.interruptions.len() as u64),
        report.total(|bot| bot.resumed),
        report.total(|bot| bot.moved)
    );
}

/// Whether each bot kept its connections and its session through all stops. How long it was shown nothing is measured,
/// and not judged: that depends on the machine.
pub(crate) fn kept_sessions(report: &BotsReport) -> bool {
    let is_kept = |bot: &BotReport| bot.ended.is_empty() && bot.log_ins == 1 && bot.resumed == 0;
    report.bots.iter().all(is_kept) && !report.bots.is_empty()
}
