//! A whole realm on this machine: private nats-servers and one process per service, started in the documented order, with
//! everything they keep and log in one folder.

mod closing;
mod mending;

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
    nats::{ServerCount, ServerError, ServerOptions, Servers, SyncPolicy},
    waiting::Wait,
    world::{WorldError, compile},
};
use annals_ids::Hash;
use thiserror::Error;

use mending::{Disks, Restarts};

/// How long a realm may take until it answers log-ins.
const READY_WITHIN: Duration = Duration::from_secs(60);

/// How soon it does as a rule.
const READY_AS_A_RULE: Duration = Duration::from_secs(5);

/// How often a starting realm is looked at.
const LOOK: Duration = Duration::from_millis(50);

/// Lines of a failed service's log that are shown.
const SHOWN_LINES: usize = 12;

/// What is to run.
#[derive(Clone, Debug)]
pub struct RealmPlan {
    /// The realm's name.
    pub realm: String,
    /// The folder of the world's definitions.
    pub world: PathBuf,
    /// The folder of everything the realm keeps.
    pub data: PathBuf,
    /// What its store is in.
    pub store: StoreKind,
    /// How long the events of cells are kept; where nothing is said, db goes by its own settings.
    pub keep_cell_events: Option<String>,
    /// Base processes.
    pub bases: usize,
    /// Cell processes.
    pub cells: usize,
    /// Director processes: one leads, the others stand by.
    pub directors: usize,
    /// Private nats-servers, each of which keeps every log.
    pub nats_servers: ServerCount,
    /// When they sync.
    pub sync: SyncPolicy,
    /// Where log-ins are listened for; port 0 is one that the system chooses.
    pub listen: SocketAddr,
    /// The host name or address that clients are told to connect to, if it is not the one that is listened on.
    pub advertise: Option<String>,
    /// Whether the archive's checkpoints are signed here.
    pub signer: bool,
}

impl RealmPlan {
    /// A realm as it runs when nobody says otherwise, on a port that the system chooses.
    #[must_use]
    pub fn new(realm: &str, world: &Path, data: &Path) -> Self {
        Self {
            realm: realm.to_owned(),
            world: world.to_owned(),
            data: data.to_owned(),
            store: StoreKind::Embedded,
            keep_cell_events: None,
            bases: 2,
            cells: 2,
            directors: 1,
            nats_servers: ServerCount::One,
            sync: SyncPolicy::Always,
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            advertise: None,
            signer: true,
        }
    }
}

