//! A private nats-server with JetStream, on loopback: one for a realm on one machine and for tests, or three in a
//! cluster. Fault tests kill, pause and restart them; a restarted server keeps its ports and its store.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use async_nats::jetstream;

use super::{BinaryError, MAX_PAYLOAD, REPORTS, find_binary};
use crate::child::{self, Child};
use crate::process::random;

/// Timeout until a server answers, or three have a leader. Opening a large store takes most of it.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Poll interval of a starting server.
const POLL: Duration = Duration::from_millis(20);

/// Maximum starts with other ports when another process took a port in between.
const PORT_ATTEMPTS: usize = 8;

/// Ports are chosen below the range that the kernel uses for outgoing connections (from 32768): in that range a client
/// that keeps trying to reach a stopped server on loopback can end up connected to itself, and hold the port for good.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// Servers of a cluster: the minimum that survives the loss of one.
const CLUSTER_SIZE: usize = 3;

/// User of the system account for reports.
const SYSTEM_USER: &str = "director";

/// Bytes of a failed server's log that are shown.
const LOG_TAIL: usize = 2_000;

/// Minimum sync interval: below it, "always" costs the same and guarantees more.
const SHORTEST_SYNC: Duration = Duration::from_millis(1);

/// Maximum sync interval: the server's own default.
const LONGEST_SYNC: Duration = Duration::from_secs(120);

/// When the server syncs its store to disk: `sync_interval` in its configuration, for all of its streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// Before each acknowledgement: an acknowledged batch survives a power cut.
    #[default]
    Always,
    /// Once per interval: an acknowledged batch survives a crash of the server, and a power cut only when it is older.
    Every(Duration),
}

impl fmt::Display for SyncPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SyncPolicy::Always => f.write_str("always"),
            SyncPolicy::Every(interval) => write!(f, "{}ms", interval.as_millis()),
        }
    }
}

/// The text is not a [`SyncPolicy`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a sync policy; write always, or an interval from 1ms to 120s")]
pub struct NotASyncPolicy(String);

impl FromStr for SyncPolicy {
    type Err = NotASyncPolicy;

    /// Parses `always`, `100ms` and `2s`.
    fn from_str(text: &str) -> Result<Self, NotASyncPolicy> {
        if text == "always" {
            return Ok(SyncPolicy::Always);
        }
        let number = text.trim_end_matches(char::is_alphabetic);
        let interval = match (number.parse::<u32>(), &text[number.len()..]) {
            (Ok(count), "ms") => Some(Duration::from_millis(u64::from(count))),
            (Ok(count), "s") => Some(Duration::from_secs(u64::from(count))),
            _ => None,
        };
        interval
            .filter(|interval| (SHORTEST_SYNC..=LONGEST_SYNC).contains(interval))
            .map(SyncPolicy::Every)
            .ok_or_else(|| NotASyncPolicy(text.to_owned()))
    }
}

/// Options of a private server.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Its folder: configuration, log and store. Created if missing; an existing store is reused.
    pub dir: PathBuf,
    /// Its sync policy.
    pub sync: SyncPolicy,
    /// Maximum bytes of its store on disk; `None` leaves that to the server.
    pub store_limit: Option<u64>,
    /// Password of the user of the system account that may subscribe to [reports](super::Reports), and to nothing else.
    pub system_password: String,
}

impl ServerOptions {
    /// A server in `dir` that syncs before each acknowledgement.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            sync: SyncPolicy::default(),
            store_limit: None,
            system_password: random::<16>().iter().map(|byte| format!("{byte:02x}")).collect(),
        }
    }
}

/// A private server could not be started, or an action on it failed.
#[derive(Debug, thiserror::Error)]
pub enum ServerError {
    /// There is no program to run.
    #[error("no nats-server to run")]
    Binary(#[from] BinaryError),
    /// Its folder could not be written.
    #[error("the nats-server's folder {dir} could not be prepared; check that it is writable and the disk is not full")]
    Prepare {
        /// The folder.
        dir: PathBuf,
        /// The operating system's error.
        source: io::Error,
    },
    /// The process could not be started, signalled or waited for.
    #[error("the nats-server process could not be {action}")]
    Process {
        action: &'static str,
        /// The operating system's error.
        source: io::Error,
    },
    /// No free port was found.
    #[error(
        "no free port on 127.0.0.1 between {} and {} for a nats-server; end what holds them",
        PORTS.start, PORTS.end
    )]
    NoPort,
    /// The server ended.
    #[error("nats-server ended ({status}); its log {log} ends with:\n{tail}")]
    Ended {
        /// Its exit status.
        status: ExitStatus,
        /// Its log file.
        log: PathBuf,
        /// The end of that file.
        tail: String,
    },
    /// It runs and does not answer.
    #[error(
        "nats-server on {url} did not answer within {} s; its log {log} ends with:\n{tail}",
        START_TIMEOUT.as_secs()
    )]
    Silent {
        /// Its address.
        url: String,
        /// Its log file.
        log: PathBuf,
        /// The end of that file.
        tail: String,
    },
}

