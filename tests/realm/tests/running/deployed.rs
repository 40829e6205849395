//! A realm as operators deploy one: nats-servers with exactly the configuration in `ops/nats` and the secrets that its
//! script makes, and each service as a user of its own, over TLS. No supervisor: a test stops and starts the processes.

use std::{
    collections::BTreeMap,
    fs,
    net::{SocketAddr, TcpListener},
    path::PathBuf,
    process::{Command, Stdio},
    time::{Duration, Instant},
};

use annals_host::{
    child::{self, Child},
    config::CertificateFiles,
    log::History,
    nats::{Access, Address, Bus, find_binary},
    process::FIRST_SHARD,
};
use annals_ids::Hash;
use annals_realm::Folder;

use crate::played::{binary, repository, run, until};

/// The realm's name: the default of every setting.
pub(crate) const REALM: &str = "annals";

/// Maximum time for anything here, on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(90);

/// Starts of a server whose port another process has taken.
const ATTEMPTS: usize = 8;

/// The processes of the realm, in the order in which they start. Each is called by its service, and a number if there may
/// be several.
const PROCESSES: [&str; 7] = ["db", "director-1", "base-1", "cell-1", "cell-2", "signer", "login-1"];

/// The processes of a second shard, before the others, which place owners on it.
const OF_SECOND_SHARD: [&str; 2] = ["db-1", "signer-1"];

/// The settings of processes that divide two shards.
const SHARDED: [(&str, &[(&str, &str)]); 3] = [
    ("db", &[("ANNALS_SHARDS", "2"), ("ANNALS_FOLD", "0")]),
    ("db-1", &[("ANNALS_FOLD", "1")]),
    ("signer-1", &[("ANNALS_SHARD", "1")]),
];

/// The secrets, the configuration, and the servers that run with it.
pub(crate) struct Servers {
    folder: Folder,
    members: Vec<Member>,
}

/// One nats-server: its ports for clients, monitoring and other servers.
struct Member {
    name: String,
    client: u16,
    monitor: u16,
    route: u16,
    child: Option<Child>,
}

impl Servers {
    /// One server or several, as the documentation says to start them.
    pub(crate) async fn start(count: usize) -> Self {
        for _ in 0..ATTEMPTS {
            let mut started = Self::prepare(count);
            (0..count).for_each(|place| started.launch(place));
            if started.is_ready().await {
                return started;
            }
        }
        panic!("no nats-server started within {ATTEMPTS} attempts");
    }

    /// The folder that a machine of a nats-server has, and ports.
    fn prepare(count: usize) -> Self {
        let folder = Folder::create();
        let secrets = folder.path().join("secrets");
        let made = Command::new(repository().join("ops/nats/secrets.sh"))
            .arg(&secrets)
            .arg("127.0.0.1")
            .output()
            .expect("the script runs");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for entry in fs::read_dir(repository().join("ops/nats")).expect("the configuration") {
            let path = entry.expect("an entry").path();
            if path.extension().is_some_and(|extension| extension == "conf") {
                let name = path.file_name().expect("a name");
                fs::copy(&path, secrets.join("nats").join(name)).expect("it is copied");
            }
        }
        let member = |number: usize| Member {
            name: format!("nats-{number}"),
            client: free_port(),
            monitor: free_port(),
            route: free_port(),
            child: None,
        };
        let members = (1..=count).map(member).collect();
        Self { folder, members }
    }