/// Why a realm did not come up.
#[derive(Debug, Error)]
pub enum UpError {
    /// The definitions.
    #[error(transparent)]
    World(#[from] WorldError),
    /// Another realm runs in its folder.
    #[error(transparent)]
    Claim(#[from] ClaimError),
    /// What its nats-servers keep in its folder would not be found.
    #[error("the realm in {data} has run with {before} nats-servers, and what they keep would be left behind; start it with --nats-servers {before}", data = data.display())]
    OtherServers {
        /// The folder.
        data: PathBuf,
        /// How many there were.
        before: ServerCount,
    },
    /// The bus.
    #[error("the private nats-server does not run")]
    Nats(#[from] ServerError),
    /// A file or folder.
    #[error("{path} cannot be used", path = path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A service's binary is not there or cannot be started.
    #[error("{program} cannot be started; build it first: cargo build --release", program = program.display())]
    Start {
        /// The binary.
        program: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// A service ended.
    #[error("{service} ended with {status}; the end of {log}:\n{tail}", log = log.display())]
    Ended {
        /// Which.
        service: String,
        /// How.
        status: ExitStatus,
        /// Its log.
        log: PathBuf,
        /// The end of it.
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
    /// What it is started with beside what all are.
    flags: Vec<String>,
    child: Child,
    /// Where in its log what this process has said begins.
    said_from: u64,
    restarts: Restarts,
}

/// A realm that runs. Dropping it kills its processes; its folder stays.
#[derive(Debug)]
pub struct Realm {
    plan: RealmPlan,
    /// Stopped last: everything else talks over it.
    members: Vec<Member>,
    nats: Servers,
    nats_restarts: Restarts,
    disks: Disks,
    _claim: Claim,
    /// Where clients log in, and the fingerprint of the certificate they will see.
    pub login: (SocketAddr, Hash),
}

impl Realm {
    /// Starts a realm and waits until it answers log-ins.
    ///
    /// # Errors
    /// When something is missing or does not come up; the message shows the end of its log.
    pub async fn start(plan: RealmPlan) -> Result<Self, UpError> {
        compile(&plan.world)?;
        let logs = plan.data.join("logs");
        fs::create_dir_all(&logs).map_err(|source| UpError::File {
            path: logs.clone(),
            source,
        })?;
        let claim = Claim::take(&plan.data)?;
        // An earlier run's address would be taken for this one's.
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
            _claim: claim,
            login: (nowhere, Hash::ZERO),
            plan,
        };
        realm.add(Service::Db, "db", of_db(&realm.plan))?;
        let (bases, cells) = (realm.plan.bases.to_string(), realm.plan.cells.to_string());
        let desired = ["--bases".to_owned(), bases, "--cells".to_owned(), cells];
        for number in 1..=realm.plan.directors {
            let name = match realm.plan.directors {
                1 => "director".to_owned(),
                _ => format!("director-{number}"),
            };
            realm.add(Service::Director, &name, desired.to_vec())?;
        }
        // Bases are reached where log-ins are, on ports of their own.
        let beside = SocketAddr::new(realm.plan.listen.ip(), 0);
        for number in 1..=realm.plan.bases {
            realm.add(
                Service::Base,
                &format!("base-{number}"),
                front(beside, realm.plan.advertise.as_deref()),
            )?;
        }
        for number in 1..=realm.plan.cells {
            realm.add(Service::Cell, &format!("cell-{number}"), vec![])?;
        }
        if realm.plan.signer {
            realm.add(Service::Signer, "signer", vec![])?;
        }
        realm.add(
            Service::Login,
            "login",
            front(realm.plan.listen, realm.plan.advertise.as_deref()),
        )?;
        realm.login = realm.ready(&announced).await?;
        // Whenever it is started again it is to be found where it was.
        if let Some(login) = realm.members.last_mut() {
            let port = realm.login.0.port();
            login.flags = front(
                SocketAddr::new(realm.plan.listen.ip(), port),
                realm.plan.advertise.as_deref(),
            );
        }
        Ok(realm)
    }

    /// Where its nats-servers are.
    pub fn nats(&self) -> String {
        self.nats.url()
    }

    /// The nats-servers, to be paused, stopped and started again.
    pub fn nats_servers(&mut self) -> &mut Servers {
        &mut self.nats
    }

    /// What was planned.
    pub fn plan(&self) -> &RealmPlan {
        &self.plan
    }

    /// The names and process ids of what runs.
    pub fn members(&self) -> impl Iterator<Item = (&str, u32)> {
        self.members
            .iter()
            .map(|member| (member.name.as_str(), member.child.id()))
    }

    /// SIGKILL to one process; `false` if there is none of that name.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn kill(&mut self, name: &str) -> io::Result<bool> {
        match self.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.child.kill().map(|_| true),
            None => Ok(false),
        }
    }

    /// SIGSTOP to one process; `false` if there is none of that name.
    ///
    /// # Errors
    /// When it has ended.
    pub fn pause(&self, name: &str) -> io::Result<bool> {
        self.signal(name, Child::pause)
    }

    /// SIGCONT to one process; `false` if there is none of that name.
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

    /// SIGTERM to one process, and waits until it has ended; how, or `None` if there is none of that name.
    ///
    /// # Errors
    /// What the operating system says.
    pub async fn stop_one(&mut self, name: &str) -> io::Result<Option<ExitStatus>> {
        match self.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.child.stop().await.map(Some),
            None => Ok(None),
        }
    }

    /// How a process ended, if it has; `None` too if there is none of that name.
    ///
    /// # Errors
    /// What the operating system says.
    pub fn ended(&mut self, name: &str) -> io::Result<Option<ExitStatus>> {
        match self.members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.child.ended(),
            None => Ok(None),
        }
    }