/// One private server. It is killed when dropped; its folder stays.
#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    files: Files,
    port: u16,
    child: Child,
    system_password: String,
}

impl Server {
    /// Starts a server and waits until its JetStream answers.
    ///
    /// # Errors
    /// When there is no program, its folder cannot be written, or it does not start: the error has the end of its log.
    pub async fn start(options: &ServerOptions) -> Result<Self, ServerError> {
        let program = find_binary()?;
        let mut attempt = 1;
        loop {
            let mut server = Self::launch(&program, options, &Member::alone(free_port()?))?;
            match server.ready().await {
                Err(error) if attempt < PORT_ATTEMPTS && error.is_port_taken() => attempt += 1,
                result => return result.map(|()| server),
            }
        }
    }

    /// The address for clients: `nats://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("nats://127.0.0.1:{}", self.port)
    }

    /// The address for [reports](super::Reports), with credentials.
    pub fn system_url(&self) -> String {
        format!("nats://{SYSTEM_USER}:{}@127.0.0.1:{}", self.system_password, self.port)
    }

    /// The process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Its log file.
    pub fn log(&self) -> &Path {
        &self.files.log
    }

    /// Its store folder.
    pub fn store(&self) -> &Path {
        &self.files.store
    }

    /// Kills it with SIGKILL, as a crash or the kernel would. The store stays as it is at that moment.
    ///
    /// # Errors
    /// The operating system's error.
    pub fn kill(&mut self) -> Result<(), ServerError> {
        self.child.kill().map(|_| ()).map_err(process("killed"))
    }

    /// Stops it as an operator would, and waits for that.
    ///
    /// # Errors
    /// The operating system's error.
    pub async fn stop(&mut self) -> Result<(), ServerError> {
        self.child.stop().await.map(|_| ()).map_err(process("stopped"))
    }

    /// Freezes it with SIGSTOP: connections stay open without answers.
    ///
    /// # Errors
    /// When it does not run.
    pub fn pause(&self) -> Result<(), ServerError> {
        self.child.pause().map_err(process("paused"))
    }

    /// Continues it with SIGCONT.
    ///
    /// # Errors
    /// When it does not run.
    pub fn resume(&self) -> Result<(), ServerError> {
        self.child.resume().map_err(process("resumed"))
    }

    /// Restarts it after [`Self::kill`] or [`Self::stop`], on the same port and store, and waits until it answers. A
    /// server that still runs is killed first. In a cluster this requires a majority that runs.
    ///
    /// # Errors
    /// As for [`Self::start`].
    pub async fn restart(&mut self) -> Result<(), ServerError> {
        self.relaunch()?;
        self.ready().await
    }

    /// Restarts it without waiting for it to answer: to start several of a cluster at once.
    ///
    /// # Errors
    /// When the process cannot be started.
    pub fn relaunch(&mut self) -> Result<(), ServerError> {
        self.kill()?;
        self.child = self.files.spawn(&self.program)?;
        Ok(())
    }

    /// Waits until JetStream answers: on a single server when its store is open, in a cluster when there is a leader.
    ///
    /// # Errors
    /// When it ends meanwhile, or takes longer than a minute.
    pub async fn ready(&mut self) -> Result<(), ServerError> {
        let patience = Instant::now() + START_TIMEOUT;
        while Instant::now() < patience {
            self.check()?;
            if jetstream_answers(&self.url()).await {
                return Ok(());
            }
            tokio::time::sleep(POLL).await;
        }
        Err(ServerError::Silent {
            url: self.url(),
            log: self.files.log.clone(),
            tail: self.files.log_tail(),
        })
    }

    /// Whether its JetStream answers within a second. A server whose disk was full may answer, and store nothing.
    pub async fn answers(&self) -> bool {
        jetstream_answers(&self.url()).await
    }

    /// Checks that it still runs.
    ///
    /// # Errors
    /// [`ServerError::Ended`] if it does not, with the end of its log.
    pub fn check(&mut self) -> Result<(), ServerError> {
        match self.child.ended().map_err(process("watched"))? {
            None => Ok(()),
            Some(status) => Err(ServerError::Ended {
                status,
                log: self.files.log.clone(),
                tail: self.files.log_tail(),
            }),
        }
    }

    fn launch(program: &Path, options: &ServerOptions, member: &Member<'_>) -> Result<Self, ServerError> {
        let files = Files::prepare(options, member)?;
        let child = files.spawn(program)?;
        Ok(Self {
            program: program.to_owned(),
            files,
            port: member.port,
            child,
            system_password: options.system_password.clone(),
        })
    }
}

