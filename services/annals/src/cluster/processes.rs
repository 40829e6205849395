//! The processes of a realm over three hosts: on each a nats-server, a base and a cell; directors, dbs and logins on two.

use std::{
    fs::{self, File, OpenOptions},
    io,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitStatus,
    time::{Duration, Instant},
};

use annals_host::{
    child::Child,
    claim::{Claim, ClaimError},
    config::Service,
    nats::{BinaryError, Bus, MAX_PAYLOAD, REPORTS, find_binary, write_secret},
};
use annals_ids::Hash;
use thiserror::Error;

use super::hosts::{self, Host, HostsError};
use crate::up::{parse, sibling};

/// Number of hosts: with a nats-server on each, the minimum that survives the loss of one.
pub(crate) const HOSTS: u8 = 3;

/// The services, and the hosts on which each runs. Of two dbs, the one that holds the store serves.
const SERVICES: [(Service, &[u8]); 5] = [
    (Service::Db, &[1, 2]),
    (Service::Director, &[1, 2]),
    (Service::Base, &[1, 2, 3]),
    (Service::Cell, &[1, 2, 3]),
    (Service::Login, &[2, 3]),
];

/// The host of the login that players know.
pub(crate) const LOGIN_HOST: u8 = 2;

/// The host whose db opens the store first.
pub(crate) const STORE_HOST: u8 = 1;

/// Ports of the nats-servers: each has a network of its own.
const CLIENT_PORT: u16 = 4222;
const ROUTE_PORT: u16 = 6222;

/// Minimum time between two starts of a process that ends.
const RESTART_PAUSE: Duration = Duration::from_secs(1);

/// Timeout for the nats-servers to have a leader, and for a login to answer.
const READY_WITHIN: Duration = Duration::from_secs(90);

