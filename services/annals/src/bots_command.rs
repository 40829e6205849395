//! `annals bots`: bots that play in a running realm, by a scenario, with a report that is compared with an earlier one.

use std::{
    fs, io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
    sync::Arc,
    time::{Duration, Instant},
};

use annals_bots::{
    bots::{self, BotPlan, BotsError, Reads},
    progress::Progress,
    scenario::{Comparison, Environment, Phase, PhaseReport, ReadReportError, Scenario, ScenarioError, ScenarioReport},
};
use annals_client::Trust;
use annals_def::Schema;
use annals_host::{
    release,
    telemetry::Chain,
    world::{WorldError, compile},
};
use annals_ids::Hash;
use thiserror::Error;
use tokio::sync::watch;

use crate::progress::ProgressView;

/// The password of the bots' accounts.
pub(crate) const PASSWORD: &str = "a password for bots";

/// The exit code if something got worse than in the earlier report.
const WORSE: u8 = 3;

/// Interval between lines of progress if there is no terminal.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Who plays, where, and for how long.
#[derive(Debug, clap::Args)]
pub struct Bots {
    /// Address of the realm's login service
    #[arg(long, default_value = "127.0.0.1:7700")]
    login: SocketAddr,
    /// SHA-256 fingerprint of its certificate, as `annals up` prints it
    #[arg(long)]
    certificate: Hash,
    /// Folder of the realm's definitions
    #[arg(long, default_value = "defs")]
    world: PathBuf,
    /// TOML file of what bots do, phase after phase; without it there is one phase of bots that walk
    #[arg(long, value_name = "FILE", conflicts_with_all = ["bots", "duration"])]
    scenario: Option<PathBuf>,
    /// Bots, as accounts bot0, bot1 and so on
    #[arg(long, default_value_t = 100)]
    bots: usize,
    /// Duration in seconds
    #[arg(long, default_value_t = 30)]
    duration: u64,
    /// Number of the first account, so that several runs of bots can share a realm
    #[arg(long, default_value_t = 0)]
    first: usize,
    /// Random seed
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for the record of what bots were shown, the input of `annals check`; created if missing
    #[arg(long, default_value = "target/bots")]
    files: PathBuf,
    /// Request plain movements only, to compare bytes
    #[arg(long)]
    plain_movements: bool,
    /// File for the report as JSON; replaced if there is one
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Report of an earlier run to compare with; exit code 3 if something got worse
    #[arg(long, value_name = "FILE")]
    compare: Option<PathBuf>,
    /// By how many percent a figure may get worse than in the earlier report
    #[arg(long, value_name = "PERCENT", default_value_t = 25, requires = "compare")]
    tolerance: u32,
}

