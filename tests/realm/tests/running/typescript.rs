//! Programs of the TypeScript client: the tools that build and run them.

use std::{
    ffi::OsStr,
    fs,
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::{Child, ChildStdout, Command},
};

use crate::played::{binary, repository, run, within};

/// Maximum time for a program to start.
const TIMEOUT: Duration = Duration::from_secs(240);

/// The first version of Node whose WebSocket needs no flag.
const NODE_WITH_WEB_SOCKET: u32 = 22;

/// The TypeScript compiler, if it is installed.
pub(crate) fn compiler() -> Option<PathBuf> {
    let private = repository().join("target/tools/node_modules/.bin/tsc");
    let named = std::env::var_os("TSC").map(PathBuf::from);
    Some(named.unwrap_or(private)).filter(|tsc| tsc.exists())
}

/// The tools that run programs in TypeScript.
pub(crate) struct Node {
    compiler: PathBuf,
    version: u32,
}

impl Node {
    /// `None`, with a message, if they are missing.
    pub(crate) async fn find() -> Option<Self> {
        let found = Self::look().await;
        if found.is_none() {
            println!("SKIPPED: no tsc or no node; `make setup` installs them where there is npm");
        }
        found
    }

    async fn look() -> Option<Self> {
        let compiler = compiler()?;
        let version = Command::new("node").arg("--version").output().await.ok()?;
        let version = String::from_utf8(version.stdout).ok()?;
        let version = version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()?;
        Some(Self { compiler, version })
    }

    /// Compiles a project.
    pub(crate) async fn compile(&self, project: &Path) {
        checked(Command::new(&self.compiler).arg("--project").arg(project)).await;
    }

    /// Runs a program that uses WebSockets.
    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new("node");
        if self.version < NODE_WITH_WEB_SOCKET {
            command.args(["--experimental-websocket", "--no-warnings"]);
        }
        command.arg(program);
        command
    }
}

async fn checked(command: &mut Command) {
    let (status, said) = run(command).await;
    assert!(status.success(), "{said}");
}

/// Builds the library and the generated world in a folder, beside the runner of scenarios.
pub(crate) async fn build(node: &Node, folder: &Path) {
    let library = repository().join("services/client-ts");
    let package = folder.join("node_modules/annals-client");
    fs::create_dir_all(&package).expect("a folder");
    fs::copy(library.join("package.json"), package.join("package.json")).expect("copied");
    let compile = |arguments: &[&OsStr]| {
        let mut command = Command::new(&node.compiler);
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

/// Starts a program, and returns it with the lines that it prints.
fn spawn(command: &mut Command) -> (Child, Lines<BufReader<ChildStdout>>) {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("it runs");
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    (child, lines)
}

/// Serves the files of a folder to browsers of this machine, until the process is dropped; returns the port.
pub(crate) async fn serve(folder: &Path) -> (Child, u16) {
    let mut command = Command::new("node");
    let (server, mut lines) = spawn(command.arg(folder.join("serve.mjs")).arg(folder));
    let line = within(TIMEOUT, "the files to be served", lines.next_line()).await;
    let port = line.expect("text").expect("it serves");
    (server, port.parse().expect("a port"))
}
