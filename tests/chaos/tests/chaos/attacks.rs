//! Hostile clients from one address beside honest bots: one attack after the other, each at a fixed rate. The bots must
//! notice nothing, memory must stay bounded, and each attack must be counted under the name of its violation.

mod attack;
mod quic;
mod target;
mod usage;
mod web;

use std::{
    fmt,
    time::{Duration, Instant},
};

use annals_host::{nats::ServerCount, violations::Violation};
use tokio::{sync::watch, time::sleep};

use crate::{
    age::{ChaosRealm, REALM, Setting},
    table::Table,
};

use attack::Attack;
use target::{PAGE, Target};
use usage::{Observer, Usage};

/// Memory that a process may have more of after all attacks.
const MAX_GROWTH: u64 = 128 << 20;

/// Time until all effects of an attack are counted: connections without a first frame are closed after 5 s, and failed
/// handshakes end after 5 s.
const COUNTED_WITHIN: Duration = Duration::from_secs(30);

/// Interval between looks at the counters.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Time after which each process has reported the violations of the last minute.
const REPORTED_WITHIN: Duration = Duration::from_secs(70);

/// How long each attack and the calm before them take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Times {
    pub(crate) calm: Duration,
    pub(crate) each: Duration,
    /// Whether to wait for the reports in the processes' logs.
    pub(crate) reads_logs: bool,
}

/// One row of the table: an attack, or the calm before.
struct Row {
    name: String,
    from: Instant,
    to: Instant,
    /// Actions per second.
    rate: f64,
    usage: Usage,
    /// Delay of this process's thread, as a measure of how busy the machine was.
    delay: Duration,
    counted: Vec<(Violation, u64)>,
}

/// Attacks a realm with bots, prints the table, and returns the broken promises.
pub(crate) async fn run(bots: usize, times: Times) -> Vec<String> {
    let setting = Setting {
        number: 1,
        servers: ServerCount::One,
        bots,
        seed: 1,
        settings: &[("web_origins", PAGE)],
    };
    let mut age = ChaosRealm::begin(setting).await;
    if age.has_failed() {
        return age.end(&mut Table::default()).await;
    }
    let nats = age.realm().nats();
    let observer = Observer::begin(REALM, &nats).await;
    let target = Target::of(age.realm()).await;
    let memory = observer.usage(Duration::ZERO).await;
    let mut rows = vec![observe(&observer, "calm", times.calm, async || 0).await];
    for attack in Attack::ALL {
        let before = observer.violations().await;
        let mut row = observe(&observer, &attack.to_string(), times.each, async || {
            attack.run(&target, times.each).await
        })
        .await;
        match counted(&observer, &before, attack).await {
            Ok(counted) => row.counted = counted,
            Err(missing) => age.fail(&format!("{attack}: no {missing} was counted")),
        }
        if let Err(disturbed) = age.is_undisturbed() {
            age.fail(&format!("{attack}: honest bots were disturbed: {disturbed}"));
        }
        rows.push(row);
        if age.has_failed() {
            break;
        }
    }
    let after = observer.usage(Duration::ZERO).await;
    for (process, grown) in after.growth(&memory) {
        if grown > MAX_GROWTH {
            age.fail(&format!("{process} holds {} MB more than before", grown >> 20));
        }
    }
    if times.reads_logs && !age.has_failed() {
        read_logs(&mut age).await;
    }
    drop(target);
    let report = age.log_off().await;
    println!("{}", Rows(&rows, &|from, to| report.pauses(from, to)));
    println!("memory after all attacks:");
    for (process, grown) in after.growth(&memory) {
        println!("  {process}: {} MB more", grown >> 20);
    }
    age.close(&report, &mut Table::default()).await
}

