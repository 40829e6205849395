//! One realm from start to end, with bots that play through every round.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use annals::up::{Realm, RealmPlan};
use annals_bots::{
    bots::{self, BotPlan, BotsError, BotsReport, Conduct},
    progress::Progress,
};
use annals_client::Trust;
use annals_host::{nats::ServerCount, world::compile};
use annals_realm::last_warnings;
use tempfile::TempDir;
use tokio::{sync::watch, task::JoinHandle, time::sleep};

use crate::{
    faults::{Fault, Service},
    fencing::Resumed,
    promises::Proof,
    table::{Round, Table},
    times::{Phase, Times},
};

/// The realm's name.
pub(crate) const REALM: &str = "chaos";

/// Minimum and maximum play between the checks of a round, during which bots only watch, and the next fault: long
/// enough that all bots are active again, and random so that faults hit any phase of the realm's periodic work.
const PLAY_BETWEEN: [Duration; 2] = [Duration::from_millis(1_000), Duration::from_millis(3_000)];

/// Time before a killed process is restarted when others are to take over: longer than the director's timeout.
const LATE_RESTART: Duration = Duration::from_secs(5);

/// Time that a process is frozen: longer than a lease, and than its successor needs to take over.
const FREEZE_TIME: Duration = Duration::from_secs(7);

/// Maximum time until all bots play again.
const RECOVERY_TIMEOUT: Duration = Duration::from_secs(60);

/// Time that all bots must play before recovery counts.
const STEADY: Duration = Duration::from_secs(2);

/// Interval between looks at the bots.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// Events that each bot must be shown, on average, before all count as playing.
const SHOWN_EACH: u64 = 4;

/// Longer than any realm lasts: bots play until they are stopped.
const UNLIMITED: Duration = Duration::from_secs(36_000);

/// How one realm is set up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    /// Index of the realm in the run.
    pub(crate) number: u64,
    pub(crate) servers: ServerCount,
    pub(crate) bots: usize,
    pub(crate) seed: u64,
    /// Settings of its processes, beside those of every realm.
    pub(crate) settings: &'static [(&'static str, &'static str)],
}

/// One realm under test, with its bots.
pub(crate) struct ChaosRealm {
    setting: Setting,
    /// `None` only while every process is dead.
    realm: Option<Realm>,
    folder: TempDir,
    until: watch::Sender<Instant>,
    resting: watch::Sender<bool>,
    progress: watch::Receiver<Progress>,
    playing: JoinHandle<Result<BotsReport, BotsError>>,
    proof: Proof,
    rounds: Vec<Round>,
    failures: Vec<String>,
    began: Instant,
    times: Times,
}

/// Whether the services' binaries exist; prints a message if not.
pub(crate) fn are_built() -> bool {
    let folder = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.parent()?.to_owned()));
    let services = [
        "annals-base",
        "annals-cell",
        "annals-db",
        "annals-director",
        "annals-login",
    ];
    let built = folder.is_some_and(|folder| services.iter().all(|name| folder.join(name).exists()));
    if !built {
        println!("SKIPPED: the services' binaries are not built; `make test` builds them");
    }
    built
}

/// The folder of the repository.
pub(crate) fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("two folders up").to_owned()
}

/// The plan of a chaos realm in this folder.
pub(crate) fn plan(servers: ServerCount, data: &Path) -> RealmPlan {
    RealmPlan {
        directors: 2,
        nats_servers: servers,
        ..RealmPlan::new(REALM, &repository().join("defs"), data)
    }
}

