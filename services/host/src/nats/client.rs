//! A service's connection to the bus: it outlives the loss and return of servers.

use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_nats::jetstream::{self, stream};
use async_nats::{Client, ConnectErrorKind, Event, ServerAddr, SubscribeError};
use futures::StreamExt;
use tokio::sync::watch;

use super::access::{Access, AccessProblems};
use super::stream::{self as streams, StreamError};
use super::subscription::Subscription;
use super::{MAX_PAYLOAD, MINIMUM, Version};
use crate::waiting::Wait;

/// Timeout of a command's first connection. A service retries indefinitely: it and the server are often started
/// together.
const FIRST_TIMEOUT: Duration = Duration::from_secs(10);

/// Pause between two tries of the first connection.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// Maximum pause between two tries to reconnect, which never end.
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// Ping interval. After three without an answer the connection is given up, so a frozen server is noticed within eight
/// seconds; the gate closes long before that.
const PING_INTERVAL: Duration = Duration::from_secs(2);

/// Timeout of one attempt to connect, or one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum messages queued for a slow subscriber; more are dropped, and reported as a slow consumer.
const SUBSCRIPTION_CAPACITY: usize = 64 * 1024;

/// State of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkState {
    /// Connected, for the `connection`th time. A changed number means that the connection was lost meanwhile, however
    /// briefly: messages in flight are in doubt, and epochs must be confirmed.
    Up {
        /// Counts from 1.
        connection: u64,
    },
    /// Not connected; the client retries.
    Down {
        /// Number of connections so far.
        connections: u64,
    },
}

/// The bus could not be joined.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// The address cannot be parsed.
    #[error("{url:?} is not the address of a nats-server; write nats://HOST:PORT, several separated by commas")]
    Address {
        /// The address as given.
        url: String,
        /// The cause.
        source: std::io::Error,
    },
    /// No server answered.
    #[error(
        "no nats-server answered on {url} within {} s; check that it runs and that the address is right",
        FIRST_TIMEOUT.as_secs()
    )]
    Unreachable {
        /// The address.
        url: String,
        /// The error of the last try.
        source: async_nats::ConnectError,
    },
    /// Its files of credentials and certificates cannot be used.
    #[error(transparent)]
    Access(#[from] AccessProblems),
    /// The server refused the connection, or is not trusted.
    #[error("the connection to the nats-server on {url} was refused; {}", remedy(source))]
    Refused {
        /// The address.
        url: String,
        /// The server's error.
        source: async_nats::ConnectError,
    },
    /// The server is not supported.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

/// A server that Annals does not support.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unfit {
    /// Too old, or its version cannot be parsed.
    #[error("nats-server {server} has version {version}; Annals needs {MINIMUM} or later: upgrade it")]
    Version {
        /// Its name.
        server: String,
        version: String,
    },
    /// Its maximum message size is less than that of a batch.
    #[error(
        "nats-server {server} takes messages of at most {max_payload} bytes; set max_payload: {MAX_PAYLOAD} in its \
         configuration"
    )]
    Payload {
        /// Its name.
        server: String,
        /// Its maximum, in bytes.
        max_payload: usize,
    },
    /// It has no JetStream for the log.
    #[error("nats-server {server} runs without JetStream; add a jetstream block to its configuration")]
    NoJetStream {
        /// Its name.
        server: String,
    },
}

/// The round trip failed.
#[derive(Debug, thiserror::Error)]
pub enum BarrierError {
    /// No answer in time: there is no connection, or the server is stuck.
    #[error("the bus did not answer within {} s", REQUEST_TIMEOUT.as_secs())]
    Timeout,
    /// The client has ended.
    #[error("the connection to the bus has been closed")]
    Closed,
    /// The connection is now to another server.
    #[error(transparent)]
    Unfit(#[from] Unfit),
}

/// What to do about a refused connection.
fn remedy(error: &async_nats::ConnectError) -> &'static str {
    let is_expired = |cause: &(dyn Error + 'static)| {
        use rustls::CertificateError::{Expired, ExpiredContext};
        matches!(
            cause.downcast_ref(),
            Some(rustls::Error::InvalidCertificate(Expired | ExpiredContext { .. }))
        )
    };
    if causes(error).any(is_expired) {
        return "the server's certificate has expired: renew it there, as with ops/nats/secrets.sh --renew, and send \
                the server SIGHUP; if it has not, check the clock of this machine";
    }
    match error.kind() {
        ConnectErrorKind::AuthorizationViolation | ConnectErrorKind::Authentication => {
            "check that nats_credentials names the file of this service, and that the server has the same password"
        }
        _ => {
            "check that nats_ca holds the authority of the server's certificate, that nats_certificate and nats_key are \
             of an authority that the server trusts, and that none of them has expired"
        }
    }
}

