//! How long players are shown nothing when the process of their base or cell is killed, in a realm of real processes
//! under bots that walk, call and trade.

use std::{
    path::Path,
    time::{Duration, Instant},
};

use annals_bots::bots::BotsReport;
use annals_client::GAP;
use annals_host::{nats::Bus, process::request};
use annals_wire::{
    Subjects,
    control::{DirectorAsk, DirectorRequest, ListProcesses, ProcessList},
};

use crate::{
    Figure, Percentiles, processes,
    realm::{REALM, Realm, Shape},
};

/// Bots that play: each sees about as many others.
const BOTS: usize = 60;

/// Kills of each kind, one after the other: the killed process is started again, and holds owners again, in between.
const KILLS: usize = 4;

/// Time for a realm to be calm again after a kill, and of the calm that is measured for comparison.
const CALM: Duration = Duration::from_secs(6);

/// How long after a kill its effect on a bot can begin.
const EFFECT: Duration = Duration::from_secs(1);

/// The killed services, by the names of their processes, which the system cuts off at 15 characters.
const KILLED: [(&str, &str); 2] = [("cell", "annals-cell"), ("base", "annals-base")];

/// Measures all kinds.
///
/// # Panics
/// If the realm's binaries are not built beside this one, or it does not start.
#[must_use]
pub fn run() -> Vec<Figure> {
    let directory = crate::scratch();
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    runtime.block_on(async {
        let realm = Realm::start(directory.path(), &Shape::default()).await;
        let measured = measure(&realm, directory.path()).await;
        realm.stop().await;
        figures(&measured)
    })
}

/// The bots' report, and the moments at which nothing and something was killed.
struct Measured {
    report: BotsReport,
    /// The beginning of a time without a kill.
    calm: Instant,
    /// By kind.
    kills: [Vec<Instant>; KILLED.len()],
    /// Number of entity parts in the realm.
    entities: u64,
}

async fn measure(realm: &Realm, directory: &Path) -> Measured {
    let killing = async {
        tokio::time::sleep(CALM).await;
        let calm = Instant::now();
        tokio::time::sleep(CALM).await;
        let entities = entities(realm).await;
        let mut kills = [Vec::new(), Vec::new()];
        for ((_, name), moments) in KILLED.iter().zip(&mut kills) {
            for nth in 0..KILLS {
                let alive: Vec<_> = processes::below(realm.id())
                    .into_iter()
                    .filter(|process| process.name == *name)
                    .collect();
                moments.push(Instant::now());
                alive[nth % alive.len()].kill();
                tokio::time::sleep(CALM).await;
            }
        }
        (calm, kills, entities)
    };
    let (report, (calm, kills, entities)) = realm.among_bots(BOTS, directory, killing).await;
    Measured {
        report,
        calm,
        kills,
        entities,
    }
}

/// Number of entity parts, by the director.
async fn entities(realm: &Realm) -> u64 {
    let bus = Bus::connect(&realm.nats, "bench").await.expect("the bus is there");
    let ask = DirectorRequest {
        ask: Some(DirectorAsk::Processes(ListProcesses {})),
    };
    let subject = Subjects::new(REALM).service("director");
    let listed = request::<ProcessList>(&bus, "director", subject, &ask).await;
    let listed = listed.expect("the director answers");
    listed.processes.iter().map(|process| process.entities).sum()
}

fn figures(measured: &Measured) -> Vec<Figure> {
    let Measured {
        report,
        calm,
        kills,
        entities,
    } = measured;
    let calm = Percentiles::of(&report.pauses(*calm, *calm + CALM));
    let figure = |(service, _): &(&str, &str), moments: &Vec<Instant>| {
        let mut pauses = Vec::new();
        for moment in moments {
            // A bot that is shown nothing for less than a gap was not affected.
            let affected = report.pauses(*moment, *moment + EFFECT).into_iter();
            pauses.extend(affected.filter(|pause| !pause.is_zero()));
        }
        let (affected, longest) = (pauses.len(), pauses.iter().max().copied().unwrap_or_default());
        if pauses.is_empty() {
            pauses.push(Duration::ZERO);
        }
        let Percentiles { p50, p99 } = Percentiles::of(&pauses);
        Figure::against(
            &format!("recovery_killed_{service}"),
            p99 / 1e3,
            (calm.p99 / 1e3).max(GAP as f64),
            "ms",
            format!(
                "longest time without an update, of {affected} affected bots in {KILLS} kills: p50 {:.0} ms, p99 as \
                 given, max {} ms; baseline: p99 of the same in calm, at least {GAP} ms, where an update is due every \
                 100 ms; {BOTS} bots, {entities} entity parts",
                p50 / 1e3,
                longest.as_millis()
            ),
        )
    };
    KILLED
        .iter()
        .zip(kills)
        .map(|(killed, moments)| figure(killed, moments))
        .collect()
}