    fn launch(&mut self, place: usize) {
        let routes: Vec<String> = self
            .members
            .iter()
            .map(|member| format!("nats://127.0.0.1:{}", member.route))
            .collect();
        let member = &self.members[place];
        let log = self.file(&format!("nats/{}.log", member.name));
        let log = fs::File::options().create(true).append(true).open(log).expect("a log");
        let mut command = child::command(find_binary().expect("`make setup` has installed it"));
        command
            .current_dir(self.file("nats"))
            .env("NATS_STORE", self.folder.path().join(&member.name))
            .env("NATS_MONITOR", format!("127.0.0.1:{}", member.monitor))
            .args(["--addr", "127.0.0.1", "--port", &member.client.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if self.members.len() == 1 {
            command.args(["--config", "nats-server.conf"]);
        } else {
            command.args(["--config", "nats-cluster.conf", "--name", &member.name]);
            command.args(["--cluster", &routes[place], "--routes", &routes.join(",")]);
        }
        self.members[place].child = Some(Child::spawn(command).expect("it starts"));
    }

    /// Whether a stream can be created; false when a port was taken.
    async fn is_ready(&mut self) -> bool {
        let patience = Instant::now() + TIMEOUT;
        while Instant::now() < patience {
            let mut children = self.members.iter_mut().filter_map(|member| member.child.as_mut());
            if children.any(|child| child.ended().expect("it can be asked").is_some()) {
                let said = self.log();
                assert!(said.contains("address already in use"), "a server ended:\n{said}");
                return false;
            }
            if let Ok(bus) = Bus::connect(self.address("db"), "test").await
                && History::ensure(&bus, REALM, FIRST_SHARD, self.members.len())
                    .await
                    .is_ok()
            {
                return true;
            }
        }
        panic!("the nats-servers do not answer:\n{}", self.log());
    }

    /// The logs of all servers.
    pub(crate) fn log(&self) -> String {
        let read = |member: &Member| fs::read_to_string(self.file(&format!("nats/{}.log", member.name))).ok();
        self.members.iter().filter_map(read).collect()
    }

    /// A file in the folder that the script has made.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join("secrets").join(name)
    }

    /// The addresses for clients.
    pub(crate) fn url(&self) -> String {
        let urls: Vec<String> = self
            .members
            .iter()
            .map(|member| format!("tls://127.0.0.1:{}", member.client))
            .collect();
        urls.join(",")
    }

    /// How the process of this user connects.
    pub(crate) fn address(&self, user: &str) -> Address {
        let of = |kind: &str| self.file(&format!("services/{user}.{kind}"));
        let certificate = CertificateFiles {
            chain: of("pem"),
            key: of("key"),
        };
        Address {
            url: self.url(),
            access: Access {
                credentials: Some(of("credentials")),
                authority: Some(self.file("services/ca.pem")),
                certificate: Some(certificate),
            },
        }
    }

    /// The environment of a service or command that connects as this user.
    pub(crate) fn environment(&self, user: &str) -> [(&'static str, String); 5] {
        let of = |kind: &str| self.file(&format!("services/{user}.{kind}")).display().to_string();
        [
            ("ANNALS_NATS", self.url()),
            ("ANNALS_NATS_CA", self.file("services/ca.pem").display().to_string()),
            ("ANNALS_NATS_CREDENTIALS", of("credentials")),
            ("ANNALS_NATS_CERTIFICATE", of("pem")),
            ("ANNALS_NATS_KEY", of("key")),
        ]
    }
}

/// A port that was free a moment ago. It is chosen by the system.
fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.local_addr().expect("an address").port()
}

/// A realm of one process per service, and a second cell.
pub(crate) struct Deployed {
    pub(crate) servers: Servers,
    is_sharded: bool,
    processes: BTreeMap<String, Process>,
    pub(crate) login: (SocketAddr, Hash),
}

struct Process {
    child: Child,
    http: u16,
}

impl Deployed {
    pub(crate) async fn start() -> Self {
        Self::begin(false).await
    }

    /// As [`Self::start`], with two shards, of which each has a db and a signer.
    pub(crate) async fn start_sharded() -> Self {
        Self::begin(true).await
    }

    async fn begin(is_sharded: bool) -> Self {
        let servers = Servers::start(1).await;
        // The script writes the port of production.
        let system = servers.file("services/director.system");
        let text = fs::read_to_string(&system).expect("it was made");
        let port = servers.members[0].client;
        fs::write(&system, text.replace(":4222", &format!(":{port}"))).expect("it is written");
        let mut deployed = Self {
            servers,
            is_sharded,
            processes: BTreeMap::new(),
            login: (SocketAddr::from(([127, 0, 0, 1], 0)), Hash::ZERO),
        };
        let second = OF_SECOND_SHARD.iter().filter(|_| is_sharded);
        for name in second.chain(&PROCESSES) {
            deployed.launch(name);
        }
        let announced = deployed.servers.folder.path().join("data/login-1/login.address");
        until(TIMEOUT, "log-ins to be answered", || announced.exists()).await;
        let text = fs::read_to_string(&announced).expect("it was written");
        let (address, certificate) = text.trim().split_once(' ').expect("an address and a certificate");
        deployed.login = (
            address.parse().expect("an address"),
            certificate.parse().expect("a fingerprint"),
        );
        deployed
    }

