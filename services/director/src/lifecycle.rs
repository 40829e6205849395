//! Lifecycle of a realm from start to stop (rules D5 and D6): the current stage, and what that stage waits for. Pure:
//! time is an input.
//!
//! A start waits for the desired number of processes. A stop goes through its stages one by one; a stage is over when
//! every process that it concerns has reported so or is gone. The shell passes reports in ([`Lifecycle::receive`]),
//! sends processes the stage in its answers, and calls [`Lifecycle::advance`] at each beat.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use annals_ids::ProcessId;

use crate::SILENCE;

/// Time after which a stage of a stop is reported as hanging.
pub const STAGE_TIMEOUT: Duration = Duration::from_secs(20);

/// Maximum delay between the announcement of a stop and the disconnection of clients.
pub const MOST_DELAY: Duration = Duration::from_secs(3_600);

/// Stages of a realm's lifecycle. The order is that of the documented shutdown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// It runs, or is starting.
    #[default]
    Running,
    /// Log-ins are refused, and the game is notified that the realm is about to stop (`onAppShuttingDown`).
    Announced,
    /// The game is notified (`onAppShutDown(0)`), and clients are disconnected.
    Parting,
    /// The game is notified (`onAppShutDown(1)`), and stored entities are written.
    Writing,
    /// The game is notified for the last time (`onAppShutDown(2)`).
    Written,
    /// Owners are released: all their events are in the log, and db has folded them.
    Closing,
    /// The realm is closed in the store, and login processes end.
    EndingLogin,
    /// Base processes end.
    EndingBase,
    /// Cell processes end.
    EndingCell,
    /// db ends, and after it the director.
    EndingDb,
}

impl Stage {
    /// All stages, in order.
    pub const ALL: [Stage; 10] = [
        Stage::Running,
        Stage::Announced,
        Stage::Parting,
        Stage::Writing,
        Stage::Written,
        Stage::Closing,
        Stage::EndingLogin,
        Stage::EndingBase,
        Stage::EndingCell,
        Stage::EndingDb,
    ];

    /// Its number in messages.
    #[must_use]
    pub fn number(self) -> u32 {
        self as u32
    }

    /// The stage with that number. A number from a newer release gives the last stage known here.
    #[must_use]
    pub fn of_number(number: u32) -> Self {
        let index = usize::try_from(number).unwrap_or(usize::MAX);
        Self::ALL.get(index).copied().unwrap_or(Stage::EndingDb)
    }

    /// The stage in which the processes of a service end.
    #[must_use]
    pub fn ending(service: &str) -> Option<Self> {
        match service {
            "login" => Some(Stage::EndingLogin),
            "base" => Some(Stage::EndingBase),
            "cell" => Some(Stage::EndingCell),
            "db" => Some(Stage::EndingDb),
            _ => None,
        }
    }

    fn next(self) -> Self {
        Self::of_number(self.number() + 1)
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Stage::Running => "running",
            Stage::Announced => "log-ins are refused, and the game is notified",
            Stage::Parting => "clients are disconnected",
            Stage::Writing => "entities are written",
            Stage::Written => "the game is notified for the last time",
            Stage::Closing => "the logs are closed and folded",
            Stage::EndingLogin => "login processes end",
            Stage::EndingBase => "base processes end",
            Stage::EndingCell => "cell processes end",
            Stage::EndingDb => "db and the director end",
        })
    }
}

/// A process's report on the stages of a stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// The stage that it was sent.
    pub announced: Stage,
    /// The last stage that it has completed.
    pub done: Stage,
    /// What it waits for, for an operator; empty if it waits for nothing.
    pub waits: String,
}

/// Number of processes that a start waits for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Desired {
    /// Base processes.
    pub bases: usize,
    /// Cell processes.
    pub cells: usize,
}

/// A process for which a stage waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Waiting {
    pub process: ProcessId,
    pub service: String,
    /// What it waits for, as it reports.
    pub waits: String,
}

impl fmt::Display for Waiting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            process,
            service,
            waits,
        } = self;
        let waits = if waits.is_empty() {
            "it has not reported what it waits for"
        } else {
            waits
        };
        write!(f, "{service} process {process}: {waits}")
    }
}

#[derive(Clone, Debug)]
struct ProcessState {
    service: String,
    progress: Progress,
    last_beat: Duration,
}

#[derive(Clone, Copy, Debug)]
enum Phase {
    Starting,
    Running,
    Stopping {
        stage: Stage,
        since: Duration,
        delay: Duration,
    },
}

