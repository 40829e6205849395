//! A realm in which bots play for as long as a test needs, and the checks afterwards.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    process::{ExitStatus, Stdio},
    sync::Arc,
    time::{Duration, Instant},
};

use annals::up::{Realm, RealmPlan, Supervised};
use annals_audit::replay::{Extent, ReplayError, owners, replay};
use annals_bots::{
    bots::BotsReport,
    checker::{CheckReport, check},
    views::Views,
};
use annals_client::{Client, Config, Credentials, Event, Trust, client_endpoint};
use annals_db::ledger::audit;
use annals_def::Schema;
use annals_host::{
    health::{Instance, Readiness, discover},
    log_source::Source,
    nats::{Bus, ServerCount},
    process::{Settings, connect, remote_store, request},
    world::compile,
};
use annals_ids::{BatchNumber, OwnerId};
use annals_realm::Folder;
use annals_store::Store;
use annals_wire::{Subjects, control::Inspected};
use futures::{FutureExt, future::LocalBoxFuture};
use tokio::{
    process::Command,
    sync::{Semaphore, SemaphorePermit},
};

use crate::{disks::SmallDisk, playing::Playing};

/// Maximum concurrent realms. They wait for a third of their time; but one of whose processes gets no processor for
/// seconds interrupts its players, on two processors that other tests use too.
const MAX_CONCURRENT: u32 = 4;

/// Permits of a realm whose test depends on timing: few others run beside it.
const TIMED_PERMITS: u32 = 3;

/// One permit per concurrent realm.
static PERMITS: Semaphore = Semaphore::const_new(MAX_CONCURRENT as usize);

/// The realm's name.
pub(crate) const REALM: &str = "played";

/// Bots that play in it.
pub(crate) const BOTS: usize = 6;

/// Events that they must be shown before they count as playing: each is shown several per second.
const SHOWN: u64 = 20;

/// Maximum time for a realm to recover, on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);

/// Polling interval.
pub(crate) const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// A live realm with bots.
pub(crate) struct Played {
    pub(crate) realm: Realm,
    pub(crate) schema: Arc<Schema>,
    /// Opened while everything works: a server that has lost its log to a full disk accepts no new process.
    bus: Bus,
    subjects: Subjects,
    /// Unmounted before their folders are removed.
    disks: BTreeMap<&'static str, SmallDisk>,
    folder: Folder,
    playing: Playing,
    /// Processes that were stopped on purpose.
    ended: Vec<&'static str>,
    began: Instant,
    _permit: SemaphorePermit<'static>,
}

/// Waits for a permit.
pub(crate) async fn permit() -> SemaphorePermit<'static> {
    PERMITS.acquire().await.expect("the semaphore is never closed")
}

/// Waits for the permits of a realm whose test depends on timing, or that takes as much of the machine as several.
pub(crate) async fn timed_permit() -> SemaphorePermit<'static> {
    let permits = PERMITS.acquire_many(TIMED_PERMITS).await;
    permits.expect("the semaphore is never closed")
}

/// Settings of a test's own connection to a realm.
pub(crate) fn connection_to(realm: &str, nats: String) -> Settings {
    Settings {
        realm: realm.parse().expect("the realm's name is one"),
        nats,
        access: annals_host::nats::Access::default(),
        replicas: 1,
    }
}

/// The folder of the repository.
pub(crate) fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).expect("two folders up").to_owned()
}

/// Path of a binary of ours; `None` if only this package was built.
pub(crate) fn binary(name: &str) -> Option<PathBuf> {
    let folder = std::env::current_exe().ok()?.parent()?.parent()?.to_owned();
    Some(folder.join(name)).filter(|path| path.exists())
}

/// Whether all binaries exist; prints a message if not.
pub(crate) fn are_built() -> bool {
    let services = ["", "-base", "-cell", "-db", "-director", "-login", "-signer"];
    let built = services.iter().all(|name| binary(&format!("annals{name}")).is_some());
    if !built {
        println!("SKIPPED: the services' binaries are not built; `make test` builds them");
    }
    built
}