/// The addresses of nats-servers, and the files by which a process is admitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// `nats://HOST:PORT`, several separated by commas.
    pub url: String,
    pub access: Access,
}

impl From<&str> for Address {
    /// Without credentials.
    fn from(url: &str) -> Self {
        Self {
            url: url.to_owned(),
            access: Access::default(),
        }
    }
}

impl From<&String> for Address {
    fn from(url: &String) -> Self {
        Self::from(url.as_str())
    }
}

/// A connection to the bus; clones share it. It reconnects by itself until the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Bus {
    client: Client,
    jetstream: jetstream::Context,
    state: watch::Receiver<LinkState>,
}

impl Bus {
    /// Connects to one of the servers of `address` under `name`, which operators see in the server's lists.
    ///
    /// # Errors
    /// When no server is reached within ten seconds, or the one that is reached is not suitable.
    pub async fn connect(address: impl Into<Address>, name: &str) -> Result<Self, ConnectError> {
        Self::connect_within(address.into(), name, Some(FIRST_TIMEOUT)).await
    }

    /// As [`Self::connect`], but waits for a server as long as it takes.
    ///
    /// # Errors
    /// When the server that is reached refuses the connection or is not suitable.
    pub async fn join(address: impl Into<Address>, name: &str) -> Result<Self, ConnectError> {
        Self::connect_within(address.into(), name, None).await
    }

    async fn connect_within(address: Address, name: &str, patience: Option<Duration>) -> Result<Self, ConnectError> {
        address.access.check()?;
        let (report, mut state) = watch::channel(LinkState::Down { connections: 0 });
        let client = first_connection(&address.url, &options(&address, name, report)?, patience).await?;
        fitness(&client.server_info())?;
        // The event of the first connection is still in flight; a reader of the state must not find "down".
        state.wait_for(|state| matches!(state, LinkState::Up { .. })).await.ok();
        let jetstream = jetstream::context::ContextBuilder::new()
            .timeout(REQUEST_TIMEOUT)
            .ack_timeout(REQUEST_TIMEOUT)
            .build(client.clone());
        Ok(Self {
            client,
            jetstream,
            state,
        })
    }

    /// The client, for publishing and requests. Messages published while the connection is down are kept, up to the
    /// capacity of its queue, and sent late: receivers judge by epoch and number, never by arrival.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Subscribes to what services send on a subject.
    ///
    /// # Errors
    /// When the connection has been closed, or the subject is invalid.
    pub async fn subscribe(&self, subject: String) -> Result<Subscription, SubscribeError> {
        self.client.subscribe(subject).await.map(Subscription::from)
    }

    /// JetStream, for appending and reading.
    pub fn jetstream(&self) -> &jetstream::Context {
        &self.jetstream
    }

    /// The name of the present connection: no two connections have the same, and [`Reports`](super::Reports) give it.
    /// It changes before anything arrives over the next connection.
    pub fn connection(&self) -> String {
        let info = self.client.server_info();
        super::reports::connection_name(&info.server_id, info.client_id)
    }

    /// The state of the connection, now and at each change.
    pub fn state(&self) -> watch::Receiver<LinkState> {
        self.state.clone()
    }

