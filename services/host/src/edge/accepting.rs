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
    Serves,
    connection::{self, HANDSHAKE_WITHIN, Shared},
    handshakes::{self, Handshakes, Host},
    registry::{Registry, count},
    web_socket::{self, Acceptor},
    web_transport,
};

/// Minimum interval between two handshakes of a transport. One takes 0.45 ms of a core, so that a rush takes less than a quarter of
/// it.
const HANDSHAKE_EVERY: Duration = Duration::from_millis(2);

/// Maximum wait for a handshake: a client that has waited longer has retried.
const WAITED_ENOUGH: Duration = Duration::from_secs(5);

/// Pause after the system has refused to accept a TCP connection: it has no resources for one.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

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
    fn serve(&self, client: Self::Client, slot: HandshakeSlot, shared: Shared) -> impl Future<Output = ()> + Send;
}

/// A client, and since when it waits.
pub(super) type Waiting<T> = (T, Instant);

/// Accepts connections, no faster than they can be served. It waits for no single client: those that have to wait are
/// queued by host.
pub(super) async fn accept<T: Transport>(transport: T, serving: TaskTracker, shared: Shared) {
    let transport = Arc::new(transport);
    let mut handshakes = Handshakes::new();
    let (freed, mut ended) = mpsc::channel(handshakes::AT_ONCE);
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
            Some(host) = ended.recv() => {
                handshakes.ended(host);
                may_begin = true;
            }
            () = sleep_until(next_at), if may_begin => match handshakes.next() {
                Some((host, (_, since))) if since.elapsed() > WAITED_ENOUGH => handshakes.ended(host),
                Some((host, (client, _))) => {
                    count(&shared.registry.counts.open, 1);
                    let slot = HandshakeSlot { host, freed: freed.clone() };
                    serving.spawn(meet(Arc::clone(&transport), client, slot, shared.clone()));
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
    if expected >= shared.registry.limit.load(Ordering::Relaxed) {
        count(&counts.refused, 1);
        return T::refuse(client);
    }
    let host = Host::from(T::address(&client));
    let Some(client) = T::admit(client, host, handshakes) else {
        return;
    };
    if let Err((client, _)) = handshakes.wait(host, (client, Instant::now())) {
        count(&counts.refused, 1);
        T::refuse(client);
    }
}

async fn meet<T: Transport>(transport: Arc<T>, client: T::Client, slot: HandshakeSlot, shared: Shared) {
    let _open = OpenConnection(Arc::clone(&shared.registry));
    transport.serve(client, slot, shared).await;
}

/// A slot for a handshake in progress, freed when it is dropped.
pub(super) struct HandshakeSlot {
    host: Host,
    freed: mpsc::Sender<Host>,
}

impl Drop for HandshakeSlot {
    fn drop(&mut self) {
        // The queue has room for all slots; without a receiver the edge is gone.
        let _ = self.freed.try_send(self.host);
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
    async fn shake_hands(&self, client: quinn::Incoming, serves: Serves) -> Option<Met> {
        let connection = connection::shake_hands(client).await?;
        match &self.web {
            Some(web) if web_transport::is_web(&connection) => web.shake_hands(connection, serves).await.map(Met::Web),
            _ => Some(Met::Plain(connection)),
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

    async fn serve(&self, client: quinn::Incoming, slot: HandshakeSlot, shared: Shared) {
        let met = timeout(HANDSHAKE_WITHIN, self.shake_hands(client, shared.serves)).await;
        drop(slot);
        let counts = &shared.registry.counts;
        match met.ok().flatten() {
            Some(met) => {
                count(&counts.accepted, 1);
                match met {
                    Met::Plain(connection) => connection::serve(connection, shared).await,
                    Met::Web(session) => web_transport::serve(session, shared).await,
                }
            }
            None => count(&counts.failed_handshakes, 1),
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

    async fn serve(&self, (stream, from): Self::Client, slot: HandshakeSlot, shared: Shared) {
        let socket = self.acceptor.shake_hands(stream, &shared).await;
        drop(slot);
        if let Some(socket) = socket {
            web_socket::serve(socket, from, shared).await;
        }
    }
}