/// Lifecycle of a realm: the current stage, and the reports of its processes.
#[derive(Clone, Debug)]
pub struct Lifecycle {
    phase: Phase,
    desired: Desired,
    processes: BTreeMap<ProcessId, ProcessState>,
}

impl Lifecycle {
    /// The lifecycle under a director that begins to lead. `starts` says that the realm itself starts: it is new or was
    /// stopped in order, so no process holds anything, and the start can wait for all processes.
    #[must_use]
    pub fn new(desired: Desired, starts: bool) -> Self {
        Self {
            phase: if starts { Phase::Starting } else { Phase::Running },
            desired,
            processes: BTreeMap::new(),
        }
    }

    /// Applies a report, at `now`, from a process of a service. A director that has just begun to lead learns from it
    /// that the realm is stopping.
    pub fn receive(&mut self, now: Duration, process: ProcessId, service: &str, progress: Progress) {
        if progress.announced > self.stage() {
            self.phase = stopping(progress.announced, now, Duration::ZERO);
        }
        let state = ProcessState {
            service: service.to_owned(),
            progress,
            last_beat: now,
        };
        self.processes.insert(process, state);
        if self.missing().is_none()
            && let Phase::Starting = self.phase
        {
            self.phase = Phase::Running;
        }
    }

    /// Applies a process's notice that it ends.
    pub fn left(&mut self, process: ProcessId) {
        self.processes.remove(&process);
    }

    /// The current stage, for processes and operators.
    #[must_use]
    pub fn stage(&self) -> Stage {
        match self.phase {
            Phase::Starting | Phase::Running => Stage::Running,
            Phase::Stopping { stage, .. } => stage,
        }
    }

    /// Whether owners are founded and granted: not before all desired processes are there, and not while the realm
    /// stops.
    #[must_use]
    pub fn grants(&self) -> bool {
        matches!(self.phase, Phase::Running)
    }

    /// Processes that a start still waits for.
    #[must_use]
    pub fn missing(&self) -> Option<String> {
        let Phase::Starting = self.phase else { return None };
        let count = |service: &str| self.processes.values().filter(|state| state.service == service).count();
        let (bases, cells) = (count("base"), count("cell"));
        let Desired {
            bases: most_bases,
            cells: most_cells,
        } = self.desired;
        (bases < most_bases || cells < most_cells).then(|| {
            format!("{bases} of {most_bases} base processes and {cells} of {most_cells} cell processes are running")
        })
    }

    /// Begins a stop, with this delay before clients are disconnected. Has no effect while the realm is stopping
    /// already. Returns the stage.
    pub fn stop(&mut self, now: Duration, delay: Duration) -> Stage {
        if !matches!(self.phase, Phase::Stopping { .. }) {
            self.phase = stopping(Stage::Announced, now, delay.min(MOST_DELAY));
        }
        self.stage()
    }

    /// Skips the wait of `stage` and goes on to the next, if `stage` is still current: an operator's decision,
    /// idempotent.
    pub fn go_on(&mut self, now: Duration, stage: Stage) {
        if let Phase::Stopping { stage: present, .. } = self.phase
            && present == stage
        {
            self.phase = stopping(stage.next(), now, Duration::ZERO);
        }
    }

    /// Goes on to the next stage if the current one is over. A process that was silent for [`SILENCE`] counts as gone.
    pub fn advance(&mut self, now: Duration) -> Option<Stage> {
        self.processes
            .retain(|_, state| now.saturating_sub(state.last_beat) < SILENCE);
        let Phase::Stopping { stage, since, delay } = self.phase else {
            return None;
        };
        let early = stage == Stage::Announced && now.saturating_sub(since) < delay;
        if early || stage == Stage::EndingDb || self.waited_for(stage).next().is_some() {
            return None;
        }
        self.phase = stopping(stage.next(), now, Duration::ZERO);
        Some(self.stage())
    }

    /// The processes that the current stage of a stop waits for.
    #[must_use]
    pub fn waiting(&self) -> Vec<Waiting> {
        let waited_for = self.waited_for(self.stage()).map(|(process, state)| Waiting {
            process: *process,
            service: state.service.clone(),
            waits: state.progress.waits.clone(),
        });
        waited_for.collect()
    }

    /// Whether the current stage of a stop has taken longer than [`STAGE_TIMEOUT`] plus its delay.
    #[must_use]
    pub fn is_overdue(&self, now: Duration) -> bool {
        match self.phase {
            Phase::Stopping { since, delay, .. } => now.saturating_sub(since) >= STAGE_TIMEOUT + delay,
            Phase::Starting | Phase::Running => false,
        }
    }

