//! The C library in a live realm: a program in C, which another client sees move, and the example of the library.

use std::{
    env::consts::{DLL_PREFIX, DLL_SUFFIX},
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    sync::Arc,
    time::Duration,
};

use annals::up::{Realm, RealmPlan};
use annals_client::{Client, Config, Credentials, Event, Reads, Trust, client_endpoint};
use annals_def::{Schema, Value};
use annals_host::world::compile;
use annals_ids::{EntityId, Part};
use annals_realm::Folder;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use crate::played::{are_built, permit, repository, run, until_event, within};

/// Maximum time for a part of the scenario.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Metres at which an entity is where it should be: positions are sent to other clients in few bytes.
const NEAR: f32 = 0.5;

/// The shared library, which is a dependency of this test for that reason: cargo puts it beside the test.
fn library() -> PathBuf {
    let test = std::env::current_exe().expect("it has a path");
    let folder = test.parent().expect("it is in a folder");
    let library = folder.join(format!("{DLL_PREFIX}annals_client_c{DLL_SUFFIX}"));
    assert!(library.exists(), "cargo has built {}", library.display());
    library
}

/// Compiles a program of the library's folder against header and library.
async fn build(source: &str, program: &Path) {
    let own = repository().join("services/client-c");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I"]);
    compiler.arg(own.join("include")).arg("-o").arg(program);
    compiler.arg(own.join(source)).arg(library()).arg("-lm");
    let (status, said) = run(&mut compiler).await;
    assert!(status.success(), "{source}: {said}");
}

/// A realm, with programs in its folder.
struct Stage {
    realm: Realm,
    schema: Arc<Schema>,
    folder: Folder,
}

impl Stage {
    async fn start() -> Self {
        let folder = Folder::create();
        let world = repository().join("defs");
        let schema = compile(&world).expect("the sample compiles");
        let plan = RealmPlan::new("from-c", &world, &folder.path().join("realm"));
        let realm = Realm::start(plan).await.unwrap_or_else(|error| panic!("{error}"));
        Self { realm, schema, folder }
    }

    /// A built program, with the address of the realm and these arguments.
    async fn program(&self, source: &str, arguments: [&OsStr; 4]) -> Command {
        let program = self.folder.path().join("program");
        build(source, &program).await;
        let mut command = Command::new(program);
        command.arg(self.realm.login.0.to_string()).args(arguments);
        command
    }

    /// Another player, in the world.
    async fn watcher(&self) -> Client {
        let (login, certificate) = self.realm.login;
        let config = Config {
            login,
            trust: Trust::Pinned(certificate),
            credentials: Credentials::password("watcher", "a password"),
            schema: Arc::clone(&self.schema),
            seed: 7,
            reads: Reads::Predicted,
        };
        let mut client = Client::start(client_endpoint(login).expect("a socket"), config);
        let is_placed = |event: &Event| matches!(event, Event::SpaceEntered { .. });
        until_event(&mut client, "the watcher to enter the world", is_placed).await;
        client
    }
}

/// The entity of a line `WHAT ENTITY X Z`, and where it goes.
fn announced(line: &str, what: &str) -> (EntityId, f32, f32) {
    let words: Vec<&str> = line.split(' ').collect();
    let [_, entity, x, z] = words[..] else {
        panic!("it says {line:?}");
    };
    assert_eq!(words[0], what, "it says {line:?}");
    let metres = |word: &str| word.parse().expect("a number");
    (EntityId(entity.parse().expect("an id")), metres(x), metres(z))
}

/// Waits until a client sees an entity at a place.
async fn see_at(client: &mut Client, (entity, x, z): (EntityId, f32, f32)) {
    within(TIMEOUT, "the avatar to be seen where it has walked", async {
        loop {
            let place = client.core().entity(entity).and_then(|seen| seen.place);
            if place.is_some_and(|(at, _)| (at.x - x).abs() < NEAR && (at.z - z).abs() < NEAR) {
                break;
            }
            // Movements are no events.
            let _ = tokio::time::timeout(Duration::from_millis(50), client.next()).await;
        }
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_in_c_plays_and_is_seen_to_move() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let stage = Stage::start().await;
    let world = repository().join("defs");
    // The realm's own certificate as an authority.
    let authority = stage.folder.path().join("realm/development-certificate.pem");
    let credentials: [&OsStr; 2] = ["clara".as_ref(), "a password".as_ref()];
    let arguments = [authority.as_os_str(), world.as_os_str(), credentials[0], credentials[1]];
    let mut command = stage.program("tests/c/plays.c", arguments).await;
    let mut watcher = stage.watcher().await;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut program = command.spawn().expect("it runs");
    let mut lines = BufReader::new(program.stdout.take().expect("it is piped")).lines();

    let line = within(TIMEOUT, "the program to walk", lines.next_line()).await;
    let line = line.expect("text").expect("it has not ended: see its message above");
    let place @ (avatar, ..) = announced(&line, "avatar");
    see_at(&mut watcher, place).await;
    watcher.call(avatar, Part::Cell, "wave", &[]).expect("it is in view");
    // The program goes on once it has seen the wave, and then moves the watcher, until the watcher follows nobody.
    let (own, _) = watcher.core().controls().expect("it plays");
    let follow = |watcher: &mut Client, leader: EntityId| {
        let called = watcher.call(own, Part::Cell, "follow", &[Value::UInt(leader.0)]);
        called.expect("it is in view");
    };
    follow(&mut watcher, avatar);
    let moved = async {
        loop {
            tokio::select! {
                line = lines.next_line() => break line,
                _ = watcher.next() => {}
            }
        }
    };
    let line = within(TIMEOUT, "the program to move the watcher", moved).await;
    let line = line.expect("text").expect("it has not ended: see its message above");
    let place = announced(&line, "drives");
    assert_eq!(place.0, own);
    see_at(&mut watcher, place).await;
    follow(&mut watcher, EntityId(0));
    // What the program says then reaches 100 m only.
    let goes = |event: &Event| matches!(event, Event::Left { part: Part::Cell, entity } if *entity == avatar);
    until_event(&mut watcher, "the program to leave", goes).await;
    let line = within(TIMEOUT, "the end of the program", lines.next_line()).await;
    assert_eq!(line.expect("text").as_deref(), Some("left"));
    let status = within(TIMEOUT, "the end of the program", program.wait()).await;
    assert!(status.expect("it has ended").success());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_example_in_c_walks() {
    if !are_built() {
        return;
    }
    let _permit = permit().await;
    let stage = Stage::start().await;
    let stored = stage.folder.path().join("sample.schema");
    fs::write(&stored, stage.schema.encode()).expect("it is written");
    let certificate = stage.realm.login.1.to_string();
    let credentials: [&OsStr; 2] = ["cleo".as_ref(), "a password".as_ref()];
    let arguments = [certificate.as_ref(), stored.as_os_str(), credentials[0], credentials[1]];
    let (status, said) = run(&mut stage.program("examples/walk.c", arguments).await).await;
    assert!(status.success(), "{said}");
    for line in [
        "plays Avatar ",
        "sees Monster ",
        "has 100 health",
        " onSay: half way round",
        "ended: ",
    ] {
        assert!(said.contains(line), "{line:?}: {said}");
    }
}
