//! The TypeScript client in a live realm: over WebSocket in Node, and over both transports in a browser.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::{Duration, SystemTime},
};

use annals_host::edge::web_certificate_hashes;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::{
    browser::{self, Browser, Certificates},
    played::{Played, are_built, binary, repository, run, within},
};

/// Maximum time for a part of the scenario.
const TIMEOUT: Duration = Duration::from_secs(240);

/// Polling interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);

/// The bases that are killed.
const BASES: [&str; 2] = ["base-1", "base-2"];

/// The first version of Node whose WebSocket needs no flag.
const NODE_WITH_WEB_SOCKET: u32 = 22;

/// The TypeScript compiler, if it is installed.
pub(crate) fn compiler() -> Option<PathBuf> {
    let private = repository().join("target/tools/node_modules/.bin/tsc");
    let named = std::env::var_os("TSC").map(PathBuf::from);
    Some(named.unwrap_or(private)).filter(|tsc| tsc.exists())
}

/// The TypeScript compiler, and the version of Node.
async fn tools() -> Option<(PathBuf, u32)> {
    let tsc = compiler()?;
    let version = Command::new("node").arg("--version").output().await.ok()?;
    let version = String::from_utf8(version.stdout).ok()?;
    let version = version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()?;
    Some((tsc, version))
}

async fn checked(command: &mut Command) {
    let (status, said) = run(command).await;
    assert!(status.success(), "{said}");
}

/// Builds the library, the generated world and the scenario in a folder.
async fn build(tsc: &Path, folder: &Path) {
    let library = repository().join("services/client-ts");
    let package = folder.join("node_modules/annals-client");
    fs::create_dir_all(&package).expect("a folder");
    fs::copy(library.join("package.json"), package.join("package.json")).expect("copied");
    let compile = |arguments: &[&OsStr]| {
        let mut command = Command::new(tsc);
        command.args(arguments).current_dir(folder);
        command
    };
    let (project, out) = (library.join("tsconfig.json"), package.join("dist"));
    checked(&mut compile(&[
        "--project".as_ref(),
        project.as_ref(),
        "--outDir".as_ref(),
        out.as_ref(),
    ]))
    .await;
    let mut generate = Command::new(binary("annals").expect("it is built"));
    generate.args(["defs", "generate"]).arg(repository().join("defs"));
    checked(
        generate
            .args(["--lang", "typescript", "--out"])
            .arg(folder.join("world.ts")),
    )
    .await;
    fs::write(folder.join("package.json"), r#"{ "type": "module" }"#).expect("written");
    let flags = ["world.ts", "--strict", "--target", "es2022", "--module", "nodenext"];
    checked(&mut compile(&flags.map(OsStr::new))).await;
    for entry in fs::read_dir(library.join("test/live")).expect("a folder") {
        let entry = entry.expect("readable");
        fs::copy(entry.path(), folder.join(entry.file_name())).expect("copied");
    }
}

/// A realm that accepts WebSockets, and the folder of the built scenario.
struct Stage {
    realm: Played,
    folder: TempDir,
    node: u32,
}

impl Stage {
    /// `None`, with a message, if tools are missing.
    async fn start() -> Option<Self> {
        if !are_built() {
            return None;
        }
        let Some((tsc, node)) = tools().await else {
            println!("SKIPPED: no tsc or no node; `make setup` installs them where there is npm");
            return None;
        };
        let folder = tempfile::tempdir().expect("a folder");
        build(&tsc, folder.path()).await;
        let realm = Played::start_with(vec![("web_origins", "*".to_owned())]).await;
        Some(Self { realm, folder, node })
    }

    /// URL of the login service.
    fn url(&self) -> String {
        format!("wss://localhost:{}", self.realm.realm.login.0.port())
    }

    /// Kills both bases, and starts them again.
    fn kill_bases(&mut self) {
        for name in BASES {
            self.realm.kill(name);
        }
        for name in BASES {
            self.realm.start_again(name);
        }
    }

    async fn end(mut self) {
        self.realm.assert_playing("the death of both bases").await;
        self.realm.stop_and_verify().await;
    }
}

/// Starts a program, and returns it with the lines that it prints.
fn spawn(command: &mut Command) -> (Child, Lines<BufReader<ChildStdout>>) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("it runs");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    (child, lines)
}

async fn next_line(lines: &mut Lines<BufReader<ChildStdout>>, what: &str) -> Option<String> {
    within(TIMEOUT, what, lines.next_line()).await.expect("text")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_in_node_plays_on_when_its_base_is_killed() {
    let Some(mut stage) = Stage::start().await else {
        return;
    };
    let mut command = Command::new("node");
    if stage.node < NODE_WITH_WEB_SOCKET {
        command.arg("--experimental-websocket");
    }
    let certificate = stage.realm.data().join("development-certificate.pem");
    command.arg(stage.folder.path().join("node.mjs")).arg(stage.url());
    let (mut playing, mut lines) = spawn(command.env("NODE_EXTRA_CA_CERTS", certificate));
    assert_eq!(
        next_line(&mut lines, "the client to be ready").await.as_deref(),
        Some("ready over WebSocket")
    );
    stage.kill_bases();
    assert_eq!(
        next_line(&mut lines, "the client to play on").await.as_deref(),
        Some("done over WebSocket")
    );
    let status = within(TIMEOUT, "the end of the client", playing.wait()).await;
    assert!(status.expect("it has ended").success());
    stage.end().await;
}

/// WebTransport fails, as the page knows the hash of another certificate.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_in_a_browser_plays_on_by_web_socket() {
    let hashes = |_: &Path| format!(",{}", "ab".repeat(32));
    plays_on_in_a_browser("WebSocket", Certificates::AnyAccepted, hashes).await;
}

/// The certificate is accepted by its hash alone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_in_a_browser_plays_on_by_web_transport() {
    let hashes = |data: &Path| {
        let hashes = web_certificate_hashes(data, SystemTime::now()).expect("certificates");
        format!(",{},{}", hashes[0], hashes[1])
    };
    plays_on_in_a_browser("WebTransport", Certificates::Checked, hashes).await;
}

/// Plays the scenario in a browser. `hashes` is what the page's address names after the URL of the login service.
async fn plays_on_in_a_browser(transport: &str, certificates: Certificates, hashes: impl Fn(&Path) -> String) {
    if !browser::is_installed() {
        return;
    }
    let Some(mut stage) = Stage::start().await else {
        return;
    };
    let folder = stage.folder.path();
    let mut command = Command::new("node");
    let (_server, mut lines) = spawn(command.arg(folder.join("serve.mjs")).arg(folder));
    let port = next_line(&mut lines, "the page to be served").await.expect("a port");
    let browser = Browser::start_with(certificates).await;
    let hashes = hashes(&stage.realm.data());
    let page = format!("http://127.0.0.1:{port}/index.html#{}{hashes}", stage.url());
    browser.open(&page).await;
    let shows = async |what: &str| {
        let shown = async {
            loop {
                let text = browser.text("pre").await;
                assert!(!text.contains("failed"), "{text}");
                if text.contains(what) {
                    break;
                }
                tokio::time::sleep(POLL_INTERVAL).await;
            }
        };
        within(TIMEOUT, what, shown).await;
    };
    shows(&format!("ready over {transport}")).await;
    stage.kill_bases();
    shows(&format!("done over {transport}")).await;
    browser.stop().await;
    stage.end().await;
}