    fn waited_for(&self, stage: Stage) -> impl Iterator<Item = (&ProcessId, &ProcessState)> {
        self.processes.iter().filter(move |(_, state)| match stage {
            Stage::Running => false,
            // Login processes hold no owners, but must stop admitting clients.
            Stage::Announced => state.progress.done < stage,
            Stage::Parting | Stage::Writing | Stage::Written | Stage::Closing => {
                state.service != "login" && state.progress.done < stage
            }
            Stage::EndingLogin | Stage::EndingBase | Stage::EndingCell | Stage::EndingDb => {
                Stage::ending(&state.service) == Some(stage)
            }
        })
    }
}

fn stopping(stage: Stage, since: Duration, delay: Duration) -> Phase {
    Phase::Stopping { stage, since, delay }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: Duration = Duration::ZERO;

    fn at(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    fn done(stage: Stage) -> Progress {
        Progress {
            announced: stage,
            done: stage,
            waits: String::new(),
        }
    }

    /// One process of each service that reports.
    fn some_processes() -> [(ProcessId, &'static str); 3] {
        [(ProcessId(1), "login"), (ProcessId(2), "base"), (ProcessId(3), "cell")]
    }

    fn running() -> Lifecycle {
        let mut lifecycle = Lifecycle::new(Desired::default(), false);
        for (process, service) in some_processes() {
            lifecycle.receive(NONE, process, service, Progress::default());
        }
        lifecycle
    }

    #[test]
    fn a_start_waits_for_all_processes_and_a_new_director_of_a_running_realm_does_not_wait() {
        let desired = Desired { bases: 2, cells: 1 };
        let mut lifecycle = Lifecycle::new(desired, true);
        assert!(!lifecycle.grants());
        lifecycle.receive(NONE, ProcessId(1), "base", Progress::default());
        lifecycle.receive(NONE, ProcessId(3), "cell", Progress::default());
        assert!(!lifecycle.grants());
        let missing = lifecycle.missing().expect("a base is missing");
        assert!(missing.starts_with("1 of 2 base"), "{missing}");
        lifecycle.receive(NONE, ProcessId(2), "base", Progress::default());
        assert!(lifecycle.grants());
        lifecycle.left(ProcessId(2));
        lifecycle.advance(at(10_000));
        assert!(
            lifecycle.grants(),
            "a started realm continues with the remaining processes"
        );
        assert!(Lifecycle::new(desired, false).grants());
    }

    #[test]
    fn a_start_waits_for_cells_when_all_bases_are_there() {
        let mut lifecycle = Lifecycle::new(Desired { bases: 1, cells: 2 }, true);
        lifecycle.receive(NONE, ProcessId(1), "base", Progress::default());
        lifecycle.receive(NONE, ProcessId(2), "cell", Progress::default());
        assert!(!lifecycle.grants());
        let missing = lifecycle.missing().expect("a cell is missing");
        assert!(missing.contains("1 of 2 cell"), "{missing}");
        lifecycle.receive(NONE, ProcessId(3), "cell", Progress::default());
        assert!(lifecycle.grants());
    }

    /// Login processes hold no owners: the stages in which holders have work do not wait for them.
    #[test]
    fn a_stop_waits_for_login_only_in_stages_that_concern_it() {
        let mut lifecycle = running();
        lifecycle.stop(NONE, NONE);
        let (login, holders) = some_processes()
            .into_iter()
            .partition::<Vec<_>, _>(|(_, service)| *service == "login");
        for (process, service) in login.into_iter().chain(holders.clone()) {
            lifecycle.receive(NONE, process, service, done(Stage::Announced));
        }
        assert_eq!(lifecycle.advance(NONE), Some(Stage::Parting));
        for (process, service) in holders {
            assert_eq!(lifecycle.advance(NONE), None, "{service} is at work");
            lifecycle.receive(NONE, process, service, done(Stage::Parting));
        }
        assert_eq!(
            lifecycle.advance(NONE),
            Some(Stage::Writing),
            "login has not completed the parting stage"
        );
    }

    #[test]
    fn a_stop_passes_all_stages_and_each_waits_for_the_processes_it_concerns() {
        let mut lifecycle = running();
        assert_eq!(lifecycle.stop(NONE, NONE), Stage::Announced);
        assert!(!lifecycle.grants());
        let mut passed = vec![lifecycle.stage()];
        let mut now = NONE;
        while lifecycle.stage() != Stage::EndingDb {
            let stage = lifecycle.stage();
            let concerned = lifecycle.waiting();
            assert!(!concerned.is_empty(), "{stage:?} concerns no process");
            for Waiting { process, service, .. } in concerned {
                now += at(10);
                assert_eq!(lifecycle.advance(now), None, "{stage:?} waits for {service}");
                if Stage::ending(&service) == Some(stage) {
                    lifecycle.left(process);
                } else {
                    lifecycle.receive(now, process, &service, done(stage));
                }
            }
            passed.extend(lifecycle.advance(now));
        }
        assert_eq!(passed, Stage::ALL[1..], "every stage, once, in order");
        assert_eq!(lifecycle.advance(now), None, "after the last there is none");
    }

    #[test]
    fn a_second_stop_returns_the_stage_and_changes_nothing() {
        let mut lifecycle = running();
        lifecycle.stop(NONE, at(500));
        for (process, service) in some_processes() {
            lifecycle.receive(at(100), process, service, done(Stage::Announced));
        }
        assert_eq!(lifecycle.advance(at(400)), None, "the game is left its time");
        assert_eq!(lifecycle.stop(at(450), at(60_000)), Stage::Announced);
        assert_eq!(
            lifecycle.advance(at(500)),
            Some(Stage::Parting),
            "not put off by the second"
        );
        assert_eq!(lifecycle.stop(at(600), NONE), Stage::Parting);
    }

    #[test]
    fn a_stage_that_hangs_is_reported_and_skipped_once() {
        let mut lifecycle = running();
        lifecycle.stop(NONE, NONE);
        let report_all = |lifecycle: &mut Lifecycle, now: Duration| {
            for (process, service) in some_processes() {
                let waits = "the log is blocked".to_owned();
                let progress = match service {
                    "base" => Progress {
                        announced: lifecycle.stage(),
                        waits,
                        ..Progress::default()
                    },
                    _ => done(lifecycle.stage()),
                };
                lifecycle.receive(now, process, service, progress);
            }
        };
        for second in 0..20 {
            report_all(&mut lifecycle, at(second * 1_000));
            assert_eq!(lifecycle.advance(at(second * 1_000)), None);
            assert!(!lifecycle.is_overdue(at(second * 1_000)), "after {second} s");
        }
        report_all(&mut lifecycle, STAGE_TIMEOUT);
        assert!(lifecycle.is_overdue(STAGE_TIMEOUT));
        let waiting: Vec<String> = lifecycle.waiting().iter().map(Waiting::to_string).collect();
        assert_eq!(waiting, ["base process 2: the log is blocked"]);
        lifecycle.go_on(STAGE_TIMEOUT, Stage::Announced);
        lifecycle.go_on(STAGE_TIMEOUT, Stage::Announced);
        assert_eq!(lifecycle.stage(), Stage::Parting);
    }

    #[test]
    fn dead_processes_are_not_awaited_and_a_new_director_continues_the_stop() {
        let mut lifecycle = running();
        lifecycle.stop(NONE, NONE);
        for (process, service) in [some_processes()[0], some_processes()[2]] {
            lifecycle.receive(at(2_900), process, service, done(Stage::Announced));
        }
        assert_eq!(
            lifecycle.advance(at(2_900)),
            None,
            "the base is silent for less than three seconds"
        );
        assert_eq!(lifecycle.advance(SILENCE), Some(Stage::Parting));

        let mut next = Lifecycle::new(Desired { bases: 9, cells: 9 }, false);
        next.receive(at(5_000), ProcessId(3), "cell", done(Stage::Writing));
        assert_eq!(next.stage(), Stage::Writing);
        assert!(!next.grants());
        assert_eq!(next.advance(at(5_000)), Some(Stage::Written));
    }

    #[test]
    fn each_service_ends_in_its_own_stage_and_db_in_the_last() {
        let mut lifecycle = running();
        lifecycle.receive(NONE, ProcessId(4), "db", Progress::default());
        lifecycle.stop(NONE, NONE);
        let mut ended = Vec::new();
        for stage in &Stage::ALL[1..] {
            if *stage > Stage::Closing {
                ended.extend(lifecycle.waiting().into_iter().map(|waiting| waiting.service));
            }
            lifecycle.go_on(NONE, *stage);
        }
        assert_eq!(ended, ["login", "base", "cell", "db"]);
    }

    #[test]
    fn stages_cross_the_wire_by_number() {
        for stage in Stage::ALL {
            assert_eq!(Stage::of_number(stage.number()), stage);
        }
        assert_eq!(Stage::of_number(99), Stage::EndingDb);
    }
}