impl ChaosRealm {
    /// Starts a realm and its bots, and waits until all play.
    pub(crate) async fn begin(setting: Setting) -> Self {
        let began = Instant::now();
        let folder = tempfile::tempdir().expect("a folder for the realm");
        let (data, files) = (folder.path().join("realm"), folder.path().join("shown"));
        fs::create_dir_all(&files).expect("a folder for what is shown");
        fs::create_dir_all(&data).expect("a folder for the realm");
        let mut plan = plan(setting.servers, &data);
        let settings = setting.settings.iter();
        plan.settings
            .extend(settings.map(|(key, value)| (*key, (*value).to_owned())));
        let schema = compile(&plan.build.world).expect("the sample compiles");
        let realm = Realm::start(plan).await.unwrap_or_else(|error| panic!("{error}"));
        let (until, playing_until) = watch::channel(Instant::now() + UNLIMITED);
        let (resting, seen_resting) = watch::channel(false);
        let (login, certificate) = realm.login;
        let bots = BotPlan {
            login,
            trust: Trust::Pinned(certificate),
            password: "a password for bots".to_owned(),
            schema: Arc::clone(&schema),
            bots: setting.bots,
            conduct: Conduct::default(),
            first: 0,
            until: playing_until,
            resting: seen_resting,
            seed: setting.seed,
            files: files.clone(),
            prefix: String::new(),
            reads: annals_bots::bots::Reads::Predicted,
        };
        let (reported, progress) = watch::channel(Progress::default());
        let playing = tokio::spawn(bots::run(bots, reported));
        let proof = Proof::begin(REALM, &files, schema);
        let mut age = Self {
            setting,
            realm: Some(realm),
            folder,
            until,
            resting,
            progress,
            playing,
            proof,
            rounds: Vec::new(),
            failures: Vec::new(),
            began,
            times: Times::default(),
        };
        age.say(&format!(
            "{} bots log in; nats-servers: {}",
            setting.bots, setting.servers
        ));
        if age.wait_until_all_play().await.is_none() {
            age.fail("not all bots could log in");
        }
        age.times.add(Phase::Setting, began.elapsed());
        age
    }

    /// Whether a promise was broken, after which there is no point in continuing.
    pub(crate) fn has_failed(&self) -> bool {
        !self.failures.is_empty()
    }

    /// One round: a fault at a random moment, its repair, and the checks.
    pub(crate) async fn round(&mut self, fault: Fault, dice: &mut (dyn FnMut() -> u64 + Send)) {
        if self.has_failed() {
            return;
        }
        let mut times = Times::default();
        let mut now = Instant::now();
        let share = f64::from((dice() >> 32) as u32) / f64::from(u32::MAX);
        sleep(PLAY_BETWEEN[0] + (PLAY_BETWEEN[1] - PLAY_BETWEEN[0]).mul_f64(share)).await;
        times.lap(Phase::Playing, &mut now);
        let (at, resumed) = (now, self.progress.borrow().resumed);
        let what = self.inject(fault, dice).await;
        let Some(since) = self.wait_until_all_play().await else {
            let now = *self.progress.borrow();
            return self.fail(&format!("{fault} ({what}): not all bots play again: {now}"));
        };
        let back = since - at;
        times.add(Phase::Recovering, back);
        times.add(Phase::Settling, since.elapsed());
        let size = match self.check_round().await {
            Ok(size) => size,
            Err(broken) => return self.fail(&format!("{fault} ({what}): {broken}")),
        };
        times += std::mem::take(&mut self.proof.times);
        times.count_round();
        self.times += times;
        let resumed = self.progress.borrow().resumed - resumed;
        self.say(&format!(
            "{fault} ({what}): all bots play after {:.1} s, {resumed} sessions resumed; {size}; {times}",
            back.as_secs_f32(),
        ));
        self.rounds.push(Round { fault, at, back, size });
    }

    /// The realm.
    pub(crate) fn realm(&mut self) -> &mut Realm {
        self.realm.as_mut().expect("it runs")
    }

    /// Checks that all bots play and every promise holds after damage to the realm's storage.
    pub(crate) async fn assert_recovered(&mut self, after: &str) {
        if self.wait_until_all_play().await.is_none() {
            let now = *self.progress.borrow();
            return self.fail(&format!("after {after} not all bots play again: {now}"));
        }
        if let Err(broken) = self.check_round().await {
            self.fail(&format!("after {after}: {broken}"));
        }
    }

    /// Checks that all bots are connected, and none had to resume its session.
    pub(crate) fn is_undisturbed(&self) -> Result<(), String> {
        let now = *self.progress.borrow();
        let is_fine = now.connected == self.setting.bots as u64 && now.interrupted == 0 && now.resumed == 0;
        is_fine.then_some(()).ok_or_else(|| now.to_string())
    }