    /// Waits until the server has processed everything that this connection sent before, subscriptions included: a
    /// message to ourselves has come back. (Flushing only empties our own buffer.) In a cluster this covers this server
    /// only.
    ///
    /// # Errors
    /// When nothing comes back within five seconds, or the server that we have been reconnected to is not suitable.
    pub async fn barrier(&self) -> Result<(), BarrierError> {
        let round_trip = async {
            let inbox = self.client.new_inbox();
            let mut back = self
                .client
                .subscribe(inbox.clone())
                .await
                .map_err(|_| BarrierError::Closed)?;
            self.client
                .publish(inbox, "".into())
                .await
                .map_err(|_| BarrierError::Closed)?;
            back.next().await.map(|_| ()).ok_or(BarrierError::Closed)
        };
        tokio::time::timeout(REQUEST_TIMEOUT, round_trip)
            .await
            .map_err(|_| BarrierError::Timeout)??;
        Ok(fitness(&self.client.server_info())?)
    }

    /// The stream as `wanted`: created if missing; an existing one must be equal in every field that we set. The
    /// configuration is read back from the server, which may have dropped fields that it does not know.
    ///
    /// # Errors
    /// When it cannot be created, or differs: the error names each field.
    pub async fn ensure_stream(&self, wanted: stream::Config) -> Result<stream::Stream, StreamError> {
        streams::ensure(&self.jetstream, wanted).await
    }

    /// The stream as `wanted`, which another process creates: waits until it exists, as long as it takes, and compares
    /// it as [`Self::ensure_stream`] does.
    ///
    /// # Errors
    /// When it cannot be read, or differs.
    pub async fn await_stream(&self, wanted: stream::Config) -> Result<stream::Stream, StreamError> {
        streams::found(&self.jetstream, wanted).await
    }
}

/// Retries until a server answers or the timeout passes.
async fn first_connection(
    url: &str,
    options: &async_nats::ConnectOptions,
    patience: Option<Duration>,
) -> Result<Client, ConnectError> {
    let servers = addresses(url)?;
    let url = &without_credentials(url);
    let began = Instant::now();
    let limit = match patience {
        Some(patience) => format!("this process ends after {} s", patience.as_secs()),
        None => "this process holds and serves nothing until one answers".to_owned(),
    };
    let mut wait = Wait::new(
        format!("a nats-server on {url}"),
        format!("{limit}; check that it runs and that --nats is its address"),
    );
    loop {
        match options.clone().connect(&servers[..]).await {
            Ok(client) => {
                wait.ends();
                return Ok(client);
            }
            Err(source) if is_refusal(&source) => {
                return Err(ConnectError::Refused {
                    url: url.to_owned(),
                    source,
                });
            }
            Err(source) if patience.is_some_and(|patience| began.elapsed() > patience) => {
                return Err(ConnectError::Unreachable {
                    url: url.to_owned(),
                    source,
                });
            }
            Err(error) => wait.lasts(error),
        }
        tokio::time::sleep(FIRST_PAUSE).await;
    }
}

pub(super) fn addresses(url: &str) -> Result<Vec<ServerAddr>, ConnectError> {
    let address = |one: &str| {
        one.trim().parse().map_err(|source| ConnectError::Address {
            url: without_credentials(one.trim()),
            source,
        })
    };
    url.split(',').map(address).collect()
}

/// Addresses as they may be logged: without user and password.
fn without_credentials(url: &str) -> String {
    let shown = |one: &str| {
        let (scheme, rest) = one.split_once("://").unwrap_or(("nats", one));
        match rest.rsplit_once('@') {
            Some((_, host)) => format!("{scheme}://{host}"),
            None => one.to_owned(),
        }
    };
    url.split(',').map(shown).collect::<Vec<_>>().join(",")
}

fn is_refusal(error: &async_nats::ConnectError) -> bool {
    use ConnectErrorKind as Kind;
    match error.kind() {
        Kind::Authentication | Kind::AuthorizationViolation | Kind::Tls | Kind::ServerParse => true,
        // A handshake that failed.
        Kind::Io => causes(error).any(|cause| cause.is::<rustls::Error>()),
        Kind::Dns | Kind::TimedOut | Kind::MaxReconnects => false,
    }
}

