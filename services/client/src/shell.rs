//! The core on a QUIC endpoint.

use std::{
    io,
    net::{Ipv4Addr, Ipv6Addr, SocketAddr},
    sync::Arc,
    time::Instant,
};

use annals_def::{Schema, Value};
use annals_ids::{CallNumber, Direction, EntityId, Hash, Part, Position};
use annals_wire::client::{CloseReason, Credentials, LOGIN_ALPN, PLAY_ALPN, Reads};
use tokio::{
    sync::mpsc::{self, error::TrySendError},
    task::AbortHandle,
    time::{Duration, sleep_until},
};

use crate::{
    calls::CallError,
    event::{Attempt, Event, Input, Millis, Output},
    link::{self, Target, WriteCommand},
    session::ClientCore,
    trust::Trust,
};

/// Maximum inputs that wait for the core. While the queue is full the connection is not read, and QUIC slows the server
/// down.
const MAX_WAITING_INPUTS: usize = 256;

/// Maximum frames and datagrams that wait to be written. If the queue overflows, the connection is stuck.
const MAX_WAITING_ORDERS: usize = 1_024;

/// Configuration of a client.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address of the login service.
    pub login: SocketAddr,
    /// The certificates that are accepted there.
    pub trust: Trust,
    /// What is shown to the login service.
    pub credentials: Credentials,
    /// The definitions the realm runs with.
    pub schema: Arc<Schema>,
    /// Spreads the retries of many clients; any number, different for each.
    pub seed: u64,
    /// The encodings of movements that it offers to read; the client library reads all.
    pub reads: Reads,
}

/// A client that logs in, plays and resumes by itself, as long as [`Client::next`] is awaited.
///
/// [`Client::core`] has the views; [`Client::next`] returns events. Dropping it closes the connection without ending
/// the session.
#[derive(Debug)]
pub struct Client {
    core: ClientCore,
    endpoint: quinn::Endpoint,
    login: SocketAddr,
    trust: Trust,
    began: Instant,
    inputs: mpsc::Receiver<Input>,
    sender: mpsc::Sender<Input>,
    asking: Option<AbortHandle>,
    link: Option<Link>,
    /// The connection that is to take its place.
    next: Option<Link>,
}

/// A connection to a base, open or being opened.
#[derive(Debug)]
struct Link {
    attempt: Attempt,
    orders: mpsc::Sender<WriteCommand>,
}

/// An endpoint that any number of clients of one process may share, for the address family of `server`.
///
/// # Errors
/// When no socket can be opened.
pub fn client_endpoint(server: SocketAddr) -> io::Result<quinn::Endpoint> {
    quinn::Endpoint::client(match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    })
}

impl Client {
    /// Starts the log-in. Must be called within a tokio runtime.
    #[must_use]
    pub fn start(endpoint: quinn::Endpoint, config: Config) -> Self {
        let Config {
            login,
            trust,
            credentials,
            schema,
            seed,
            reads,
        } = config;
        let (sender, inputs) = mpsc::channel(MAX_WAITING_INPUTS);
        let mut client = Self {
            core: ClientCore::new(schema, credentials, seed).reading(reads),
            endpoint,
            login,
            trust,
            began: Instant::now(),
            inputs,
            sender,
            asking: None,
            link: None,
            next: None,
        };
        let now = client.now();
        client.core.start(now);
        client.carry_out();
        client
    }

