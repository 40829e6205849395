//! Messages of processes that wait for others, and how such processes are stopped.

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use annals_host::{
    child::{self, Child},
    nats::{Server, ServerOptions},
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

/// Timeout for a process to log a message, on a machine that is busy with tests.
const SAID_WITHIN: Duration = Duration::from_secs(20);

/// How long its log is read after that: several tries fail meanwhile.
const LISTENED: Duration = Duration::from_millis(1_500);

/// A process with its log.
struct Started {
    child: Child,
    log: PathBuf,
    _folder: TempDir,
}

impl Started {
    fn new(program: &str, nats: &str, world: bool) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = folder.path().join("log");
        let output = fs::File::create(&log).expect("a file");
        let mut command = child::command(Path::new(program));
        command.args(["--nats", nats, "--http", "127.0.0.1:0"]);
        if world {
            let defs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../defs");
            command.arg("--world").arg(defs);
        }
        if !program.contains("director") {
            command.arg("--data").arg(folder.path());
        }
        if program.contains("login") {
            command.args(["--listen", "127.0.0.1:0"]);
        }
        command.stderr(output);
        let child = Child::spawn(command).expect("it starts");
        let _folder = folder;
        Self { child, log, _folder }
    }

    /// Its log lines about waiting, once there is one and some time has passed.
    async fn waits(&self) -> Vec<String> {
        let read = || fs::read_to_string(&self.log).expect("its log");
        let until = Instant::now() + SAID_WITHIN;
        while !read().contains("waiting for") {
            assert!(Instant::now() < until, "it waits in silence: {}", read());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(LISTENED).await;
        let text = read();
        let lines = text.lines().filter(|line| line.contains("waiting for"));
        lines.map(str::to_owned).collect()
    }

    /// The status of its answer to a probe.
    async fn probe(&self, path: &str) -> String {
        let text = fs::read_to_string(&self.log).expect("its log");
        let line = text.lines().find(|line| line.contains("serving probes and metrics"));
        let address = line.and_then(|line| line.rsplit_once("address="));
        let address = address.expect("it says where it listens").1;
        let mut stream = TcpStream::connect(address).await.expect("it listens");
        let request = format!("GET {path} HTTP/1.0\r\n\r\n");
        stream.write_all(request.as_bytes()).await.expect("it reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers");
        answer.lines().next().unwrap_or_default().to_owned()
    }

    /// Stops it while it waits.
    async fn stops(mut self) {
        let status = self.child.stop().await.expect("it can be asked");
        let text = fs::read_to_string(&self.log).expect("its log");
        assert_eq!(status.code(), Some(0), "{status}: {text}");
    }
}

#[tokio::test]
async fn a_process_without_a_nats_server_reports_it_once_and_stops_on_request() {
    // A port that was returned has no listener.
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let nats = format!("nats://{}", free.local_addr().expect("its address"));
    drop(free);
    for (program, world) in [
        (env!("CARGO_BIN_EXE_annals-login"), true),
        (env!("CARGO_BIN_EXE_annals-signer"), false),
        (env!("CARGO_BIN_EXE_annals-director"), true),
    ] {
        let process = Started::new(program, &nats, world);
        let said = process.waits().await;
        assert_eq!(said.len(), 1, "{said:?}");
        for (path, status) in [("/livez", " 200 "), ("/readyz", " 503 ")] {
            let answer = process.probe(path).await;
            assert!(answer.contains(status), "{path}: {answer}");
        }
        let parts = [
            format!("waiting for a nats-server on {nats}: "),
            "this process holds and serves nothing until one answers; check that it runs and that --nats is its address".to_owned(),
        ];
        assert!(parts.iter().all(|part| said[0].contains(part.as_str())), "{said:?}");
        process.stops().await;
    }
}

#[tokio::test]
async fn a_process_without_a_director_or_store_reports_it_once_and_stops_on_request() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::start(&ServerOptions::new(folder.path()))
        .await
        .expect("it starts");
    for (program, awaited) in [
        (
            env!("CARGO_BIN_EXE_annals-login"),
            "waiting for the director: no process answers for director; this process",
        ),
        (env!("CARGO_BIN_EXE_annals-director"), "waiting for the store: "),
    ] {
        let process = Started::new(program, &server.url(), true);
        let said = process.waits().await;
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(said[0].contains(awaited), "{said:?}");
        process.stops().await;
    }
}
