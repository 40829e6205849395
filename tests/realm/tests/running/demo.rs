//! The demonstration, at small size, as `make demo` runs it: real processes, two of them killed, and the archive
//! checked by separate programs.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    time::Duration,
};

use annals_realm::Folder;

use tokio::{process::Command, task::JoinSet};

use crate::played::{are_built, binary, permit, repository, run, run_within, timed_permit};

/// Maximum time for a demonstration with its checks, on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(400);

/// A completed demonstration.
struct Played {
    code: Option<i32>,
    text: String,
    folder: Folder,
}

impl Played {
    /// Runs an audit query on the realm, whose index is kept with it; returns exit code and output.
    async fn ask(&self, question: &[&str]) -> (Option<i32>, String) {
        self.run(&[&["audit"], question].concat()).await
    }

    /// Runs a command of `annals` on the realm; returns exit code and output.
    async fn run(&self, arguments: &[&str]) -> (Option<i32>, String) {
        let mut command = annals();
        command.current_dir(self.folder.path()).args(arguments);
        let (status, output) = run(command.args(["--data", "realm"])).await;
        (status.code(), output)
    }
}

/// The command, which the workspace's test build has made beside this test.
fn annals() -> Command {
    Command::new(binary("annals").expect("it is built"))
}

/// Runs a demonstration, for this many seconds or as long as it takes.
async fn demonstrate(world: Option<&Path>, bots: u32, seconds: Option<u32>, flags: &[&str]) -> Played {
    let _permit = permit().await;
    run_demo(world, bots, seconds, flags).await
}

async fn run_demo(world: Option<&Path>, bots: u32, seconds: Option<u32>, flags: &[&str]) -> Played {
    let folder = Folder::create();
    let mut command = annals();
    command.arg("demo").current_dir(repository());
    if let Some(world) = world {
        command.arg("--world").arg(world);
    }
    if let Some(seconds) = seconds {
        command.args(["--duration", &seconds.to_string()]);
    }
    command.args(["--bots", &bots.to_string()]).arg("--data");
    command.arg(folder.path().join("realm")).args(flags);
    let (status, text) = run_within(TIMEOUT, &mut command).await;
    println!("{text}");
    let code = status.code();
    Played { code, text, folder }
}