/// Three servers with a common JetStream, for streams with three replicas.
#[derive(Debug)]
pub struct Cluster {
    servers: Vec<Server>,
}

impl Cluster {
    /// Starts three servers in folders below `options.dir` and waits until they have a leader.
    ///
    /// # Errors
    /// As for [`Server::start`], of the first that fails.
    pub async fn start(options: &ServerOptions) -> Result<Self, ServerError> {
        let program = find_binary()?;
        let mut attempt = 1;
        loop {
            let mut cluster = Self::launch(&program, options)?;
            match cluster.ready().await {
                Err(error) if attempt < PORT_ATTEMPTS && error.is_port_taken() => attempt += 1,
                result => return result.map(|()| cluster),
            }
        }
    }

    /// The servers, always in the same order; their names are `n1`, `n2` and `n3`.
    pub fn servers(&mut self) -> &mut [Server] {
        &mut self.servers
    }

    /// The server of that name, as used in a stream's cluster information; `None` for an unknown name.
    pub fn named(&mut self, name: &str) -> Option<&mut Server> {
        let place = (0..CLUSTER_SIZE).find(|&place| member_name(place) == name)?;
        self.servers.get_mut(place)
    }

    /// The addresses for clients: all three, separated by commas.
    pub fn url(&self) -> String {
        self.servers.iter().map(Server::url).collect::<Vec<_>>().join(",")
    }

    /// The addresses for [reports](super::Reports): all three, with credentials, separated by commas.
    pub fn system_url(&self) -> String {
        self.servers
            .iter()
            .map(Server::system_url)
            .collect::<Vec<_>>()
            .join(",")
    }

    /// Waits until each of the three answers.
    ///
    /// # Errors
    /// That of the first that ends or takes longer than a minute.
    pub async fn ready(&mut self) -> Result<(), ServerError> {
        for server in &mut self.servers {
            server.ready().await?;
        }
        Ok(())
    }

    fn launch(program: &Path, options: &ServerOptions) -> Result<Self, ServerError> {
        let ports = (0..CLUSTER_SIZE).map(|_| free_port()).collect::<Result<Vec<_>, _>>()?;
        let routes = (0..CLUSTER_SIZE).map(|_| free_port()).collect::<Result<Vec<_>, _>>()?;
        let start = |place: usize| {
            let member = Member {
                name: member_name(place),
                port: ports[place],
                route: Some(routes[place]),
                routes: &routes,
            };
            let options = ServerOptions {
                dir: options.dir.join(&member.name),
                ..options.clone()
            };
            Server::launch(program, &options, &member)
        };
        Ok(Self {
            servers: (0..CLUSTER_SIZE).map(start).collect::<Result<_, _>>()?,
        })
    }
}

fn member_name(place: usize) -> String {
    format!("n{}", place + 1)
}

impl ServerError {
    /// Another process took the port between our choice and the server's listening on it.
    fn is_port_taken(&self) -> bool {
        matches!(self, ServerError::Ended { tail, .. } if tail.contains("address already in use"))
    }
}

fn process(action: &'static str) -> impl Fn(io::Error) -> ServerError {
    move |source| ServerError::Process { action, source }
}

/// The identity of a server in its cluster.
struct Member<'a> {
    name: String,
    port: u16,
    /// The port at which the other servers reach it; `None` for a single server.
    route: Option<u16>,
    routes: &'a [u16],
}

impl Member<'_> {
    fn alone(port: u16) -> Self {
        Self {
            name: member_name(0),
            port,
            route: None,
            routes: &[],
        }
    }
}

/// The files of one server.
#[derive(Debug)]
struct Files {
    config: PathBuf,
    log: PathBuf,
    store: PathBuf,
}

