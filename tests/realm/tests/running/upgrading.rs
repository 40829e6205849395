//! The definitions of a realm change while it runs and bots play.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use annals::up::{GameBuild, Realm};
use annals_audit::replay::owners;
use annals_bots::{bots::BotsReport, checker::check};
use annals_db::{Query, migrating::read_converting, query};
use annals_def::{Schema, Value};
use annals_host::{config::Service, process::remote_store, world::compile};
use annals_ids::BatchNumber;
use annals_realm::Folder;
use annals_store::Store;
use tokio::{
    process::{Child, Command},
    sync::SemaphorePermit,
};

use crate::{
    played::{are_built, binary, inspect, permit, replay_to, run, timed_permit, until, within},
    playing::Playing,
    stopping::{REALM, begin, copy_definitions, log_of, reach, store, verified},
};

/// Bots that play.
const BOTS: usize = 6;

/// Events that they must be shown before they count as playing.
const SHOWN: u64 = 20;

/// Maximum time of a step, on a machine that is busy with tests.
const TIMEOUT: Duration = Duration::from_secs(90);

/// The processes of the former definitions.
const FORMER: [&str; 5] = ["base-1", "base-2", "cell-1", "cell-2", "login"];

/// The new definitions: properties and methods that clients do not see are added, methods before others, so that their
/// numbers change, and a property has another name. Properties keep their numbers, by which the check of what was shown
/// compares. One service takes the place of another.
fn next_definitions(folder: &Path) -> PathBuf {
    let to = copy_definitions(&folder.join("next"));
    let edit = |file: &str, edits: &[(&str, &str)]| {
        let path = to.join("entity_defs").join(file);
        let mut text = fs::read_to_string(&path).expect("the sample's");
        for (before, after) in edits {
            assert!(text.contains(before), "{file}: {before}");
            text = text.replace(before, after);
        }
        fs::write(&path, text).expect("it can be written");
    };
    let added = "<mood> <Type> INT32 </Type> <Flags> CELL_PRIVATE </Flags> <Default> 7 </Default> </mood></Properties>";
    edit("Monster.def", &[("</Properties>", added)]);
    let added =
        "<note> <Type> STRING </Type> <Flags> BASE </Flags> <Persistent> true </Persistent> </note></Properties>";
    let methods = "<BaseMethods><review> <Args> <of> UINT32 </of> </Args> </review>";
    let edits = [
        ("</Properties>", added),
        ("<BaseMethods>", methods),
        ("logIns>", "visits>"),
    ];
    edit("Account.def", &edits);
    let services = [
        ("services.xml", "<root> <Herald/> </root>"),
        (
            "service_defs/Herald.def",
            "<root> <Methods> <cry> <Arg> UINT8 </Arg> </cry> </Methods> </root>",
        ),
    ];
    for (file, text) in services {
        fs::write(to.join(file), text).expect("it can be written");
    }
    to
}

fn upgrade(realm: &Realm, arguments: &[&str]) -> Command {
    let mut command = Command::new(binary("annals").expect("it is built"));
    command.args(["realm", "upgrade"]).args(arguments);
    command.args(["--realm", REALM, "--nats", &realm.nats()]);
    command
}

/// Runs `annals realm upgrade`; returns exit code and output.
async fn upgraded(realm: &Realm, arguments: &[&str]) -> (Option<i32>, String) {
    let (status, text) = run(&mut upgrade(realm, arguments)).await;
    println!("upgrade {arguments:?}: {text}");
    (status.code(), text)
}

