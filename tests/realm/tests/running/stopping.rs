//! A realm that is stopped in order, as an operator stops it, migrated to other definitions, and restarted.

use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};

use annals::{
    stopping::Stopping,
    up::{Realm, RealmPlan, Supervised},
};
use annals_director::{Grants, Stage};
use annals_host::{nats::Bus, process::connect};
use annals_realm::Folder;
use annals_store::{
    Store,
    embedded::EmbeddedStore,
    layout::director::{Realm as Record, realm_key},
};
use annals_wire::Subjects;
use tokio::process::Command;

use crate::{
    bad_input::skipped,
    disks::SmallDisk,
    played::{are_built, binary, connection_to, permit, repository, run, until, within},
};

/// The realm's name.
pub(crate) const REALM: &str = "stopped";

/// Maximum duration of a stop, on a machine that is busy with tests.
const STOP_TIMEOUT: Duration = Duration::from_secs(90);

/// Time between the realm's stop and its start.
const DOWNTIME: Duration = Duration::from_millis(1_500);

pub(crate) async fn start(data: &Path) -> Realm {
    start_with(&repository().join("defs"), data).await
}

/// Starts a realm on these definitions.
pub(crate) async fn begin(definitions: &Path, data: &Path) -> Realm {
    let plan = RealmPlan::new(REALM, definitions, data);
    Realm::start(plan).await.unwrap_or_else(|error| panic!("{error}"))
}

/// The same, and waits until every owner is held.
async fn start_with(definitions: &Path, data: &Path) -> Realm {
    let realm = begin(definitions, data).await;
    for name in ["base-1", "base-2", "cell-1", "cell-2"] {
        until(STOP_TIMEOUT, "owners to be held", || {
            log_of(data, name).contains("took over the owner")
        })
        .await;
    }
    realm
}

/// The test's own connection to the realm's bus.
pub(crate) async fn reach(realm: &Realm) -> (Bus, Subjects) {
    let settings = connection_to(REALM, realm.nats());
    connect(&settings, "test").await.expect("the bus is there")
}

fn stop_command(realm: &Realm) -> Command {
    let mut command = Command::new(binary("annals").expect("it is built"));
    command.args(["realm", "stop", "--realm", REALM, "--nats", &realm.nats()]);
    command
}

pub(crate) fn log_of(data: &Path, name: &str) -> String {
    fs::read_to_string(data.join("logs").join(format!("{name}.log"))).unwrap_or_default()
}

/// The store of an offline realm.
pub(crate) fn store(data: &Path) -> Store {
    EmbeddedStore::open(&data.join("store"))
        .expect("the store is not in use")
        .store()
}

async fn began(store: &Store) -> u64 {
    let value = store.begin().get(&realm_key()).await.expect("readable");
    Record::decode(&value.expect("there is a realm"))
        .expect("readable")
        .began
        .0
}

/// The sample world with other definitions: monsters' species has another name and another number, they have a mood,
/// accounts' log-ins have another name, and there is no patrol node, so that the sample's game does not run on them.
pub(crate) fn other_definitions(folder: &Path) -> PathBuf {
    let to = copy_definitions(&folder.join("defs"));
    let monster = to.join("entity_defs/Monster.def");
    let before = fs::read_to_string(&monster).expect("the sample's monster");
    let added = "<mood> <Type> INT32 </Type> <Flags> CELL_PRIVATE </Flags> <Default> 7 </Default> </mood>";
    let after = before
        .replace("<Properties>", &format!("<Properties>{added}"))
        .replace("<species>", "<kind>")
        .replace("</species>", "</kind>");
    assert_ne!(before, after);
    fs::write(&monster, after).expect("it can be written");
    let account = to.join("entity_defs/Account.def");
    let before = fs::read_to_string(&account).expect("the sample's account");
    let after = before.replace("logIns>", "visits>");
    assert_ne!(before, after);
    fs::write(&account, after).expect("it can be written");
    to
}