    /// The next event; `None` after [`Event::Ended`], the last one. Cancel-safe.
    pub async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.core.poll_event() {
                return Some(event);
            }
            if self.core.has_ended() {
                return None;
            }
            let due = self
                .core
                .deadline()
                .map(|due| self.began + Duration::from_millis(due.0));
            tokio::select! {
                input = self.inputs.recv() => {
                    let input = input.expect("invariant: the client itself holds a sender");
                    self.core.handle(self.now(), input);
                }
                () = sleep_until(due.unwrap_or(self.began).into()), if due.is_some() => {
                    self.core.tick(self.now());
                }
            }
            self.carry_out();
        }
    }

    /// The session, the views, the counters.
    #[must_use]
    pub fn core(&self) -> &ClientCore {
        &self.core
    }

    /// A time of the core as an instant of this process.
    #[must_use]
    pub fn instant(&self, at: Millis) -> Instant {
        self.began + Duration::from_millis(at.0)
    }

    /// Calls an exposed method; see [`ClientCore::call`].
    ///
    /// # Errors
    /// As [`ClientCore::call`].
    pub fn call(
        &mut self,
        entity: EntityId,
        part: Part,
        method: &str,
        args: &[Value],
    ) -> Result<CallNumber, CallError> {
        let number = self.core.call(self.now(), entity, part, method, args)?;
        self.carry_out();
        Ok(number)
    }

    /// Moves the client's own entity; see [`ClientCore::move_to`].
    pub fn move_to(&mut self, position: Position, direction: Direction) -> bool {
        let moved = self.core.move_to(self.now(), position, direction);
        self.carry_out();
        moved
    }

    /// Moves an entity that the client drives; see [`ClientCore::move_entity`].
    pub fn move_entity(&mut self, entity: EntityId, position: Position, direction: Direction) -> bool {
        let moved = self.core.move_entity(self.now(), entity, position, direction);
        self.carry_out();
        moved
    }

    /// Ends the session. [`Client::next`] still returns the events before that.
    pub fn leave(&mut self) {
        self.core.leave();
        self.carry_out();
    }

    /// Drops the connection as a failing network would; the client resumes.
    pub fn cut(&mut self) {
        if let Some(link) = self.link.take() {
            let input = Input::Disconnected {
                attempt: link.attempt,
                reason: CloseReason::Lost,
            };
            self.core.handle(self.now(), input);
            self.carry_out();
        }
    }

    fn now(&self) -> Millis {
        Millis(u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX))
    }

    /// Carries out the core's outputs.
    fn carry_out(&mut self) {
        while let Some(output) = self.core.poll_output() {
            match output {
                Output::Login { attempt, request } => {
                    let target = Target::new(self.login, &self.trust, LOGIN_ALPN);
                    let task = tokio::spawn(link::ask(
                        self.endpoint.clone(),
                        target,
                        attempt,
                        request,
                        self.sender.clone(),
                    ));
                    if let Some(before) = self.asking.replace(task.abort_handle()) {
                        before.abort();
                    }
                }
                Output::Connect {
                    attempt,
                    address,
                    certificate,
                } => {
                    self.link = Some(self.connect(attempt, address, certificate));
                }
                Output::Prepare {
                    attempt,
                    address,
                    certificate,
                } => self.next = Some(self.connect(attempt, address, certificate)),
                Output::Greet(body) => {
                    if let Some(next) = &self.next {
                        // If it has closed meanwhile, that is reported.
                        let _ = next.orders.try_send(WriteCommand::Frame(body));
                    }
                }
                Output::Switch => {
                    let next = self.next.take();
                    if let Some(before) = std::mem::replace(&mut self.link, next) {
                        let _ = before.orders.try_send(WriteCommand::Close(CloseReason::Moved));
                    }
                }
                Output::Abandon => self.next = None,
                Output::Frame(body) => self.order(WriteCommand::Frame(body)),
                Output::Datagram(bytes) => self.order(WriteCommand::Datagram(bytes)),
                Output::Disconnect(reason) => {
                    if let Some(link) = self.link.take() {
                        // If the queue is full, dropping it closes the connection.
                        let _ = link.orders.try_send(WriteCommand::Close(reason));
                    }
                }
            }
        }
    }

    fn connect(&self, attempt: Attempt, address: SocketAddr, certificate: Option<Hash>) -> Link {
        let trust = self.trust.in_base(certificate);
        let target = trust.and_then(|trust| Target::new(address, &trust, PLAY_ALPN));
        let (orders, taken) = mpsc::channel(MAX_WAITING_ORDERS);
        tokio::spawn(link::play(
            self.endpoint.clone(),
            target,
            attempt,
            taken,
            self.sender.clone(),
        ));
        Link { attempt, orders }
    }

    fn order(&mut self, order: WriteCommand) {
        let Some(link) = &self.link else {
            return;
        };
        // If the connection has ended, its report follows, with the reason.
        if let Err(TrySendError::Full(_)) = link.orders.try_send(order) {
            let attempt = link.attempt;
            self.link = None;
            self.core.handle(
                self.now(),
                Input::Disconnected {
                    attempt,
                    reason: CloseReason::Lost,
                },
            );
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        if let Some(asking) = &self.asking {
            asking.abort();
        }
    }
}
