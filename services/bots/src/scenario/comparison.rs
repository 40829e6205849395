//! A report beside an earlier one of the same scenario: what got worse.

use std::{collections::BTreeSet, fmt};

use super::{PhaseReport, ScenarioReport};

/// Times that differ by less, microseconds, count as equal: a busy machine alone makes such differences.
const RESOLUTION: f64 = 2_000.0;

/// The figures of two reports.
#[derive(Clone, Debug, PartialEq)]
pub struct Comparison {
    /// Share by which a figure may get worse: of the earlier one if more is worse, of the present one if less is.
    pub tolerance: f64,
    pub differences: Vec<Difference>,
    pub not_compared: Vec<NotCompared>,
}

/// One figure of a phase, then and now.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    pub phase: String,
    pub figure: String,
    unit: Unit,
    pub before: f64,
    pub now: f64,
    pub is_worse: bool,
}

/// A phase that has no counterpart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCompared {
    /// The earlier report has no phase of this name.
    New(String),
    /// Only the earlier report has it.
    Missing(String),
    /// Kind, bots or duration differ, which changes every figure.
    Changed(String),
}

/// How a figure is printed, and which differences count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    Microseconds,
    Bytes,
    Count,
}

/// Which direction is worse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Worse {
    More,
    Fewer,
    /// A single value says too little: it is printed and not judged.
    Neither,
}

/// Reads a figure of a phase.
type Figure = fn(&PhaseReport) -> f64;

/// The figures that are compared, beside the kinds of errors.
const FIGURES: [(&str, Unit, Worse, Figure); 15] = [
    ("log-ins", Unit::Count, Worse::Fewer, |phase| phase.log_ins as f64),
    ("log-ins refused", Unit::Count, Worse::More, |phase| {
        phase.log_ins_refused as f64
    }),
    ("log-in p50", Unit::Microseconds, Worse::More, |phase| {
        phase.log_in_times.p50_us as f64
    }),
    ("log-in p90", Unit::Microseconds, Worse::More, |phase| {
        phase.log_in_times.p90_us as f64
    }),
    ("log-in p99", Unit::Microseconds, Worse::More, |phase| {
        phase.log_in_times.p99_us as f64
    }),
    ("log-in max", Unit::Microseconds, Worse::Neither, |phase| {
        phase.log_in_times.max_us as f64
    }),
    ("calls taken", Unit::Count, Worse::Fewer, |phase| {
        phase.calls_taken as f64
    }),
    ("round trip p50", Unit::Microseconds, Worse::More, |phase| {
        phase.round_trips.p50_us as f64
    }),
    ("round trip p90", Unit::Microseconds, Worse::More, |phase| {
        phase.round_trips.p90_us as f64
    }),
    ("round trip p99", Unit::Microseconds, Worse::More, |phase| {
        phase.round_trips.p99_us as f64
    }),
    ("round trip max", Unit::Microseconds, Worse::Neither, |phase| {
        phase.round_trips.max_us as f64
    }),
    ("trades settled", Unit::Count, Worse::Fewer, |phase| {
        phase.trades.settled as f64
    }),
    ("disconnects", Unit::Count, Worse::More, |phase| {
        phase.disconnects as f64
    }),
    ("sessions resumed", Unit::Count, Worse::More, |phase| {
        phase.resumed as f64
    }),
    ("bytes/s per client", Unit::Bytes, Worse::More, |phase| {
        phase.bytes_per_second
    }),
];

impl Comparison {
    /// Compares a report with an earlier one. A figure that got worse by more than this share counts as worse.
    #[must_use]
    pub fn of(before: &ScenarioReport, now: &ScenarioReport, tolerance: f64) -> Self {
        let mut comparison = Self {
            tolerance,
            differences: Vec::new(),
            not_compared: Vec::new(),
        };
        for phase in &now.phases {
            match before.phases.iter().find(|earlier| earlier.name == phase.name) {
                None => comparison.not_compared.push(NotCompared::New(phase.name.clone())),
                Some(earlier) if conditions(earlier) != conditions(phase) => {
                    comparison.not_compared.push(NotCompared::Changed(phase.name.clone()));
                }
                Some(earlier) => comparison.compare(earlier, phase),
            }
        }
        for earlier in &before.phases {
            if now.phases.iter().all(|phase| phase.name != earlier.name) {
                comparison.not_compared.push(NotCompared::Missing(earlier.name.clone()));
            }
        }
        comparison
    }