/// Waits for a future; panics with a description on timeout.
pub(crate) async fn within<F: Future>(timeout: Duration, what: &str, waiting: F) -> F::Output {
    match tokio::time::timeout(timeout, waiting).await {
        Ok(output) => output,
        Err(_) => panic!("{what}: not within {} s", timeout.as_secs()),
    }
}

/// Runs a command to completion; returns exit status and output.
pub(crate) async fn run(command: &mut Command) -> (ExitStatus, String) {
    run_within(TIMEOUT * 3, command).await
}

/// The same with a timeout, for commands that read much.
pub(crate) async fn run_within(timeout: Duration, command: &mut Command) -> (ExitStatus, String) {
    let running = command.stdin(Stdio::null()).kill_on_drop(true).output();
    let output = within(timeout, "a command to end", running)
        .await
        .expect("it can be run");
    let said = [output.stdout, output.stderr].concat();
    (output.status, String::from_utf8_lossy(&said).into_owned())
}

impl Played {
    /// Starts a realm of the sample world, with bots. Small disks are mounted under these names in its folder, if
    /// permitted.
    pub(crate) async fn start(servers: ServerCount, disks: &[&'static str]) -> Self {
        Self::start_in(permit().await, (servers, Vec::new()), disks).await
    }

    /// The same, with settings, by their keys, of all processes that use them.
    pub(crate) async fn start_with(settings: Vec<(&'static str, String)>) -> Self {
        Self::start_in(permit().await, (ServerCount::One, settings), &[]).await
    }

    /// The same, of several shards, which the db processes divide among them.
    pub(crate) async fn start_with_shards(shards: u16, dbs: u16) -> Self {
        let plan = |plan| RealmPlan { shards, dbs, ..plan };
        Self::start_planned(permit().await, plan, &[]).await
    }

    /// The same, with few other realms at the same time: for tests that depend on timing.
    pub(crate) async fn start_timed(servers: ServerCount, disks: &[&'static str]) -> Self {
        Self::start_in(timed_permit().await, (servers, Vec::new()), disks).await
    }

    /// The same, with settings.
    pub(crate) async fn start_timed_with(settings: Vec<(&'static str, String)>) -> Self {
        Self::start_in(timed_permit().await, (ServerCount::One, settings), &[]).await
    }

    async fn start_in(
        permit: SemaphorePermit<'static>,
        (servers, settings): (ServerCount, Vec<(&'static str, String)>),
        disks: &[&'static str],
    ) -> Self {
        let plan = |plan| RealmPlan {
            nats_servers: servers,
            settings,
            ..plan
        };
        Self::start_planned(permit, plan, disks).await
    }

    async fn start_planned(
        permit: SemaphorePermit<'static>,
        planned: impl FnOnce(RealmPlan) -> RealmPlan,
        disks: &[&'static str],
    ) -> Self {
        let folder = Folder::create();
        let plan = RealmPlan::new(REALM, &repository().join("defs"), &folder.path().join("realm"));
        Self::run_plan(permit, folder, planned(plan), disks).await
    }

    /// Boxed, as some functions below: what a test awaits is otherwise compiled into that test.
    fn run_plan<'a>(
        permit: SemaphorePermit<'static>,
        folder: Folder,
        plan: RealmPlan,
        disks: &'a [&'static str],
    ) -> LocalBoxFuture<'a, Self> {
        async move {
            let files = folder.path().join("shown");
            fs::create_dir_all(&plan.data).expect("a folder for the realm");
            let mount = |name: &&'static str| Some((*name, SmallDisk::mount(&plan.data.join(name))?));
            let disks = disks.iter().filter_map(mount).collect();
            let schema = compile(&plan.build.world).expect("the sample compiles");
            let realm = Realm::start(plan).await.unwrap_or_else(|error| panic!("{error}"));
            let settings = connection_to(REALM, realm.nats());
            let (bus, subjects) = connect(&settings, "test").await.expect("the bus is there");
            let playing = Playing::start(realm.login, &schema, BOTS, &files);
            let mut played = Self {
                realm,
                schema,
                bus,
                subjects,
                disks,
                folder,
                playing,
                ended: Vec::new(),
                began: Instant::now(),
                _permit: permit,
            };
            played.assert_playing("the start").await;
            played
        }
        .boxed_local()
    }

    /// The realm's folder.
    pub(crate) fn data(&self) -> PathBuf {
        self.realm.plan().data.clone()
    }

    /// The small disk of this name, if it could be mounted.
    pub(crate) fn disk(&self, name: &str) -> Option<&SmallDisk> {
        self.disks.get(name)
    }

    /// Number of events that bots were shown so far.
    pub(crate) fn shown(&self) -> u64 {
        self.playing.progress().shown
    }

    /// The folder of the files to which bots write what they are shown.
    pub(crate) fn shown_files(&self) -> PathBuf {
        self.folder.path().join("shown")
    }

    /// Checks that all bots play, or resume soon, and that every process runs and none has panicked.
    pub(crate) fn assert_playing<'a>(&'a mut self, after: &'a str) -> LocalBoxFuture<'a, ()> {
        async move {
            let playing = self.playing.wait_until_shown(SHOWN, TIMEOUT).await;
            assert!(
                playing,
                "after {after} not all bots play: {}; the realm's logs:\n{}",
                self.playing.progress(),
                self.log_tails()
            );
            self.realm
                .watch(&self.ended)
                .unwrap_or_else(|error| panic!("after {after}: {error}"));
            self.assert_no_panics(after);
            println!("{:5.1} s: {after}: all bots play", self.began.elapsed().as_secs_f32());
        }
        .boxed_local()
    }

    /// Waits until assets have changed hands in a trade of bots.
    pub(crate) async fn wait_for_trade(&self) {
        let (_, _, store) = self.bus();
        let mut views = Views::default();
        within(TIMEOUT * 3, "a trade to be settled", async {
            while views
                .look(&store)
                .await
                .expect("the logs of the bases replay")
                .exchanges
                == 0
            {
                tokio::time::sleep(POLL_INTERVAL * 10).await;
            }
        })
        .await;
    }

    /// Waits until every activation knows its holdings according to the ledger: the bots' accounts, and this many
    /// others.
    pub(crate) async fn wait_for_holdings(&self, others: u64) {
        let (_, _, store) = self.bus();
        let mut views = Views::default();
        within(TIMEOUT * 3, "all holdings views to agree with the ledger", async {
            loop {
                let comparison = views.look(&store).await.expect("the logs of the bases replay");
                if comparison.behind == 0 && comparison.living >= others + BOTS as u64 {
                    assert_eq!(
                        comparison.found, 0,
                        "a holdings view contradicts the ledger:\n{comparison}"
                    );
                    return println!("{comparison}");
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        })
        .await;
    }

    /// Sends SIGTERM to a process; returns its exit status.
    pub(crate) async fn stop(&mut self, name: &'static str) -> ExitStatus {
        self.ended.push(name);
        let stopped = self.realm.stop_one(name).await.expect("it can be stopped");
        stopped.expect("there is one of that name")
    }

    /// Sends SIGTERM to a process, and does not wait for its end.
    pub(crate) fn terminate(&mut self, name: &'static str) {
        self.ended.push(name);
        let mut members = self.realm.members();
        let (_, id) = members.find(|(found, _)| *found == name).expect("it exists");
        let signalled = std::process::Command::new("kill")
            .args(["-TERM", &id.to_string()])
            .status();
        assert!(signalled.is_ok_and(|status| status.success()), "{name} gets SIGTERM");
    }

    /// Sends SIGKILL to a process.
    pub(crate) fn kill(&mut self, name: &'static str) {
        self.ended.push(name);
        assert!(self.realm.kill(name).expect("it can be killed"), "there is a {name}");
    }

    /// Whether a process has ended.
    pub(crate) fn has_ended(&mut self, name: &'static str) -> bool {
        let ended = self.realm.ended(name).expect("it is watched").is_some();
        if ended {
            self.ended.push(name);
        }
        ended
    }

    /// Restarts a process that was stopped.
    pub(crate) fn start_again(&mut self, name: &'static str) {
        self.ended.retain(|ended| *ended != name);
        assert!(
            self.realm.start_again(name).expect("it starts"),
            "there is one of that name"
        );
    }

    /// Supervises the realm once, as `annals up` does continuously; returns its messages.
    pub(crate) async fn supervise(&mut self) -> Vec<String> {
        let said = match self.realm.supervise().await {
            Ok(Supervised::Running(restarted)) => restarted,
            Ok(Supervised::Closing) => panic!("the realm is being stopped"),
            Err(error) => panic!("{error}"),
        };
        said.iter().for_each(|line| println!("{line}"));
        tokio::time::sleep(POLL_INTERVAL).await;
        said
    }

    /// Supervises the realm until there is a message.
    pub(crate) async fn supervise_until(&mut self, what: &str) {
        within(TIMEOUT, what, async {
            while !self.supervise().await.iter().any(|line| line.contains(what)) {}
        })
        .await;
    }

    /// Waits until this many processes of a service report a state.
    pub(crate) async fn wait_for_state(&self, service: &str, count: usize, is_so: impl Fn(&Readiness) -> bool) {
        let bus = &self.bus;
        let name = REALM.parse().expect("the realm's name is one");
        let saying = |found: &[Instance]| {
            let of_it = found.iter().filter(|instance| instance.service == service);
            of_it.filter(|instance| is_so(&instance.report.readiness)).count() == count
        };
        within(TIMEOUT, service, async {
            while !saying(
                &discover(bus, &name, POLL_INTERVAL * 4, saying)
                    .await
                    .expect("the bus is there"),
            ) {}
        })
        .await;
    }

    /// The log output of a process.
    pub(crate) fn log_of(&self, name: &str) -> String {
        let path = self.data().join("logs").join(format!("{name}.log"));
        fs::read_to_string(path).unwrap_or_default()
    }

    /// A client of the realm.
    pub(crate) fn client(&self, name: &str, password: &str) -> Client {
        let (login, certificate) = self.realm.login;
        let endpoint = client_endpoint(login).expect("a socket");
        Client::start(
            endpoint,
            Config {
                login,
                trust: Trust::Pinned(certificate),
                credentials: Credentials::password(name, password),
                schema: Arc::clone(&self.schema),
                seed: 7,
                reads: annals_client::Reads::Predicted,
            },
        )
    }

    /// The test's own connection to the realm's bus, and its store.
    pub(crate) fn bus(&self) -> (Bus, Subjects, Store) {
        let store = remote_store(&self.bus, &self.subjects);
        (self.bus.clone(), self.subjects.clone(), store)
    }

    /// Compares what bots were shown with the archive. The realm still runs: while a shard is behind, the history of an
    /// entity that moved there and back has a hole, which its next batches fill. A loss stays.
    async fn check_archive(&self, store: &Store) -> CheckReport {
        let files = self.shown_files();
        let until = Instant::now() + TIMEOUT;
        loop {
            let checked = check(&files, store, &self.schema).await;
            let checked = checked.expect("the archive can be read");
            if checked.is_clean() || Instant::now() >= until {
                return checked;
            }
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    /// Logs the bots out, and checks that nothing they were shown is lost, and that replaying the archive gives the
    /// state of every owner. Then all processes are killed: nothing is left to check, and to stop them in order takes 5 s.
    pub(crate) async fn stop_and_verify(mut self) -> BotsReport {
        self.verify().await
    }

    /// The same for a realm that goes on.
    pub(crate) fn verify(&mut self) -> LocalBoxFuture<'_, BotsReport> {
        async move {
            let report = self.playing.end().await;
            println!("{report}");
            assert_eq!(report.total(|bot| bot.malformed), 0, "frames that could not be read");
            let (bus, subjects, store) = self.bus();
            for owner in owners(&store).await.expect("the store answers") {
                let live = inspect(&bus, &subjects, owner).await;
                let replayed = replay_to(&store, owner, BatchNumber(live.batch)).await;
                assert_eq!(
                    replayed, live.state,
                    "owner {owner} at batch {} is replayed to something else",
                    live.batch
                );
            }
            let checked = self.check_archive(&store).await;
            println!("{checked}");
            assert!(checked.is_clean(), "a shown event is lost:\n{checked}");
            assert!(checked.shown > 0 && checked.files == BOTS as u64);
            let audited = audit(&store).await.expect("the ledger can be read");
            assert!(
                audited.findings.is_empty(),
                "the ledger is not balanced: {:?}",
                audited.findings
            );
            let mut views = Views::default();
            let comparison = views.look(&store).await.expect("the logs of the bases replay");
            println!("the ledger: {} entries\n{comparison}", audited.entries);
            assert_eq!(
                comparison.found, 0,
                "a holdings view contradicts the ledger:\n{comparison}"
            );
            assert!(comparison.compared > 0, "no ledger notice was delivered");
            self.assert_no_panics("everything");
            report
        }
        .boxed_local()
    }

    fn assert_no_panics(&self, after: &str) {
        for (name, log) in self.logs() {
            let found = log.lines().find(|line| line.contains("panicked"));
            assert!(found.is_none(), "after {after} {name} says: {found:?}");
        }
    }

    fn logs(&self) -> Vec<(String, String)> {
        let names = self.realm.members().map(|(name, _)| name.to_owned());
        names.map(|name| (name.clone(), self.log_of(&name))).collect()
    }

    fn log_tails(&self) -> String {
        let mut text = String::new();
        for (name, log) in self.logs() {
            let lines: Vec<&str> = log.lines().collect();
            let end = lines[lines.len().saturating_sub(8)..].join("\n");
            text.push_str(&format!("--- {name}\n{end}\n"));
        }
        text
    }
}

/// Polls until a condition holds.
pub(crate) async fn until(timeout: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    within(timeout, what, async {
        while !is_so() {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    })
    .await;
}

/// Drives a client until an event occurs.
pub(crate) async fn until_event(client: &mut Client, what: &str, mut is_it: impl FnMut(&Event) -> bool) -> Event {
    within(TIMEOUT, what, async {
        loop {
            let event = client
                .next()
                .await
                .unwrap_or_else(|| panic!("{what}: the client has ended"));
            if is_it(&event) {
                return event;
            }
        }
    })
    .await
}

pub(crate) async fn inspect(bus: &Bus, subjects: &Subjects, owner: OwnerId) -> Inspected {
    within(TIMEOUT, "an owner to be inspected", async {
        loop {
            match request::<Inspected>(bus, "the owner's holder", subjects.inspect(owner), &()).await {
                Ok(inspected) => return inspected,
                Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    })
    .await
}

/// The hash of the state, once the archive holds the batch.
pub(crate) async fn replay_to(store: &Store, owner: OwnerId, batch: BatchNumber) -> Vec<u8> {
    let archive = Source::archive(store.clone());
    within(TIMEOUT, "the archive to hold what an owner has logged", async {
        loop {
            match replay(&archive, owner, Some(batch), Extent::Archive).await {
                Ok(replayed) => return replayed.state.0.to_vec(),
                Err(ReplayError::Short { .. }) => tokio::time::sleep(POLL_INTERVAL).await,
                Err(error) => panic!("owner {owner}: {error}"),
            }
        }
    })
    .await
}
