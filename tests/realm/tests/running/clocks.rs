//! Wall clocks that are set an hour forward and back, while a realm is stopped and during play, and wall clocks that
//! differ by five minutes and ten between the processes of a realm. All processes of the
//! realm are real; their clock is set by a library that the test compiles and preloads (`clocks/shift.c`). The clocks
//! of the nats-server and of the players are unchanged.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fs::{self, File},
    net::SocketAddr,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use annals_audit::archive::LogWalk;
use annals_bots::{checker::check, views::Views};
use annals_db::{Migrations, ledger::audit};
use annals_def::Schema;
use annals_director::read_owners;
use annals_event::OwnerState;
use annals_host::{
    child::{self, Child},
    process::{connect, remote_store},
    store,
    world::compile,
};
use annals_ids::{EntityId, Hash, OwnerId, TimerId, WorldTime};
use annals_realm::Folder;
use annals_store::Store;

use crate::{
    played::{are_built, binary, connection_to, permit, repository, run, until, within},
    playing::Playing,
};

const REALM: &str = "clocks";

const HOUR: i64 = 3_600;

const FIVE_MINUTES: i64 = 300;

/// Bots that play.
const BOTS: usize = 4;

/// Game time that the realm does not reach during the test, milliseconds.
const GAME_TIME_LIMIT: u64 = 30 * 60 * 1_000;

/// Events that they must be shown after each clock change.
const SHOWN: u64 = 60;

/// Timeout of every step.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// A realm whose processes have wall clocks that can be set.
struct Shifted {
    folder: Folder,
    shift: File,
    library: PathBuf,
    schema: Arc<Schema>,
    /// Number of runs so far.
    runs: usize,
}

/// How a run ends.
#[derive(Clone, Copy)]
enum End {
    /// As by `annals realm stop`.
    InOrder,
    /// All processes are killed at once.
    Killed,
}

/// A running realm. Killed when dropped.
struct Running {
    up: Child,
    /// Its output.
    output: PathBuf,
    login: (SocketAddr, Hash),
    nats: String,
}

impl Shifted {
    fn new() -> Self {
        let folder = Folder::create();
        let library = folder.path().join("shift.so");
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/running/clocks/shift.c");
        let mut compiler = Command::new("cc");
        compiler
            .args(["-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o"])
            .arg(&library)
            .arg(source);
        let compiled = compiler
            .status()
            .expect("there is a C compiler, as building this took one");
        assert!(compiled.success(), "the library compiles");
        let shift = File::create(folder.path().join("shift")).expect("a file");
        let mut shifted = Self {
            folder,
            shift,
            library,
            schema: compile(&repository().join("defs")).expect("the sample compiles"),
            runs: 0,
        };
        shifted.set(0);
        shifted.set_apart(0, 0);
        shifted
    }

    /// Sets all wall clocks of the realm, including those of running processes.
    fn set(&self, seconds: i64) {
        self.shift
            .write_all_at(&seconds.to_ne_bytes(), 0)
            .expect("it can be written");
        println!("the wall clocks are {seconds} s ahead");
    }

    /// Sets the wall clocks of db and of the cells apart from the others.
    fn set_apart(&mut self, db: i64, cells: i64) {
        for (place, seconds) in [(1, db), (2, cells)] {
            self.shift
                .write_all_at(&seconds.to_ne_bytes(), place * 8)
                .expect("it can be written");
        }
        println!("the wall clock of db is {db} s ahead of the others, those of the cells {cells} s");
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("realm")
    }

    fn shown(&self, run: usize) -> PathBuf {
        self.folder.path().join(format!("shown in {run}"))
    }

    /// Starts the realm as operators do.
    async fn start(&self) -> Running {
        let output = self.folder.path().join("output");
        let mut command = child::command(binary("annals").expect("it is built"));
        command
            .args(["up", "--realm", REALM, "--listen", "127.0.0.1:0", "--world"])
            .arg(repository().join("defs"))
            .arg("--data")
            .arg(self.data())
            .env("LD_PRELOAD", &self.library)
            .env("CLOCK_SHIFT", self.folder.path().join("shift"))
            .stdout(File::create(&output).expect("a file"))
            .stderr(File::create(self.folder.path().join("errors")).expect("a file"));
        let up = Child::spawn(command).expect("it starts");
        let is_up = || printed(&output).contains("Ctrl-C stops it");
        until(TIMEOUT, "the realm to be up", is_up).await;
        let announced = fs::read_to_string(self.data().join("login.address")).expect("it is announced");
        let (address, certificate) = announced.trim().split_once(' ').expect("address and certificate");
        let said = printed(&output);
        let nats = said
            .lines()
            .find_map(|line| line.strip_prefix("nats ")?.split(',').next());
        Running {
            up,
            login: (
                address.parse().expect("an address"),
                certificate.parse().expect("a fingerprint"),
            ),
            nats: nats.expect("it says where").to_owned(),
            output,
        }
    }

