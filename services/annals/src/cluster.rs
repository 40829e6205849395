//! A realm over three hosts: while bots play, one host is cut off from the others and joined again, and the one with
//! the store and the leading director is removed for good. Hosts are network namespaces ([`hosts`]).

pub(crate) mod hosts;
mod processes;

use std::{
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, Instant},
};

use annals_bots::{bots::BotsReport, demo::Findings, progress::Progress, scenario::ScenarioReport};
use annals_host::{
    config::Realm as RealmName,
    health::{DiscoveryError, Instance, Readiness, discover},
    nats::Bus,
};
use thiserror::Error;
use tokio::{process::Command, sync::watch};

pub(crate) use processes::{Cluster, ClusterError, HOSTS, LOGIN_HOST, STORE_HOST};

/// The host that is cut off. It has no db and no director.
const CUT_OFF: u8 = 3;

/// The host that is removed. It has the store.
const REMOVED: u8 = STORE_HOST;

/// The host on which db serves the store once that one is removed.
const SUCCESSOR: u8 = 2;

/// Play before and between the incidents.
const CALM: Duration = Duration::from_secs(10);

/// Minimum duration of an incident: longer than it takes to notice a connection that is silent (8 s).
const INCIDENT: Duration = Duration::from_secs(15);

/// Maximum time until all bots play again, and each service that an incident ended is back. If that does not suffice,
/// the report says so.
const RECOVERED_WITHIN: Duration = Duration::from_secs(120);

/// How long all bots must play without an interruption.
const STEADY: Duration = Duration::from_secs(3);

/// Interval between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Numbers from this on are those of bots that log in on the host that is cut off.
const STRANDED: usize = 1_000_000;

/// Usual duration of all steps.
pub(crate) const DURATION: Duration = Duration::from_secs(90);

/// Why the steps were aborted.
#[derive(Debug, Error)]
pub(crate) enum StepError {
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error("the realm's processes could not be found")]
    Discover(#[from] DiscoveryError),
    #[error("host-{REMOVED} does not have the store any more: its db has ended meanwhile; see its log")]
    NoStore,
    #[error("the bot on the host that is cut off cannot be run")]
    Stranded(#[source] std::io::Error),
}

/// What happened, and when.
pub(crate) struct Course {
    cut_off: Instant,
    joined: Instant,
    removed: Instant,
    /// From joining until all bases and cells of the realm were ready again.
    whole_after: Duration,
    /// From the removal until another director led, and until db served the store on another host.
    leads_after: Option<Duration>,
    serves_after: Option<Duration>,
    /// Log-ins of a player beside the host that was cut off, before and while it was; `None` if that could not be read.
    stranded: [Option<u64>; 2],
}

/// What the steps are carried out on.
pub(crate) struct Stage<'a> {
    pub(crate) cluster: &'a mut Cluster,
    pub(crate) bus: &'a Bus,
    pub(crate) name: &'a RealmName,
    pub(crate) progress: watch::Receiver<Progress>,
    /// The world of the bots, and a folder for the record of the stranded one.
    pub(crate) world: &'a Path,
    pub(crate) scratch: PathBuf,
}