    /// The figures that got worse.
    pub fn worse(&self) -> impl Iterator<Item = &Difference> {
        self.differences.iter().filter(|difference| difference.is_worse)
    }

    fn compare(&mut self, before: &PhaseReport, now: &PhaseReport) {
        for (figure, unit, worse, read) in FIGURES {
            self.add(&now.name, figure.to_owned(), (unit, worse), (read(before), read(now)));
        }
        let kinds: BTreeSet<&String> = before.errors.keys().chain(now.errors.keys()).collect();
        for kind in kinds {
            let count = |phase: &PhaseReport| phase.errors.get(kind).copied().unwrap_or(0) as f64;
            let counts = (count(before), count(now));
            self.add(&now.name, format!("error: {kind}"), (Unit::Count, Worse::More), counts);
        }
    }

    fn add(&mut self, phase: &str, figure: String, (unit, worse): (Unit, Worse), (before, now): (f64, f64)) {
        if before == 0.0 && now == 0.0 {
            return;
        }
        let excess = match worse {
            Worse::More => now - before * (1.0 + self.tolerance),
            Worse::Fewer => before / (1.0 + self.tolerance) - now,
            Worse::Neither => 0.0,
        };
        let is_distinct = unit != Unit::Microseconds || (now - before).abs() >= RESOLUTION;
        self.differences.push(Difference {
            phase: phase.to_owned(),
            figure,
            unit,
            before,
            now,
            is_worse: excess > 0.0 && is_distinct,
        });
    }
}

fn conditions(phase: &PhaseReport) -> (&str, u64, u64) {
    (&phase.kind, phase.bots, phase.seconds)
}

impl Unit {
    fn written(self, value: f64) -> String {
        match self {
            Self::Microseconds => format!("{:.1} ms", value / 1_000.0),
            Self::Bytes => format!("{value:.0} B/s"),
            Self::Count => format!("{value:.0}"),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (before, now) = (self.unit.written(self.before), self.unit.written(self.now));
        write!(f, "{:<20} {before:>10} → {now:<10}", self.figure)?;
        if self.before > 0.0 {
            write!(f, " × {:.2}", self.now / self.before)?;
        }
        if self.is_worse {
            f.write_str("  WORSE")?;
        }
        Ok(())
    }
}

impl fmt::Display for NotCompared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New(phase) => write!(f, "{phase}: not compared, since the earlier report has no such phase"),
            Self::Missing(phase) => write!(f, "{phase}: not compared, since only the earlier report has it"),
            Self::Changed(phase) => write!(f, "{phase}: not compared, since kind, bots or seconds differ"),
        }
    }
}

