//! Capacity: how many bots one core serves, with a whole realm of one cell and one base on one core, and the bots on
//! the other.
//!
//! Every bot has about 60 others in view, moves ten times a second, and receives at most 20 kbit/s. The criterion: 99
//! of 100 ticks of the cell complete within half a tick period. The size is found by doubling and bisection; each
//! attempt is a new realm. Ticks of the whole attempt count, including the time in which bots log in.

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use annals_bots::scenario::{PhaseReport, ScenarioReport};
use annals_host::{child::Child, health::discover, nats::Bus, telemetry::Snapshot};
use tokio::time::sleep;

use crate::{
    Figure,
    processes::{self, Load, Process},
    realm::{REALM, Realm, Shape, WORLD, beside, on_core},
};

/// Entities in view of each bot, and the relative tolerance.
const NEIGHBOURS: f64 = 60.0;
const TOLERANCE: f64 = 0.15;

/// Maximum downstream rate of each bot, bits per second.
const BANDWIDTH: u32 = 20_000;

/// Bound for 99 of 100 ticks, microseconds.
const WITHIN: u64 = 50_000;

/// The core of the realm, and that of the bots.
const OURS: usize = 0;
const THEIRS: usize = 1;

/// The first size tried, the resolution of sizes, and the maximum number of attempts.
const FIRST: usize = 100;
const STEP: usize = 20;
const ATTEMPTS: usize = 9;

/// Log-ins of bots per second, as in `annals bots`.
const LOG_INS: usize = 30;

/// Time until logged-in bots have spread out, measurement time, and the bots' remaining time after that.
const SETTLING: Duration = Duration::from_secs(8);
const MEASURED: Duration = Duration::from_secs(20);
const REST: Duration = Duration::from_secs(2);

/// Timeout for the bots' report.
const TIMEOUT: Duration = Duration::from_secs(90);

/// AoI radius of a bot at the first attempt, metres; later attempts adjust it.
const RADIUS: f64 = 80.0;

/// Finds the size.
///
/// # Panics
/// If the realm's binaries are not built beside this one, the machine has only one core, or a realm does not start.
#[must_use]
pub fn run() -> Vec<Figure> {
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let (mut best, mut worst): (Option<Attempt>, Option<Attempt>) = (None, None);
    let mut plan = Plan {
        bots: FIRST,
        radius: RADIUS,
    };
    for _ in 0..ATTEMPTS {
        let attempt = runtime.block_on(attempt(plan));
        eprintln!("  {attempt}");
        let seen = attempt.report.in_view.max(1.0);
        let is_like_asked = (seen / NEIGHBOURS - 1.0).abs() <= TOLERANCE;
        plan.radius *= (NEIGHBOURS / seen).sqrt();
        if !is_like_asked {
            continue;
        }
        let done = if attempt.is_served() { &mut best } else { &mut worst };
        *done = Some(attempt);
        let (served, not) = (size(best.as_ref()), size(worst.as_ref()));
        let next = match (served, not) {
            (Some(served), None) => served * 2,
            (served, Some(not)) => usize::midpoint(served.unwrap_or(0), not) / STEP * STEP,
            (None, None) => break,
        };
        if Some(next) == served || next == 0 {
            break;
        }
        plan.radius *= (plan.bots as f64 / next as f64).sqrt();
        plan.bots = next;
    }
    best.iter().flat_map(Attempt::figures).collect()
}

fn size(attempt: Option<&Attempt>) -> Option<usize> {
    attempt.map(|attempt| attempt.bots)
}

#[derive(Clone, Copy, Debug)]
struct Plan {
    bots: usize,
    radius: f64,
}

/// Result of one size.
#[derive(Clone, Debug)]
struct Attempt {
    bots: usize,
    report: PhaseReport,
    cell: Snapshot,
    /// Cores used by each process.
    loads: Vec<(Process, Load)>,
}

impl Attempt {
    fn is_served(&self) -> bool {
        self.report.has_played && self.cell.tick.p99 <= WITHIN
    }

    /// Cores used by all processes but the bots.
    fn of_the_realm(&self) -> f64 {
        self.load("").busy - self.load("bots").busy
    }

    /// Sum over the processes of that name, the bots included; over all if it is empty.
    fn load(&self, name: &str) -> Load {
        let of_it = self.loads.iter().filter(|(process, _)| process.name.contains(name));
        of_it.map(|(_, load)| *load).sum()
    }

