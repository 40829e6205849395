//! A whole realm on this machine: private nats-servers and one process per service, started in the documented order,
//! with all data and logs in one folder.

mod closing;
mod console;
mod keeping;
mod retiring;
mod supervision;

use std::{
    fs::{self, File, OpenOptions},
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use annals_host::{
    child::{self, Child},
    claim::{Claim, ClaimError},
    config::{Service, StoreKind},
    nats::{ServerCount, ServerError, ServerOptions, Servers, SyncPolicy, write_secret},
    waiting::Wait,
    world::{WorldError, compile},
};
use annals_ids::Hash;
use futures::{FutureExt, future::BoxFuture};
use thiserror::Error;

pub use console::NoConsole;
use console::RealmConsole;
pub(crate) use keeping::{NotKilled, RealmOrder, is_expendable};
pub use supervision::Supervised;
use supervision::{Disks, Restarts};

/// Timeout for a realm to answer log-ins.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// Typical time until it does.
const READY_AS_A_RULE: Duration = Duration::from_secs(5);

/// Interval between polls of a starting realm.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Lines of a failed service's log that are shown.
const SHOWN_LINES: usize = 12;

/// The configuration of a realm.
#[derive(Clone, Debug)]
pub struct RealmPlan {
    /// The realm's name.
    pub realm: String,
    /// The game that it runs.
    pub build: GameBuild,
    /// The folder of all the realm's data.
    pub data: PathBuf,
    /// The kind of its store.
    pub store: StoreKind,
    /// Minimum number of its shards.
    pub shards: u16,
    /// Number of db processes, at most as many as there are shards: they divide the folding. The first serves the store.
    pub dbs: u16,
    /// Number of base processes.
    pub bases: usize,
    /// Number of cell processes.
    pub cells: usize,
    /// Number of director processes: one leads, the others stand by.
    pub directors: usize,
    /// Number of private nats-servers, each of which keeps every log.
    pub nats_servers: ServerCount,
    /// The sync policy of the nats-servers.
    pub sync: SyncPolicy,
    /// The address of the login service; port 0 lets the system choose one.
    pub listen: SocketAddr,
    /// The host name or address that clients are given to connect to, if it differs from the one listened on.
    pub advertise: Option<String>,
    /// Whether the archive's checkpoints are signed here.
    pub signer: bool,
    /// Further settings, by their keys, of all processes that use them.
    pub settings: Vec<(&'static str, String)>,
}

impl RealmPlan {
    /// The default configuration, on a port that the system chooses.
    #[must_use]
    pub fn new(realm: &str, world: &Path, data: &Path) -> Self {
        Self {
            realm: realm.to_owned(),
            build: GameBuild {
                world: world.to_owned(),
                binaries: None,
                release: None,
            },
            data: data.to_owned(),
            store: StoreKind::Embedded,
            shards: 1,
            dbs: 1,
            bases: 2,
            cells: 2,
            directors: 1,
            nats_servers: ServerCount::One,
            sync: SyncPolicy::Always,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: None,
            signer: true,
            settings: Vec::new(),
        }
    }
}

/// What the processes of a game are started from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GameBuild {
    /// The folder of the world's definitions.
    pub world: PathBuf,
    /// The folder of the game's base and cell binaries; `None` for those of the release, with the sample's game.
    pub binaries: Option<PathBuf>,
    /// The folder of the programs of another release; `None` for those beside this program.
    pub release: Option<PathBuf>,
}

impl GameBuild {
    /// The program of a service: the game's for a base and a cell, if it has its own, and else that of the release.
    pub(crate) fn program(&self, service: Service) -> PathBuf {
        let name = format!("annals-{}", service.name());
        let of_game = self.binaries.as_ref().filter(|_| is_of_game(service));
        match of_game.or(self.release.as_ref()) {
            Some(folder) => folder.join(name),
            None => sibling(&name),
        }
    }

    /// Checks that the game and the release are built.
    pub(crate) fn check(&self) -> Result<(), UpError> {
        for service in Service::ALL {
            let program = self.program(service);
            if !program.is_file() {
                return Err(match (&self.binaries, &self.release) {
                    (Some(_), _) if is_of_game(service) => UpError::NoGame(program),
                    (_, Some(_)) => UpError::NoRelease(program),
                    (_, None) => UpError::NotBuilt(program),
                });
            }
        }
        Ok(())
    }
}

/// Why a realm did not start.
#[derive(Debug, Error)]
pub enum UpError {
    /// The definitions have errors.
    #[error(transparent)]
    World(#[from] WorldError),
    /// Another realm runs in the folder.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// With this number of nats-servers, the data of the existing ones in the folder would not be found.
    #[error("the realm in {data} has run with {before} nats-servers, whose logs would be lost; start it with \
        --nats-servers {before}", data = data.display())]
    OtherServers {
        /// The folder.
        data: PathBuf,
        /// The existing number.
        before: ServerCount,
    },
    /// Error of the nats-servers.
    #[error("the private nats-server cannot be started")]
    Nats(#[from] ServerError),
    /// Error with a file or folder.
    #[error("{path} cannot be used", path = path.display())]
    File {
        path: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// The folder of a game has no such binary.
    #[error("{} is missing; build the game (`cargo build --bins`), and name the folder of its binaries with --game",
        .0.display())]
    NoGame(PathBuf),
    /// The folder of a release has no such program.
    #[error("{} is missing; name the folder of all programs of a release", .0.display())]
    NoRelease(PathBuf),
    /// A service's binary does not exist.
    #[error("{} is missing; build it first: cargo build --release", .0.display())]
    NotBuilt(PathBuf),
    /// A service's binary cannot be started.
    #[error("{program} cannot be started", program = program.display())]
    Start {
        /// The path of the binary.
        program: PathBuf,
        /// The underlying error.
        source: io::Error,
    },
    /// A service ended.
    #[error("{service} ended with {status}; the end of {log}:\n{tail}", log = log.display())]
    Ended {
        /// The name of the service.
        service: String,
        /// Its exit status.
        status: ExitStatus,
        log: PathBuf,
        /// The end of its log.
        tail: String,
    },
    /// It takes too long.
    #[error("the realm does not answer log-ins after {} s; see the logs in {logs}", READY_WITHIN.as_secs(), logs = logs.display())]
    Slow {
        /// The folder of the logs.
        logs: PathBuf,
    },
}

/// One process of a realm.
#[derive(Debug)]
struct Member {
    name: String,
    service: Service,
    /// What it is started from.
    build: GameBuild,
    /// Its own flags, besides those that all services get.
    flags: Vec<String>,
    child: Child,
    /// Offset in its log at which the output of this process begins.
    said_from: u64,
    /// Whether it is not restarted when it ends, because another process replaces it.
    is_retiring: bool,
    restarts: Restarts,
}

/// A running realm. Dropping it kills its processes; its folder stays.
#[derive(Debug)]
pub struct Realm {
    plan: RealmPlan,
    /// Stopped last: everything else communicates over it.
    members: Vec<Member>,
    nats: Servers,
    nats_restarts: Restarts,
    disks: Disks,
    console: Option<RealmConsole>,
    _claim: Claim,
    /// Where clients log in, and the fingerprint of the certificate presented there.
    pub login: (SocketAddr, Hash),
}

impl Realm {
    /// Starts a realm and waits until it answers log-ins. The future is boxed, so that its code is compiled into this
    /// crate only and not into every caller.
    ///
    /// # Errors
    /// When something is missing or does not start; the message contains the end of its log.
    pub fn start(plan: RealmPlan) -> BoxFuture<'static, Result<Self, UpError>> {
        Self::start_members(plan).boxed()
    }

    async fn start_members(plan: RealmPlan) -> Result<Self, UpError> {
        compile(&plan.build.world)?;
        plan.build.check()?;
        let logs = plan.data.join("logs");
        fs::create_dir_all(&logs).map_err(|source| UpError::File {
            path: logs.clone(),
            source,
        })?;
        let claim = Claim::take(&plan.data)?;
        // The address file of an earlier run would be taken for this one's.
        let announced = plan.data.join("login.address");
        if announced.exists() {
            fs::remove_file(&announced).map_err(|source| UpError::File {
                path: announced.clone(),
                source,
            })?;
        }
        let nats = start_servers(&plan).await?;
        let nowhere = SocketAddr::from(([127, 0, 0, 1], 0));
        let mut realm = Self {
            members: Vec::new(),
            nats,
            nats_restarts: Restarts::default(),
            disks: Disks::default(),
            console: None,
            _claim: claim,
            login: (nowhere, Hash::ZERO),
            plan,
        };
        let build = realm.plan.build.clone();
        realm.add_dbs(&build)?;
        let of_director = of_director(&realm.plan, &realm.nats)?;
        for number in 1..=realm.plan.directors {
            let name = match realm.plan.directors {
                1 => "director".to_owned(),
                _ => format!("director-{number}"),
            };
            realm.add((Service::Director, &build), &name, of_director.clone())?;
        }
        // Bases listen on the address of the login service, on ports of their own.
        let beside = SocketAddr::new(realm.plan.listen.ip(), 0);
        for number in 1..=realm.plan.bases {
            realm.add(
                (Service::Base, &build),
                &format!("base-{number}"),
                front(beside, realm.plan.advertise.as_deref()),
            )?;
        }
        for number in 1..=realm.plan.cells {
            realm.add((Service::Cell, &build), &format!("cell-{number}"), vec![])?;
        }
        if realm.plan.signer {
            realm.add((Service::Signer, &build), "signer", vec![])?;
        }
        realm.add(
            (Service::Login, &build),
            "login",
            front(realm.plan.listen, realm.plan.advertise.as_deref()),
        )?;
        realm.login = realm.ready(&announced).await?;
        // After a restart it listens on the same port.
        if let Some(login) = realm.members.last_mut() {
            let port = realm.login.0.port();
            login.flags = front(
                SocketAddr::new(realm.plan.listen.ip(), port),
                realm.plan.advertise.as_deref(),
            );
        }
        Ok(realm)
    }

    fn add_dbs(&mut self, build: &GameBuild) -> Result<(), UpError> {
        for number in 1..=self.plan.dbs {
            let name = match number {
                1 => "db".to_owned(),
                _ => format!("db-{number}"),
            };
            self.add((Service::Db, build), &name, of_db(&self.plan, number))?;
        }
        Ok(())
    }

    /// The URLs of its nats-servers.
    pub fn nats(&self) -> String {
        self.nats.url()
    }

    /// The nats-servers, to pause, stop and restart them.
    pub fn nats_servers(&mut self) -> &mut Servers {
        &mut self.nats
    }

    /// Its configuration.
    pub fn plan(&self) -> &RealmPlan {
        &self.plan
    }

    /// The names and process ids of the running processes.
    pub fn members(&self) -> impl Iterator<Item = (&str, u32)> {
        self.members
            .iter()
            .map(|member| (member.name.as_str(), member.child.id()))
    }

    /// Sends SIGKILL to one process; `false` if there is none of that name.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn kill(&mut self, name: &str) -> io::Result<bool> {
        match self.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.child.kill().map(|_| true),
            None => Ok(false),
        }
    }

    /// Sends SIGSTOP to one process; `false` if there is none of that name.
    ///
    /// # Errors
    /// When it has ended.
    pub fn pause(&self, name: &str) -> io::Result<bool> {
        self.signal(name, Child::pause)
    }

    /// Sends SIGCONT to one process; `false` if there is none of that name.
    ///
    /// # Errors
    /// When it has ended.
    pub fn resume(&self, name: &str) -> io::Result<bool> {
        self.signal(name, Child::resume)
    }

    fn signal(&self, name: &str, signal: fn(&Child) -> io::Result<()>) -> io::Result<bool> {
        match self.members.iter().find(|member| member.name == name) {
            Some(member) => signal(&member.child).map(|()| true),
            None => Ok(false),
        }
    }

    /// Sends SIGTERM to one process, waits for its end and returns its exit status; `None` if there is none of that
    /// name.
    ///
    /// # Errors
    /// Those of the operating system.
    pub async fn stop_one(&mut self, name: &str) -> io::Result<Option<ExitStatus>> {
        match self.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.child.stop().await.map(Some),
            None => Ok(None),
        }
    }

    /// The exit status of a process, if it has ended; also `None` if there is none of that name.
    ///
    /// # Errors
    /// Those of the operating system.
    pub fn ended(&mut self, name: &str) -> io::Result<Option<ExitStatus>> {
        match self.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.child.ended(),
            None => Ok(None),
        }
    }

    /// Restarts a process with the same flags and log; one that still runs is killed first. `false` if there is none of
    /// that name.
    ///
    /// # Errors
    /// When it cannot be started.
    pub fn start_again(&mut self, name: &str) -> Result<bool, UpError> {
        let Some(index) = self.members.iter().position(|member| member.name == name) else {
            return Ok(false);
        };
        let member = &mut self.members[index];
        member.child.kill().map_err(|source| UpError::File {
            path: self.plan.data.clone(),
            source,
        })?;
        let (service, build, flags) = (member.service, member.build.clone(), member.flags.clone());
        (self.members[index].child, self.members[index].said_from) = self.spawn((service, &build), name, &flags)?;
        Ok(true)
    }

    /// Fails with the first process that ended without being killed.
    ///
    /// # Errors
    /// [`UpError::Ended`] with the end of its log.
    pub fn watch(&mut self, killed: &[&str]) -> Result<(), UpError> {
        self.nats.check()?;
        for index in 0..self.members.len() {
            if killed.contains(&self.members[index].name.as_str()) {
                continue;
            }
            if let Some(ended) = self.how_ended(index)? {
                return Err(ended);
            }
        }
        Ok(())
    }

    /// The error of a process that has ended: [`UpError::Ended`] with the end of its log.
    fn how_ended(&mut self, index: usize) -> Result<Option<UpError>, UpError> {
        let member = &mut self.members[index];
        let ended = member.child.ended().map_err(|source| UpError::File {
            path: self.plan.data.clone(),
            source,
        })?;
        Ok(ended.map(|status| {
            let log = log_of(&self.plan.data, &member.name);
            UpError::Ended {
                service: member.name.clone(),
                status,
                tail: tail(&log, member.said_from),
                log,
            }
        }))
    }

    /// Stops everything in order: first the processes that admit clients and grant owners, so that no owner is taken
    /// over by a process that is about to stop; the store last.
    ///
    /// # Errors
    /// Those of the operating system.
    pub async fn stop(mut self) -> Result<(), UpError> {
        self.stop_console().await.map_err(|source| UpError::File {
            path: self.plan.data.clone(),
            source,
        })?;
        let grants = |member: &Member| member.service == Service::Director;
        if let Some(director) = self.members.iter().position(grants) {
            let last = self.members.len() - 1;
            self.members[director..last].rotate_left(self.plan.directors);
        }
        let mut are_asked = false;
        while let Some(mut member) = self.members.pop() {
            if !are_asked && !matches!(member.service, Service::Login | Service::Director) {
                // Processes that wait in vain for a director, to hand over what they hold, wait together.
                let holding = |member: &&Member| matches!(member.service, Service::Base | Service::Cell);
                for member in self.members.iter().filter(holding) {
                    // One that has ended needs no signal.
                    let _ = member.child.terminate();
                }
                are_asked = true;
            }
            member.child.stop().await.map_err(|source| UpError::File {
                path: self.plan.data.clone(),
                source,
            })?;
        }
        self.nats.stop().await?;
        Ok(())
    }

    fn add(&mut self, (service, build): (Service, &GameBuild), name: &str, flags: Vec<String>) -> Result<(), UpError> {
        let log = log_of(&self.plan.data, name);
        let failed = |source| UpError::File {
            path: log.clone(),
            source,
        };
        // The log of an earlier run would be taken for this one's; it is kept under another name.
        if log.exists() {
            fs::rename(&log, log.with_extension("log.before")).map_err(failed)?;
        }
        File::create(&log).map_err(failed)?;
        let (child, said_from) = self.spawn((service, build), name, &flags)?;
        self.members.push(Member {
            name: name.to_owned(),
            service,
            build: build.clone(),
            flags,
            child,
            said_from,
            is_retiring: false,
            restarts: Restarts::default(),
        });
        Ok(())
    }

    /// Starts a process, and notes where in its log its output begins.
    fn spawn(
        &self,
        (service, build): (Service, &GameBuild),
        name: &str,
        flags: &[String],
    ) -> Result<(Child, u64), UpError> {
        let program = build.program(service);
        let path = log_of(&self.plan.data, name);
        let failed = |source| UpError::File {
            path: path.clone(),
            source,
        };
        let output = OpenOptions::new().append(true).open(&path).map_err(failed)?;
        let said_from = output.metadata().map_err(failed)?.len();
        let errors = output.try_clone().map_err(failed)?;
        let mut command: Command = child::command(&program);
        command.args(["--realm", &self.plan.realm, "--nats", &self.nats.url()]);
        if service.uses("replicas") {
            command.args(["--replicas", &self.nats.count().to_string()]);
        }
        if service.uses("world") {
            command.arg("--world").arg(&build.world);
        }
        if service.uses("data") {
            command.arg("--data").arg(&self.plan.data);
        }
        // The private nats-servers need none of what an operator's shell has for others.
        for variable in ["CREDENTIALS", "CA", "CERTIFICATE", "KEY"] {
            command.env_remove(format!("ANNALS_NATS_{variable}"));
        }
        for (key, value) in self.plan.settings.iter().filter(|(key, _)| service.uses(key)) {
            command.arg(format!("--{}", key.replace('_', "-"))).arg(value);
        }
        command.args(flags).stdout(output).stderr(errors);
        let child = Child::spawn(command).map_err(|source| UpError::Start { program, source })?;
        Ok((child, said_from))
    }

    async fn ready(&mut self, announced: &Path) -> Result<(SocketAddr, Hash), UpError> {
        let logs = self.plan.data.join("logs");
        let mut wait = Wait::new(
            "the realm to answer log-ins",
            format!(
                "timeout after {} s; see the logs in {}",
                READY_WITHIN.as_secs(),
                logs.display()
            ),
        )
        .after(READY_AS_A_RULE);
        let patience = Instant::now() + READY_WITHIN;
        while Instant::now() < patience {
            self.watch(&[])?;
            if let Some(login) = fs::read_to_string(announced).ok().as_deref().and_then(parse) {
                wait.ends();
                return Ok(login);
            }
            wait.lasts("services are starting");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
        Err(UpError::Slow { logs })
    }
}