/// Copies the sample's definitions, without the patrol node, so that the sample's game does not run on them.
pub(crate) fn copy_definitions(to: &Path) -> PathBuf {
    let from = repository().join("defs");
    for below in ["", "entity_defs", "entity_defs/interfaces", "service_defs"] {
        fs::create_dir_all(to.join(below)).expect("a folder for definitions");
        for entry in fs::read_dir(from.join(below)).expect("definitions") {
            let path = entry.expect("definitions").path();
            let is_definition = path
                .extension()
                .is_some_and(|ending| ending == "def" || ending == "xml");
            if is_definition && !path.ends_with("user_data_objects.xml") {
                let name = path.file_name().expect("a file");
                fs::copy(&path, to.join(below).join(name)).expect("it can be copied");
            }
        }
    }
    to.to_owned()
}

/// Verifies the whole log; returns the output.
pub(crate) async fn verified(data: &Path, what: &str) -> String {
    let mut verify = Command::new(binary("annals").expect("it is built"));
    let (status, said) = run(verify.args(["log", "verify", "--data"]).arg(data)).await;
    assert!(status.success(), "{what}: {said}");
    said
}

/// Migrates the stopped realm; returns exit status and output.
pub(crate) async fn migrate(data: &Path, definitions: &Path, more: &[&str]) -> (Option<i32>, String) {
    let mut command = Command::new(binary("annals").expect("it is built"));
    command.args(["realm", "migrate", "--realm", REALM]);
    command.args(["--rename", "Monster.species=kind", "--rename", "Account.logIns=visits"]);
    command
        .arg("--data")
        .arg(data)
        .arg("--defs")
        .arg(definitions)
        .args(more);
    let (status, said) = run(&mut command).await;
    println!("{said}");
    (status.code(), said)
}

/// Those of these words that occur, in the order of the lines.
fn order_of<'a>(log: &str, words: &[&'a str]) -> Vec<&'a str> {
    let said = log
        .lines()
        .filter_map(|line| words.iter().find(|word| line.contains(*word)));
    said.copied().collect()
}

/// Checks the process logs of a realm that was stopped in order.
fn assert_ended_in_order(data: &Path) {
    let stages: Vec<String> = Stage::ALL[1..].iter().map(ToString::to_string).collect();
    let stages: Vec<&str> = stages.iter().map(String::as_str).collect();
    let director = log_of(data, "director");
    assert_eq!(
        director.matches("stop of the realm requested").count(),
        1,
        "the second changed nothing: {director}"
    );
    let passed: Vec<&str> = director
        .lines()
        .filter(|line| line.contains("the realm is stopping: entered a stage"))
        .map(|line| *stages.iter().find(|stage| line.contains(*stage)).expect("a stage"))
        .collect();
    assert_eq!(passed, stages[1..], "every stage, once, in order");
    let left = order_of(
        &director,
        &["service=\"login\"", "service=\"base\"", "service=\"cell\""],
    );
    let left = &left[left.len() - 5..];
    let services = ["login", "base", "base", "cell", "cell"].map(|service| format!("service=\"{service}\""));
    assert_eq!(left, services, "{director}");
    assert!(log_of(data, "db").contains("the realm is stopped"));
    for name in ["base-1", "base-2", "cell-1", "cell-2"] {
        let log = log_of(data, name);
        assert!(
            log.contains("released the owner") && !log.contains("WARN"),
            "{name}: {log}"
        );
    }
}

/// Migrates the realm to other definitions; migrating back is refused.
async fn migrated(data: &Path, others: &Path) {
    let (code, said) = migrate(data, others, &["--dry-run"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("everything has a place; nothing was changed"), "{said}");
    let (code, said) = migrate(data, others, &[]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("migrated to schema"), "{said}");
    let (code, said) = migrate(data, &repository().join("defs"), &[]).await;
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("downgrade"), "{said}");
    verified(data, "whole before it runs again").await;
}

