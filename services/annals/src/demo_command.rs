//! `annals demo`: a realm as separate processes, bots that play, two processes that are killed meanwhile, or all of them
//! replaced one after the other, and the proof afterwards that nothing shown to a client is lost.

use std::{
    fs, io,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    process::{ExitCode, ExitStatus},
    sync::Arc,
    time::{Duration, Instant},
};

use annals_bots::{
    bots::{self, BotPlan, BotsReport, Conduct, Reads, Recovery, ToDrive, TradeEnd},
    demo::{self, Findings, KILLED, Verdict, inspect},
    progress::Progress,
    scenario::{Phase, PhaseReport},
    tamper::{Removed, TamperError, remove_one_event},
    views::{Views, ViewsError},
};
use annals_client::Trust;
use annals_def::Schema;
use annals_host::{
    claim::Claim,
    config::{Realm as RealmName, Service},
    health::discover,
    nats::Bus,
    process::{Settings, connect, remote_store, stop_signal, stopped},
    telemetry::Chain,
    world::{WorldError, compile},
};
use annals_ids::{EntryNumber, Hash, LogPosition};
use annals_store::Store;
use thiserror::Error;
use tokio::{process::Command, sync::watch};

use crate::{
    bots_command::PASSWORD,
    check_command::INCOMPLETE,
    cluster::{self, Cluster, ClusterError, LOGIN_HOST, Stage, StepError},
    progress::ProgressView,
    rolling::{self, Course, Restart, RollingError},
    up::{GameBuild, NoConsole, Realm, RealmPlan, UpError},
};

/// The realm's name.
const REALM: &str = "demo";

/// Timeout for the archive to contain what was shown last.
const ARCHIVED_WITHIN: Duration = Duration::from_secs(30);

/// The marker file of a folder that a demonstration may empty.
const MARK: &str = "made-by-annals-demo";

/// Interval between retries of a replay.
const AGAIN_AFTER: Duration = Duration::from_millis(300);

/// What is demonstrated.
#[derive(Debug, clap::Args)]
pub struct Demo {
    /// Folder of .def files to run instead of the sample world: bots drive everything in them
    #[arg(long)]
    world: Option<PathBuf>,
    /// Folder of the binaries annals-base and annals-cell of a game of its own, which plays the world instead of puppets
    #[arg(long, value_name = "DIR", requires = "world", conflicts_with = "cluster")]
    game: Option<PathBuf>,
    /// Seconds that bots play [default: 30, or with --world and without --game the time needed to drive everything]
    #[arg(long)]
    duration: Option<u64>,
    /// Number of bots
    #[arg(long, default_value_t = 100)]
    bots: usize,
    /// Random seed of the bots
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Leave the realm running
    #[arg(long)]
    keep: bool,
    /// Instead of killing two processes, stop and start again every process of the realm, this often and in random
    /// order; no player may notice
    #[arg(long, conflicts_with = "duration")]
    rolling: Option<usize>,
    /// With --rolling, folder of the programs of another release: the realm begins with them, the first round replaces
    /// each by this release, the second one goes back, and so on, so that both releases work in one realm
    #[arg(long, value_name = "DIR", requires = "rolling", conflicts_with = "game")]
    from: Option<PathBuf>,
    /// Instead of killing two processes, run the realm on three hosts (network namespaces, which need root), cut one off,
    /// join it again, and remove the one with the store for good
    #[arg(long, conflicts_with_all = ["duration", "rolling", "keep"])]
    cluster: bool,
    /// Remove one event from the archive before the check, so that the demonstration must fail
    #[arg(long)]
    tamper: bool,
    /// Data folder of the realm; emptied first
    #[arg(long, default_value = "target/demo")]
    data: PathBuf,
}

/// Where a console listens that nobody opens.
const ANY_PORT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// The exit code if there is nothing to report.
const CANNOT_RUN: u8 = 2;

/// Minimum play time of the bots, unless it is given.
const DURATION: Duration = Duration::from_secs(30);

/// Timeout for all bots to play.
const BEGUN_WITHIN: Duration = Duration::from_secs(60);

/// Usual time in which every process is replaced once, with play in between.
const ROLLING_ROUND: Duration = Duration::from_secs(40);