/// Starts the nats-servers of a realm, as many as it had before if it had any.
async fn start_servers(plan: &RealmPlan) -> Result<Servers, UpError> {
    let dir = plan.data.join("nats");
    if let Some(before) = ServerCount::kept_in(&dir).filter(|before| *before != plan.nats_servers) {
        return Err(UpError::OtherServers {
            data: plan.data.clone(),
            before,
        });
    }
    let options = ServerOptions {
        sync: plan.sync,
        ..ServerOptions::new(dir)
    };
    Ok(Servers::start(&options, plan.nats_servers).await?)
}

/// Whether a game has a program of its own for this service.
fn is_of_game(service: Service) -> bool {
    matches!(service, Service::Base | Service::Cell)
}

/// The flags of a db: several divide the shards.
fn of_db(plan: &RealmPlan, number: u16) -> Vec<String> {
    let fold = match plan.dbs {
        1 => "all".to_owned(),
        dbs => {
            let folded = (0..plan.shards).filter(|shard| shard % dbs == number - 1);
            folded.map(|shard| shard.to_string()).collect::<Vec<_>>().join(",")
        }
    };
    let flags = [
        ("--store", plan.store.to_string()),
        ("--shards", plan.shards.to_string()),
        ("--fold", fold),
    ];
    flags
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value])
        .collect()
}