/// Runs a demonstration that must succeed.
async fn succeed(world: Option<&Path>, bots: u32, seconds: Option<u32>) -> Played {
    let played = demonstrate(world, bots, seconds, &[]).await;
    assert_eq!(played.code, Some(0), "the demonstration failed");
    assert!(played.text.contains("every promise was kept"), "it says so");
    played
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_passes_with_a_killed_cell_and_a_killed_base() {
    if !are_built() {
        return;
    }
    let played = succeed(None, 8, Some(24)).await;
    let (code, said) = played.ask(&["item", "1", "--format", "json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let answer: serde_json::Value = serde_json::from_str(&said).expect("an object");
    let steps = answer["steps"].as_array().expect("its way");
    assert_eq!(steps[0]["from"], "nowhere", "it was made");
    assert_eq!(steps[steps.len() - 1]["to"], answer["place"], "and went where it is");
    // Assets on a table were put there in a trade, which can be queried as well.
    let traded = steps
        .iter()
        .find_map(|step| step["to"].as_str()?.strip_prefix("table of trade "));
    if let Some((trade, _)) = traded.and_then(|traded| traded.split_once(',')) {
        let (code, said) = played.ask(&["trade", trade, "--format", "csv"]).await;
        assert_eq!(code, Some(0), "{said}");
        assert!(said.contains("offered in trade"), "{said}");
    }
    let (code, said) = played.ask(&["account", "bot0", "--format", "csv"]).await;
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("made: "), "{said}");
    answers_agree(&played, &answer).await;
    let (code, said) = played.ask(&["account", "nobody"]).await;
    assert_eq!(code, Some(2), "{said}");
    let (code, said) = played.ask(&["item", "1000000"]).await;
    assert_eq!(code, Some(2), "{said}");
    assert!(said.contains("there is no item 1000000"), "{said}");
}

/// Writes a program for each service that notes its start and runs ours.
fn write_scripts(folder: &Path) {
    let started = folder.join("started");
    for service in ["base", "cell", "db", "director", "login", "signer"] {
        let name = format!("annals-{service}");
        let ours = binary(&name).expect("it is built");
        let script = format!(
            "#!/bin/sh\n[ \"$1\" = --version ] || echo {service} >>{}\nexec {} \"$@\"\n",
            started.display(),
            ours.display()
        );
        let path = folder.join(&name);
        fs::write(&path, script).expect("the script is written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("it can be run");
    }
}

/// The services that were started by scripts, sorted.
fn started_by_scripts(folder: &Path) -> Vec<String> {
    let started = fs::read_to_string(folder.join("started")).expect("some were started");
    let mut started: Vec<String> = started.lines().map(str::to_owned).collect();
    started.sort_unstable();
    started
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_session_is_lost_when_every_process_is_replaced() {
    if !are_built() {
        return;
    }
    if binary("annals-console").is_none() {
        println!("SKIPPED: the console is not built; `make test` builds it");
        return;
    }
    let _permit = timed_permit().await;
    let other = Folder::create();
    write_scripts(other.path());
    let from = other.path().to_str().expect("a path in UTF-8");
    let played = run_demo(None, 12, None, &["--rolling", "1", "--from", from]).await;
    assert_eq!(played.code, Some(0), "a player lost its connection or its session");
    assert!(
        played.text.contains("round 1 replaces annals-db "),
        "it names the releases"
    );
    assert_eq!(
        started_by_scripts(other.path()),
        [
            "base", "base", "cell", "cell", "db", "director", "director", "login", "signer"
        ],
        "each process began as the other release, and did not come back to it"
    );
    assert!(played.text.contains("sessions resumed 0, handed over"), "it says so");
    let replaced = [
        "base-1",
        "base-2",
        "cell-1",
        "cell-2",
        "console",
        "db",
        "director-1",
        "director-2",
        "login",
        "signer",
    ];
    for name in replaced {
        let said = played.text.contains(&format!("rolling: {name} stopped in"));
        assert!(said, "{name} was not replaced");
    }
    for service in ["base", "cell"] {
        let said = played
            .text
            .contains(&format!("entities of a {service} stood still at "));
        assert!(said, "no hand-over of a {service} was measured");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_folder_without_a_release_is_refused_before_anything_starts() {
    if !are_built() {
        return;
    }
    let empty = Folder::create();
    let folder = empty.path().to_str().expect("a path in UTF-8");
    let played = run_demo(None, 1, None, &["--rolling", "1", "--from", folder]).await;
    assert_eq!(played.code, Some(2));
    let said = "annals-base is missing; name the folder of all programs of a release";
    assert!(played.text.contains(said), "{}", played.text);
    assert!(!played.folder.path().join("realm/nats").exists(), "nothing was started");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_realm_over_three_hosts_survives_a_partition_and_the_loss_of_one() {
    if !are_built() {
        return;
    }
    let played = demonstrate(None, 12, None, &["--cluster"]).await;
    if played.text.contains("hosts are network namespaces, which need root") {
        println!("SKIPPED: no network namespaces can be made here; run the tests as root to see hosts cut off");
        return;
    }
    assert_eq!(played.code, Some(0), "a promise was broken");
    for said in [
        "cluster: host-3 is cut off from the others and from the players",
        "cluster: host-1, with the store and the leading director, is removed for good",
        "host-3 admitted a player on its side before it was cut off, and none while it was",
        "the ledger, ",
        "demo: every promise was kept",
    ] {
        assert!(played.text.contains(said), "{said}");
    }
    let served = played.text.lines().filter(|line| line.contains(" after the removal"));
    assert_eq!(served.count(), 2, "a director led and db served on other hosts");
}

/// The changes since the first batch of the realm agree with the answers to single queries.
async fn answers_agree(played: &Played, item: &serde_json::Value) {
    let (code, said) = played.ask(&["diff", "1@1", "26:00:00", "--format", "json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let answer: serde_json::Value = serde_json::from_str(&said).expect("an object");
    let changes = answer["changes"].as_array().expect("changes");
    let name = format!("item 1 of kind {}", item["kind"]);
    let moved = changes
        .iter()
        .find(|change| change["of"] == name.as_str())
        .expect("it was made since");
    assert_eq!(
        (&moved["before"], &moved["after"]),
        (&serde_json::json!("nowhere"), &item["place"])
    );
    let (code, said) = played.ask(&["replay", "--format", "json"]).await;
    assert_eq!(code, Some(0), "{said}");
    let answer: serde_json::Value = serde_json::from_str(&said).expect("an object");
    let made = changes.iter().filter(|change| change["what"] == "made").count();
    let parts = answer["parts"].as_array().expect("parts");
    assert!(
        made > 8 && made <= parts.len(),
        "{made} of {} parts were made since",
        parts.len()
    );
    for owner in answer["owners"].as_array().expect("owners") {
        let at = format!("{}@{}", owner["owner"], owner["batch"]);
        let (_, text) = played.run(&["log", "replay", "--at", &at]).await;
        let state = owner["state"].as_str().expect("a hash");
        assert!(
            text.starts_with(&format!("{at} {state} ")),
            "{owner} is replayed as {text}"
        );
    }
    let entity = parts[0]["entity"].to_string();
    let (code, said) = played.ask(&["entity", &entity, "--format", "csv"]).await;
    assert!(code == Some(0) && said.contains("created"), "{said}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_fails_if_an_archived_event_is_missing() {
    if !are_built() {
        return;
    }
    let played = demonstrate(None, 4, Some(9), &["--tamper"]).await;
    let Played { code, text, .. } = &played;
    assert_eq!(*code, Some(1), "the missing event was not reported");
    let (_, removed) = text
        .split_once("taken out of the archive: ")
        .expect("what was taken out");
    let (_, removed) = removed.split_once("of entity ").expect("whose event");
    let (entity, verdict) = removed.split_once(' ').expect("its id");
    // Reported as lost if a bot was shown it, otherwise as a hole, since its contents are unknown.
    let names = [
        format!("of entity {entity}: "),
        format!("of entity {entity} is missing"),
    ];
    assert!(
        names.iter().any(|name| verdict.contains(name)),
        "entity {entity} is not named"
    );
    assert!(verdict.contains("demo: FAILED"), "it says so");
    let (code, said) = played.ask(&["item", "1"]).await;
    assert_eq!(code, Some(1), "nothing is answered from it: {said}");
    assert!(said.contains("the data that the answer rests on was changed"), "{said}");
}

/// A world of many types, with 197 exposed methods and 203 properties beside those of its account, as a shipped game
/// has. One type has as many exposed methods as once caused the last of them, which takes no arguments, to be left out.
fn big_world() -> Folder {
    let folder = Folder::create();
    let defs = folder.path().join("entity_defs");
    std::fs::create_dir(&defs).expect("a folder");
    let arguments = [
        "",
        "<Arg> INT32 </Arg>",
        "<Arg> UNICODE </Arg>",
        "<Arg> ARRAY <of> UINT16 </of> </Arg>",
    ];
    let types = ["INT32", "UNICODE", "ARRAY <of> UINT16 </of>", "FLOAT32", "VECTOR3"];
    let section = |name: &str, members: Vec<String>| format!("<{name}>{}</{name}>", members.concat());
    let methods = |count: usize, exposed: &str| -> Vec<String> {
        // The last one takes no arguments.
        let method = |number: usize| {
            let arguments = arguments[(count - 1 - number) % arguments.len()];
            format!(
                "<m{exposed}{number}> <Exposed/> {arguments} </m{exposed}{number}>",
                exposed = exposed.len()
            )
        };
        (0..count).map(method).collect()
    };
    let property = |flags: &str, number: usize| {
        format!(
            "<p{number}> <Type> {} </Type> <Flags> {flags} </Flags> </p{number}>",
            types[number % types.len()]
        )
    };
    // Exposed base methods, exposed cell methods and properties of each type; types without base methods have no base
    // part.
    let made = [
        (1, 0, 3),
        (8, 0, 20),
        (40, 30, 60),
        (24, 8, 30),
        (16, 16, 30),
        (6, 6, 20),
        (10, 10, 20),
        (8, 10, 10),
        (0, 4, 10),
    ];
    let mut entities = String::new();
    for (number, (base, cell, properties)) in made.into_iter().enumerate() {
        let (name, has_cell) = (format!("Type{number}"), number > 1);
        let flags = if has_cell { "ALL_CLIENTS" } else { "BASE_AND_CLIENT" };
        let properties = (0..properties).map(|number| property(flags, number)).collect();
        let updates = (0..6)
            .map(|number| format!("<update{number}> <Arg> INT32 </Arg> </update{number}>"))
            .collect();
        let text = [
            section("Properties", properties),
            section("ClientMethods", updates),
            section("BaseMethods", methods(base, "base")),
            section("CellMethods", methods(cell, "of cell")),
        ];
        std::fs::write(
            defs.join(format!("{name}.def")),
            format!("<root>{}</root>", text.concat()),
        )
        .expect("a file");
        let has_base = base > 0;
        entities.push_str(&format!(
            "<{name} hasBase=\"{has_base}\" hasCell=\"{has_cell}\" hasClient=\"true\"/>"
        ));
    }
    std::fs::write(folder.path().join("entities.xml"), format!("<root>{entities}</root>")).expect("a file");
    folder
}

/// The duration is computed and printed beforehand; with less time there is another verdict, and another exit code.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_big_world_is_exercised_completely_in_the_printed_duration() {
    if !are_built() {
        return;
    }
    let world = big_world();
    let played = demonstrate(Some(world.path()), 20, None, &[]).await;
    let text = &played.text;
    assert!(
        text.contains("197 exposed methods, 203 properties and 54 client methods of 9 entity types"),
        "{text}"
    );
    assert!(text.contains("exposed methods driven 197 of 197\n"), "{text}");
    assert!(
        text.contains("203 of 203 properties") && text.contains("54 of 54 client methods"),
        "{text}"
    );
    assert_eq!(played.code, Some(0), "{text}");
    let played = demonstrate(Some(world.path()), 4, Some(12), &[]).await;
    let text = &played.text;
    assert!(text.contains("demo: 12 s may be too short for all of it"), "{text}");
    assert!(text.contains("demo: INCOMPLETE: no promise was broken, but "), "{text}");
    assert_eq!(played.code, Some(3), "coverage is no promise: {text}");
}

/// Each with as many bots, and for as long, as it takes to drive everything in it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_passes_on_published_games() {
    if !are_built() {
        return;
    }
    let corpus = std::env::var_os("ANNALS_CORPUS").map_or_else(|| repository().join("../shared/corpus"), PathBuf::from);
    let Ok(entries) = std::fs::read_dir(&corpus) else {
        println!(
            "SKIPPED: {} is not there; ANNALS_CORPUS names the folder of published games",
            corpus.display()
        );
        return;
    };
    let mut games: Vec<PathBuf> = entries.map(|entry| entry.expect("a game").path()).collect();
    games.retain(|path| path.is_dir());
    games.sort();
    let mut demonstrations = JoinSet::new();
    for game in games {
        let is_large = game.ends_with("kbengine-demo");
        let (bots, seconds) = if is_large { (12, 30) } else { (6, 12) };
        demonstrations.spawn(async move { succeed(Some(&game), bots, Some(seconds)).await });
    }
    // Each game's folder is removed when its demonstration has passed.
    demonstrations.join_all().await;
}