/// Stops a realm from outside until all its processes have ended; the supervisor notices and restarts nothing.
async fn stop_by_two_operators(realm: &mut Realm) {
    // Two operators at once: one stops the realm, and both see the progress.
    let (mut one, mut two) = (stop_command(realm), stop_command(realm));
    let supervision = within(STOP_TIMEOUT, "the stop to be noticed", supervise_until_closing(realm));
    let (one, two, ()) = tokio::join!(run(&mut one), run(&mut two), supervision);
    for (status, said) in [&one, &two] {
        assert!(status.success(), "{said}");
        assert!(said.trim_end().ends_with("stopped"), "{said}");
    }
    within(STOP_TIMEOUT, "all processes to end", async {
        let names: Vec<String> = realm.members().map(|(name, _)| name.to_owned()).collect();
        for name in names {
            while realm.ended(&name).expect("it is a child").is_none() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    })
    .await;
    // The director cannot be asked any more.
    let after = realm.supervise().await.expect("processes can be looked at");
    assert_eq!(after, Supervised::Closing);
}

/// Supervises a realm that is being stopped, as `annals up` does: nothing is restarted.
async fn supervise_until_closing(realm: &mut Realm) {
    while let Supervised::Running(restarted) = realm.supervise().await.expect("processes can be looked at") {
        assert!(restarted.is_empty(), "{restarted:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_realm_stops_in_the_documented_order_and_resumes() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let folder = Folder::create();
    let data = folder.path();
    let mut realm = start(data).await;
    stop_by_two_operators(&mut realm).await;
    realm
        .close(|line| println!("{line}"))
        .await
        .expect("the rest is stopped");
    assert_ended_in_order(data);

    // Everything is folded, and the store shows that no owner is held.
    let said = verified(data, "whole once it is stopped").await;
    assert!(said.contains(" 0 batches beyond"), "{said}");
    let closed = store(data);
    assert!(Grants::is_closed(&closed).await.expect("readable"));
    let before = began(&closed).await;
    drop(closed);

    let beside = Folder::create();
    let others = other_definitions(beside.path());
    migrated(data, &others).await;

    tokio::time::sleep(DOWNTIME).await;
    let realm = start_with(&others, data).await;
    let director = log_of(data, "director");
    assert!(director.contains("was stopped cleanly"), "{director}");
    let begins = order_of(&director, &["service=\"base\"", "service=\"cell\"", "granted"]);
    let first = begins.iter().position(|word| *word == "granted").expect("granted");
    // A process that received no answer on a busy machine registers again.
    assert!(
        first >= 4,
        "the start does not wait for two bases and two cells: {director}"
    );
    // SIGTERM to `annals up` has the same effect as the command.
    realm.close(|line| println!("{line}")).await.expect("stopped");
    let stood = began(&store(data)).await - before;
    assert!(
        stood >= DOWNTIME.as_millis() as u64,
        "game time has not passed while nothing ran: the realm counts {stood} ms less"
    );
    verified(data, "its whole past, under either definitions").await;
    let mut tail = Command::new(binary("annals").expect("it is built"));
    let (_, output) = run(tail.args(["log", "tail", "-n", "100000", "--data"]).arg(data)).await;
    assert!(
        !output.contains("property ") && output.contains("Monster"),
        "every event is printed with the names of its time"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hanging_stop_is_reported_and_can_be_continued() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let folder = Folder::create();
    let data = folder.path().join("realm");
    fs::create_dir_all(&data).expect("a folder for the realm");
    let Some(disk) = SmallDisk::mount(&data.join("nats")) else {
        return skipped();
    };
    let realm = start(&data).await;
    disk.fill();
    let (bus, subjects) = reach(&realm).await;
    let mut stopping = Stopping::new(bus, subjects);
    stopping.begin(Duration::ZERO).await.expect("the director answers");
    let waits = || log_of(&data, "director").contains("a stage of the realm's stop is overdue");
    until(STOP_TIMEOUT, "the hanging stage to be named", waits).await;
    let director = log_of(&data, "director");
    let named = director
        .lines()
        .find(|line| line.contains("a stage of the realm's stop is overdue"))
        .expect("named");
    assert!(named.contains("the log of owner"), "{named}");
    // The operator decides, stage by stage.
    for stage in Stage::ALL {
        let at = stopping.stage().await.expect("the director answers");
        if at >= Stage::EndingLogin {
            break;
        }
        println!("{stage:?}: going on from {at}");
        stopping.go_on().await.expect("the director answers");
    }
    within(
        STOP_TIMEOUT,
        "the stop to come to its end",
        stopping.follow(|line| println!("{line}")),
    )
    .await
    .expect("the director led it to the end");
    realm.close(|line| println!("{line}")).await.expect("stopped");
}
