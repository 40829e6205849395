//! Accepting clients of one transport: they wait in a queue of their own, so a rush on one transport delays only that.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, atomic::Ordering},
};

use tokio::{
    net::{TcpListener, TcpStream},
    sync::mpsc,
    time::{Duration, Instant, sleep, sleep_until, timeout},
};
use tokio_util::task::TaskTracker;

use super::{
    MAX_CONNECTIONS, Serves,
    connection::{self, HANDSHAKE_WITHIN, Shared},
    handshakes::{Handshakes, Host},
    registry::{Registry, count},
    web_socket::{self, Acceptor},
    web_transport,
};
use crate::violations::Violation;

/// Minimum interval between two handshakes of a transport. One takes 0.45 ms of a core, so that a rush takes less than a quarter of
/// it.
const HANDSHAKE_EVERY: Duration = Duration::from_millis(2);

/// Maximum wait for a handshake: a client that has waited longer has retried.
const WAITED_ENOUGH: Duration = Duration::from_secs(5);

/// Pause after the system has refused to accept a TCP connection: it has no resources for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Maximum places of clients at a time: each connection has two.
const PLACES: usize = 2 * MAX_CONNECTIONS as usize;

/// A transport on which clients arrive.
pub(super) trait Transport: Send + Sync + 'static {
    /// A client that has not begun its handshake.
    type Client: Send + 'static;

    /// The next client; `None` when there will be no more. Cancel-safe.
    fn next(&self) -> impl Future<Output = Option<Self::Client>> + Send;

    fn address(client: &Self::Client) -> IpAddr;

    /// Lets a client wait, unless it must first prove its address.
    fn admit(client: Self::Client, host: Host, handshakes: &Handshakes<Waiting<Self::Client>>) -> Option<Self::Client>;

    fn refuse(client: Self::Client);

    /// Completes the handshake, frees its slot, and serves the client.
    fn serve(&self, client: Self::Client, places: Places, shared: Shared) -> impl Future<Output = ()> + Send;
}

/// A client, and since when it waits.
pub(super) type Waiting<T> = (T, Instant);

/// Accepts connections, no faster than they can be served. It waits for no single client: those that have to wait are
/// queued by host.
pub(super) async fn accept<T: Transport>(transport: T, serving: TaskTracker, shared: Shared) {
    let transport = Arc::new(transport);
    let mut handshakes = Handshakes::new();
    let (freed, mut ended) = mpsc::channel(PLACES);
    let mut next_at = Instant::now();
    let mut may_begin = false;
    loop {
        tokio::select! {
            client = transport.next() => match client {
                Some(client) => {
                    receive::<T>(client, &mut handshakes, &shared);
                    may_begin = true;
                }
                None => return,
            },
            Some(freed) = ended.recv() => {
                match freed {
                    Freed::Handshake(host) => handshakes.ended(host),
                    Freed::Newcomer(host) => handshakes.arrived(host),
                }
                may_begin = true;
            }
            () = sleep_until(next_at), if may_begin => match handshakes.next() {
                Some((host, (_, since))) if since.elapsed() > WAITED_ENOUGH => {
                    handshakes.ended(host);
                    handshakes.arrived(host);
                    shared.registry.violations.count(Violation::Refused, host);
                }
                Some((host, (client, _))) => {
                    count(&shared.registry.counts.open, 1);
                    let places = Places::of(host, &freed);
                    serving.spawn(meet(Arc::clone(&transport), client, places, shared.clone()));
                    next_at = Instant::now() + HANDSHAKE_EVERY;
                }
                None => may_begin = false,
            },
        }
    }
}

/// Queues a client for its handshake, or refuses it.
fn receive<T: Transport>(client: T::Client, handshakes: &mut Handshakes<Waiting<T::Client>>, shared: &Shared) {
    let counts = &shared.registry.counts;
    let expected = counts.open.load(Ordering::Relaxed) + handshakes.queued() as u64;
    let host = Host::from(T::address(&client));
    let violations = &shared.registry.violations;
    if expected >= shared.registry.limit.load(Ordering::Relaxed) {
        violations.count(Violation::Refused, host);
        return T::refuse(client);
    }
    let Some(client) = T::admit(client, host, handshakes) else {
        return;
    };
    if let Err((client, _)) = handshakes.wait(host, (client, Instant::now())) {
        violations.count(Violation::Refused, host);
        T::refuse(client);
    }
}

async fn meet<T: Transport>(transport: Arc<T>, client: T::Client, places: Places, shared: Shared) {
    let _open = OpenConnection(Arc::clone(&shared.registry));
    transport.serve(client, places, shared).await;
}

/// A place that a client takes no more.
#[derive(Clone, Copy, Debug)]
enum Freed {
    Handshake(Host),
    Newcomer(Host),
}