/// Interval between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Why the realm does not run.
#[derive(Debug, Error)]
pub(crate) enum ClusterError {
    #[error(transparent)]
    Hosts(#[from] HostsError),
    #[error(transparent)]
    Claim(#[from] ClaimError),
    #[error("there is no nats-server to run")]
    Binary(#[from] BinaryError),
    #[error("{path} cannot be used", path = path.display())]
    File { path: PathBuf, source: io::Error },
    #[error("{name} cannot be started; build it first: make cluster does")]
    Start { name: String, source: io::Error },
    #[error("{name} cannot be signalled or waited for")]
    Signal { name: String, source: io::Error },
    #[error("{what}: not within {} s; see the logs in {logs}", within.as_secs(), logs = logs.display())]
    Slow {
        what: String,
        within: Duration,
        logs: PathBuf,
    },
}

/// A process on a host.
#[derive(Debug)]
struct Member {
    name: String,
    host: u8,
    service: Option<Service>,
    child: Child,
    started: Instant,
    /// Whether it is not started again when it has ended.
    is_held_back: bool,
}

/// A running realm. Its processes are killed when this is dropped.
#[derive(Debug)]
pub(crate) struct Cluster {
    realm: String,
    world: PathBuf,
    data: PathBuf,
    members: Vec<Member>,
    /// The number of a host that was removed.
    removed: Option<u8>,
    hosts: Vec<Host>,
    _claim: Claim,
}

impl Cluster {
    /// Starts the realm, and waits until the login that players know answers.
    ///
    /// # Errors
    /// When something is missing or does not start.
    pub(crate) async fn start(realm: &str, world: &Path, data: &Path) -> Result<Self, ClusterError> {
        for below in ["logs", "volume", "nats"] {
            let path = data.join(below);
            fs::create_dir_all(&path).map_err(|source| ClusterError::File { path, source })?;
        }
        let mut cluster = Self {
            realm: realm.to_owned(),
            world: world.to_owned(),
            data: data.to_owned(),
            members: Vec::new(),
            removed: None,
            hosts: hosts::build(HOSTS)?,
            _claim: Claim::take(data)?,
        };
        for number in 1..=HOSTS {
            cluster.add(None, number)?;
        }
        cluster
            .wait_for("a leader of the nats-servers", async |cluster| cluster.stores().await)
            .await?;
        cluster.add(Some(Service::Db), STORE_HOST)?;
        let serves = async |cluster: &Self| cluster.serves(STORE_HOST);
        cluster.wait_for("the store to be served", serves).await?;
        for (service, hosts) in SERVICES {
            let is_there = |host: &&u8| (service, **host) == (Service::Db, STORE_HOST);
            for host in hosts.iter().filter(|host| !is_there(host)) {
                cluster.add(Some(service), *host)?;
            }
        }
        cluster
            .wait_for("the login to answer", async |cluster| {
                cluster.login(LOGIN_HOST).is_some()
            })
            .await?;
        Ok(cluster)
    }

    /// The URLs of the nats-servers of all hosts that are there.
    pub(crate) fn nats(&self) -> String {
        let there = self
            .hosts
            .iter()
            .zip(1..)
            .filter(|(_, number)| self.removed != Some(*number));
        let urls = there.map(|(host, _)| format!("nats://{}:{CLIENT_PORT}", host.address()));
        urls.collect::<Vec<_>>().join(",")
    }

    /// Where the login of a host answers, and the fingerprint of its certificate.
    pub(crate) fn login(&self, host: u8) -> Option<(SocketAddr, Hash)> {
        let announced = self.data_of(Service::Login, host).join("login.address");
        parse(&fs::read_to_string(announced).ok()?)
    }

    pub(crate) fn host(&self, number: u8) -> &Host {
        &self.hosts[usize::from(number) - 1]
    }

    /// The number of processes.
    pub(crate) fn count(&self) -> usize {
        self.members.len()
    }

    /// What a process has logged.
    pub(crate) fn log_of(&self, service: Service, host: u8) -> String {
        fs::read_to_string(self.log_file(&name_of(Some(service), host))).unwrap_or_default()
    }

    /// Whether the db of a host has served the store.
    pub(crate) fn serves(&self, host: u8) -> bool {
        self.log_of(Service::Db, host).contains("serving the store")
    }

    /// The host of the director that leads, by what directors last logged.
    pub(crate) fn leader(&self) -> Option<u8> {
        let directors = SERVICES.iter().filter(|(service, _)| *service == Service::Director);
        let mut hosts = directors.flat_map(|(_, hosts)| hosts.iter().copied());
        hosts.find(|host| {
            let log = self.log_of(Service::Director, *host);
            let leads = log.rfind(": leading ");
            let name = name_of(Some(Service::Director), *host);
            let mut members = self.members.iter();
            let runs = members.any(|member| member.name == name && !member.is_held_back);
            runs && leads > log.rfind("standing by")
        })
    }

    /// Has the director of this host lead: stops the other one in order, and starts it again when this one leads.
    ///
    /// # Errors
    /// When it cannot be stopped or started, or this one does not take the lead.
    pub(crate) async fn lead_from(&mut self, host: u8, other: u8) -> Result<(), ClusterError> {
        let name = name_of(Some(Service::Director), other);
        let Some(place) = self.members.iter().position(|member| member.name == name) else {
            return Ok(());
        };
        // Started at once, it might take the lead again.
        self.members[place].is_held_back = true;
        let stopped = self.members[place].child.stop().await;
        stopped.map_err(|source| ClusterError::Signal { name, source })?;
        let leads = async |cluster: &Self| cluster.leader() == Some(host);
        self.wait_for(&format!("director-{host} to lead"), leads).await?;
        self.start_again(place)
    }

    /// Removes a host for good: its cable first, as when its power fails, so that no connection is closed.
    ///
    /// # Errors
    /// When the system refuses it.
    pub(crate) fn remove(&mut self, number: u8) -> Result<(), ClusterError> {
        self.host(number).cut_off()?;
        self.removed = Some(number);
        for member in self.members.iter_mut().filter(|member| member.host == number) {
            member.child.kill().map_err(|source| ClusterError::Signal {
                name: member.name.clone(),
                source,
            })?;
        }
        self.members.retain(|member| member.host != number);
        Ok(())
    }

    /// Starts processes again that have ended, as the supervisors of their hosts do. A line for each, except for the
    /// second db, which ends as long as the first one holds the store.
    ///
    /// # Errors
    /// When one cannot be started.
    pub(crate) fn supervise(&mut self) -> Result<Vec<String>, ClusterError> {
        let mut said = Vec::new();
        for place in 0..self.members.len() {
            let member = &mut self.members[place];
            if member.is_held_back {
                continue;
            }
            let ended: Option<ExitStatus> = member.child.ended().map_err(|source| ClusterError::Signal {
                name: member.name.clone(),
                source,
            })?;
            let Some(status) = ended.filter(|_| member.started.elapsed() > RESTART_PAUSE) else {
                continue;
            };
            if member.service != Some(Service::Db) {
                said.push(format!("{} ended with {status} and was started again", member.name));
            }
            self.start_again(place)?;
        }
        Ok(said)
    }

    /// Supervises until something holds.
    ///
    /// # Errors
    /// When that takes too long.
    pub(crate) async fn wait_for(
        &mut self,
        what: &str,
        is_so: impl AsyncFn(&Self) -> bool,
    ) -> Result<Duration, ClusterError> {
        let began = Instant::now();
        while began.elapsed() < READY_WITHIN {
            self.supervise()?;
            if is_so(self).await {
                return Ok(began.elapsed());
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Err(ClusterError::Slow {
            what: what.to_owned(),
            within: READY_WITHIN,
            logs: self.data.join("logs"),
        })
    }

    /// Whether the nats-servers have a leader for what they store.
    async fn stores(&self) -> bool {
        let asking = async {
            let bus = Bus::connect(&self.nats(), "annals-demo").await.ok()?;
            bus.jetstream().query_account().await.ok()
        };
        asking.await.is_some()
    }

    fn add(&mut self, service: Option<Service>, host: u8) -> Result<(), ClusterError> {
        let name = name_of(service, host);
        let child = self.spawn(&name, service, host)?;
        self.members.push(Member {
            name,
            host,
            service,
            child,
            started: Instant::now(),
            is_held_back: false,
        });
        Ok(())
    }

    fn start_again(&mut self, place: usize) -> Result<(), ClusterError> {
        let Member {
            name, service, host, ..
        } = &self.members[place];
        let child = self.spawn(name, *service, *host)?;
        let member = &mut self.members[place];
        (member.child, member.started, member.is_held_back) = (child, Instant::now(), false);
        Ok(())
    }

    fn spawn(&self, name: &str, service: Option<Service>, host: u8) -> Result<Child, ClusterError> {
        let (program, arguments) = match service {
            Some(service) => (
                sibling(&format!("annals-{}", service.name())),
                self.flags(service, host)?,
            ),
            None => (find_binary()?, self.server_flags(host)?),
        };
        let log = self.log_file(name);
        let failed = |source| ClusterError::File {
            path: log.clone(),
            source,
        };
        let output: File = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        let mut command = self.host(host).command(&program);
        // The nats-servers need none of what an operator's shell has for others.
        for variable in ["CREDENTIALS", "CA", "CERTIFICATE", "KEY"] {
            command.env_remove(format!("ANNALS_NATS_{variable}"));
        }
        command.args(arguments).stdout(output).stderr(errors);
        Child::spawn(command).map_err(|source| ClusterError::Start {
            name: name.to_owned(),
            source,
        })
    }

    fn flags(&self, service: Service, host: u8) -> Result<Vec<String>, ClusterError> {
        // All servers of the realm, also one that is away: it may come back.
        let urls = self
            .hosts
            .iter()
            .map(|host| format!("nats://{}:{CLIENT_PORT}", host.address()));
        let mut flags = vec![
            ("--realm", self.realm.clone()),
            ("--nats", urls.collect::<Vec<_>>().join(",")),
            ("--world", self.world.display().to_string()),
        ];
        if service.uses("replicas") {
            flags.push(("--replicas", HOSTS.to_string()));
        }
        if service.uses("data") {
            flags.push(("--data", self.data_of(service, host).display().to_string()));
        }
        match service {
            Service::Base | Service::Login => {
                flags.push(("--listen", SocketAddr::from((self.host(host).address(), 0)).to_string()));
            }
            Service::Director => {
                let path = self.data.join("nats/system");
                let urls = self.hosts.iter();
                let urls = urls.map(|host| format!("nats://director:director@{}:{CLIENT_PORT}", host.address()));
                let written = write_secret(&path, &urls.collect::<Vec<_>>().join(","));
                written.map_err(|source| ClusterError::File {
                    path: path.clone(),
                    source,
                })?;
                flags.push(("--nats-system", path.display().to_string()));
                flags.extend(["--bases", "--cells"].map(|flag| (flag, HOSTS.to_string())));
            }
            Service::Cell | Service::Db | Service::Signer => {}
        }
        Ok(flags
            .into_iter()
            .flat_map(|(flag, value)| [flag.to_owned(), value])
            .collect())
    }

    /// Writes the configuration of the nats-server of a host.
    fn server_flags(&self, host: u8) -> Result<Vec<String>, ClusterError> {
        let routes = self
            .hosts
            .iter()
            .map(|host| format!("nats://{}:{ROUTE_PORT}", host.address()));
        let (address, routes) = (self.host(host).address(), routes.collect::<Vec<_>>().join(", "));
        let text = format!(
            "server_name: n{host}\nhost: {address}\nport: {CLIENT_PORT}\nmax_payload: {MAX_PAYLOAD}\n\
             jetstream {{ store_dir: \"{store}\", sync_interval: always }}\n\
             cluster {{ name: annals, host: {address}, port: {ROUTE_PORT}, routes: [{routes}] }}\n\
             accounts {{ $SYS {{ users: [{{ user: director, password: director, permissions: {{\n  \
             publish: {{ deny: \">\" }}, subscribe: {{ allow: \"{REPORTS}\" }} }} }}] }} }}\n",
            store = self.data.join(format!("nats/{host}")).display(),
        );
        let path = self.data.join(format!("nats/{host}.conf"));
        let written = fs::write(&path, text);
        written.map_err(|source| ClusterError::File {
            path: path.clone(),
            source,
        })?;
        Ok(vec!["--config".to_owned(), path.display().to_string()])
    }

    /// The folder of a process. That of db is a volume, which can be attached to another host.
    fn data_of(&self, service: Service, host: u8) -> PathBuf {
        match service {
            Service::Db => self.data.join("volume"),
            _ => self.data.join(name_of(Some(service), host)),
        }
    }

    fn log_file(&self, name: &str) -> PathBuf {
        self.data.join("logs").join(format!("{name}.log"))
    }
}

/// `base-2` for the base of host 2.
fn name_of(service: Option<Service>, host: u8) -> String {
    format!("{}-{host}", service.map_or("nats", Service::name))
}
