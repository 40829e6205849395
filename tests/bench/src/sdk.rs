//! The TypeScript client: time to decode what a session is sent, in Node, and size of its bundle.

use std::{
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
    time::Duration,
};

use annals_def::check_dir;
use serde::Deserialize;
use tokio::time::{Instant, timeout_at};

use crate::{
    Figure,
    lean::{Means, Received, Session, Transport},
    realm::{Realm, Shape, WORLD, beside},
};

/// Bots in view of the recorded session, and how long it is.
const BOTS: usize = 30;
const RECORDED: Duration = Duration::from_secs(8);

/// Maximum size of the bundle, minified and compressed with gzip, kB.
const GOAL: f64 = 40.0;

/// Where `make setup` puts the tools, and the client library and the script, from the root of the repository.
const TOOLS: &str = "target/tools/node_modules/.bin";
const LIBRARY: &str = "services/client-ts";
const SCRIPT: &str = "tests/bench/sdk/measure.mjs";

/// Measures both.
///
/// # Panics
/// If the realm's binaries are not built, it does not start, or a tool fails.
#[must_use]
pub fn run() -> Vec<Figure> {
    measure(BOTS, RECORDED)
}

/// The same with so many bots in view of a session of this length. Without the tools there are no figures.
///
/// # Panics
/// As [`run`].
#[must_use]
pub fn measure(bots: usize, length: Duration) -> Vec<Figure> {
    if !has_tools() {
        eprintln!("  skipped: there is no node, tsc or esbuild; `make setup` installs the last two where there is npm");
        return Vec::new();
    }
    let runtime = tokio::runtime::Runtime::new().expect("a runtime");
    let directory = crate::scratch();
    let recording = runtime.block_on(async {
        let realm = Realm::start(directory.path(), &Shape::default()).await;
        let recording = record(&realm, bots, length, directory.path()).await;
        realm.stop().await;
        recording
    });
    let file = directory.path().join("recording.txt");
    fs::write(&file, recording).expect("the recording is written");
    figures(&measure_in_node(directory.path(), &file), bots)
}

/// Whether Node and the tools of `make setup` are there.
#[must_use]
pub fn has_tools() -> bool {
    let node = Command::new("node").arg("--version").output();
    let tools = ["tsc", "esbuild"].iter().all(|tool| tool_path(tool).exists());
    tools && node.is_ok_and(|output| output.status.success())
}

fn tool_path(name: &str) -> PathBuf {
    Path::new(TOOLS).join(name)
}

/// Records a session in a crowd, from its log-in on, as the lines that the script reads.
async fn record(realm: &Realm, bots: usize, length: Duration, directory: &Path) -> String {
    let schema = Arc::new(check_dir(Path::new(WORLD)).0.expect("the sample's definitions compile"));
    let means = Means::new(realm, &schema, Transport::Quic, 1);
    let recording = async {
        let began = Instant::now();
        let mut lines = String::new();
        let mut note = |received: &Received| put_line(&mut lines, began, received);
        let mut session = Session::open(&means, 0, &mut note).await;
        let ends_at = Instant::now() + length;
        while let Ok(received) = timeout_at(ends_at, session.receive()).await {
            note(&received);
            session.take(received).await;
        }
        lines
    };
    realm.among_bots(bots, directory, recording).await.1
}

fn put_line(lines: &mut String, began: Instant, received: &Received) {
    let (kind, bytes) = match received {
        Received::Answer(bytes) => ("answer", bytes),
        Received::Frame(bytes) => ("frame", bytes),
        Received::Datagram(bytes) => ("datagram", bytes),
    };
    let written = write!(lines, "{kind} {} ", began.elapsed().as_millis())
        .and_then(|()| bytes.iter().try_for_each(|byte| write!(lines, "{byte:02x}")));
    written.expect("invariant: text grows");
    lines.push('\n');
}

/// What the script prints.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    frames: u64,
    datagrams: u64,
    bytes: u64,
    json_bytes: u64,
    decode_us: f64,
    parse_us: f64,
    walk_us: f64,
    bundle_bytes: f64,
    bundle_gzip_bytes: f64,
    node: String,
}

/// Builds the client, the world and the bundle in a folder, and measures them.
fn measure_in_node(folder: &Path, recording: &Path) -> Measured {
    let package = folder.join("node_modules/annals-client");
    let (built, world, bundle) = (package.join("dist"), folder.join("world.ts"), folder.join("bundle.js"));
    fs::create_dir_all(&package).expect("a folder");
    let manifest = Path::new(LIBRARY).join("package.json");
    fs::copy(manifest, package.join("package.json")).expect("the manifest is copied");
    fs::write(folder.join("package.json"), r#"{ "type": "module" }"#).expect("a manifest is written");
    run_tool(
        Command::new(tool_path("tsc"))
            .args(["--project", LIBRARY, "--outDir"])
            .arg(&built),
    );
    let mut generate = Command::new(beside("annals"));
    run_tool(
        generate
            .args(["defs", "generate", WORLD, "--lang", "typescript", "--out"])
            .arg(&world),
    );
    let flags = ["--strict", "--target", "es2022", "--module", "nodenext"];
    run_tool(Command::new(tool_path("tsc")).args(flags).arg(&world));
    let flags = [
        "--bundle",
        "--minify",
        "--format=esm",
        "--target=es2022",
        "--log-level=warning",
    ];
    let mut out = std::ffi::OsString::from("--outfile=");
    out.push(&bundle);
    run_tool(
        Command::new(tool_path("esbuild"))
            .args(flags)
            .arg(built.join("index.js"))
            .arg(out),
    );
    let mut node = Command::new("node");
    let printed = run_tool(node.arg(SCRIPT).arg(&built).arg(folder).arg(recording).arg(&bundle));
    serde_json::from_str(&printed).expect("the script prints its figures")
}

/// Runs a program to its end, and returns what it printed.
fn run_tool(command: &mut Command) -> String {
    let output = command.output().expect("the program can be started");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}\n{text}{errors}");
    text
}

fn figures(measured: &Measured, bots: usize) -> Vec<Figure> {
    let decoded = measured.frames + measured.datagrams;
    let note = format!(
        "the TypeScript client's time for each of {} frames and {} datagrams of a session among {bots} bots, {:.0} B on average, from \
         bytes to events and places, in Node {}; baseline: JSON.parse of the same events and places, {:.0} B each; looking at each \
         byte takes {:.2} us",
        measured.frames,
        measured.datagrams,
        measured.bytes as f64 / decoded as f64,
        measured.node,
        measured.json_bytes as f64 / decoded as f64,
        measured.walk_us
    );
    let size = format!(
        "the TypeScript client, minified by esbuild ({:.1} kB) and compressed with gzip; baseline: the limit",
        measured.bundle_bytes * 1e-3
    );
    vec![
        Figure::against("sdk_decode_time", measured.decode_us, measured.parse_us, "us", note),
        Figure::against("sdk_bundle_size", measured.bundle_gzip_bytes * 1e-3, GOAL, "kB", size),
    ]
}