impl Files {
    fn prepare(options: &ServerOptions, member: &Member<'_>) -> Result<Self, ServerError> {
        let dir = &options.dir;
        let failed = |source| ServerError::Prepare {
            dir: dir.clone(),
            source,
        };
        fs::create_dir_all(dir).map_err(failed)?;
        let dir = dir.canonicalize().map_err(failed)?;
        let files = Self {
            config: dir.join("nats.conf"),
            log: dir.join("nats.log"),
            store: dir.join("store"),
        };
        // The server reports unknown configuration as an error; a folder's name is quoted so that it can be any.
        write_secret(&files.config, &configuration(options, member, &files.store)).map_err(failed)?;
        Ok(files)
    }

    fn spawn(&self, program: &Path) -> Result<Child, ServerError> {
        // A new log for each start: a taken port of the last start must not be read as taken now.
        let log = fs::File::create(&self.log)
            .and_then(|file| Ok((file.try_clone()?, file)))
            .map_err(|source| ServerError::Prepare {
                dir: self.log.clone(),
                source,
            })?;
        let mut command = child::command(program);
        command
            .arg("--config")
            .arg(&self.config)
            .stdin(Stdio::null())
            .stdout(log.0)
            .stderr(log.1);
        Child::spawn(command).map_err(process("started"))
    }

    fn log_tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&text[text.len().saturating_sub(LOG_TAIL)..])
            .trim()
            .to_owned()
    }
}

fn configuration(options: &ServerOptions, member: &Member<'_>, store: &Path) -> String {
    let limit = options
        .store_limit
        .map(|bytes| format!("\n  max_file_store: {bytes}"))
        .unwrap_or_default();
    let mut text = format!(
        "# Written at each first start by Annals; a private server, on loopback only.\n\
         server_name: {name}\nhost: 127.0.0.1\nport: {port}\nmax_payload: {MAX_PAYLOAD}\n\
         jetstream {{\n  store_dir: {store}\n  sync_interval: {sync}{limit}\n}}\n",
        name = member.name,
        port = member.port,
        store = quoted(store),
        sync = options.sync,
    );
    // Clients without credentials are in the account of the realm, as if there were no other.
    text.push_str(&format!(
        "accounts {{\n  $SYS {{\n    users: [{{\n      user: {SYSTEM_USER}, password: \"{password}\"\n      permissions: \
         {{ publish: {{ deny: \">\" }}, subscribe: {{ allow: \"{REPORTS}\" }} }}\n    }}]\n  }}\n}}\n",
        password = options.system_password,
    ));
    if let Some(route) = member.route {
        let routes: Vec<_> = member
            .routes
            .iter()
            .map(|port| format!("nats://127.0.0.1:{port}"))
            .collect();
        text.push_str(&format!(
            "cluster {{\n  name: annals\n  host: 127.0.0.1\n  port: {route}\n  routes: [{}]\n}}\n",
            routes.join(", ")
        ));
    }
    text
}

/// Writes a file that only its owner may read.
///
/// # Errors
/// Those of the operating system.
pub fn write_secret(path: &Path, text: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true).mode(0o600);
    let mut file = options.open(path)?;
    file.set_permissions(fs::Permissions::from_mode(0o600))?;
    file.write_all(text.as_bytes())
}

/// A string in the server's configuration language.
fn quoted(path: &Path) -> String {
    format!(
        "\"{}\"",
        path.display().to_string().replace('\\', "\\\\").replace('"', "\\\"")
    )
}

/// A port of 127.0.0.1 that is free at the moment, another one at each call.
fn free_port() -> Result<u16, ServerError> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let width = PORTS.end - PORTS.start;
    // Test programs run in parallel: each starts at another port.
    let offset = (std::process::id() % u32::from(width)) as u16;
    (0..width)
        .map(|_| {
            PORTS.start
                + NEXT
                    .fetch_add(1, Ordering::Relaxed)
                    .wrapping_mul(7)
                    .wrapping_add(offset)
                    % width
        })
        .find(|&port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok())
        .ok_or(ServerError::NoPort)
}

async fn jetstream_answers(url: &str) -> bool {
    let options = async_nats::ConnectOptions::new()
        .connection_timeout(Duration::from_secs(1))
        .max_reconnects(1);
    let Ok(client) = options.connect(url).await else {
        return false;
    };
    let mut context = jetstream::new(client);
    context.set_timeout(Duration::from_secs(1));
    context.query_account().await.is_ok()
}