    /// Starts the realm with bots, sets the clocks to each of these offsets during play, and ends it.
    async fn play(&mut self, name: &str, clocks: &[i64], end: End) {
        let before = match self.data().exists() {
            true => Archive::default().timers(&self.offline().await).await,
            false => Timers::new(),
        };
        let realm = self.start().await;
        let settings = connection_to(REALM, realm.nats.clone());
        let (bus, subjects) = connect(&settings, "test").await.expect("the bus is there");
        let store = remote_store(&bus, &subjects);
        let mut archive = Archive::default();
        let mut playing = Playing::start(realm.login, &self.schema, BOTS, &self.shown(self.runs));
        assert_progress(name, &mut playing, (&mut archive, &store), &before).await;
        for (&clock, cell) in clocks.iter().zip(["cell-1", "cell-2"]) {
            let before = archive.timers(&store).await;
            self.set(clock);
            // A process that starts at this point has a different clock from those that were already running.
            realm.kill_one(cell);
            let after = format!("{name}, and {clock} s while it runs");
            assert_progress(&after, &mut playing, (&mut archive, &store), &before).await;
        }
        // Bots do not know the holdings of an avatar that stayed active without them, and would not trade.
        let report = playing.end().await;
        let log_ins = report.total(|bot| bot.log_ins);
        assert_eq!(log_ins, BOTS as u64, "{name}: a client had to log in again: {report}");
        let lost = report.bots.iter().any(|bot| !bot.ended.is_empty());
        assert!(!lost, "{name}: a session was lost: {report}");
        self.runs += 1;
        match end {
            End::InOrder => self.stop(realm).await,
            End::Killed => drop(realm),
        }
    }

    /// The store of the stopped realm.
    async fn offline(&self) -> Store {
        let (realm, kind) = (REALM.parse().expect("a name"), "embedded".parse().expect("a kind"));
        within(TIMEOUT, "the store to be free", async {
            loop {
                match store::open(&kind, &self.data(), &realm).await {
                    Ok(store) => return store,
                    // A killed process takes a moment to exit.
                    Err(_) => tokio::time::sleep(POLL_INTERVAL).await,
                }
            }
        })
        .await
    }

    /// Checks that the archive has what was shown, and that all logs and the ledger are valid.
    async fn verify(self) {
        let store = self.offline().await;
        let audited = audit(&store).await.expect("the ledger can be read");
        assert!(audited.findings.is_empty(), "{:?}", audited.findings);
        for run in 0..self.runs {
            let checked = check(&self.shown(run), &store, &self.schema).await;
            let checked = checked.expect("the archive is read");
            println!("run {run}: {checked}");
            assert!(checked.is_clean() && checked.shown > 0, "run {run}: {checked}");
        }
        drop(store);
        let mut verify = tokio::process::Command::new(binary("annals").expect("it is built"));
        verify
            .args(["log", "verify", "--realm", REALM, "--data"])
            .arg(self.data());
        let (status, said) = run(&mut verify).await;
        assert!(status.success() && said.contains("nothing is wrong"), "{said}");
    }

    async fn stop(&self, mut realm: Running) {
        let mut stop = tokio::process::Command::new(binary("annals").expect("it is built"));
        stop.args(["realm", "stop", "--realm", REALM, "--nats", &realm.nats]);
        let (status, said) = run(&mut stop).await;
        assert!(status.success(), "{said}");
        until(TIMEOUT, "the realm to end", || {
            realm.up.ended().expect("it is ours").is_some()
        })
        .await;
    }
}

