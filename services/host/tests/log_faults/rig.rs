//! The environment of the scenarios: nats-servers shared by all tests of one kind, a store that fits in a struct, and a
//! wire that can be held.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use annals_host::log::{History, Holding, Recording, Registry};
use annals_host::nats::{Bus, Server, ServerCount, ServerOptions, Servers};
use annals_ids::{Epoch, OwnerId, Shard};
use annals_node::writer::{Opening, OpeningRefused, Tip};
use futures::future::BoxFuture;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf};
use tokio::sync::watch;

/// The owner of every scenario.
pub(crate) const OWNER: OwnerId = OwnerId(7);

/// The servers and their folder.
pub(crate) struct Rig {
    pub(crate) servers: Servers,
    dir: TempDir,
    realms: u32,
}

impl Rig {
    /// Starts servers that sync their disks before each acknowledgement.
    pub(crate) async fn start(count: ServerCount) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let servers = Servers::start(&ServerOptions::new(dir.path()), count).await.unwrap();
        Self {
            servers,
            dir,
            realms: 0,
        }
    }

    pub(crate) fn url(&self) -> String {
        self.servers.url()
    }

    pub(crate) fn dir(&self) -> &Path {
        self.dir.path()
    }

    pub(crate) fn replicas(&self) -> usize {
        self.servers.count().replicas()
    }

    /// A unique name.
    pub(crate) fn new_realm(&mut self) -> String {
        self.realms += 1;
        format!("realm-{}", self.realms)
    }

    /// A realm's log over its own connection.
    pub(crate) async fn history(&self, realm: &str) -> History {
        self.history_by(&self.url(), realm).await
    }

    /// As [`Self::history`], over another address.
    pub(crate) async fn history_by(&self, url: &str, realm: &str) -> History {
        let bus = Bus::connect(url, "log-test").await.unwrap();
        History::ensure(&bus, realm, Shard(0), self.replicas()).await.unwrap()
    }

    /// Ensures that all servers run and know each other, whatever the scenario before did to them.
    pub(crate) async fn heal(&mut self) {
        match &mut self.servers {
            Servers::One(server) => {
                server.resume().ok();
                if server.ready().await.is_err() {
                    server.restart().await.unwrap();
                }
            }
            Servers::Three(cluster) => {
                for server in cluster.servers() {
                    server.resume().ok();
                    if !is_up(server) {
                        server.relaunch().unwrap();
                    }
                }
                cluster.ready().await.unwrap();
            }
        }
    }

    /// The server that leads a stream; the only one, if there is one.
    pub(crate) async fn leader(&mut self, history: &History) -> &mut Server {
        match &mut self.servers {
            Servers::One(server) => server,
            Servers::Three(cluster) => {
                let info = history.stream().get_info().await.unwrap();
                let leader = info
                    .cluster
                    .and_then(|cluster| cluster.leader)
                    .expect("the stream has a leader");
                cluster.named(&leader).expect("the leader is one of ours")
            }
        }
    }

    /// Stops every server, changes their stores, and restarts them.
    pub(crate) async fn while_down(&mut self, mut with_store: impl FnMut(&Path)) {
        for server in self.servers.each() {
            server.kill().unwrap();
            with_store(server.store());
        }
        self.servers.restart().await.unwrap();
    }
}

fn is_up(server: &Server) -> bool {
    let address = server.url().replace("nats://", "");
    std::net::TcpStream::connect(address).is_ok()
}

/// Copies a folder into one that does not exist yet.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target: PathBuf = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// The parts of a store that a log needs.
#[derive(Clone, Default)]
pub(crate) struct Book(Arc<Mutex<Pages>>);

#[derive(Default)]
struct Pages {
    granted: Epoch,
    openings: BTreeMap<Epoch, Opening>,
}

impl Book {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Grants the next epoch.
    pub(crate) fn grant(&self) -> Epoch {
        let mut pages = self.pages();
        pages.granted = pages.granted.next();
        pages.granted
    }

    /// Adds an opening that was recorded elsewhere.
    pub(crate) fn note(&self, opening: Opening) {
        self.pages().openings.insert(opening.epoch, opening);
    }

    pub(crate) fn openings(&self) -> Vec<Opening> {
        self.pages().openings.values().copied().collect()
    }
}