/// Maximum names of undriven members that are printed.
const NAMED: usize = 5;

/// Why there is nothing to report.
#[derive(Debug, Error)]
enum DemoError {
    #[error(transparent)]
    World(#[from] WorldError),
    #[error("{path} contains files of something other than a demonstration and would be emptied; name another folder \
        with --data", path = .0.display())]
    NotOurs(PathBuf),
    #[error("{path} cannot be used", path = path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("the realm cannot run")]
    Up(#[from] UpError),
    #[error(transparent)]
    Demo(#[from] demo::DemoError),
    #[error("the demonstration cannot connect to the realm's nats-server")]
    Connect(#[from] annals_host::nats::ConnectError),
    #[error("the realm's store cannot be read")]
    Store(#[from] annals_store::StoreError),
    #[error("no event can be removed from the archive")]
    Tamper(#[from] TamperError),
    #[error("{} --version ended with {status}: it is not a program of Annals that runs here", program.display())]
    NoVersion { program: PathBuf, status: ExitStatus },
    #[error("there is no console to replace")]
    Console(#[from] NoConsole),
    #[error("the processes cannot be replaced")]
    Rolling(#[from] RollingError),
    #[error("there are no hosts to run on")]
    Hosts(#[from] cluster::hosts::HostsError),
    #[error("the realm cannot run on several hosts")]
    Cluster(#[from] ClusterError),
    #[error("the hosts cannot be cut off and removed")]
    Step(#[from] StepError),
    #[error("the login of the realm has withdrawn its address; see the logs in the data folder")]
    NoLogin,
    #[error("a child process cannot be run")]
    Process(#[source] io::Error),
    #[error("`annals check` ended with {0}; see its output above")]
    Unchecked(ExitStatus),
}

impl Demo {
    /// Runs the demonstration. The exit code is 0 if every promise was kept and everything tried, 1 if a promise was
    /// broken, 2 if it could not be run, and 3 if no promise was broken and something was not tried.
    pub async fn run(self) -> ExitCode {
        match self.demonstrate().await {
            Ok(verdict) => exit_code(&verdict),
            Err(error) => {
                eprintln!("demo: {}", Chain(&error));
                ExitCode::from(CANNOT_RUN)
            }
        }
    }

    fn world(&self) -> &Path {
        self.world.as_deref().unwrap_or(Path::new("defs"))
    }

    /// Whether puppets play the world: they drive everything in it, and a game decides what it drives.
    fn has_puppets(&self) -> bool {
        self.world.is_some() && self.game.is_none()
    }

    async fn demonstrate(self) -> Result<Verdict, DemoError> {
        if self.cluster {
            cluster::hosts::enter()?;
        }
        let schema = compile(self.world())?;
        let duration = self.duration(&schema);
        let files = self.prepare()?;
        if self.cluster {
            return self.demonstrate_cluster(&schema, &files).await;
        }
        let mut plan = RealmPlan::new(REALM, self.world(), &self.data);
        plan.build.binaries.clone_from(&self.game);
        let own = plan.build.clone();
        plan.build.release.clone_from(&self.from);
        let builds = self.builds(own, &plan.build).await?;
        if self.rolling.is_some() {
            // The other one leads while a director is replaced.
            plan.directors = 2;
        }
        let mut realm = Realm::start(plan).await?;
        if self.rolling.is_some() {
            realm.start_console(ANY_PORT).await?;
        }
        println!(
            "demo: world {}: {} entity types; {} processes up; {} bots play for {} s",
            self.world().display(),
            schema.types().len(),
            realm.members().count() + 1 + usize::from(realm.console().is_some()),
            self.bots,
            duration.as_secs()
        );
        let (report, incidents) = match self.rolling {
            None => self.play(&mut realm, &schema, &files, duration).await?,
            Some(rounds) => {
                let seed = self.seed;
                let course = Course { rounds, seed, builds };
                self.roll(&mut realm, (&schema, &files), &course, duration).await?
            }
        };
        let verdict = self.prove(&realm.nats(), (&schema, &files), &report, &incidents).await;
        if self.keep {
            let (address, certificate) = realm.login;
            println!("demo: the realm keeps running: clients log in at {address}");
            println!("demo: log-in certificate, SHA-256 fingerprint: {certificate} (for `annals bots --certificate`)");
            println!(
                "demo: nats {}, data in {}; Ctrl-C stops it",
                realm.nats(),
                self.data.display()
            );
            stopped(stop_signal()).await;
        }
        let stopped = realm.stop().await;
        let verdict = verdict?;
        stopped?;
        Ok(verdict)
    }

    /// Runs the realm on several hosts while bots play, and prints the report and the verdict.
    async fn demonstrate_cluster(self, schema: &Arc<Schema>, files: &Path) -> Result<Verdict, DemoError> {
        let mut realm = Cluster::start(REALM, self.world(), &self.data).await?;
        println!(
            "demo: world {}: {} entity types; {} processes up on {} hosts; {} bots play for about {} s",
            self.world().display(),
            schema.types().len(),
            realm.count(),
            cluster::HOSTS,
            self.bots,
            cluster::DURATION.as_secs()
        );
        let login = realm.login(LOGIN_HOST).ok_or(DemoError::NoLogin)?;
        let (ends, until) = watch::channel(Instant::now() + BEGUN_WITHIN + cluster::DURATION * 10);
        let plan = self.bots(login, schema, files, until);
        let name: RealmName = REALM.parse().expect("invariant: the realm's name is one");
        let (bus, _) = connect(&settings(realm.nats()), "demo").await?;
        let (sender, progress) = watch::channel(Progress::default());
        let view = ProgressView::new(cluster::DURATION);
        let mut begun = progress.clone();
        let mut stage = Stage {
            cluster: &mut realm,
            bus: &bus,
            name: &name,
            progress: progress.clone(),
            world: self.world(),
            scratch: self.data.join("stranded"),
        };
        let steps = async {
            let all = |progress: &Progress| progress.connected >= self.bots as u64;
            // A bot that cannot log in is in the report.
            let _ = tokio::time::timeout(BEGUN_WITHIN, begun.wait_for(all)).await;
            let course = stage.play(|text: &str| view.note(text)).await;
            // Without a receiver the bots have ended.
            let _ = ends.send(Instant::now());
            course
        };
        let (played, (), course) = tokio::join!(bots::run(plan, sender), view.follow(progress), steps);
        let (report, course) = (played.map_err(demo::DemoError::from)?, course?);
        let incidents = Incidents::Hosts(Box::new(course));
        self.prove(&realm.nats(), (schema, files), &report, &incidents).await
    }

    /// The play time of the bots. Prints what there is to drive, and how long that takes.
    fn duration(&self, schema: &Schema) -> Duration {
        if let Some(rounds) = self.rolling {
            return ROLLING_ROUND * u32::try_from(rounds).unwrap_or(u32::MAX);
        }
        let given = self.duration.map(Duration::from_secs);
        if !self.has_puppets() {
            return given.unwrap_or(DURATION);
        }
        let to_drive = ToDrive::of(schema);
        let needed = to_drive.time(self.bots);
        let bots = self.bots;
        println!(
            "demo: to drive: {to_drive}; {bots} bots take about {} s for that",
            needed.as_secs()
        );
        let duration = given.unwrap_or(needed.max(DURATION));
        if duration < needed {
            println!(
                "demo: {} s may be too short for all of it: what was not driven is named at the end",
                duration.as_secs()
            );
        }
        duration
    }

    fn prepare(&self) -> Result<PathBuf, DemoError> {
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| DemoError::File { path, source }
        };
        if self.data.exists() {
            let mut entries = fs::read_dir(&self.data).map_err(failed(&self.data))?;
            if entries.next().is_some() && !self.data.join(MARK).exists() {
                return Err(DemoError::NotOurs(self.data.clone()));
            }
            // Fails if a realm runs in this folder.
            Claim::take(&self.data).map_err(UpError::from)?;
            fs::remove_dir_all(&self.data).map_err(failed(&self.data))?;
        }
        fs::create_dir_all(&self.data).map_err(failed(&self.data))?;
        let mark = self.data.join(MARK);
        fs::write(
            &mark,
            "Made by `annals demo`, which empties this folder when it runs again.\n",
        )
        .map_err(failed(&mark))?;
        let files = self.data.join("shown");
        fs::create_dir_all(&files).map_err(failed(&files))?;
        Ok(files)
    }

    fn bots(
        &self,
        (address, certificate): (SocketAddr, Hash),
        schema: &Arc<Schema>,
        files: &Path,
        until: watch::Receiver<Instant>,
    ) -> BotPlan {
        BotPlan {
            login: address,
            trust: Trust::Pinned(certificate),
            password: PASSWORD.to_owned(),
            schema: Arc::clone(schema),
            bots: self.bots,
            conduct: Conduct::default(),
            first: 0,
            until,
            resting: watch::channel(false).1,
            seed: self.seed,
            files: files.to_owned(),
            prefix: String::new(),
            reads: Reads::Predicted,
        }
    }

    /// The builds from which processes are started again, in turns. Prints them if there are two.
    async fn builds(&self, own: GameBuild, first: &GameBuild) -> Result<Vec<GameBuild>, DemoError> {
        if *first == own {
            return Ok(vec![own]);
        }
        let (from, to) = (release(first).await?, release(&own).await?);
        println!("demo: round 1 replaces {from} by {to}, and each further round changes back");
        Ok(vec![own, first.clone()])
    }

    /// Lets bots play, and replaces every process meanwhile.
    async fn roll(
        &self,
        realm: &mut Realm,
        (schema, files): (&Arc<Schema>, &Path),
        course: &Course,
        duration: Duration,
    ) -> Result<(BotsReport, Incidents), DemoError> {
        let (ends, until) = watch::channel(Instant::now() + BEGUN_WITHIN + duration * 10);
        let plan = self.bots(realm.login, schema, files, until);
        let name: RealmName = REALM.parse().expect("invariant: the realm's name is one");
        let (bus, _) = connect(&settings(realm.nats()), "demo").await?;
        let (sender, progress) = watch::channel(Progress::default());
        let view = ProgressView::new(duration);
        let mut begun = progress.clone();
        let rolling = async {
            let all = |progress: &Progress| progress.connected >= self.bots as u64;
            // A bot that cannot log in is in the report.
            let _ = tokio::time::timeout(BEGUN_WITHIN, begun.wait_for(all)).await;
            let note = |text: &str| view.note(text);
            let restart = rolling::roll(realm, (&bus, &name), course, note).await;
            // Without a receiver the bots have ended.
            let _ = ends.send(Instant::now());
            restart
        };
        let (played, (), restart) = tokio::join!(bots::run(plan, sender), view.follow(progress), rolling);
        Ok((played.map_err(demo::DemoError::from)?, Incidents::Replaced(restart?)))
    }

    /// Lets bots play, and kills two processes meanwhile.
    async fn play(
        &self,
        realm: &mut Realm,
        schema: &Arc<Schema>,
        files: &Path,
        duration: Duration,
    ) -> Result<(BotsReport, Incidents), DemoError> {
        let (_, until) = watch::channel(Instant::now() + duration);
        let plan = self.bots(realm.login, schema, files, until);
        let (sender, progress) = watch::channel(Progress::default());
        let view = ProgressView::new(duration);
        let kill = |name: &str, after: Duration| {
            realm.kill(name)?;
            view.note(&format!("demo: {name} killed with SIGKILL after {} s", after.as_secs()));
            Ok(())
        };
        let (played, ()) = tokio::join!(demo::play(plan, duration, sender, kill), view.follow(progress));
        let (report, kills) = played?;
        let killed: Vec<&str> = kills.iter().map(|(name, _)| *name).collect();
        realm.watch(&killed)?;
        Ok((report, Incidents::Killed(kills)))
    }

    /// Prints the report and the verdict.
    async fn prove(
        &self,
        nats: &str,
        (schema, files): (&Schema, &Path),
        report: &BotsReport,
        incidents: &Incidents,
    ) -> Result<Verdict, DemoError> {
        let settings = settings(nats.to_owned());
        let name = settings.realm.clone();
        let (bus, subjects) = connect(&settings, "demo").await?;
        let store = remote_store(&bus, &subjects);
        let live = inspect(&bus, &subjects, &store).await?;
        let phase = Phase {
            name: "demo".to_owned(),
            conduct: Conduct::default(),
            bots: self.bots,
            duration: report.elapsed,
        };
        println!("{}", PhaseReport::of(&phase, report, schema));
        let mut findings = Findings::default();
        match incidents {
            Incidents::Killed(kills) => judge_kills(report, kills, &mut findings),
            Incidents::Hosts(course) => cluster::judge(report, course, &mut findings),
            Incidents::Replaced(restart) => {
                rolling::print(report, restart);
                findings.promise(rolling::kept_sessions(report));
            }
        }
        print_figures(&bus, &name).await;
        findings.promise(self.replays(nats, &live).await?);
        if self.tamper {
            let removed = remove_one_event(&store).await?;
            let Removed {
                at,
                entity,
                part,
                number,
            } = removed;
            println!("demo: taken out of the archive: batch {at}, with event {number} of entity {entity} ({part})");
        }
        self.check(nats, files, &mut findings).await?;
        findings.promise(audit_ledger(&store, report).await?);
        findings.promise(report.has_played());
        let undriven = report.undriven(schema);
        if self.has_puppets() && !undriven.is_empty() {
            let (count, named) = (undriven.len(), &undriven[..undriven.len().min(NAMED)]);
            findings.miss(format!(
                "{count} exposed methods were not called ({})",
                named.join(", ")
            ));
        }
        let verdict = findings.verdict();
        println!("demo: {verdict}");
        Ok(verdict)
    }

    /// Replays the archive in another process and compares the states.
    async fn replays(&self, nats: &str, live: &[(LogPosition, Hash)]) -> Result<bool, DemoError> {
        let mut same = !live.is_empty();
        for (at, state) in live {
            let until = Instant::now() + ARCHIVED_WITHIN;
            let text = loop {
                let output = this_program(nats)
                    .args(["log", "replay", "--at", &at.to_string()])
                    .output()
                    .await;
                let output = output.map_err(DemoError::Process)?;
                if output.status.success() || Instant::now() > until {
                    break String::from_utf8_lossy(&output.stdout).into_owned()
                        + &String::from_utf8_lossy(&output.stderr);
                }
                // db may not have archived that far yet.
                tokio::time::sleep(AGAIN_AFTER).await;
            };
            let state_said = state.to_string();
            let equal = text.split_whitespace().any(|word| word == state_said);
            same &= equal;
            let verdict = if equal { "equal" } else { "DIFFERENT" };
            println!(
                "  state of owner {}: live {:.16}…, replayed by another process: {verdict}",
                at, state_said
            );
            if !equal {
                println!("    replay said: {}", text.trim());
            }
        }
        Ok(same)
    }

    /// Compares in another process what bots were shown with the archive.
    async fn check(&self, nats: &str, files: &Path, findings: &mut Findings) -> Result<(), DemoError> {
        let mut command = this_program(nats);
        command
            .arg("check")
            .arg("--files")
            .arg(files)
            .arg("--world")
            .arg(self.world());
        if self.has_puppets() {
            command.arg("--all-driven");
        }
        let status = command.status().await.map_err(DemoError::Process)?;
        match status.code() {
            Some(0) => {}
            Some(1) => findings.promise(false),
            Some(code) if code == i32::from(INCOMPLETE) => {
                findings.miss("the archive does not show everything at work (\"not driven\" above)".to_owned());
            }
            _ => return Err(DemoError::Unchecked(status)),
        }
        Ok(())
    }
}

/// What happened to the realm's processes while bots played.
enum Incidents {
    /// These were killed, at these times.
    Killed(Vec<(&'static str, Instant)>),
    /// These were stopped and started again.
    Replaced(Restart),
    /// Hosts were cut off and removed.
    Hosts(Box<cluster::Course>),
}

fn settings(nats: String) -> Settings {
    Settings {
        realm: REALM.parse().expect("invariant: the realm's name is one"),
        nats,
        access: annals_host::nats::Access::default(),
        replicas: 1,
    }
}

fn judge_kills(report: &BotsReport, kills: &[(&'static str, Instant)], findings: &mut Findings) {
    if kills.len() < KILLED.len() {
        let (killed, of) = (kills.len(), KILLED.len());
        findings.miss(format!("only {killed} of {of} processes were killed"));
    }
    for (name, at) in kills {
        let recovery = report.recovery_after(*at);
        print_recovery(name, &recovery);
        findings.promise(recovery.endless == 0);
    }
}

/// The release of a build, as one of its programs prints it, and where that program is.
async fn release(build: &GameBuild) -> Result<String, DemoError> {
    build.check()?;
    let program = build.program(Service::Db);
    let output = Command::new(&program).arg("--version").output().await;
    let output = output.map_err(DemoError::Process)?;
    if !output.status.success() {
        let status = output.status;
        return Err(DemoError::NoVersion { program, status });
    }
    let version = String::from_utf8_lossy(&output.stdout);
    Ok(format!("{} at {}", version.trim(), program.display()))
}

fn this_program(nats: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap_or_else(|_| PathBuf::from("annals")));
    command.env("ANNALS_REALM", REALM).env("ANNALS_NATS", nats);
    command
}

/// Audits the ledger: the amount of each kind equals what was created, every item is in one place, and no base has a
/// different view. Prints nothing for a world that does not use the ledger.
async fn audit_ledger(store: &Store, report: &BotsReport) -> Result<bool, DemoError> {
    let audited = annals_db::ledger::audit(store).await?;
    for finding in &audited.findings {
        println!("  the ledger is WRONG: {finding}");
    }
    let mut views = Views::default();
    let looked = match views.look(store).await {
        Ok(looked) => looked,
        Err(ViewsError::Store(error)) => return Err(error.into()),
        Err(error) => {
            println!("  the ledger views of base parts cannot be checked: {}", Chain(&error));
            return Ok(false);
        }
    };
    let balanced = audited.found == 0 && looked.found == 0;
    if balanced && audited.entries == EntryNumber(0) {
        return Ok(true);
    }
    let verdict = if audited.found == 0 { "balanced" } else { "NOT BALANCED" };
    println!("  the ledger, {} entries: {verdict}", audited.entries);
    println!(
        "  trades settled {}, cancelled {}, left to themselves {}; wishes granted {}, refused {}",
        report.trades(TradeEnd::Settled),
        report.trades(TradeEnd::Cancelled),
        report.trades(TradeEnd::Expired),
        report.total(|bot| bot.granted),
        report.total(|bot| bot.denied)
    );
    println!("{looked}");
    Ok(balanced)
}

fn print_recovery(name: &str, recovery: &Recovery) {
    println!("  {name} killed: {}", recovered(recovery));
}

/// How many bots an incident has interrupted, and when they were back.
pub(crate) fn recovered(recovery: &Recovery) -> String {
    format!(
        "{} bots interrupted, back after p50 {:.1} s, at most {:.1} s{}",
        recovery.interrupted,
        recovery.p50.as_secs_f64(),
        recovery.longest.as_secs_f64(),
        if recovery.endless > 0 {
            format!("; {} NEVER", recovery.endless)
        } else {
            String::new()
        }
    )
}

async fn print_figures(bus: &Bus, realm: &RealmName) {
    match discover(bus, realm, Duration::from_millis(500), |_| false).await {
        Ok(instances) => {
            for found in instances {
                let metrics = found.report.metrics;
                if metrics.append.count > 0 || metrics.batches > 0 {
                    println!(
                        "  {}: {} batches; tick p50 {} µs p99 {} µs; append p50 {} µs p99 {} µs",
                        found.service,
                        metrics.batches,
                        metrics.tick.p50,
                        metrics.tick.p99,
                        metrics.append.p50,
                        metrics.append.p99
                    );
                }
            }
        }
        Err(error) => println!("  the services' metrics are not available: {}", Chain(&error)),
    }
}

fn exit_code(verdict: &Verdict) -> ExitCode {
    match verdict {
        Verdict::Kept => ExitCode::SUCCESS,
        Verdict::Incomplete(_) => ExitCode::from(INCOMPLETE),
        Verdict::Broken => ExitCode::FAILURE,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_verdict_has_its_own_exit_code() {
        let untried = vec!["3 exposed methods were not called (A.b)".to_owned()];
        let codes = [Verdict::Kept, Verdict::Incomplete(untried), Verdict::Broken];
        let codes: Vec<String> = codes
            .iter()
            .map(|verdict| format!("{:?}", exit_code(verdict)))
            .collect();
        assert!(
            codes[0] != codes[1] && codes[1] != codes[2] && codes[0] != codes[2],
            "{codes:?}"
        );
    }
}