/// Checks that all bots play, trades are settled, and every repeated timer of an existing entity fires.
async fn assert_progress(
    after: &str,
    playing: &mut Playing,
    (archive, store): (&mut Archive, &Store),
    before: &Timers,
) {
    let exchanges = archive.exchanges(store).await;
    let played = playing.wait_until_shown(SHOWN, TIMEOUT).await;
    assert!(played, "{after}: not all bots play: {}", playing.progress());
    let mut waits = Vec::new();
    let going_on = async {
        loop {
            let now = archive.timers(store).await;
            let ahead = now.values().find(|due| due.0 > GAME_TIME_LIMIT);
            assert_eq!(ahead, None, "{after}: game time moved with a wall clock");
            let is_late = |(timer, due): (&_, &WorldTime)| now.get(timer).is_some_and(|now| now == due);
            waits = before.iter().filter(|timer| is_late(*timer)).collect();
            if waits.is_empty() && archive.exchanges(store).await > exchanges {
                return;
            }
            tokio::time::sleep(POLL_INTERVAL * 5).await;
        }
    };
    let goes_on = tokio::time::timeout(TIMEOUT, going_on).await.is_ok();
    let of = before.len();
    assert!(
        goes_on,
        "{after}: {} of {of} timers wait, or no trade is settled: {waits:?}",
        waits.len()
    );
    println!("{after}: all bots play and trade, {of} timers fire");
}

fn printed(file: &Path) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

impl Running {
    /// Kills a process of the realm, which restarts it.
    fn kill_one(&self, name: &str) {
        let process = printed(&self.output)
            .lines()
            .find_map(|line| Some(line.trim().strip_prefix(name)?.strip_prefix(": process ")?.to_owned()));
        let killed = Command::new("kill")
            .arg("-KILL")
            .arg(process.expect("it is printed"))
            .status();
        assert!(killed.expect("it can be run").success(), "{name} is killed");
    }
}

/// Reads the archive as it grows.
#[derive(Default)]
struct Archive {
    views: Views,
    logs: BTreeMap<OwnerId, (LogWalk, OwnerState)>,
}

/// Next firing of each repeated timer, in game time.
type Timers = BTreeMap<(OwnerId, EntityId, TimerId), WorldTime>;

impl Archive {
    /// Number of settled trades.
    async fn exchanges(&mut self, store: &Store) -> u64 {
        self.views.look(store).await.expect("the logs replay").exchanges
    }

    async fn timers(&mut self, store: &Store) -> Timers {
        for (owner, record) in read_owners(store).await.expect("the store answers") {
            if let Entry::Vacant(unknown) = self.logs.entry(owner) {
                let walk = LogWalk::begin(store, record.shard, owner).await;
                unknown.insert((walk.expect("the store answers"), OwnerState::new(owner, record.kind)));
            }
        }
        let migrations = Migrations::read(store).await.expect("the store answers");
        let mut timers = Timers::new();
        for (owner, (walk, state)) in &mut self.logs {
            walk.extend().await.expect("the store answers");
            while let Some(step) = walk.next().await.expect("the store answers") {
                let batch = step.batch.expect("the archive is whole");
                migrations.fold(state, &batch).expect("it replays");
            }
            for (entity, image) in &state.entities {
                let repeated = image.timers.iter().filter(|(_, timer)| timer.every > 0);
                timers.extend(repeated.map(|(id, timer)| ((*owner, *entity, *id), timer.due)));
            }
        }
        timers
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clock_jumps_of_an_hour_stop_nothing_and_lose_nothing() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let mut realm = Shifted::new();
    realm.play("at first", &[], End::Killed).await;
    realm.set(HOUR);
    realm.play("an hour forward after a crash", &[], End::Killed).await;
    realm.set(0);
    realm.play("an hour back after a crash", &[HOUR, 0], End::InOrder).await;
    realm.set(0);
    realm.play("an hour back after a stop", &[], End::InOrder).await;
    realm.set(HOUR);
    realm.play("an hour forward after a stop", &[], End::InOrder).await;
    realm.verify().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clocks_five_minutes_apart_are_reported_and_stop_no_trade() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let mut realm = Shifted::new();
    for (db, cells, clocks, end) in [
        (-FIVE_MINUTES, -FIVE_MINUTES, &[0, 0][..], End::Killed),
        (FIVE_MINUTES, -FIVE_MINUTES, &[], End::InOrder),
    ] {
        realm.set_apart(db, cells);
        realm
            .play(&format!("clocks apart by {db} s and {cells} s"), clocks, end)
            .await;
        let said = printed(&realm.data().join("logs/director.log"));
        for (service, seconds) in [("db", db), ("cell", cells)] {
            let direction = if seconds > 0 { "s ahead of" } else { "s behind" };
            let parts = [format!("service=\"{service}\""), format!("{direction} this director's")];
            let is_it = |line: &&str| parts.iter().all(|part| line.contains(part));
            let line = said.lines().find(is_it);
            let line = line.unwrap_or_else(|| panic!("{parts:?} is not in {said}"));
            assert!(line.contains("synchronise the clocks of both machines"), "{line}");
        }
    }
    realm.verify().await;
}