/// Begins `annals realm upgrade apply`, and starts processes of the new definitions once they are accepted.
async fn apply(realm: &mut Realm, next: &Path, services: &[(Service, &str)]) -> (Option<i32>, String) {
    let defs = next.display().to_string();
    let mut command = upgrade(realm, &["apply", "--defs", &defs, "--rename", "Account.logIns=visits"]);
    command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let applying = command.spawn().expect("it can be run");
    within(TIMEOUT, "processes of the new definitions to be accepted", async {
        while !upgraded(realm, &["status"]).await.1.contains("prepared: ") {}
    })
    .await;
    // Processes of an abandoned change may be there still.
    if services.iter().any(|(service, _)| *service == Service::Login) {
        let said = upgraded(realm, &["status"]).await.1;
        assert!(said.contains("no login process with the new definitions"), "{said}");
    }
    let build = GameBuild {
        world: next.to_owned(),
        binaries: None,
        release: None,
    };
    for (service, name) in services {
        realm.start_beside(*service, name, &build).expect("it starts");
    }
    applied(applying).await
}

async fn applied(child: Child) -> (Option<i32>, String) {
    let output = within(TIMEOUT, "the change to be prepared", child.wait_with_output()).await;
    let output = output.expect("it was run");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    println!("apply: {said}");
    (output.status.code(), said)
}

