//! The edge: the listener and its connections to clients.
//!
//! Responsible for: QUIC, WebTransport, WebSocket and TLS, splitting bytes into frames, decoding frames into types, and
//! refusing what is malformed, too large, too much, too early or too late. It knows connections and nothing else: which
//! client it is, and what its frames mean, is decided by the core. Every connection is reported by [`EdgeEvent`]s, from
//! `Opened` to `Closed`, and controlled by [`EdgeCommand`]s.

mod accepting;
mod connection;
mod handshakes;
mod held;
mod identity;
mod origins;
mod pace;
mod registry;
mod watching;
mod web_certificates;
mod web_socket;
mod web_transport;

use std::{
    io,
    net::{SocketAddr, TcpListener as StdTcpListener, UdpSocket},
    sync::{Arc, atomic::Ordering},
};

use annals_node::ConnectionId;
use annals_wire::client::{CloseReason, Hello, LOGIN_ALPN, LoginRequest, PLAY_ALPN, ToServer, ToServerDatagram};
use quinn::{IdleTimeout, TransportConfig, VarInt, crypto::rustls::QuicServerConfig};
use thiserror::Error;
use tokio::{
    net::TcpListener,
    sync::mpsc,
    task::JoinSet,
    time::{Duration, timeout},
};

use tokio_util::task::TaskTracker;

use accepting::{Quic, Web, accept};
use connection::Shared;
use identity::TlsError;
pub use identity::{Identity, IdentityError};
use origins::OriginCheck;
pub use origins::WebOrigins;
pub use pace::{BURST_SECONDS, MAX_BYTES, MAX_MESSAGES, WARN_BYTES, WARN_MESSAGES};
use registry::Registry;
pub use registry::{EdgeCounters, MAX_QUEUED_BYTES, MAX_QUEUED_FRAMES};
pub(crate) use watching::add as add_watched;
pub use web_certificates::web_certificate_hashes;

use crate::violations::{Violation, Violations};

/// Bytes of the kernel's receive buffer. With less, a burst of handshakes loses packets, and its slowest take a second
/// instead of milliseconds.
pub const RECEIVE_BUFFER: usize = 4 << 20;

/// Maximum concurrent connections. Each takes some 53 kB, with the entities of its player.
pub const MAX_CONNECTIONS: u64 = 16_384;

/// Maximum bytes buffered for a client that waits for its handshake: its first packets, and some retransmissions.
const KEPT_WHILE_WAITING: u64 = 16 << 10;

/// Idle timeout: after this long without a packet a connection is lost.
const IDLE_TIMEOUT_MS: u32 = 30_000;

/// Maximum bytes in flight from a client that the core has not taken yet: two of the largest frames.
const RECEIVE_WINDOW: u32 = 2 * annals_wire::client::MAX_UPSTREAM_FRAME as u32;

/// Maximum bytes written to a client that it has not acknowledged yet.
const SEND_WINDOW: u64 = 1 << 20;

/// Maximum bytes of datagrams that wait on either side; beyond that the oldest are dropped.
const DATAGRAM_BUFFER: usize = 64 << 10;

/// Attempts to find a port number that is free for both UDP and TCP.
const PORT_ATTEMPTS: u32 = 32;

/// Timeout for closing all connections.
const SHUT_DOWN_WITHIN: Duration = Duration::from_secs(3);

/// The protocol that an edge serves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Serves {
    /// Log-ins.
    Login,
    Play,
}

/// An event of a client's connection.
#[derive(Clone, Debug, PartialEq)]
pub struct EdgeEvent {
    pub connection: ConnectionId,
    /// The event.
    pub what: Arrival,
}

/// What happened on a connection.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrival {
    /// It connected. The first event of every connection.
    Opened {
        /// The client's address.
        from: SocketAddr,
    },
    /// It sent a request to the login service; once per connection.
    LoginRequest(LoginRequest),
    /// It named its session; once per connection, before any frame.
    Hello(Hello),
    /// It sent a frame.
    Frame(ToServer),
    /// It sent a datagram.
    Datagram(ToServerDatagram),
    /// The connection is closed. The last event of every connection.
    Closed(CloseReason),
}

