//! A private nats-server for a test.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for the start of a nats-server.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A nats-server on loopback; killed when dropped.
pub(crate) struct NatsServer {
    directory: tempfile::TempDir,
    settings: Vec<String>,
    process: Child,
    address: String,
}

impl NatsServer {
    /// Starts one on a free port, with additional configuration lines.
    pub(crate) fn start(configuration: &str) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let file = directory.path().join("nats.conf");
        std::fs::write(&file, configuration).expect("its configuration is written");
        let settings = vec!["--config".into(), file.display().to_string()];
        let process = spawn(directory.path(), &settings, "-1");
        let address = wait_for_address(directory.path(), process.id());
        Self {
            directory,
            settings,
            process,
            address,
        }
    }

    /// A connection to it.
    pub(crate) async fn connect(&self) -> async_nats::Client {
        async_nats::connect(&self.address).await.expect("it takes connections")
    }

    /// Kills it, and starts it again on the same port.
    pub(crate) fn restart(&mut self) {
        self.kill();
        let port = self
            .address
            .rsplit(':')
            .next()
            .expect("an address ends with a port")
            .to_owned();
        self.process = spawn(self.directory.path(), &self.settings, &port);
        wait_for_address(self.directory.path(), self.process.id());
    }

    /// Kills it.
    pub(crate) fn kill(&mut self) {
        self.process.kill().expect("SIGKILL is sent");
        self.process.wait().expect("it ends");
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn spawn(directory: &Path, settings: &[String], port: &str) -> Child {
    let binary = binary();
    Command::new(&binary)
        .args(["--addr", "127.0.0.1", "--port", port, "--ports_file_dir"])
        .arg(directory)
        .args(settings)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap_or_else(|error| panic!("cannot start {}: {error}; run `make setup`", binary.display()))
}

/// The binary named by the environment, else the one installed by `make setup`, else the one on PATH.
fn binary() -> PathBuf {
    if let Some(named) = std::env::var_os("ANNALS_NATS_SERVER") {
        return named.into();
    }
    let installed = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/tools/nats-server");
    if installed.exists() {
        installed
    } else {
        "nats-server".into()
    }
}

/// The server writes its address into a file named after its process.
fn wait_for_address(directory: &Path, process: u32) -> String {
    let file = directory.join(format!("nats-server_{process}.ports"));
    let start = Instant::now();
    while start.elapsed() < TIMEOUT {
        let ports = std::fs::read_to_string(&file).unwrap_or_default();
        if let Some(address) = ports.split('"').find(|word| word.starts_with("nats://")) {
            return address.to_owned();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("nats-server is not up after {TIMEOUT:?}");
}