async fn ends(realm: &mut Realm, name: &str) {
    let ended = async {
        loop {
            match realm.ended(name).expect("it is watched") {
                Some(status) => return status,
                None => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    };
    let status = within(TIMEOUT, name, ended).await;
    assert_eq!(status.code(), Some(0), "{name}");
}

/// A realm whose definitions change, with bots.
struct Changing {
    realm: Realm,
    playing: Playing,
    folder: Folder,
    old: Arc<Schema>,
    new: Arc<Schema>,
    next: PathBuf,
    _permit: SemaphorePermit<'static>,
}

impl Changing {
    async fn start() -> Self {
        // Holders release within 5 s, or the change is abandoned.
        let permit = timed_permit().await;
        let folder = Folder::create();
        let present = copy_definitions(&folder.path().join("present"));
        let next = next_definitions(folder.path());
        let [old, new] = [&present, &next].map(|world| compile(world).expect("they compile"));
        assert_eq!(
            old.client_fingerprint(),
            new.client_fingerprint(),
            "clients need no update"
        );
        let realm = begin(&present, &folder.path().join("realm")).await;
        let playing = Playing::start(realm.login, &old, BOTS, &folder.path().join("shown"));
        let mut changing = Self {
            realm,
            playing,
            folder,
            old,
            new,
            next,
            _permit: permit,
        };
        changing.assert_playing("the start").await;
        changing
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("realm")
    }

    async fn assert_playing(&mut self, after: &str) {
        let playing = self.playing.wait_until_shown(SHOWN, TIMEOUT).await;
        assert!(playing, "after {after}: {}", self.playing.progress());
    }

    /// Prepares the change, with new processes.
    async fn prepare(&mut self, services: &[(Service, &str)]) {
        let (code, said) = apply(&mut self.realm, &self.next, services).await;
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("ready: change the definitions with"), "{said}");
    }

    async fn upgrade(&self, arguments: &[&str]) -> (Option<i32>, String) {
        upgraded(&self.realm, arguments).await
    }

    /// Makes the change, after which the processes of the former definitions end.
    async fn finish(&mut self) {
        let (code, said) = self.upgrade(&["finish"]).await;
        assert_eq!(code, Some(0), "{said}");
        for name in FORMER {
            ends(&mut self.realm, name).await;
        }
        self.assert_playing("the change").await;
        let (code, said) = self.upgrade(&["status"]).await;
        assert_eq!(code, Some(0), "{said}");
        let present = format!("definitions of the realm: {}", self.new.fingerprint());
        assert!(
            said.contains(&present) && said.contains("no change is prepared"),
            "{said}"
        );
    }

    /// Logs the bots out, and checks that nothing they were shown is lost, that every owner is replayed to its state, and
    /// that the stored entities are converted.
    async fn verify(mut self) -> BotsReport {
        let report = self.playing.end().await;
        println!("{report}");
        assert_eq!(report.total(|bot| bot.malformed), 0, "frames that could not be read");
        let (bus, subjects) = reach(&self.realm).await;
        let live = remote_store(&bus, &subjects);
        within(TIMEOUT, "stored entities to be converted", async {
            while read_converting(&live).await.expect("the store answers").is_some() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        })
        .await;
        for owner in owners(&live).await.expect("the store answers") {
            let state = inspect(&bus, &subjects, owner).await;
            let replayed = replay_to(&live, owner, BatchNumber(state.batch)).await;
            assert_eq!(replayed, state.state, "owner {owner} at batch {}", state.batch);
        }
        let files = self.folder.path().join("shown");
        let checked = check(&files, &live, &self.old).await.expect("the archive can be read");
        println!("{checked}");
        assert!(checked.is_clean(), "a shown event is lost:\n{checked}");
        let data = self.data();
        for (name, _) in self.realm.members() {
            assert!(!log_of(&data, name).contains("panicked"), "{name}");
        }
        self.realm.stop().await.expect("the realm stops");
        verified(&data, "its whole past, under either definitions").await;
        accounts_are_converted(&store(&data), &self.new).await;
        let mut tail = Command::new(binary("annals").expect("it is built"));
        let (_, said) = run(tail.args(["log", "tail", "-n", "1000000", "--data"]).arg(&data)).await;
        let begun = |service: &str| {
            let lines = said.lines().filter(|line| line.contains(service));
            lines.filter(|line| line.contains("created")).count()
        };
        assert_eq!(begun("Almanac"), 2, "one on each of the first base owners");
        assert!(begun("Herald") >= 2, "one on each base owner after the change");
        report
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_definitions_change_while_bots_play() {
    if !are_built() {
        return;
    }
    let mut changing = Changing::start().await;
    let next = changing.next.display().to_string();
    let plan = ["plan", "--defs", &next, "--rename", "Account.logIns=visits"];
    let (code, said) = changing.upgrade(&plan).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("the realm can run during this change"), "{said}");
    let (code, said) = changing.upgrade(&["finish"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(
        said.contains("no change of the realm's definitions is prepared"),
        "{said}"
    );

    // A first try is taken back: its processes end, and nothing else happens.
    changing
        .prepare(&[
            (Service::Base, "base-a"),
            (Service::Cell, "cell-a"),
            (Service::Login, "login-a"),
        ])
        .await;
    let (code, said) = changing.upgrade(&["rollback"]).await;
    assert_eq!(code, Some(0), "{said}");
    for name in ["base-a", "cell-a", "login-a"] {
        ends(&mut changing.realm, name).await;
    }
    changing.assert_playing("what was prepared is taken back").await;

    changing
        .prepare(&[
            (Service::Base, "base-b"),
            (Service::Cell, "cell-b"),
            (Service::Cell, "cell-c"),
            (Service::Login, "login-b"),
        ])
        .await;
    let serves = |changing: &Changing| log_of(&changing.data(), "login-b").contains("answering log-ins");
    assert!(!serves(&changing), "it waits for the change");
    changing.finish().await;
    until(TIMEOUT, "the new login process to serve", || serves(&changing)).await;
    let report = changing.verify().await;
    assert!(
        report.bots.iter().all(|bot| bot.moved > 0),
        "not all clients were moved"
    );
    assert_eq!(report.total(|bot| bot.resumed), 0, "a client lost its connection");
    assert_eq!(
        report.total(|bot| bot.log_ins),
        BOTS as u64,
        "a client had to log in again"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_is_abandoned_when_a_process_does_not_release_its_owners() {
    if !are_built() {
        return;
    }
    let mut changing = Changing::start().await;
    changing
        .prepare(&[
            (Service::Base, "base-a"),
            (Service::Cell, "cell-a"),
            (Service::Login, "login-a"),
        ])
        .await;
    assert!(changing.realm.pause("cell-1").expect("it can be frozen"));
    let (code, said) = changing.upgrade(&["finish"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("the change was abandoned: process "), "{said}");
    assert!(changing.realm.resume("cell-1").expect("it can go on"));
    changing.assert_playing("the change was abandoned").await;
    let (code, said) = changing.upgrade(&["finish"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("prepare it again"), "{said}");
    let (code, said) = changing.upgrade(&["status"]).await;
    assert_eq!(code, Some(1), "{said}");
    let present = format!("definitions of the realm: {}", changing.old.fingerprint());
    assert!(
        said.contains(&present) && said.contains("the change was abandoned: process "),
        "{said}"
    );

    changing.prepare(&[(Service::Base, "base-b")]).await;
    changing.finish().await;
    changing.verify().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_change_that_needs_a_stopped_realm_or_other_clients_is_refused() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let folder = Folder::create();
    let present = copy_definitions(&folder.path().join("present"));
    let realm = begin(&present, &folder.path().join("realm")).await;
    let changed = |name: &str, file: &str, before: &str, after: &str| {
        let to = copy_definitions(&folder.path().join(name));
        let path = to.join("entity_defs").join(file);
        let text = fs::read_to_string(&path).expect("the sample's");
        assert!(text.contains(before), "{file}");
        fs::write(&path, text.replace(before, after)).expect("it can be written");
        to.display().to_string()
    };
    let narrower = changed("narrower", "Account.def", "UINT32", "UINT8");
    for (step, code) in [("plan", 1), ("apply", 2)] {
        let (ended, said) = upgraded(&realm, &[step, "--defs", &narrower]).await;
        assert_eq!(ended, Some(code), "{said}");
        assert!(said.contains("stored data: breaking"), "{said}");
    }
    let indexed = "<Persistent> true </Persistent> <Indexed> true </Indexed> <Type> UINT32";
    let indexed = changed("indexed", "Account.def", "<Type>\t\t\tUINT32", indexed);
    let (ended, said) = upgraded(&realm, &["apply", "--defs", &indexed]).await;
    assert_eq!(ended, Some(2), "{said}");
    assert!(said.contains("indexed values change: Account.logIns"), "{said}");
    let shown = "<ClientMethods><onNotice/>";
    let shown = changed("shown", "Account.def", "<ClientMethods>", shown);
    let (ended, said) = upgraded(&realm, &["apply", "--defs", &shown]).await;
    assert_eq!(ended, Some(2), "{said}");
    assert!(said.contains("repeat with --disconnect-clients"), "{said}");
    let present = present.display().to_string();
    let asking = async {
        loop {
            // The realm answers log-ins before the director counts the start as done.
            let answer = upgraded(&realm, &["apply", "--defs", &present]).await;
            if !answer.1.contains("the realm is starting or stopping") {
                return answer;
            }
        }
    };
    let (ended, said) = within(TIMEOUT, "the start to be done", asking).await;
    assert_eq!(ended, Some(2), "{said}");
    assert!(said.contains("the realm already runs on these definitions"), "{said}");
    let (ended, said) = upgraded(&realm, &["rollback"]).await;
    assert_eq!(ended, Some(2), "{said}");
    assert!(
        said.contains("no change of the realm's definitions is prepared"),
        "{said}"
    );
}

/// Every bot's account has its log-ins under the new name.
async fn accounts_are_converted(store: &Store, schema: &Arc<Schema>) {
    let accounts = Query {
        entity_type: "Account".to_owned(),
        conditions: Vec::new(),
        limit: usize::MAX,
        scanned: usize::MAX,
    };
    let found = query(store, schema, &accounts).await.expect("it can be asked").found;
    assert_eq!(found.len(), BOTS);
    for account in found {
        let properties = account.entity.properties;
        assert!(!properties.contains_key("logIns"), "{properties:?}");
        assert_ne!(properties.get("visits"), Some(&Value::UInt(0)), "{properties:?}");
    }
}