/// A block of lines per phase, then the verdict; no end of the last line.
impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut phase = None;
        for difference in &self.differences {
            if phase != Some(&difference.phase) {
                writeln!(f, "{}:", difference.phase)?;
                phase = Some(&difference.phase);
            }
            writeln!(f, "  {}", difference.to_string().trim_end())?;
        }
        for phase in &self.not_compared {
            writeln!(f, "{phase}")?;
        }
        let (worse, percent) = (self.worse().count(), self.tolerance * 100.0);
        match (self.differences.is_empty(), worse) {
            (true, _) => f.write_str("nothing was compared"),
            (false, 0) => write!(f, "nothing got worse by more than {percent:.0} %"),
            (false, _) => write!(f, "{worse} figures got worse by more than {percent:.0} %"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{super::Environment, *};
    use crate::scenario::{Times, Trades};

    fn phase(name: &str) -> PhaseReport {
        PhaseReport {
            name: name.to_owned(),
            kind: "walk".to_owned(),
            bots: 10,
            seconds: 30,
            elapsed: 30.4,
            has_played: true,
            log_ins: 10,
            log_ins_refused: 0,
            never_logged_in: 0,
            log_in_times: Times::default(),
            calls: 300,
            calls_taken: 300,
            calls_refused: 0,
            calls_lost: 0,
            round_trips: Times {
                count: 300,
                p50_us: 10_000,
                p90_us: 20_000,
                p99_us: 1_000,
                max_us: 50_000,
            },
            trades: Trades {
                settled: 40,
                ..Trades::default()
            },
            disconnects: 0,
            resumed: 4,
            views_restarted: 0,
            changes_shown: 100,
            client_methods_shown: 100,
            in_view: 8.5,
            bytes_per_second: 1_000.0,
            moves_bytes_per_second: 500.0,
            exposed_called: 8,
            exposed: 9,
            not_called: vec!["Avatar.fly".to_owned()],
            errors: BTreeMap::from([("a".to_owned(), 2)]),
            ended: BTreeMap::new(),
        }
    }

    fn report(phases: Vec<PhaseReport>) -> ScenarioReport {
        let environment = Environment {
            version: "1.0.0".to_owned(),
            commit: None,
            schema: "00".to_owned(),
            seed: 1,
            plain_movements: false,
        };
        ScenarioReport::new(environment, phases)
    }

    fn worse(before: PhaseReport, now: PhaseReport) -> Vec<String> {
        let comparison = Comparison::of(&report(vec![before]), &report(vec![now]), 0.25);
        comparison.worse().map(|difference| difference.figure.clone()).collect()
    }

    #[test]
    fn only_what_exceeds_the_tolerance_in_the_worse_direction_is_worse() {
        assert_eq!(worse(phase("a"), phase("a")), [""; 0]);
        let mut now = phase("a");
        // Better, or within the tolerance, or not judged.
        now.round_trips.p50_us = 5_000;
        now.round_trips.p90_us = 25_000;
        now.round_trips.max_us = 500_000;
        now.trades.settled = 32;
        now.resumed = 5;
        // Three times as long, and still below what is distinguished.
        now.round_trips.p99_us = 2_900;
        assert_eq!(worse(phase("a"), now.clone()), [""; 0]);
        now.round_trips.p90_us = 25_001;
        now.trades.settled = 31;
        now.resumed = 6;
        now.disconnects = 1;
        now.errors = BTreeMap::from([("a".to_owned(), 3), ("b".to_owned(), 1)]);
        assert_eq!(
            worse(phase("a"), now),
            [
                "round trip p90",
                "trades settled",
                "disconnects",
                "sessions resumed",
                "error: a",
                "error: b"
            ]
        );
    }

    #[test]
    fn phases_without_a_counterpart_are_named() {
        let mut changed = phase("b");
        changed.bots = 11;
        let before = report(vec![phase("a"), phase("b"), phase("c")]);
        let now = report(vec![phase("a"), changed, phase("d")]);
        let comparison = Comparison::of(&before, &now, 0.25);
        assert!(comparison.differences.iter().all(|difference| difference.phase == "a"));
        let named = |make: fn(String) -> NotCompared, name: &str| make(name.to_owned());
        assert_eq!(
            comparison.not_compared,
            [
                named(NotCompared::Changed, "b"),
                named(NotCompared::New, "d"),
                named(NotCompared::Missing, "c")
            ]
        );
        let none = Comparison::of(&report(vec![phase("x")]), &now, 0.25);
        assert!(none.differences.is_empty() && none.to_string().ends_with("nothing was compared"));
    }

    #[test]
    fn differences_are_printed_with_their_ratio() {
        let mut now = phase("a");
        now.round_trips.p50_us = 15_000;
        now.disconnects = 2;
        let text = Comparison::of(&report(vec![phase("a")]), &report(vec![now]), 0.25).to_string();
        assert!(
            text.contains("  round trip p50          10.0 ms → 15.0 ms    × 1.50  WORSE\n"),
            "{text}"
        );
        assert!(
            text.contains("  disconnects                   0 → 2           WORSE\n"),
            "{text}"
        );
        assert!(
            text.contains("  trades settled               40 → 40         × 1.00\n"),
            "{text}"
        );
        assert!(text.ends_with("2 figures got worse by more than 25 %"), "{text}");
    }

    #[test]
    fn a_report_is_read_back_and_others_are_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("report.json");
        let written = report(vec![phase("a")]);
        let text = serde_json::to_string(&written).expect("it is encoded");
        std::fs::write(&path, &text).expect("it is written");
        assert_eq!(ScenarioReport::read(&path).expect("it is a report"), written);
        for (other, said) in [
            (text.replace("\"format\":1", "\"format\":2"), "is a report of format 2"),
            ("{}".to_owned(), "is not a report"),
            (text.replace("\"p90_us\"", "\"p91_us\""), "is not a report"),
        ] {
            std::fs::write(&path, other).expect("it is written");
            let error = ScenarioReport::read(&path).expect_err("it is refused").to_string();
            assert!(error.contains(said), "{error}");
        }
        std::fs::remove_file(&path).expect("it is there");
        let error = ScenarioReport::read(&path).expect_err("it is gone").to_string();
        assert!(error.ends_with("report.json cannot be read"), "{error}");
    }
}