/// Why there is no report.
#[derive(Debug, Error)]
enum BotsCommandError {
    #[error(transparent)]
    World(#[from] WorldError),
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    #[error(transparent)]
    Earlier(#[from] ReadReportError),
    #[error("{path} cannot be created", path = path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("the bots cannot run")]
    Bots(#[from] BotsError),
    #[error("the report cannot be encoded as JSON")]
    Json(#[from] serde_json::Error),
    #[error("the report cannot be written to {path}", path = path.display())]
    Report { path: PathBuf, source: io::Error },
    #[error(
        "no phase of this scenario can be compared with {path}; name the report of an earlier run of the same scenario",
        path = path.display()
    )]
    NothingCompared { path: PathBuf },
}

/// What came of a run.
struct Outcome {
    has_played: bool,
    is_worse: bool,
}

impl Bots {
    /// Lets bots play. The exit code is 0 if all logged in, none was disconnected by the server, and nothing got worse
    /// than in the earlier report; 1 if some bots did not play; 2 if there is no report; 3 if something got worse.
    pub async fn run(self) -> ExitCode {
        match self.play().await {
            Ok(Outcome { has_played: false, .. }) => ExitCode::FAILURE,
            Ok(Outcome { is_worse: true, .. }) => ExitCode::from(WORSE),
            Ok(_) => ExitCode::SUCCESS,
            Err(error) => {
                eprintln!("bots: {}", Chain(&error));
                ExitCode::from(2)
            }
        }
    }

    async fn play(self) -> Result<Outcome, BotsCommandError> {
        let schema = compile(&self.world)?;
        let scenario = match &self.scenario {
            Some(path) => Scenario::read(path, &schema)?,
            None => Scenario::walk(self.bots, Duration::from_secs(self.duration)),
        };
        // Read before the run, so that a wrong name is noticed before it.
        let earlier = self.compare.as_deref().map(ScenarioReport::read).transpose()?;
        create_folder(&self.files)?;
        let mut phases = Vec::new();
        for (index, phase) in scenario.phases.iter().enumerate() {
            let report = self.run_phase((index, &scenario), phase, &schema).await?;
            println!("{report}");
            phases.push(report);
        }
        let environment = Environment {
            version: release::VERSION.to_owned(),
            commit: release::COMMIT.map(str::to_owned),
            schema: schema.fingerprint().to_string(),
            seed: self.seed,
            plain_movements: self.plain_movements,
        };
        let report = ScenarioReport::new(environment, phases);
        self.warn_of_absent(&report);
        if let Some(path) = &self.report {
            write_report(path, &report)?;
        }
        let mut is_worse = false;
        if let (Some(earlier), Some(path)) = (earlier, &self.compare) {
            let comparison = Comparison::of(&earlier, &report, f64::from(self.tolerance) / 100.0);
            println!("compared with {}:\n{comparison}", path.display());
            if comparison.differences.is_empty() {
                return Err(BotsCommandError::NothingCompared { path: path.clone() });
            }
            is_worse = comparison.worse().next().is_some();
        }
        Ok(Outcome {
            has_played: report.has_played(),
            is_worse,
        })
    }

    /// Lets the bots of a phase play.
    async fn run_phase(
        &self,
        (index, scenario): (usize, &Scenario),
        phase: &Phase,
        schema: &Arc<Schema>,
    ) -> Result<PhaseReport, BotsCommandError> {
        let (_until, until) = watch::channel(Instant::now() + phase.duration);
        let (_resting, resting) = watch::channel(false);
        let plan = BotPlan {
            login: self.login,
            trust: Trust::Pinned(self.certificate),
            password: PASSWORD.to_owned(),
            schema: Arc::clone(schema),
            bots: phase.bots,
            conduct: phase.conduct,
            first: self.first,
            until,
            resting,
            seed: self.seed,
            files: self.files.clone(),
            // A scenario has one folder for all phases.
            prefix: self
                .scenario
                .as_ref()
                .map_or(String::new(), |_| format!("{}-", phase.name)),
            reads: if self.plain_movements {
                Reads::Plain
            } else {
                Reads::Predicted
            },
        };
        let (sender, progress) = watch::channel(Progress::default());
        let title = format!("{} ({} of {}): ", phase.name, index + 1, scenario.phases.len());
        let view = ProgressView::new(phase.duration).every(LINE_EVERY).titled(title);
        let (report, ()) = tokio::join!(bots::run(plan, sender), view.follow(progress));
        Ok(PhaseReport::of(phase, &report?, schema))
    }

    fn warn_of_absent(&self, report: &ScenarioReport) {
        let absent: u64 = report.phases.iter().map(|phase| phase.never_logged_in).sum();
        if absent > 0 {
            eprintln!(
                "bots: {absent} bots never logged in; check that a realm of this world listens at {} and that \
                 --certificate is its fingerprint",
                self.login
            );
        }
    }
}

fn create_folder(path: &Path) -> Result<(), BotsCommandError> {
    fs::create_dir_all(path).map_err(|source| BotsCommandError::Folder {
        path: path.to_owned(),
        source,
    })
}

fn write_report(path: &Path, report: &ScenarioReport) -> Result<(), BotsCommandError> {
    let mut text = serde_json::to_vec_pretty(report)?;
    text.push(b'\n');
    fs::write(path, text).map_err(|source| BotsCommandError::Report {
        path: path.to_owned(),
        source,
    })
}
