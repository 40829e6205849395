//! A store and logs of different times: a store restored from an older backup beside an intact log, a log that is older
//! than its store, or missing, or from another realm. Either the realm does not start, and reports why, or nothing is
//! lost.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use annals::up::{Realm, RealmPlan};
use annals_bots::checker::check;
use annals_db::ledger::audit;
use annals_def::Schema;
use annals_host::{log_source::Source, nats::ServerCount, store, world::compile};
use annals_realm::Folder;
use tokio::process::Command;

use crate::{
    played::{are_built, binary, permit, repository, run},
    playing::Playing,
};

/// The realm's name.
const REALM: &str = "times";

/// Bots that play.
const BOTS: usize = 4;

/// Events that they must be shown before a run ends.
const SHOWN: u64 = 60;

/// Timeout of a run.
const TIMEOUT: Duration = Duration::from_secs(120);

/// How a run ends.
#[derive(Clone, Copy)]
enum End {
    /// As by Ctrl-C.
    InOrder,
    /// All processes are killed at once.
    Killed,
}

/// The data of a realm at the end of each of its runs.
struct Past {
    folder: Folder,
    servers: ServerCount,
    shards: u16,
    schema: Arc<Schema>,
}

impl Past {
    fn new(servers: ServerCount) -> Self {
        Self {
            folder: Folder::create(),
            servers,
            shards: 1,
            schema: compile(&repository().join("defs")).expect("the sample compiles"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn shown(&self, run: &str) -> PathBuf {
        self.path(&format!("shown in {run}"))
    }

    async fn start(&self, data: &Path) -> Result<Realm, String> {
        let plan = RealmPlan {
            nats_servers: self.servers,
            shards: self.shards,
            ..RealmPlan::new(REALM, &repository().join("defs"), data)
        };
        Realm::start(plan).await.map_err(|error| error.to_string())
    }

    /// Bots play in the realm of a folder until they have been shown events, and the run ends. A copy of the folder is
    /// kept.
    async fn play(&self, data: &str, run: &str, end: End) {
        let realm = self
            .start(&self.path(data))
            .await
            .unwrap_or_else(|error| panic!("{run}: {error}"));
        let mut playing = Playing::start(realm.login, &self.schema, BOTS, &self.shown(run));
        let played = playing.wait_until_shown(SHOWN, TIMEOUT).await;
        assert!(played, "{run}: not all bots play: {}", playing.progress());
        match end {
            End::InOrder => realm.close(|_| ()).await.expect("it stops"),
            End::Killed => drop(realm),
        }
        playing.end_without_realm().await;
        copy(&self.path(data), &self.path(run));
    }

    /// The store of one run with the log of another, or with none.
    fn mixed(&self, store: &str, log: Option<&str>) -> PathBuf {
        let name = format!("{store} with {}", log.unwrap_or("nothing"));
        let mixed = self.path(&name);
        copy(&self.path(store), &mixed);
        fs::remove_dir_all(mixed.join("nats")).expect("there was a log");
        if let Some(log) = log {
            copy(&self.path(log).join("nats"), &mixed.join("nats"));
        }
        mixed
    }

    /// Puts the signer of a run into a folder, with an operator's decision that its log may end; returns the options
    /// with which a keeper of its newest checkpoint verifies the archive.
    async fn keep_signer_of(&self, run: &str, data: &Path) -> Vec<String> {
        let (from, kept) = (self.path(run), self.path("kept"));
        fs::write(&kept, annals(&from, &["checkpoint", "show"], 0).await).expect("written");
        let keys = annals(&from, &["checkpoint", "show", "--keys"], 0).await;
        fs::remove_dir_all(data.join("signer")).expect("there was a signer");
        copy(&from.join("signer"), &data.join("signer"));
        let decision = [
            "checkpoint",
            "new-log",
            "--by",
            "auditor",
            "--reason",
            "restored to an older backup",
        ];
        annals(data, &decision, 0).await;
        let key = keys.split_whitespace().last().expect("a key").to_owned();
        let file = kept.to_string_lossy().into_owned();
        ["checkpoint", "verify", &file, "--key", &key]
            .map(str::to_owned)
            .to_vec()
    }

    /// Checks that the realm does not start in this folder, and its error message.
    async fn refused(&self, data: &Path, says: &str) {
        let said = match self.start(data).await {
            Ok(_) => panic!("{} starts", data.display()),
            Err(said) => said,
        };
        println!("{}: {said}", data.display());
        assert!(said.contains(says), "{}: {said}", data.display());
        assert!(said.contains("Nothing was granted or changed"), "{said}");
    }

    /// A store that is older than its log adopts what the log has.
    async fn assert_older_store_adopts(&self) {
        let adopted = self.mixed("ordered", Some("newest"));
        self.refused(&adopted, OLDER_STORE).await;
        // A plan changes nothing.
        let plan = adopt(&adopted, &[], 0).await;
        assert!(plan.contains("nothing was changed"), "{plan}");
        self.refused(&adopted, OLDER_STORE).await;
        adopt(&adopted, &BY, 0).await;
        let nothing = adopt(&adopted, &BY, 1).await;
        assert!(nothing.contains("nothing to adopt"), "{nothing}");
        let lost = self.keep_signer_of("newest", &adopted).await;
        self.assert_continues("ordered with newest", &["ordered", "killed", "newest"])
            .await;
        assert_log_continues_or_ended(&adopted, &lost).await;
        let tail = annals(&adopted, &["log", "tail", "-n", "100000"], 0).await;
        let adoptions = tail.lines().filter(|line| line.contains("auditor had the store adopt"));
        assert_eq!(adoptions.count(), 1, "the decision is an event");
    }

    /// Discarded batches are void; what the store has remains. A log of another realm is never adopted.
    async fn assert_discarded_batches_are_void(&self) {
        let foreign = self.mixed("newest", Some("other"));
        self.refused(&foreign, "the log belongs to another realm").await;
        adopt(&foreign, &BY, 1).await;
        self.refused(&self.mixed("killed", Some("newest")), OLDER_STORE).await;
        let discarded = self.mixed("ordered", Some("killed"));
        self.refused(&discarded, OLDER_STORE).await;
        adopt(&discarded, &[&BY[..], &["--discard"]].concat(), 0).await;
        self.assert_continues("ordered with killed", &["ordered"]).await;
    }

    /// A store that is newer than its log continues if the logs were closed in order: the archive has all of them. If
    /// they were not, an operator may accept the loss.
    async fn assert_newer_store_continues(&self) {
        self.mixed("newest", Some("ordered"));
        self.assert_continues("newest with ordered", &["ordered", "killed", "newest"])
            .await;
        self.mixed("newest", None);
        self.assert_continues("newest with nothing", &["ordered", "killed", "newest"])
            .await;
        let shorter = "the log is older than the store";
        self.refused(&self.mixed("killed", Some("ordered")), shorter).await;
        let without = self.mixed("killed", None);
        self.refused(&without, shorter).await;
        adopt(&without, &BY, 1).await;
        adopt(&without, &[&BY[..], &["--discard"]].concat(), 0).await;
        self.assert_continues("killed with nothing", &["ordered"]).await;
    }

    /// Bots play in a realm that is started in this folder; it is then valid, and has what was shown in these runs.
    async fn assert_continues(&self, name: &str, has: &[&str]) {
        let run = format!("{name}, again");
        self.play(name, &run, End::InOrder).await;
        let data = self.path(name);
        annals(&data, &["log", "verify"], 0).await;
        let realm = REALM.parse().expect("a name");
        let opened = store::open(&"embedded".parse().expect("a kind"), &data, &realm).await;
        let source = Source::archive(opened.expect("the store is not in use"));
        for run in has.iter().copied().chain([run.as_str()]) {
            let checked = check(&self.shown(run), &source.store, &self.schema)
                .await
                .expect("the archive is read");
            println!("{name}: of {run}: {checked}");
            assert!(checked.is_clean() && checked.shown > 0, "{name}: of {run}: {checked}");
        }
        let audited = audit(&source.store).await.expect("the ledger can be read");
        assert!(audited.findings.is_empty(), "{name}: {:?}", audited.findings);
    }
}

/// Copies a folder.
fn copy(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").arg(from).arg(to).status();
    assert!(copied.expect("cp runs").success(), "{} is copied", from.display());
}

/// Runs `annals` on a data directory; returns its output.
async fn annals(data: &Path, line: &[&str], code: i32) -> String {
    let mut command = Command::new(binary("annals").expect("it is built"));
    command.args(line).args(["--realm", REALM, "--data"]).arg(data);
    let (status, said) = run(&mut command).await;
    println!("annals {}", line.join(" "));
    assert_eq!(status.code(), Some(code), "annals {}: {said}", line.join(" "));
    said
}

const OLDER_STORE: &str = "the store is older than the log";

const BY: [&str; 5] = ["--yes", "--by", "auditor", "--reason", "restored to an older backup"];

async fn adopt(data: &Path, how: &[&str], code: i32) -> String {
    annals(data, &[&["realm", "adopt-log"], how].concat(), code).await
}

/// Checks that an adopted archive continues what was signed, or that the signer has declared lost what it does not: the
/// batches may have been archived in another order.
async fn assert_log_continues_or_ended(data: &Path, verify: &[String]) {
    let ended = annals(data, &["checkpoint", "show", "--ended"], 0).await;
    assert!(!data.join("signer/next-log").exists(), "the signer has decided");
    let verify: Vec<&str> = verify.iter().map(String::as_str).collect();
    let said = annals(data, &verify, i32::from(!ended.is_empty())).await;
    assert_eq!(said.contains("LOST: "), !ended.is_empty(), "{said}");
    let [_, _, file, _, key] = verify[..] else {
        panic!("{verify:?}");
    };
    let log = ["log", "verify", "--checkpoint", file, "--key", key];
    let verified = annals(data, &log, i32::from(!ended.is_empty())).await;
    assert_eq!(verified.contains("LOST: "), !ended.is_empty(), "{verified}");
    println!(
        "the signer's log {}: {said}",
        if ended.is_empty() { "continues" } else { "has ended" }
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_and_log_mismatch_is_detected_with_one_server() {
    if are_built() {
        let _permit = permit().await;
        let past = Past::new(ServerCount::One);
        past.play("data", "ordered", End::InOrder).await;
        past.play("data", "killed", End::Killed).await;
        past.play("data", "newest", End::InOrder).await;
        past.play("elsewhere", "other", End::InOrder).await;

        // Each in folders of its own.
        tokio::join!(
            past.assert_older_store_adopts(),
            past.assert_discarded_batches_are_void(),
            past.assert_newer_store_continues(),
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_and_log_mismatch_is_detected_with_three_servers() {
    if are_built() {
        let _permit = permit().await;
        let past = Past::new(ServerCount::Three);
        past.play("data", "ordered", End::InOrder).await;
        past.play("data", "killed", End::Killed).await;
        let adopted = past.mixed("ordered", Some("killed"));
        past.refused(&adopted, OLDER_STORE).await;
        past.refused(&past.mixed("killed", None), "the log is older than the store")
            .await;
        adopt(&adopted, &BY, 0).await;
        past.assert_continues("ordered with killed", &["ordered", "killed"])
            .await;
    }
}

/// The logs of all shards are adopted by one decision, or given up by one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_adopts_the_logs_of_all_shards() {
    if are_built() {
        let _permit = permit().await;
        let past = Past {
            shards: 3,
            ..Past::new(ServerCount::One)
        };
        past.play("data", "ordered", End::InOrder).await;
        past.play("data", "killed", End::Killed).await;
        let adopted = past.mixed("ordered", Some("killed"));
        past.refused(&adopted, OLDER_STORE).await;
        adopt(&adopted, &BY, 0).await;
        past.assert_continues("ordered with killed", &["ordered", "killed"])
            .await;
        let discarded = past.path("given up");
        copy(&past.path("ordered"), &discarded);
        fs::remove_dir_all(discarded.join("nats")).expect("there was a log");
        copy(&past.path("killed").join("nats"), &discarded.join("nats"));
        adopt(&discarded, &[&BY[..], &["--discard"]].concat(), 0).await;
        past.assert_continues("given up", &["ordered"]).await;
    }
}