/// A place of a client, freed when this is dropped.
#[derive(Debug)]
pub(super) struct Place {
    freed: Freed,
    to: mpsc::Sender<Freed>,
}

impl Drop for Place {
    fn drop(&mut self) {
        // The queue has room for all places; without a receiver the edge is gone.
        let _ = self.to.try_send(self.freed);
    }
}

/// The places of a client that begins its handshake.
pub(super) struct Places {
    /// Until the handshake ends.
    handshake: Place,
    /// Until the first frame.
    newcomer: Place,
}

impl Places {
    fn of(host: Host, freed: &mpsc::Sender<Freed>) -> Self {
        let place = |freed_then| Place {
            freed: freed_then,
            to: freed.clone(),
        };
        Self {
            handshake: place(Freed::Handshake(host)),
            newcomer: place(Freed::Newcomer(host)),
        }
    }
}

/// A connection that counts as open until this is dropped.
struct OpenConnection(Arc<Registry>);

impl Drop for OpenConnection {
    fn drop(&mut self) {
        self.0.counts.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Clients by QUIC: of our own protocol, and by WebTransport.
pub(super) struct Quic {
    pub(super) endpoint: quinn::Endpoint,
    /// Without it, browsers are not served.
    pub(super) web: Option<web_transport::Acceptor>,
}

/// A client that has completed its handshake.
enum Met {
    Plain(quinn::Connection),
    Web(web_transport::Session),
}

impl Quic {
    async fn shake_hands(&self, client: quinn::Incoming, serves: Serves) -> Result<Met, Violation> {
        let connection = connection::shake_hands(client).await;
        let connection = connection.ok_or(Violation::FailedHandshake)?;
        match &self.web {
            Some(web) if web_transport::is_web(&connection) => web.shake_hands(connection, serves).await.map(Met::Web),
            _ => Ok(Met::Plain(connection)),
        }
    }
}

impl Transport for Quic {
    type Client = quinn::Incoming;

    async fn next(&self) -> Option<quinn::Incoming> {
        self.endpoint.accept().await
    }

    fn address(client: &quinn::Incoming) -> IpAddr {
        client.remote_address().ip()
    }

    fn admit(
        client: quinn::Incoming,
        host: Host,
        handshakes: &Handshakes<Waiting<quinn::Incoming>>,
    ) -> Option<quinn::Incoming> {
        if client.remote_address_validated() || handshakes.takes_strangers(host) {
            return Some(client);
        }
        // It cannot fail: a client whose address is not validated may be sent a retry.
        let _ = client.retry();
        None
    }

    fn refuse(client: quinn::Incoming) {
        client.refuse();
    }

    async fn serve(&self, client: quinn::Incoming, places: Places, shared: Shared) {
        let Places { handshake, newcomer } = places;
        let host = Host::from(client.remote_address().ip());
        let met = timeout(HANDSHAKE_WITHIN, self.shake_hands(client, shared.serves)).await;
        drop(handshake);
        let met = match met.unwrap_or(Err(Violation::FailedHandshake)) {
            Ok(met) => met,
            Err(violation) => return shared.registry.violations.count(violation, host),
        };
        count(&shared.registry.counts.accepted, 1);
        match met {
            Met::Plain(connection) => connection::serve(connection, newcomer, shared).await,
            Met::Web(session) => web_transport::serve(session, newcomer, shared).await,
        }
    }
}

/// Clients by WebSocket.
pub(super) struct Web {
    pub(super) listener: TcpListener,
    pub(super) acceptor: Acceptor,
}

impl Transport for Web {
    type Client = (TcpStream, SocketAddr);

    async fn next(&self) -> Option<Self::Client> {
        loop {
            match self.listener.accept().await {
                Ok(accepted) => return Some(accepted),
                Err(error) => {
                    tracing::warn!(%error, "a TCP connection could not be accepted; raise the limit of open files");
                    sleep(ACCEPT_PAUSE).await;
                }
            }
        }
    }

    fn address((_, from): &Self::Client) -> IpAddr {
        from.ip()
    }

    /// TCP has proven the address.
    fn admit(client: Self::Client, _: Host, _: &Handshakes<Waiting<Self::Client>>) -> Option<Self::Client> {
        Some(client)
    }

    /// The connection is closed by dropping it.
    fn refuse(_: Self::Client) {}

    async fn serve(&self, (stream, from): Self::Client, places: Places, shared: Shared) {
        let Places { handshake, newcomer } = places;
        let socket = timeout(HANDSHAKE_WITHIN, self.acceptor.shake_hands(stream, shared.serves)).await;
        drop(handshake);
        let socket = match socket.unwrap_or(Err(Violation::FailedHandshake)) {
            Ok(socket) => socket,
            Err(violation) => return shared.registry.violations.count(violation, from.ip().into()),
        };
        count(&shared.registry.counts.accepted, 1);
        web_socket::serve(socket, from, newcomer, shared).await;
    }
}