/// A command to a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EdgeCommand {
    /// Write a frame with this body, after the frames before it.
    Frame {
        connection: ConnectionId,
        /// The body, without its length.
        body: Vec<u8>,
    },
    /// Write a frame with this body in the background: the others do not wait for it.
    BackgroundFrame {
        connection: ConnectionId,
        /// The body, without its length.
        body: Vec<u8>,
    },
    /// Send this datagram, or drop it if it cannot leave soon.
    Datagram { connection: ConnectionId, bytes: Vec<u8> },
    /// Close the connection when the frames before are written, and send nothing after.
    Close {
        connection: ConnectionId,
        reason: CloseReason,
    },
}

/// Why an edge could not start.
#[derive(Debug, Error)]
pub enum EdgeError {
    /// The address cannot be listened on.
    #[error(
        "cannot listen on {address}; another process may use it, or the address is not of this machine; --listen names another address"
    )]
    Bind {
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The certificate and its key cannot be used.
    #[error("the certificate cannot be used; check that the key belongs to it")]
    Certificate(#[from] rustls::Error),
    /// There is no certificate that browsers would accept.
    #[error("there is no certificate to show to browsers")]
    WebCertificate(#[from] IdentityError),
    /// The TCP port for WebSockets cannot be listened on.
    #[error(
        "cannot listen on TCP port {address} for WebSockets; another process may use it: free it, choose another listen address, or leave web_origins out"
    )]
    BindWeb {
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// No endpoint could be created on the socket.
    #[error("the socket cannot be used for QUIC")]
    Socket(#[source] io::Error),
}

/// A listening endpoint with its connections. Dropping it closes them at once.
#[derive(Debug)]
pub struct Edge {
    endpoint: quinn::Endpoint,
    registry: Arc<Registry>,
    address: SocketAddr,
    /// One task for each transport, one that reports violations, and one that sends datagrams that wait; they end when this
    /// is dropped.
    accepting: JoinSet<()>,
    /// The tasks of connections.
    serving: TaskTracker,
}

/// Controls the connections of an edge, from any thread, without waiting.
#[derive(Clone, Debug)]
pub struct EdgeHandle {
    registry: Arc<Registry>,
}

/// The bound sockets of an edge.
#[derive(Debug)]
pub struct Sockets {
    quic: UdpSocket,
    /// On the port of the same number, and the pages that may connect.
    web: Option<(StdTcpListener, WebOrigins)>,
}

impl Sockets {
    /// The address to which they are bound.
    ///
    /// # Errors
    /// When the system does not know it.
    pub fn address(&self) -> Result<SocketAddr, EdgeError> {
        self.quic.local_addr().map_err(EdgeError::Socket)
    }
}

/// Sockets for [`Edge::start`] that also accept WebTransport and WebSockets, from pages of these origins and from
/// programs. They have one port number, so clients that know the address for QUIC know that for all.
///
/// # Errors
/// When the address cannot be listened on.
pub fn bind_with_web(address: SocketAddr, origins: WebOrigins) -> Result<Sockets, EdgeError> {
    let mut attempts = if address.port() == 0 { PORT_ATTEMPTS } else { 1 };
    loop {
        attempts -= 1;
        let sockets = bind(address)?;
        let at = sockets.address()?;
        let listening = StdTcpListener::bind(at).and_then(|listener| {
            listener.set_nonblocking(true)?;
            Ok(listener)
        });
        match listening {
            Ok(listener) => {
                let web = Some((listener, origins));
                return Ok(Sockets { web, ..sockets });
            }
            // The system chose a UDP port whose number is taken for TCP.
            Err(_) if attempts > 0 => {}
            Err(source) => return Err(EdgeError::BindWeb { address: at, source }),
        }
    }
}

/// A socket for [`Edge::start`], with a receive buffer for bursts as far as the kernel allows (`net.core.rmem_max`).
///
/// # Errors
/// When the address cannot be listened on.
pub fn bind(address: SocketAddr) -> Result<Sockets, EdgeError> {
    let socket = UdpSocket::bind(address).map_err(|source| EdgeError::Bind { address, source })?;
    let granted = rustix::net::sockopt::set_socket_recv_buffer_size(&socket, RECEIVE_BUFFER)
        .and_then(|()| rustix::net::sockopt::socket_recv_buffer_size(&socket))
        .unwrap_or(0);
    // The kernel reports twice the requested size, to include its own records.
    if granted < RECEIVE_BUFFER {
        tracing::warn!(
            wanted = RECEIVE_BUFFER,
            granted,
            "the kernel grants a small receive buffer: bursts of log-ins will be slow; raise net.core.rmem_max"
        );
    }
    Ok(Sockets {
        quic: socket,
        web: None,
    })
}

impl Edge {
    /// Serves clients on bound sockets, and counts in `violations` what they violate. The caller bounds `events`: while
    /// it is full no client is read.
    ///
    /// # Errors
    /// When certificate or socket cannot be used.
    pub fn start(
        sockets: Sockets,
        identity: &Identity,
        (serves, violations): (Serves, Violations),
        events: mpsc::Sender<EdgeEvent>,
    ) -> Result<Self, EdgeError> {
        let alpn = match serves {
            Serves::Login => LOGIN_ALPN,
            Serves::Play => PLAY_ALPN,
        };
        let address = sockets.address()?;
        let origins = sockets
            .web
            .as_ref()
            .map(|(_, origins)| OriginCheck::new(origins.clone()));
        let config = match &origins {
            Some(_) => web_server_config(identity, alpn)?,
            None => server_config(identity.tls(alpn)?, Streams::PLAIN)?,
        };
        let web = sockets.web.map(|(listener, _)| listener).zip(origins.clone());
        let web = web.map(|web| listen(web, identity)).transpose()?;
        let runtime = Arc::new(quinn::TokioRuntime);
        let endpoint = quinn::Endpoint::new(quinn::EndpointConfig::default(), Some(config), sockets.quic, runtime)
            .map_err(EdgeError::Socket)?;
        let registry = Arc::new(Registry::new(violations.clone()));
        let shared = Shared {
            serves,
            registry: Arc::clone(&registry),
            events,
        };
        let serving = TaskTracker::new();
        let mut accepting = JoinSet::new();
        let quic = Quic {
            endpoint: endpoint.clone(),
            web: origins.map(web_transport::Acceptor::new),
        };
        accepting.spawn(violations.summarise());
        let sending = Arc::clone(&registry);
        accepting.spawn(async move { sending.send_overdue().await });
        accepting.spawn(accept(quic, serving.clone(), shared.clone()));
        if let Some(web) = web {
            accepting.spawn(accept(web, serving.clone(), shared));
        }
        Ok(Self {
            endpoint,
            registry,
            address,
            accepting,
            serving,
        })
    }

    /// The listen address.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A handle to control the connections.
    #[must_use]
    pub fn handle(&self) -> EdgeHandle {
        EdgeHandle {
            registry: Arc::clone(&self.registry),
        }
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> EdgeCounters {
        self.registry.counts.read()
    }

    /// What clients have violated since the start.
    #[must_use]
    pub fn violations(&self) -> &Violations {
        &self.registry.violations
    }

    /// Accepts no more connections, and closes the existing ones when what is queued for them is written.
    pub async fn shut_down(mut self) {
        self.accepting.abort_all();
        self.endpoint.set_server_config(None);
        self.registry.close_all(CloseReason::ShuttingDown);
        self.serving.close();
        let closed = async { tokio::join!(self.endpoint.wait_idle(), self.serving.wait()) };
        // Connections that do not read are closed by the drop that follows.
        let _ = timeout(SHUT_DOWN_WITHIN, closed).await;
    }
}

impl Drop for Edge {
    fn drop(&mut self) {
        let reason = CloseReason::ShuttingDown;
        self.registry.cut_all(reason);
        self.endpoint.close(reason.code().into(), reason.to_string().as_bytes());
    }
}

impl EdgeHandle {
    /// Maximum concurrent connections at present.
    #[must_use]
    pub fn limit(&self) -> u64 {
        self.registry.limit.load(Ordering::Relaxed)
    }

    /// Changes the maximum of concurrent connections, up to [`MAX_CONNECTIONS`]. Existing connections stay.
    pub fn set_limit(&self, limit: u64) {
        self.registry.limit.store(limit.min(MAX_CONNECTIONS), Ordering::Relaxed);
    }

    /// Applies a command, or queues it behind earlier ones. A client whose queue overflows is closed as too slow;
    /// commands for a closed connection are ignored.
    pub fn apply(&self, command: EdgeCommand) {
        self.registry.apply([command]);
    }

    /// Applies commands as [`Self::apply`] does. Those for one connection leave together: a packet has room for a
    /// tick's frames and datagrams.
    pub fn apply_all(&self, commands: impl IntoIterator<Item = EdgeCommand>) {
        self.registry.apply(commands);
    }

    /// Counters since the start.
    #[must_use]
    pub fn counters(&self) -> EdgeCounters {
        self.registry.counts.read()
    }

    /// What clients have violated since the start.
    #[must_use]
    pub fn violations(&self) -> &Violations {
        &self.registry.violations
    }

    /// Counts a violation by the client of a connection, which stays open.
    pub(crate) fn violated(&self, connection: ConnectionId, violation: Violation) {
        self.registry.violated(connection, violation);
    }
}

fn listen((listener, origins): (StdTcpListener, OriginCheck), identity: &Identity) -> Result<Web, EdgeError> {
    Ok(Web {
        listener: TcpListener::from_std(listener).map_err(EdgeError::Socket)?,
        acceptor: web_socket::Acceptor::new(identity.tls(b"http/1.1")?, origins),
    })
}

/// Streams that a client may have open.
#[derive(Clone, Copy, Debug)]
struct Streams {
    bidirectional: u32,
    unidirectional: u32,
}

impl Streams {
    /// Of our own protocol.
    const PLAIN: Self = Self {
        bidirectional: 1,
        unidirectional: 0,
    };
    /// Of either protocol: which one a client speaks is not known when the limits are sent.
    const WITH_WEB: Self = Self {
        bidirectional: web_transport::BIDIRECTIONAL_STREAMS,
        unidirectional: web_transport::UNIDIRECTIONAL_STREAMS,
    };
}

/// The configuration with which browsers are served, too.
fn web_server_config(identity: &Identity, alpn: &[u8]) -> Result<quinn::ServerConfig, EdgeError> {
    let tls = identity
        .tls_with_web(alpn, web_transport::ALPN)
        .map_err(|error| match error {
            TlsError::Tls(error) => EdgeError::Certificate(error),
            TlsError::Identity(error) => EdgeError::WebCertificate(error),
        })?;
    server_config(tls, Streams::WITH_WEB)
}

fn server_config(tls: rustls::ServerConfig, streams: Streams) -> Result<quinn::ServerConfig, EdgeError> {
    let crypto = QuicServerConfig::try_from(tls).map_err(|error| rustls::Error::General(error.to_string()))?;
    let mut transport = TransportConfig::default();
    transport
        .max_idle_timeout(Some(IdleTimeout::from(VarInt::from_u32(IDLE_TIMEOUT_MS))))
        .max_concurrent_bidi_streams(VarInt::from_u32(streams.bidirectional))
        .max_concurrent_uni_streams(VarInt::from_u32(streams.unidirectional))
        .stream_receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        .receive_window(VarInt::from_u32(RECEIVE_WINDOW))
        .send_window(SEND_WINDOW)
        .datagram_receive_buffer_size(Some(DATAGRAM_BUFFER))
        .datagram_send_buffer_size(DATAGRAM_BUFFER);
    let mut config = quinn::ServerConfig::with_crypto(Arc::new(crypto));
    config
        .transport_config(Arc::new(transport))
        .incoming_buffer_size(KEPT_WHILE_WAITING);
    Ok(config)
}