/// The flags of a director, with the file through which it learns of closed connections.
fn of_director(plan: &RealmPlan, nats: &Servers) -> Result<Vec<String>, UpError> {
    let reports = plan.data.join("nats").join("system");
    write_secret(&reports, &nats.system_url()).map_err(|source| UpError::File {
        path: reports.clone(),
        source,
    })?;
    let flags = [
        ("--bases", plan.bases.to_string()),
        ("--cells", plan.cells.to_string()),
        ("--nats-system", reports.display().to_string()),
    ];
    Ok(flags
        .into_iter()
        .flat_map(|(flag, value)| [flag.to_owned(), value])
        .collect())
}

/// The flags of a service that clients connect to.
fn front(listen: SocketAddr, advertise: Option<&str>) -> Vec<String> {
    let mut flags = vec!["--listen".to_owned(), listen.to_string()];
    if let Some(host) = advertise {
        flags.extend(["--advertise".to_owned(), format!("{host}:0")]);
    }
    flags
}

/// The binary of that name beside this one.
pub(crate) fn sibling(name: &str) -> PathBuf {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.to_owned()));
    match beside {
        // Test binaries are in a folder below the other binaries.
        Some(folder) if folder.ends_with("deps") => folder.with_file_name(name),
        Some(folder) => folder.join(name),
        None => PathBuf::from(name),
    }
}

pub(crate) fn log_of(data: &Path, name: &str) -> PathBuf {
    data.join("logs").join(format!("{name}.log"))
}

/// The end of a process's output, from this offset in its log on: the last lines, or after a panic those from the panic
/// on, because the stack trace follows it.
fn tail(log: &Path, from: u64) -> String {
    let said = fs::read(log).unwrap_or_default();
    let said = said
        .get(usize::try_from(from).unwrap_or(usize::MAX)..)
        .unwrap_or_default();
    let text = String::from_utf8_lossy(said);
    let lines: Vec<&str> = text.lines().collect();
    let begin = lines.iter().rposition(|line| line.contains("panicked at"));
    let begin = begin.unwrap_or(lines.len().saturating_sub(SHOWN_LINES));
    let end = lines.len().min(begin + SHOWN_LINES);
    lines[begin..end].join("\n")
}

/// The content of an announcement: an address, and the fingerprint of the certificate there.
pub(crate) fn parse(announced: &str) -> Option<(SocketAddr, Hash)> {
    let (address, certificate) = announced.trim().split_once(' ')?;
    Some((address.parse().ok()?, certificate.parse().ok()?))
}