impl Stage<'_> {
    /// Carries out all steps.
    ///
    /// # Errors
    /// When a process cannot be started, or the realm is not whole again after the hosts were joined.
    pub(crate) async fn play(&mut self, note: impl Fn(&str)) -> Result<Course, StepError> {
        self.hold(CALM, &note, |_| true).await?;
        let before = self.log_in_there(STRANDED).await?;
        note(&format!(
            "cluster: host-{CUT_OFF} is cut off from the others and from the players"
        ));
        let cut_off = Instant::now();
        self.cluster.host(CUT_OFF).cut_off().map_err(ClusterError::from)?;
        self.hold(INCIDENT, &note, |_| true).await?;
        let stranded = [before, self.log_in_there(STRANDED + 1).await?];
        note(&format!(
            "cluster: host-{CUT_OFF} is joined again after {} s",
            cut_off.elapsed().as_secs()
        ));
        let joined = Instant::now();
        self.cluster.host(CUT_OFF).join().map_err(ClusterError::from)?;
        let whole_after = self.wait_until_whole().await?;
        note(&format!(
            "cluster: all bases and cells are ready after {:.1} s",
            whole_after.as_secs_f64()
        ));
        self.hold(CALM, &note, |_| true).await?;
        self.lead_from(REMOVED, &note).await?;
        if self.cluster.serves(SUCCESSOR) {
            return Err(StepError::NoStore);
        }

        note(&format!(
            "cluster: host-{REMOVED}, with the store and the leading director, is removed for good"
        ));
        let removed = Instant::now();
        self.cluster.remove(REMOVED)?;
        let (mut leads_after, mut serves_after) = (None, None);
        self.hold(INCIDENT, &note, |cluster| {
            if leads_after.is_none() && cluster.leader().is_some() {
                leads_after = Some(removed.elapsed());
            }
            if serves_after.is_none() && cluster.serves(SUCCESSOR) {
                serves_after = Some(removed.elapsed());
            }
            leads_after.is_some() && serves_after.is_some()
        })
        .await?;
        self.hold(CALM, &note, |_| true).await?;
        Ok(Course {
            cut_off,
            joined,
            removed,
            whole_after,
            leads_after,
            serves_after,
            stranded,
        })
    }

    /// Supervises the realm for this long, and then until all bots play and `is_done` returns true.
    async fn hold(
        &mut self,
        least: Duration,
        note: &impl Fn(&str),
        mut is_done: impl FnMut(&Cluster) -> bool,
    ) -> Result<(), StepError> {
        let began = Instant::now();
        let mut steady = None;
        while began.elapsed() < least + RECOVERED_WITHIN {
            self.cluster
                .supervise()?
                .iter()
                .for_each(|line| note(&format!("cluster: {line}")));
            let is_done = is_done(self.cluster);
            let now = *self.progress.borrow();
            let all_play = now.connected == now.bots && now.interrupted == 0 && now.bots > 0;
            steady = all_play.then(|| steady.unwrap_or_else(Instant::now));
            if is_done && began.elapsed() >= least && steady.is_some_and(|since| since.elapsed() >= STEADY) {
                return Ok(());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        note(&format!(
            "cluster: not recovered after {} s",
            (least + RECOVERED_WITHIN).as_secs()
        ));
        Ok(())
    }

    /// Has a player beside the processes of the host that is cut off log in there; returns the log-ins.
    async fn log_in_there(&self, account: usize) -> Result<Option<u64>, StepError> {
        let Some((login, certificate)) = self.cluster.login(CUT_OFF) else {
            return Ok(None);
        };
        let own = std::env::current_exe().map_err(StepError::Stranded)?;
        let mut command = Command::from(self.cluster.host(CUT_OFF).command(&own));
        let (first, certificate) = (account.to_string(), certificate.to_string());
        let report = self.scratch.join(format!("report-{first}"));
        command.args(["bots", "--bots", "1", "--duration", "5", "--first", &first]);
        command.args(["--login", &login.to_string(), "--certificate", &certificate]);
        command.arg("--world").arg(self.world).arg("--files").arg(&self.scratch);
        command.arg("--report").arg(&report);
        let output = command.stderr(Stdio::null()).kill_on_drop(true).output().await;
        output.map_err(StepError::Stranded)?;
        let phases = ScenarioReport::read(&report).ok().map(|report| report.phases);
        Ok(phases.map(|phases| phases.iter().map(|phase| phase.log_ins).sum()))
    }

    /// Waits until the bases and cells of all hosts are ready.
    async fn wait_until_whole(&mut self) -> Result<Duration, StepError> {
        let (bus, name) = (self.bus, self.name);
        let is_whole = |found: &[Instance]| {
            ["base", "cell"].iter().all(|service| {
                let ready = found.iter().filter(|instance| instance.service == *service);
                let ready = ready.filter(|instance| instance.report.readiness == Readiness::Ready);
                ready.count() >= usize::from(HOSTS)
            })
        };
        let look = async |_: &Cluster| {
            let found = discover(bus, name, LOOK_EVERY * 5, is_whole).await;
            found.is_ok_and(|found| is_whole(&found))
        };
        Ok(self
            .cluster
            .wait_for("the bases and cells of all hosts to be ready", look)
            .await?)
    }

    /// Has the director of this host lead.
    async fn lead_from(&mut self, host: u8, note: &impl Fn(&str)) -> Result<(), StepError> {
        if let Some(other) = self.cluster.leader().filter(|leader| *leader != host) {
            note(&format!(
                "cluster: director-{other} leads; it is replaced, so that director-{host} does"
            ));
            self.cluster.lead_from(host, other).await?;
            self.hold(CALM, note, |_| true).await?;
        }
        Ok(())
    }
}

/// Prints what happened to the bots, and judges it.
pub(crate) fn judge(report: &BotsReport, course: &Course, findings: &mut Findings) {
    println!(
        "  the store is a volume, attached to host-{REMOVED} and then to host-{SUCCESSOR}; it is not removed with a host"
    );
    for (what, at) in [
        (format!("host-{CUT_OFF} cut off"), course.cut_off),
        (format!("host-{CUT_OFF} joined again"), course.joined),
        (format!("host-{REMOVED} removed"), course.removed),
    ] {
        let recovery = report.recovery_after(at);
        println!("  {what}: {}", crate::demo_command::recovered(&recovery));
        findings.promise(recovery.endless == 0);
    }
    match course.stranded {
        [Some(1..), Some(0)] => {
            println!("  host-{CUT_OFF} admitted a player on its side before it was cut off, and none while it was");
        }
        [_, Some(log_ins @ 1..)] => {
            println!("  host-{CUT_OFF} ADMITTED a player on its side while it was cut off, {log_ins} times");
            findings.promise(false);
        }
        _ => findings.miss(format!(
            "no player on the side of host-{CUT_OFF} logged in before it was cut off"
        )),
    }
    println!(
        "  whole again {:.1} s after the hosts were joined",
        course.whole_after.as_secs_f64()
    );
    for (what, after) in [
        ("another director led", course.leads_after),
        ("db served again", course.serves_after),
    ] {
        match after {
            Some(after) => println!("  {what} {:.1} s after the removal", after.as_secs_f64()),
            None => {
                println!("  {what} NEVER after the removal");
                findings.promise(false);
            }
        }
    }
}