/// Observes the realm while `attack` runs, for this long.
async fn observe(observer: &Observer, name: &str, time: Duration, attack: impl AsyncFnOnce() -> u64) -> Row {
    let from = Instant::now();
    let (stop, stopped) = watch::channel(false);
    let delays = tokio::task::spawn_blocking(move || usage::delay(&stopped));
    let (actions, usage) = tokio::join!(attack(), observer.usage(time));
    stop.send_replace(true);
    Row {
        name: name.to_owned(),
        from,
        to: Instant::now(),
        rate: actions as f64 / time.as_secs_f64(),
        usage,
        delay: delays.await.expect("it does not panic"),
        counted: Vec::new(),
    }
}

/// Waits until a violation by an attack is counted, and returns what was.
async fn counted(
    observer: &Observer,
    before: &[(Violation, u64)],
    attack: Attack,
) -> Result<Vec<(Violation, u64)>, &'static str> {
    let deadline = Instant::now() + COUNTED_WITHIN;
    loop {
        let now = observer.violations().await;
        let more = now
            .iter()
            .zip(before)
            .map(|((kind, now), (_, before))| (*kind, now - before));
        let more: Vec<_> = more.filter(|(_, more)| *more > 0).collect();
        let wanted = attack.violations();
        match wanted.first() {
            Some(missing) if more.iter().all(|(kind, _)| !wanted.contains(kind)) => {
                if Instant::now() > deadline {
                    return Err(missing.name());
                }
            }
            _ => return Ok(more),
        }
        sleep(POLL_INTERVAL).await;
    }
}

/// Checks that the processes' logs name each violation.
async fn read_logs(age: &mut ChaosRealm) {
    let logs = age.realm().plan().data.join("logs");
    // Floods of calls may all be closed in the second way.
    let sure = |attack: &Attack| attack.violations().len() == 1;
    let sure = Attack::ALL.into_iter().filter(sure);
    let mut missing: Vec<Violation> = sure.flat_map(Attack::violations).copied().collect();
    let deadline = Instant::now() + REPORTED_WITHIN;
    while Instant::now() < deadline && !missing.is_empty() {
        sleep(POLL_INTERVAL).await;
        let mut reports = String::new();
        for file in std::fs::read_dir(&logs).expect("the folder of logs") {
            let path = file.expect("a file in it").path();
            let text = std::fs::read_to_string(&path).unwrap_or_default();
            text.lines()
                .filter(|line| line.contains("clients violated the protocol"))
                .for_each(|line| reports.push_str(line));
        }
        missing.retain(|violation| !reports.contains(violation.name()));
    }
    for violation in missing {
        age.fail(&format!("no process has reported {}", violation.name()));
    }
}

/// The longest pause of each bot between two moments.
type Pauses<'a> = dyn Fn(Instant, Instant) -> Vec<Duration> + 'a;

/// The table of attacks, as in `docs/reliability.md`.
struct Rows<'a>(&'a [Row], &'a Pauses<'a>);

impl fmt::Display for Rows<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| attack | actions/s | processor time of realm/action | tick p99, ms | scheduler delay p99, ms | \
             bots' longest pause p99, ms | counted |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|")?;
        let Self(rows, pauses) = self;
        let calm = rows.first().map_or(0.0, |calm| calm.usage.cores);
        for row in *rows {
            let each = match row.rate > 0.0 {
                false => "-".to_owned(),
                true => format!("{:.0} us", (row.usage.cores - calm).max(0.0) * 1e6 / row.rate),
            };
            let paused = pauses(row.from, row.to);
            let paused = paused.get(paused.len() * 99 / 100).copied().unwrap_or_default();
            let counted: Vec<String> = row
                .counted
                .iter()
                .map(|(kind, count)| format!("{} {count}", kind.name()))
                .collect();
            writeln!(
                f,
                "| {} | {:.0} | {each} | {:.1} | {:.1} | {} | {} |",
                row.name,
                row.rate,
                row.usage.tick_p99.as_secs_f64() * 1e3,
                row.delay.as_secs_f64() * 1e3,
                paused.as_millis(),
                counted.join(", "),
            )?;
        }
        Ok(())
    }
}