/// The sources of an error, and what an I/O error carries.
fn causes(error: &async_nats::ConnectError) -> impl Iterator<Item = &(dyn Error + 'static)> {
    std::iter::successors(error.source(), |&cause| {
        let carried = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        match carried {
            Some(carried) => Some(carried as &(dyn Error + 'static)),
            None => cause.source(),
        }
    })
}

fn options(
    Address { url, access }: &Address,
    name: &str,
    state: watch::Sender<LinkState>,
) -> Result<async_nats::ConnectOptions, AccessProblems> {
    let away = Wait::new(
        format!("the nats-server on {}", without_credentials(url)),
        "the bus is unreachable, reconnecting; check that the nats-server runs, and that its certificate, if it has one, is \
         valid",
    );
    let report = Mutex::new(Report {
        state,
        away,
        access: access.clone(),
    });
    Ok(access
        .options()?
        .name(name)
        .connection_timeout(REQUEST_TIMEOUT)
        .request_timeout(Some(REQUEST_TIMEOUT))
        .ping_interval(PING_INTERVAL)
        .subscription_capacity(SUBSCRIPTION_CAPACITY)
        .max_reconnects(None)
        .reconnect_delay_callback(pause_before)
        .event_callback(move |event| {
            report.lock().unwrap_or_else(PoisonError::into_inner).note(&event);
            std::future::ready(())
        }))
}

/// Doubles from 10 ms; almost immediate at first, since a cluster's other servers are available.
pub(super) fn pause_before(attempt: usize) -> Duration {
    let doublings = u32::try_from(attempt).unwrap_or(u32::MAX).min(10);
    (Duration::from_millis(5) * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
}

/// Reports a connection's events.
struct Report {
    state: watch::Sender<LinkState>,
    away: Wait,
    access: Access,
}

impl Report {
    fn note(&mut self, event: &Event) {
        let is_down = matches!(*self.state.borrow(), LinkState::Down { .. });
        match event {
            Event::Connected => {
                self.state.send_modify(|state| *state = state.up());
                self.away.ends();
            }
            Event::Disconnected => {
                self.state.send_modify(|state| *state = state.down());
                self.away.lasts("the connection was lost");
            }
            Event::Closed => self.state.send_modify(|state| *state = state.down()),
            Event::SlowConsumer(subscription) => {
                tracing::warn!(subscription, "messages were dropped: their reader is too slow");
            }
            // A failed try to reconnect. The client gives the kind of error only: a file may be the cause.
            Event::ClientError(error) if is_down => match self.access.check() {
                Ok(()) => self.away.lasts(error),
                Err(problems) => self.away.lasts(format!("{error}; {problems}")),
            },
            Event::ServerError(error) if is_denied_answer(error) => tracing::warn!(
                %error,
                "an answer was not delivered: the nats-server has restarted since the request, or it came more than a \
                 minute late; the process that asked has not waited for it"
            ),
            Event::ServerError(error) if is_denial(error) => tracing::error!(
                %error,
                "the nats-server denies this process what its service does: check that nats_credentials names the file \
                 of its service, and that the server runs with ops/nats/realm.conf of this release"
            ),
            Event::ServerError(error) => tracing::warn!(%error, "the nats-server reports an error"),
            Event::ClientError(error) => tracing::warn!(%error, "the connection to the bus reports an error"),
            Event::LameDuckMode | Event::Draining => {
                tracing::info!(%event, "the connection to the bus is about to move");
            }
        }
    }
}

fn is_denial(error: &async_nats::ServerError) -> bool {
    // The protocol has no code for it.
    error.to_string().to_ascii_lowercase().contains("permissions violation")
}

/// Whether an answer was denied. A server permits each answer by itself, for a minute, and forgets that when it restarts.
fn is_denied_answer(error: &async_nats::ServerError) -> bool {
    is_denial(error) && error.to_string().to_ascii_lowercase().contains("publish to \"_inbox.")
}

impl LinkState {
    fn connections(self) -> u64 {
        match self {
            LinkState::Up { connection } => connection,
            LinkState::Down { connections } => connections,
        }
    }

    fn up(self) -> Self {
        LinkState::Up {
            connection: self.connections() + 1,
        }
    }

    fn down(self) -> Self {
        LinkState::Down {
            connections: self.connections(),
        }
    }
}

fn fitness(info: &async_nats::ServerInfo) -> Result<(), Unfit> {
    let server = info.server_name.clone();
    match info.version.parse::<Version>() {
        Ok(version) if version >= MINIMUM => {}
        _ => {
            return Err(Unfit::Version {
                server,
                version: info.version.clone(),
            });
        }
    }
    // In a cluster another server may have the log, and this one forwards requests to it: it may have no JetStream of
    // its own, or have lost it to a full disk.
    if !info.jetstream && info.cluster.is_none() {
        return Err(Unfit::NoJetStream { server });
    }
    if info.max_payload < MAX_PAYLOAD {
        return Err(Unfit::Payload {
            server,
            max_payload: info.max_payload,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use async_nats::ServerError;

    use super::*;

    fn info(version: &str, jetstream: bool, max_payload: usize) -> async_nats::ServerInfo {
        async_nats::ServerInfo {
            version: version.to_owned(),
            jetstream,
            max_payload,
            ..Default::default()
        }
    }

    #[test]
    fn unfit_servers_are_refused_with_what_to_do() {
        assert_eq!(fitness(&info("2.15.1", true, MAX_PAYLOAD)), Ok(()));
        for (unfit, advice) in [
            (info("2.9.10", true, MAX_PAYLOAD), "Annals needs 2.15.1"),
            (info("", true, MAX_PAYLOAD), "Annals needs 2.15.1"),
            (info("2.15.1", false, MAX_PAYLOAD), "add a jetstream block"),
            (info("2.15.1", true, 1024 * 1024), "max_payload: 8388608"),
        ] {
            let text = fitness(&unfit).unwrap_err().to_string();
            assert!(text.contains(advice), "{text}");
        }
        let one_of_several = async_nats::ServerInfo {
            cluster: Some("annals".to_owned()),
            ..info("2.15.1", false, MAX_PAYLOAD)
        };
        assert_eq!(fitness(&one_of_several), Ok(()), "others may keep the log");
    }

    #[test]
    fn pauses_grow_to_a_cap() {
        let pauses: Vec<_> = (1..=12).map(pause_before).collect();
        assert!(pauses.is_sorted());
        assert_eq!(pauses[0], Duration::from_millis(10));
        assert_eq!(pauses[11], LONGEST_PAUSE);
        assert_eq!(pause_before(usize::MAX), LONGEST_PAUSE);
    }

    #[test]
    fn credentials_are_not_shown() {
        let shown = without_credentials("nats://db:se@cret@10.0.0.1:4222,tls://b:4222,user:word@c:1,d:4222");
        assert_eq!(shown, "nats://10.0.0.1:4222,tls://b:4222,nats://c:1,d:4222");
    }

    #[test]
    fn a_bad_address_is_named() {
        let text = addresses("nats://127.0.0.1:4222, nats://[oops")
            .unwrap_err()
            .to_string();
        assert!(text.contains("nats://[oops") && !text.contains("4222"), "{text}");
    }

    #[test]
    fn a_reconnect_counts_as_another_connection() {
        let first = LinkState::Down { connections: 0 }.up();
        assert_eq!(first.down().up(), LinkState::Up { connection: 2 });
        assert_eq!(first.down(), LinkState::Down { connections: 1 });
    }

    #[test]
    fn a_denied_answer_is_no_wrong_file() {
        let denied = |what: &str| ServerError::Other(format!("Permissions Violation for {what}"));
        let answer = denied("Publish to \"_INBOX.cell.K2vP.ftx0\"");
        assert!(is_denial(&answer) && is_denied_answer(&answer));
        for other in ["Publish to \"annals.x.store\"", "Subscription to \"_INBOX.cell.>\""] {
            let other = denied(other);
            assert!(is_denial(&other) && !is_denied_answer(&other), "{other}");
        }
    }
}