impl Registry for Book {
    fn record(&self, _: OwnerId, opening: Opening, _: String) -> BoxFuture<'static, Recording> {
        let mut pages = self.pages();
        let recording = if opening.epoch == pages.granted {
            pages.openings.insert(opening.epoch, opening);
            Recording::Recorded
        } else {
            Recording::Refused(OpeningRefused::Superseded)
        };
        Box::pin(std::future::ready(recording))
    }

    fn confirm(&self, _: OwnerId, epoch: Epoch, _: String) -> BoxFuture<'static, Holding> {
        let holding = if epoch == self.pages().granted {
            Holding::Granted
        } else {
            Holding::Lost
        };
        Box::pin(std::future::ready(holding))
    }
}

/// An empty archive: every scenario reads its log from the beginning.
pub(crate) const NOTHING_ARCHIVED: Tip = Tip {
    number: annals_ids::BatchNumber(0),
    hash: annals_ids::Hash::ZERO,
};

/// Delay of each piece of an answer on a slow wire.
pub(crate) const SLOWNESS: Duration = Duration::from_millis(200);

/// A wire to a server on which the answers can be held back or slowed down, and which can be cut.
pub(crate) struct Wire {
    address: String,
    state: watch::Sender<WireState>,
}

#[derive(Clone, Copy, PartialEq)]
enum WireState {
    /// Bytes pass both ways. Connections made before the `cuts`th cut are closed.
    Open { cuts: u32 },
    /// The server receives everything, and its answers wait.
    Held { cuts: u32 },
    /// The server receives everything, and its answers take [`SLOWNESS`].
    Slow { cuts: u32 },
}

impl WireState {
    fn cuts(self) -> u32 {
        match self {
            WireState::Open { cuts } | WireState::Held { cuts } | WireState::Slow { cuts } => cuts,
        }
    }
}

impl Wire {
    /// A wire to the first server of `url`.
    pub(crate) async fn to(url: &str) -> Self {
        let server = url.split(',').next().unwrap().replace("nats://", "");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("nats://{}", listener.local_addr().unwrap());
        let (state, watch) = watch::channel(WireState::Open { cuts: 0 });
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let Ok(server) = TcpStream::connect(&server).await else {
                    continue;
                };
                let ((from_client, to_client), (from_server, to_server)) = (client.into_split(), server.into_split());
                tokio::spawn(carry(from_client, to_server, watch.clone(), false));
                tokio::spawn(carry(from_server, to_client, watch.clone(), true));
            }
        });
        Self { address, state }
    }

    pub(crate) fn url(&self) -> &str {
        &self.address
    }

    /// From now on answers wait.
    pub(crate) fn hold(&self) {
        self.state
            .send_modify(|state| *state = WireState::Held { cuts: state.cuts() });
    }

    /// From now on answers are delayed.
    pub(crate) fn slow(&self) {
        self.state
            .send_modify(|state| *state = WireState::Slow { cuts: state.cuts() });
    }

    /// Waiting answers arrive.
    pub(crate) fn release(&self) {
        self.state
            .send_modify(|state| *state = WireState::Open { cuts: state.cuts() });
    }

    /// Waiting answers are lost with the connection. A new one can be made.
    pub(crate) fn cut(&self) {
        self.state
            .send_modify(|state| *state = WireState::Open { cuts: state.cuts() + 1 });
    }
}

/// Carries bytes one way until an end closes or the wire is cut.
async fn carry(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut state: watch::Receiver<WireState>, holds: bool) {
    let cuts = state.borrow().cuts();
    let mut buffer = vec![0; 64 * 1024];
    loop {
        let length = tokio::select! {
            read = from.read(&mut buffer) => match read {
                Ok(length) if length > 0 => length,
                _ => return,
            },
            cut = state.wait_for(|state| state.cuts() != cuts) => {
                drop(cut);
                return;
            }
        };
        if holds {
            if *state.borrow() == (WireState::Slow { cuts }) {
                tokio::time::sleep(SLOWNESS).await;
            }
            let passes = state
                .wait_for(|state| state.cuts() != cuts || *state != WireState::Held { cuts })
                .await;
            if passes.is_ok_and(|state| state.cuts() != cuts) {
                return;
            }
        }
        if to.write_all(&buffer[..length]).await.is_err() {
            return;
        }
    }
}