    /// Logs the bots out, checks everything once more, and adds the rounds to the table. Returns the broken promises.
    pub(crate) async fn end(mut self, table: &mut Table) -> Vec<String> {
        let report = self.log_off().await;
        self.close(&report, table).await
    }

    /// Logs the bots out.
    pub(crate) async fn log_off(&mut self) -> BotsReport {
        let mut now = Instant::now();
        self.until.send_replace(now);
        let playing = tokio::time::timeout(RECOVERY_TIMEOUT, &mut self.playing).await;
        let report = playing
            .expect("the bots log off")
            .expect("bots do not panic")
            .expect("bots can write");
        self.times.lap(Phase::Setting, &mut now);
        report
    }

    /// Checks everything once more, and adds the rounds to the table. Returns the broken promises.
    pub(crate) async fn close(mut self, report: &BotsReport, table: &mut Table) -> Vec<String> {
        if !self.has_failed() {
            self.check_report(report).await;
        }
        self.times += std::mem::take(&mut self.proof.times);
        let mut now = Instant::now();
        table.enter(self.setting.servers, &self.rounds, report);
        let ended = report.total(|bot| bot.ended.len() as u64);
        self.say(&format!("{ended} sessions ended early\n{report}"));
        if self.has_failed() {
            println!("{}", last_warnings(self.folder.path()));
            let kept = self.folder.keep();
            self.failures
                .push(format!("what the realm left is in {}", kept.display()));
        } else if let Some(realm) = self.realm.take() {
            realm.stop().await.expect("the realm stops");
        }
        self.times.lap(Phase::Setting, &mut now);
        table.times += self.times;
        self.failures
    }

    async fn check_report(&mut self, report: &BotsReport) {
        if let Err(broken) = self.check_round().await {
            self.fail(&format!("at the end: {broken}"));
        }
        if let Err(broken) = self.proof.check_all().await {
            self.fail(&format!("at the end, all files: {broken}"));
        }
        if report.total(|bot| bot.malformed) > 0 {
            self.fail("frames that could not be read");
        }
        for round in &self.rounds.clone() {
            let endless = report.recovery_after(round.at).endless;
            if endless > 0 {
                self.fail(&format!("{}: {endless} bots never played on", round.fault));
            }
        }
        for bot in report.bots.iter().filter(|bot| !bot.ended.is_empty()) {
            let reasons: Vec<String> = bot.ended.iter().map(ToString::to_string).collect();
            self.fail(&format!("{}: its session was lost: {}", bot.name, reasons.join(", ")));
        }
    }

    async fn inject(&mut self, fault: Fault, dice: &mut (dyn FnMut() -> u64 + Send)) -> String {
        match fault {
            Fault::Kill(service) => {
                let name = self.pick(service, dice);
                self.kill(&[name], dice).await
            }
            Fault::KillBoth(first, second) => {
                let both = match first == second {
                    true => [1, 2].map(|number| format!("{first}-{number}")),
                    false => [first, second].map(|service| self.pick(service, dice)),
                };
                self.kill(&both, dice).await
            }
            Fault::KillEverything => self.kill_everything().await,
            Fault::Freeze(service) => self.freeze(service, dice).await,
        }
    }

    /// A random process of a service.
    fn pick(&self, service: Service, dice: &mut dyn FnMut() -> u64) -> String {
        let of = |count: u64, dice: &mut dyn FnMut() -> u64| 1 + dice() % count;
        match service {
            Service::Db | Service::Login => service.to_string(),
            Service::Nats => format!("n{}", of(self.setting.servers.replicas() as u64, dice)),
            Service::Base | Service::Cell | Service::Director => format!("{service}-{}", of(2, dice)),
        }
    }