    fn figures(&self) -> Vec<Figure> {
        let cell = self.load("annals-cell");
        let note = format!(
            "connected bots, {:.0} others in view of each, 10 Hz, at most {} kbit/s ({:.0} bytes/s came); whole realm on one core, \
             bots on the other; ticks p50 {:.1} ms, p99 {:.1} ms; the cell waited for the core {:.1} ms of each second; round trip \
             p50 {:.0} ms, p99 {:.0} ms",
            self.report.in_view,
            BANDWIDTH / 1_000,
            self.report.bytes_per_second,
            self.cell.tick.p50 as f64 * 1e-3,
            self.cell.tick.p99 as f64 * 1e-3,
            cell.waited * 1e3,
            self.report.round_trips.p50_us as f64 * 1e-3,
            self.report.round_trips.p99_us as f64 * 1e-3,
        );
        let mut figures = vec![Figure::alone("scale_bots_per_core", self.bots as f64, "bots", note)];
        let each = 1e6 / self.bots as f64;
        for (name, busy) in [
            ("cell", cell.busy),
            ("base", self.load("annals-base").busy),
            ("db", self.load("annals-db").busy),
            ("nats", self.load("nats-server").busy),
            ("realm", self.of_the_realm()),
        ] {
            figures.push(Figure::against(
                &format!("scale_core_share_{name}"),
                busy * each,
                each,
                "us/bot/s",
                "processor time for each bot and second; baseline: the core's".to_owned(),
            ));
        }
        let of_both = cell.busy + self.load("annals-base").busy;
        let note = "worked out from the processor time of cell and base; goal 1,000".to_owned();
        figures.push(Figure::alone(
            "clients_per_core",
            self.bots as f64 / of_both,
            "bots",
            note,
        ));
        figures
    }
}

impl std::fmt::Display for Attempt {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.is_served() { "served" } else { "NOT served" };
        write!(
            f,
            "{} bots, {:.0} in view: {verdict}; tick p50 {} us, p99 {} us; cores: cell {:.2} (waited {:.2}), base {:.2}, nats {:.2}, \
             all {:.2}, bots {:.2}; {:.0} bytes/s each",
            self.bots,
            self.report.in_view,
            self.cell.tick.p50,
            self.cell.tick.p99,
            self.load("annals-cell").busy,
            self.load("annals-cell").waited,
            self.load("annals-base").busy,
            self.load("nats-server").busy,
            self.of_the_realm(),
            self.load("bots").busy,
            self.report.bytes_per_second
        )
    }
}

async fn attempt(plan: Plan) -> Attempt {
    let directory = crate::scratch();
    let shape = Shape {
        each: 1,
        core: Some(OURS),
        settings: vec![
            (
                "ANNALS_SPACES".to_owned(),
                format!("1 radius={:.1} cells=1", plan.radius),
            ),
            ("ANNALS_CLIENT_BANDWIDTH".to_owned(), BANDWIDTH.to_string()),
        ],
    };
    let realm = Realm::start(directory.path(), &shape).await;
    let bus = Bus::connect(&realm.nats, "bench").await.expect("the bus answers");
    let (mut bots, reported) = start_bots(&realm, plan.bots, directory.path());
    sleep(logging_in(plan.bots) + SETTLING).await;
    let mut processes = processes::below(realm.id());
    let mut generator = processes::below(bots.id());
    generator
        .iter_mut()
        .for_each(|process| process.name = "bots".to_owned());
    processes.extend(generator);
    let before: Vec<Load> = processes.iter().map(Process::load).collect();
    let began = Instant::now();
    sleep(MEASURED).await;
    let seconds = began.elapsed().as_secs_f64();
    let loads = processes.into_iter().zip(before).map(|(process, before)| {
        let load = process.load().since(before, seconds);
        (process, load)
    });
    let loads = loads.collect();
    let name = REALM.parse().expect("the realm's name is one");
    let found = discover(&bus, &name, Duration::from_secs(1), |_| false)
        .await
        .expect("services answer");
    let cell = found.iter().find(|found| found.service == "cell");
    let cell = cell.expect("the cell answers").report.metrics.clone();
    let report = report(&mut bots, &reported).await;
    realm.stop().await;
    Attempt {
        bots: plan.bots,
        report,
        cell,
        loads,
    }
}

fn logging_in(bots: usize) -> Duration {
    Duration::from_secs(bots.div_ceil(LOG_INS) as u64)
}

/// Starts bots; returns their process, and the file of their report.
fn start_bots(realm: &Realm, bots: usize, directory: &Path) -> (Child, PathBuf) {
    let report = directory.join("report.json");
    let plays = logging_in(bots) + SETTLING + MEASURED + REST;
    let mut command = on_core(Some(THEIRS), &beside("annals"));
    command
        .args(["bots", "--world", WORLD])
        .args(["--bots", &bots.to_string(), "--duration", &plays.as_secs().to_string()])
        .args(["--login", &realm.login.0.to_string()])
        .args(["--certificate", &realm.login.1.to_string()])
        .arg("--files")
        .arg(directory.join("shown"))
        .arg("--report")
        .arg(&report)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .stdout(Stdio::null());
    (Child::spawn(command).expect("bots can be started"), report)
}

async fn report(bots: &mut Child, report: &Path) -> PhaseReport {
    let patience = Instant::now() + TIMEOUT;
    while bots.ended().expect("its status can be read").is_none() {
        assert!(Instant::now() < patience, "the bots did not end");
        sleep(Duration::from_millis(50)).await;
    }
    let report = ScenarioReport::read(report);
    let mut report = report.unwrap_or_else(|error| panic!("the bots wrote no report: {error}"));
    report.phases.pop().expect("a run of bots has a phase")
}
