//! Results of the rounds, by fault.

use std::{
    collections::BTreeMap,
    fmt,
    time::{Duration, Instant},
};

use annals_bots::bots::{BotsReport, Gap};
use annals_host::nats::ServerCount;

use crate::{faults::Fault, promises::Size, times::Times};

/// One completed round.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Round {
    pub(crate) fault: Fault,
    /// When the fault was inflicted.
    pub(crate) at: Instant,
    /// Time until all bots played again, including the repair.
    pub(crate) back: Duration,
    /// Size of the realm after it.
    pub(crate) size: Size,
}

/// Results for one kind of fault.
#[derive(Debug, Default)]
struct Row {
    rounds: u64,
    bots: u64,
    gaps: Vec<Duration>,
    back: Duration,
    sizes: Vec<Size>,
}

/// Results of all rounds, printed as a table.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: BTreeMap<(usize, Fault), Row>,
    /// Time spent.
    pub(crate) times: Times,
}

impl Table {
    /// Adds the rounds of one realm.
    pub(crate) fn enter(&mut self, servers: ServerCount, rounds: &[Round], report: &BotsReport) {
        for round in rounds {
            let row = self.rows.entry((servers.replicas(), round.fault)).or_default();
            row.rounds += 1;
            row.bots += report.bots.len() as u64;
            row.back = row.back.max(round.back);
            row.sizes.push(round.size);
            row.gaps
                .extend(report.bots.iter().filter_map(|bot| match bot.gap_after(round.at) {
                    Gap::Of(time) => Some(time),
                    Gap::None | Gap::Endless => None,
                }));
        }
    }
}

impl Row {
    /// Time within which this percentage of interrupted bots played again, seconds.
    fn quantile(&self, percent: usize) -> f64 {
        let mut sorted = self.gaps.clone();
        sorted.sort();
        let place = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
        sorted.get(place).copied().unwrap_or_default().as_secs_f64()
    }

    fn span(&self, figure: impl Fn(&Size) -> f64) -> String {
        let (least, most) = self
            .sizes
            .iter()
            .map(figure)
            .fold((f64::MAX, 0.0_f64), |(least, most), it| (least.min(it), most.max(it)));
        format!("{least:.0}-{most:.0}")
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "| servers | fault | rounds | bots interrupted | p50 s | p99 s | max s | all back within s | entity parts | batches | log MB |"
        )?;
        writeln!(f, "|---|---|---|---|---|---|---|---|---|---|---|")?;
        for ((servers, fault), row) in &self.rows {
            writeln!(
                f,
                "| {servers} | {fault} | {} | {} of {} | {:.1} | {:.1} | {:.1} | {:.1} | {} | {} | {} |",
                row.rounds,
                row.gaps.len(),
                row.bots,
                row.quantile(50),
                row.quantile(99),
                row.quantile(100),
                row.back.as_secs_f64(),
                row.span(|size| size.parts as f64),
                row.span(|size| size.batches as f64),
                row.span(|size| size.bytes as f64 / 1e6),
            )?;
        }
        let rounds: u64 = self.rows.values().map(|row| row.rounds).sum();
        write!(f, "{rounds} rounds; each took on average {}", self.times)
    }
}
