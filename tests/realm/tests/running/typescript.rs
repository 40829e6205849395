//! The TypeScript client in a live realm, over WebSocket.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::Command,
};

use crate::played::{Played, are_built, binary, repository, run, within};

/// Maximum time for a part of the scenario.
const TIMEOUT: Duration = Duration::from_secs(240);

/// The first version of Node whose WebSocket needs no flag.
const NODE_WITH_WEB_SOCKET: u32 = 22;

/// The TypeScript compiler, and the version of Node.
async fn tools() -> Option<(PathBuf, u32)> {
    let private = repository().join("target/tools/node_modules/.bin/tsc");
    let named = std::env::var_os("TSC").map(PathBuf::from);
    let tsc = named.unwrap_or(private);
    let version = Command::new("node").arg("--version").output().await.ok()?;
    let version = String::from_utf8(version.stdout).ok()?;
    let version = version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()?;
    tsc.exists().then_some((tsc, version))
}

async fn checked(command: &mut Command) {
    let (status, said) = run(command).await;
    assert!(status.success(), "{said}");
}

/// Builds the library, the generated world and the scenario in a folder.
async fn build(tsc: &Path, folder: &Path) -> PathBuf {
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
    let scenario = folder.join("scenario.mjs");
    fs::copy(library.join("test/live/scenario.mjs"), &scenario).expect("copied");
    scenario
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_typescript_client_plays_on_when_its_base_is_killed() {
    if !are_built() {
        return;
    }
    let Some((tsc, node)) = tools().await else {
        println!("SKIPPED: no tsc or no node; `make setup` installs them where there is npm");
        return;
    };
    let folder = tempfile::tempdir().expect("a folder");
    let scenario = build(&tsc, folder.path()).await;
    let mut realm = Played::start_with(vec![("web_origins", "*".to_owned())]).await;
    let certificate = realm.data().join("development-certificate.pem");

    let mut command = Command::new("node");
    if node < NODE_WITH_WEB_SOCKET {
        command.arg("--experimental-websocket");
    }
    let (login, _) = realm.realm.login;
    command
        .arg(scenario)
        .arg(format!("wss://localhost:{}", login.port()))
        .env("NODE_EXTRA_CA_CERTS", certificate)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .kill_on_drop(true);
    let mut playing = command.spawn().expect("node runs");
    let mut lines = BufReader::new(playing.stdout.take().expect("it is piped")).lines();
    let ready = within(TIMEOUT, "the client to be ready", lines.next_line()).await;
    assert_eq!(ready.expect("text").as_deref(), Some("ready"));
    for name in ["base-1", "base-2"] {
        realm.kill(name);
    }
    for name in ["base-1", "base-2"] {
        realm.start_again(name);
    }
    let done = within(TIMEOUT, "the client to play on", lines.next_line()).await;
    assert_eq!(done.expect("text").as_deref(), Some("done"));
    let status = within(TIMEOUT, "the end of the client", playing.wait()).await;
    assert!(status.expect("it has ended").success());
    realm.assert_playing("the death of both bases").await;
    realm.stop_and_verify().await;
}