    /// Kills processes and restarts them: at once, as `annals up` does, or so late that others have taken over.
    async fn kill(&mut self, names: &[String], dice: &mut (dyn FnMut() -> u64 + Send)) -> String {
        let late = dice().is_multiple_of(2);
        for name in names {
            self.kill_one(name);
        }
        if late {
            sleep(LATE_RESTART).await;
        }
        let realm = self.realm.as_mut().expect("it runs");
        if names.iter().any(|name| is_server(name)) {
            realm
                .nats_servers()
                .restart_ended()
                .await
                .expect("a nats-server starts again");
        }
        for name in names.iter().filter(|name| !is_server(name)) {
            assert!(realm.start_again(name).expect("it starts again"), "{name} is there");
        }
        format!(
            "{}, started again {}",
            names.join(" and "),
            if late { "late" } else { "at once" }
        )
    }

    fn kill_one(&mut self, name: &str) {
        let realm = self.realm.as_mut().expect("it runs");
        match name.strip_prefix('n').and_then(|number| number.parse::<usize>().ok()) {
            Some(number) => realm.nats_servers().each()[number - 1]
                .kill()
                .expect("it can be killed"),
            None => assert!(realm.kill(name).expect("it can be killed"), "{name} is there"),
        }
    }

    async fn kill_everything(&mut self) -> String {
        let realm = self.realm.take().expect("it runs");
        let plan = RealmPlan {
            listen: realm.login.0,
            ..realm.plan().clone()
        };
        drop(realm);
        let began = Instant::now();
        let realm = Realm::start(plan).await.unwrap_or_else(|error| panic!("{error}"));
        self.realm = Some(realm);
        format!("answers log-ins after {:.1} s", began.elapsed().as_secs_f32())
    }

    /// Freezes a process beyond its lease and resumes it; the checks cover what it does afterwards.
    async fn freeze(&mut self, service: Service, dice: &mut dyn FnMut() -> u64) -> String {
        let realm = self.realm.as_ref().expect("it runs");
        let name = self.pick(service, dice);
        realm.pause(&name).expect("it can be frozen");
        sleep(FREEZE_TIME).await;
        // Without db no process can answer for the store.
        let woken = match service {
            Service::Db => None,
            _ => Some(Resumed::look(REALM, &realm.nats()).await),
        };
        realm.resume(&name).expect("it can be woken");
        self.proof.woken = woken;
        format!("{name} for {} s", FREEZE_TIME.as_secs())
    }

    /// Waits until every bot is connected and receives updates, and stays so for a while. Returns since when; `None` on
    /// timeout.
    async fn wait_until_all_play(&mut self) -> Option<Instant> {
        let bots = self.setting.bots as u64;
        let deadline = Instant::now() + RECOVERY_TIMEOUT;
        // A silent connection takes a moment to be noticed.
        let (mut since, mut shown) = (Instant::now(), self.progress.borrow().shown);
        while since.elapsed() < STEADY || self.progress.borrow().shown < shown + bots * SHOWN_EACH {
            sleep(POLL_INTERVAL).await;
            let now = *self.progress.borrow();
            if now.connected != bots || now.interrupted > 0 {
                (since, shown) = (Instant::now(), now.shown);
            }
            if Instant::now() > deadline {
                return None;
            }
        }
        Some(since)
    }

    async fn check_round(&mut self) -> Result<crate::promises::Size, String> {
        let realm = self.realm.as_mut().expect("it runs");
        realm.watch(&[]).map_err(|ended| ended.to_string())?;
        let (nats, logs) = (realm.nats(), realm.plan().data.join("logs"));
        // Processors are few. Bots only watch meanwhile, so that the data to check does not grow as fast as it is
        // checked.
        self.resting.send_replace(true);
        let size = self.proof.check_round(&nats, &logs).await;
        self.resting.send_replace(false);
        size
    }

    pub(crate) fn fail(&mut self, why: &str) {
        self.say(&format!("BROKEN: {why}"));
        self.failures.push(format!("realm {}: {why}", self.setting.number));
    }

    fn say(&self, what: &str) {
        println!(
            "realm {} ({} s): {what}",
            self.setting.number,
            self.began.elapsed().as_secs()
        );
    }
}

/// Whether this is the name of a nats-server.
fn is_server(name: &str) -> bool {
    matches!(name, "n1" | "n2" | "n3")
}