    /// Starts a process, as a supervisor does: with the log that it had before.
    pub(crate) fn launch(&mut self, name: &str) {
        let service = service_of(name);
        let data = self.servers.folder.path().join("data").join(name);
        let log = fs::File::options().create(true).append(true).open(self.log_file(name));
        let http = self.processes.get(name).map_or_else(free_port, |process| process.http);
        let mut command = child::command(binary(&format!("annals-{service}")).expect("it is built"));
        command
            .envs(self.servers.environment(service))
            .env("ANNALS_HTTP", format!("127.0.0.1:{http}"))
            .env("ANNALS_WORLD", repository().join("defs"))
            .env("ANNALS_DATA", data)
            .env("ANNALS_LISTEN", "127.0.0.1:0")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log.expect("a log"));
        let sharded = SHARDED
            .iter()
            .filter(|(process, _)| self.is_sharded && *process == name);
        command.envs(sharded.flat_map(|(_, settings)| settings.iter().copied()));
        if service == "director" {
            command.args(["--cells", "2", "--nats-system"]);
            command.arg(self.servers.file("services/director.system"));
        }
        let child = Child::spawn(command).expect("it starts");
        self.processes.insert(name.to_owned(), Process { child, http });
    }

    /// Kills a process with SIGKILL.
    pub(crate) fn kill(&mut self, name: &str) {
        self.processes
            .get_mut(name)
            .expect("it was started")
            .child
            .kill()
            .expect("it can be killed");
    }

    /// Kills the nats-server with SIGKILL.
    pub(crate) fn kill_server(&mut self) {
        let server = self.servers.members[0].child.as_mut();
        server.expect("it was started").kill().expect("it can be killed");
    }

    /// Has the nats-server read its configuration and certificates again.
    pub(crate) async fn reload_server(&self) {
        let server = self.servers.members[0].child.as_ref().expect("it was started");
        let mut command = tokio::process::Command::new("kill");
        let (status, said) = run(command.args(["-HUP", &server.id().to_string()])).await;
        assert!(status.success(), "{said}");
    }

    /// Restarts the nats-server.
    pub(crate) fn restart_server(&mut self) {
        self.kill_server();
        self.servers.launch(0);
    }

    /// Stops a process with SIGTERM; whether its exit code is 0.
    pub(crate) async fn stop(&mut self, name: &str) -> bool {
        let process = self.processes.get_mut(name).expect("it was started");
        process.child.stop().await.expect("it can be waited for").success()
    }

    /// Waits until all processes have ended by themselves, with exit code 0, except these.
    pub(crate) async fn all_end(&mut self, killed: &[&str]) {
        let names: Vec<String> = self.processes.keys().cloned().collect();
        for name in names {
            assert!(
                self.stop(&name).await || killed.contains(&name.as_str()),
                "{name} failed"
            );
        }
    }

    /// Address of a process for probes.
    pub(crate) fn http(&self, name: &str) -> String {
        format!("127.0.0.1:{}", self.processes[name].http)
    }

    /// Address of the nats-server for probes.
    pub(crate) fn monitor(&self) -> String {
        format!("127.0.0.1:{}", self.servers.members[0].monitor)
    }

    /// The names of all processes that were started.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.processes.keys().map(String::as_str)
    }

    /// The log of a process.
    pub(crate) fn log_of(&self, name: &str) -> String {
        fs::read_to_string(self.log_file(name)).unwrap_or_default()
    }

    fn log_file(&self, name: &str) -> PathBuf {
        self.servers.folder.path().join(format!("{name}.log"))
    }

    /// A folder for files of the test.
    pub(crate) fn scratch(&self) -> PathBuf {
        self.servers.folder.path().join("scratch")
    }

    /// Environment of an operator's shell: the programs on its path, and how to reach the realm.
    pub(crate) fn operator(&self) -> Vec<(&'static str, String)> {
        let programs = binary("annals").expect("it is built");
        let programs = programs.parent().expect("a folder").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let mut environment = self.servers.environment("operator").to_vec();
        environment.push(("PATH", format!("{programs}:{path}")));
        environment
    }
}

/// `cell` for `cell-1`.
fn service_of(name: &str) -> &str {
    name.split('-').next().unwrap_or(name)
}