    /// Starts a process again that has ended, with the same flags and log; one that runs is killed first. `false` if there is
    /// none of that name.
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
        let (service, flags) = (member.service, member.flags.clone());
        (self.members[index].child, self.members[index].said_from) = self.spawn(service, name, &flags)?;
        Ok(true)
    }

    /// The first process that ended although nobody killed it.
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

    /// The end of a process, if it has ended: [`UpError::Ended`] with the end of its log.
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

    /// Stops everything in order: first those who let people in and grant, so that nothing is taken over that is about to be
    /// stopped as well, and the store last.
    ///
    /// # Errors
    /// What the operating system says.
    pub async fn stop(mut self) -> Result<(), UpError> {
        let grants = |member: &Member| member.service == Service::Director;
        if let Some(director) = self.members.iter().position(grants) {
            let last = self.members.len() - 1;
            self.members[director..last].rotate_left(self.plan.directors);
        }
        while let Some(mut member) = self.members.pop() {
            member.child.stop().await.map_err(|source| UpError::File {
                path: self.plan.data.clone(),
                source,
            })?;
        }
        self.nats.stop().await?;
        Ok(())
    }

    fn add(&mut self, service: Service, name: &str, flags: Vec<String>) -> Result<(), UpError> {
        let log = log_of(&self.plan.data, name);
        let failed = |source| UpError::File {
            path: log.clone(),
            source,
        };
        // What an earlier run said would be taken for this one's; it may be wanted all the same.
        if log.exists() {
            fs::rename(&log, log.with_extension("log.before")).map_err(failed)?;
        }
        File::create(&log).map_err(failed)?;
        let (child, said_from) = self.spawn(service, name, &flags)?;
        self.members.push(Member {
            name: name.to_owned(),
            service,
            flags,
            child,
            said_from,
            restarts: Restarts::default(),
        });
        Ok(())
    }

    /// Starts a process, and says where in its log it goes on.
    fn spawn(&self, service: Service, name: &str, flags: &[String]) -> Result<(Child, u64), UpError> {
        let program = sibling(&format!("annals-{}", service.name()));
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
            command.arg("--world").arg(&self.plan.world);
        }
        if service.uses("data") {
            command.arg("--data").arg(&self.plan.data);
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
                "this gives up after {} s; see the logs in {}",
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
            wait.lasts("its services are starting");
            tokio::time::sleep(LOOK).await;
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

/// The flags of db.
fn of_db(plan: &RealmPlan) -> Vec<String> {
    let mut flags = vec!["--store".to_owned(), plan.store.to_string()];
    if let Some(age) = &plan.keep_cell_events {
        flags.extend(["--keep-cell-events".to_owned(), age.clone()]);
    }
    flags
}

/// The flags of a service that clients reach.
fn front(listen: SocketAddr, advertise: Option<&str>) -> Vec<String> {
    let mut flags = vec!["--listen".to_owned(), listen.to_string()];
    if let Some(host) = advertise {
        flags.extend(["--advertise".to_owned(), format!("{host}:0")]);
    }
    flags
}

/// The binary of that name beside this one.
fn sibling(name: &str) -> PathBuf {
    let beside = std::env::current_exe()
        .ok()
        .and_then(|exe| Some(exe.parent()?.to_owned()));
    match beside {
        // Tests run from a folder below the binaries.
        Some(folder) if folder.ends_with("deps") => folder.with_file_name(name),
        Some(folder) => folder.join(name),
        None => PathBuf::from(name),
    }
}

fn log_of(data: &Path, name: &str) -> PathBuf {
    data.join("logs").join(format!("{name}.log"))
}

/// The end of what a process has said, from this place in its log on: its last lines, or, where it has panicked, those from
/// the panic on, as what follows that is the trace of its calls.
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

fn parse(announced: &str) -> Option<(SocketAddr, Hash)> {
    let (address, certificate) = announced.trim().split_once(' ')?;
    Some((address.parse().ok()?, certificate.parse().ok()?))
}
