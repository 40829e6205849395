//! Clients: the SDK's core, its connections, and the login service.

use std::net::SocketAddr;

use annals_base::{BaseInput, DownloadContent, PreparedDownload};
use annals_client::{
    Attempt, ClientCore, Credentials, EndReason, Event, Input as ClientInput, Millis, Output as ClientOutput,
};
use annals_def::Value;
use annals_ids::{CallNumber, Direction, EntityId, OwnerId, Part, Position, ProcessId};
use annals_node::{
    ConnectionId, Output,
    download::{Download, DownloadSource},
};
use annals_wire::client::{
    CloseReason, Hello, HelloAnswer, Located, LoginRequest, Secret, ToServer, ToServerDatagram, value_hash,
};

use super::{
    Step, World,
    hosting::{Given, Hold},
};
use crate::{game::EXTENT, plan::Division};

/// One in this many actions of a client is to leave, in plans with visits.
const VISIT_ODDS: u64 = 25;

/// A client.
pub struct SimClient {
    /// The SDK's core.
    pub core: ClientCore,
    /// The account it logs in to.
    pub account: u64,
    pub(super) name: String,
    /// Its current connection, if it has one.
    connection: Option<ConnectionId>,
    /// The connection to the process that is about to serve it.
    next: Option<ConnectionId>,
    /// All events it received, in order.
    pub events: Vec<Event>,
    /// The calls it made.
    pub made: Vec<Made>,
    /// Movements of other entities that it sent, as their driver.
    pub driven: u64,
    /// Why its session ended, if it has.
    pub ended: Option<EndReason>,
    heading: Position,
    waking: Option<u64>,
}

/// A call that a client made.
#[derive(Clone, Debug)]
pub struct Made {
    /// The id that the call carries, unique in the run.
    pub id: u32,
    pub method: &'static str,
    /// The called entity.
    pub entity: EntityId,
    /// The called part.
    pub part: Part,
    /// The call number in the link.
    pub number: CallNumber,
}

/// A connection of a client.
#[derive(Clone, Copy, Debug)]
pub struct Connection {
    pub(super) client: usize,
    pub(super) attempt: Attempt,
    pub(super) process: ProcessId,
    /// The owner that the first frame named.
    pub(super) owner: Option<OwnerId>,
    /// Arrival time of the last item sent to the client, so that nothing overtakes it.
    down: u64,
    /// The same for background frames.
    beside: u64,
    /// The same for items to the base.
    up: u64,
}

/// A request to the login service.
#[derive(Debug)]
pub(crate) struct LoginCall {
    pub(super) attempt: Attempt,
    pub(super) request: LoginRequest,
}

/// A log-in that waits for a base.
pub(crate) struct Pending {
    pub(super) client: usize,
    pub(super) attempt: Attempt,
    pub(super) secret: Secret,
    pub(super) base: Located,
}

/// The address at which a base process serves clients.
pub(super) fn address_of(process: ProcessId) -> SocketAddr {
    let port = u16::try_from(process.0).expect("a run has few processes");
    SocketAddr::from(([127, 0, 0, 1], port))
}

impl World {
    pub(super) fn add_client(&mut self, number: u64) {
        let name = format!("client{number}");
        let credentials = Credentials::password(name.clone(), "secret");
        let seed = self.roll();
        let core = ClientCore::new(std::sync::Arc::clone(&self.schema), credentials, seed);
        let client = self.clients.len();
        self.clients.push(SimClient {
            core,
            account: number,
            name,
            connection: None,
            next: None,
            events: Vec::new(),
            made: Vec::new(),
            driven: 0,
            ended: None,
            heading: Position::default(),
            waking: None,
        });
        let begin = self.between(500_000, 2_000_000);
        self.after(begin, Step::Play { client });
    }

    pub(super) fn millis(&self) -> Millis {
        Millis(self.now / 1_000)
    }

    pub(super) fn send_to_client(&mut self, client: usize, input: ClientInput) {
        let now = self.millis();
        self.clients[client].core.handle(now, input);
        self.drain_client(client);
    }

    pub(super) fn wake_client(&mut self, client: usize) {
        let now = self.millis();
        let waking = &mut self.clients[client].waking;
        if waking.is_some_and(|at| at > self.now) {
            return;
        }
        *waking = None;
        self.clients[client].core.tick(now);
        self.drain_client(client);
    }

    /// A client performs a random action, and schedules the next until play ends.
    pub(super) fn play(&mut self, client: usize) {
        let now = self.millis();
        if !self.is_playing() {
            // The last to log in gets the account.
            if self.plan.visits {
                self.clients[client].core.start(now);
                self.drain_client(client);
            }
            return;
        }
        self.clients[client].core.start(now);
        if self.plan.visits && self.roll().is_multiple_of(VISIT_ODDS) {
            self.part(client);
        }
        if self.plan.visits && self.clients[client].core.has_ended() {
            return self.come_again(client);
        }
        let leaps = self.plan.crossing.is_some() && self.roll().is_multiple_of(14);
        if self.clients[client].core.is_playing() {
            match self.roll() % 16 {
                _ if leaps => self.call(client, "leap", Part::Cell),
                0..=4 => self.walk(client),
                5 => self.call(client, "mark", Part::Cell),
                6 => self.call(client, "passOn", Part::Cell),
                7 => self.call(client, "rename", Part::Base),
                8 => self.call(client, "askBase", Part::Cell),
                9 | 10 => self.call(client, "stash", Part::Cell),
                11 => self.call(client, "jot", Part::Base),
                12..=14 => self.call(client, "deal", Part::Base),
                _ => {
                    let x = self.roll() % (2 * EXTENT as u64);
                    let is_wide = self
                        .plan
                        .crossing
                        .is_some_and(|crossing| crossing.division == Division::Plane);
                    let (depth, south) = if is_wide {
                        (2 * EXTENT as u64, -EXTENT)
                    } else {
                        (40, 0.0)
                    };
                    self.clients[client].heading = Position {
                        x: x as f32 - EXTENT,
                        y: 0.0,
                        z: (self.roll() % depth) as f32 + south,
                    };
                }
            }
        }
        self.drain_client(client);
        let pause = self.between(20_000, self.plan.shape.pace_us);
        self.after(pause, Step::Play { client });
    }

    /// A client leaves, vanishes, or a second client of the same account logs in; or all clients are disconnected.
    fn part(&mut self, client: usize) {
        let account = self.clients[client].account;
        match self.roll() % 6 {
            0 | 1 => {
                self.note(format_args!("client {client} logs off"));
                self.clients[client].core.leave();
            }
            2 => {
                self.note(format_args!("client {client} disappears"));
                if let Some(connection) = self.clients[client].connection.take() {
                    let noticed = self.between(1_000, 5_000_000);
                    self.after(noticed, Step::Hangup { connection });
                }
                // Nothing that it sends from here arrives.
                self.clients[client].core.leave();
            }
            3 => {
                self.note("every connection breaks");
                let all: Vec<ConnectionId> = self.connections.keys().copied().collect();
                for connection in all {
                    let noticed = self.between(1_000, 2_000_000);
                    self.break_off(connection, noticed);
                }
            }
            _ => {
                self.note(format_args!(
                    "another client of account {account} comes beside client {client}"
                ));
                self.add_client(account);
            }
        }
        self.drain_client(client);
    }

    /// Breaks a connection: its client notices at once, its base after this many microseconds.
    pub(super) fn break_off(&mut self, connection: ConnectionId, noticed: u64) {
        let Some(Connection { client, attempt, .. }) = self.connections.get(&connection).copied() else {
            return;
        };
        let reason = CloseReason::Lost;
        let input = ClientInput::Disconnected { attempt, reason };
        self.after(0, Step::ToClient { client, input });
        self.after(noticed, Step::Hangup { connection });
    }

    /// A client has ended. Its player returns with a new client, if no other client plays the account.
    fn come_again(&mut self, client: usize) {
        let SimClient { account, ended, .. } = self.clients[client];
        if !ended.is_some_and(EndReason::is_elsewhere) {
            self.add_client(account);
        }
    }

    fn walk(&mut self, client: usize) {
        let now = self.millis();
        let player = &mut self.clients[client];
        let own = player
            .core
            .controls()
            .and_then(|(entity, _)| player.core.entity(entity));
        let Some((position, _)) = own.and_then(|seen| seen.place) else {
            return;
        };
        let step = |from: f32, to: f32| from + (to - from).clamp(-6.0, 6.0);
        let position = Position {
            x: step(position.x, player.heading.x),
            y: 0.0,
            z: step(position.z, player.heading.z),
        };
        player.core.move_to(now, position, Direction::default());
        let seen = player.core.view(Part::Cell).entities();
        let own = player.core.controls().map(|(own, _)| own);
        let others = seen.iter().filter(|(entity, _)| Some(**entity) != own);
        let places: Vec<_> = others
            .filter_map(|(entity, seen)| Some((*entity, seen.place?.0)))
            .collect();
        for (entity, at) in places {
            let (x, z) = (step(at.x, position.x), step(at.z, position.z));
            let to = Position { x, z, ..at };
            // Only if the client drives the entity.
            let is_sent = player.core.move_entity(now, entity, to, Direction::default());
            player.driven += u64::from(is_sent);
        }
    }

    pub(super) fn call(&mut self, client: usize, method: &'static str, part: Part) {
        let now = self.millis();
        let id = self.next_call;
        let player = &mut self.clients[client];
        let Some((entity, _)) = player.core.controls() else {
            return;
        };
        // A call to a cell part that is not in view is not sent.
        if part == Part::Cell && player.core.entity(entity).is_none() {
            return;
        }
        if let Ok(number) = player
            .core
            .call(now, entity, part, method, &[Value::UInt(u64::from(id))])
        {
            self.next_call += 1;
            player.made.push(Made {
                id,
                method,
                entity,
                part,
                number,
            });
        }
    }

    pub(super) fn drain_client(&mut self, client: usize) {
        loop {
            let player = &mut self.clients[client];
            while let Some(event) = player.core.poll_event() {
                if let Event::Ended(reason) = event {
                    player.ended = Some(reason);
                }
                player.events.push(event);
            }
            let Some(output) = player.core.poll_output() else { break };
            self.do_for_client(client, output);
        }
        let Some(Millis(due)) = self.clients[client].core.deadline() else {
            return;
        };
        let due = (due * 1_000).max(self.now + 1_000);
        if self.clients[client].waking.is_none_or(|at| due < at) {
            self.clients[client].waking = Some(due);
            self.after(due - self.now, Step::WakeClient { client });
        }
    }

    fn do_for_client(&mut self, client: usize, output: ClientOutput) {
        match output {
            ClientOutput::Login { attempt, request } => {
                let delay = self.between(500, 5_000);
                self.after(
                    delay,
                    Step::Login {
                        client,
                        request: LoginCall { attempt, request },
                    },
                );
            }
            ClientOutput::Connect { attempt, address, .. } => {
                self.clients[client].connection = Some(self.open_connection(client, attempt, address));
            }
            ClientOutput::Prepare { attempt, address, .. } => {
                self.clients[client].next = Some(self.open_connection(client, attempt, address));
            }
            ClientOutput::Frame(bytes) => self.send_frame(self.clients[client].connection, bytes),
            ClientOutput::Greet(bytes) => self.send_frame(self.clients[client].next, bytes),
            ClientOutput::Datagram(bytes) => {
                let Some(connection) = self.clients[client].connection else {
                    return;
                };
                if !self.roll().is_multiple_of(20) {
                    let delay = self.between(300, 6_000);
                    self.after(delay, Step::Datagram { connection, bytes });
                }
            }
            ClientOutput::Switch => {
                let next = self.clients[client].next.take();
                let former = std::mem::replace(&mut self.clients[client].connection, next);
                self.hang_up(former);
            }
            ClientOutput::Abandon => {
                let next = self.clients[client].next.take();
                self.hang_up(next);
            }
            ClientOutput::Disconnect(_) => {
                let connection = self.clients[client].connection.take();
                self.hang_up(connection);
            }
        }
    }

    fn open_connection(&mut self, client: usize, attempt: Attempt, address: SocketAddr) -> ConnectionId {
        let process = ProcessId(u64::from(address.port()));
        let connection = ConnectionId(self.next_connection);
        self.next_connection += 1;
        let opened = Connection {
            client,
            attempt,
            process,
            owner: None,
            down: self.now,
            beside: self.now,
            up: self.now,
        };
        self.connections.insert(connection, opened);
        let delay = self.between(500, 5_000);
        self.after(
            delay,
            Step::Connect {
                client,
                connection,
                process,
            },
        );
        connection
    }

    /// Sends a frame of a client.
    fn send_frame(&mut self, connection: Option<ConnectionId>, bytes: Vec<u8>) {
        let Some(connection) = connection else { return };
        let delay = self.between(300, 3_000);
        let Some(found) = self.connections.get_mut(&connection) else {
            return;
        };
        found.up = found.up.max(self.now + delay);
        let at = found.up - self.now;
        self.after(at, Step::Frame { connection, bytes });
    }

    /// A client closes a connection.
    fn hang_up(&mut self, connection: Option<ConnectionId>) {
        let Some(connection) = connection else { return };
        let delay = self.between(300, 3_000);
        self.after(delay, Step::Hangup { connection });
    }

    pub(super) fn connect(&mut self, client: usize, connection: ConnectionId, process: ProcessId) {
        let Some(attempt) = self.connections.get(&connection).map(|found| found.attempt) else {
            return;
        };
        let reachable = self.processes.get(&process).is_some_and(|host| host.paused.is_none());
        let input = if reachable {
            ClientInput::Connected { attempt }
        } else {
            self.connections.remove(&connection);
            ClientInput::Disconnected {
                attempt,
                reason: CloseReason::Lost,
            }
        };
        self.after(500, Step::ToClient { client, input });
    }

    pub(super) fn frame(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let Some(found) = self.connections.get(&connection).copied() else {
            return;
        };
        let kept = bytes.to_owned();
        if self.defer(found.process, |_| Step::Frame {
            connection,
            bytes: kept,
        }) {
            return;
        }
        match found.owner {
            Some(owner) => {
                let trace = annals_event::Trace::default();
                let frame = ToServer::read(bytes).expect("the SDK's frames can be read");
                self.send_to_base(
                    found.process,
                    owner,
                    BaseInput::Frame {
                        connection,
                        frame,
                        trace,
                    },
                );
            }
            None => {
                let hello = Hello::read(bytes).expect("the SDK's first frame is a hello");
                let host = self.processes.get(&found.process);
                if host.is_some_and(|host| host.is_next(hello.owner)) {
                    self.early.push((connection, hello));
                } else {
                    self.greet(connection, found.process, hello);
                }
            }
        }
    }

    fn greet(&mut self, connection: ConnectionId, process: ProcessId, hello: Hello) {
        let owner = hello.owner;
        let Some(found) = self.connections.get_mut(&connection) else {
            return;
        };
        found.owner = Some(owner);
        if let Some(host) = self.processes.get_mut(&process) {
            host.clients.greet(connection, owner);
        }
        let fresh_token = self.secret();
        if !self.send_to_base(
            process,
            owner,
            BaseInput::Hello {
                connection,
                from: ([127, 0, 0, 1], 1).into(),
                hello,
                fresh_token,
            },
        ) {
            // As an edge does for an owner that its process does not hold.
            self.close(connection, CloseReason::Moved);
        }
    }

    /// Handles the hellos of clients that connected before a process held their owner, unless it still follows it.
    pub(super) fn greet_early(&mut self, process: ProcessId) {
        let Some(host) = self.processes.get(&process) else {
            return;
        };
        let (waiting, due): (Vec<_>, Vec<_>) = std::mem::take(&mut self.early).into_iter().partition(|(id, hello)| {
            let found = self.connections.get(id);
            found.is_some_and(|found| found.process != process || host.is_next(hello.owner))
        });
        self.early = waiting;
        for (connection, hello) in due {
            self.greet(connection, process, hello);
        }
    }

    pub(super) fn datagram(&mut self, connection: ConnectionId, bytes: &[u8]) {
        let Some(found) = self.connections.get(&connection).copied() else {
            return;
        };
        let running = self
            .processes
            .get(&found.process)
            .is_some_and(|host| host.paused.is_none());
        if let (true, Some(owner)) = (running, found.owner) {
            let datagram = ToServerDatagram::read(bytes).expect("the SDK's datagrams can be read");
            self.send_to_base(found.process, owner, BaseInput::Datagram { connection, datagram });
        }
    }

    pub(super) fn hangup(&mut self, connection: ConnectionId) {
        let Some(found) = self.connections.get(&connection).copied() else {
            return;
        };
        if self.defer(found.process, |_| Step::Hangup { connection }) {
            return;
        }
        self.connections.remove(&connection);
        if let Some(host) = self.processes.get_mut(&found.process) {
            host.clients.close(connection);
        }
        if let Some(owner) = found.owner {
            self.send_to_base(found.process, owner, BaseInput::Closed { connection });
        }
    }

    fn send_to_base(&mut self, process: ProcessId, owner: OwnerId, input: BaseInput) -> bool {
        let held = self.processes.get(&process).and_then(|host| host.owners.get(&owner));
        let Some(hold) = held.filter(|held| held.core.is_some()).map(|held| held.hold) else {
            return false;
        };
        self.give(hold, Given::Base(input));
        true
    }

    /// Closes a connection from the server side.
    pub(super) fn close(&mut self, connection: ConnectionId, reason: CloseReason) {
        let Some(found) = self.connections.remove(&connection) else {
            return;
        };
        if let Some(host) = self.processes.get_mut(&found.process) {
            host.clients.close(connection);
        }
        let at = found.down.max(self.now + 500) - self.now;
        let input = ClientInput::Disconnected {
            attempt: found.attempt,
            reason,
        };
        self.after(
            at,
            Step::ToClient {
                client: found.client,
                input,
            },
        );
    }

    /// A process no longer holds an owner: its clients must locate the new holder.
    pub(super) fn send_away(&mut self, process: ProcessId, owner: OwnerId) {
        let here = |found: &Connection| found.process == process && found.owner == Some(owner);
        let connections: Vec<_> = self
            .connections
            .iter()
            .filter(|(_, found)| here(found))
            .map(|(connection, _)| *connection)
            .collect();
        for connection in connections {
            self.close(connection, CloseReason::Moved);
        }
        if let Some(host) = self.processes.get_mut(&process) {
            host.clients.forget_move(owner);
        }
    }

    pub(super) fn emit_frame(&mut self, connection: ConnectionId, body: Vec<u8>) {
        let delay = self.between(300, 3_000);
        let Some(found) = self.connections.get_mut(&connection) else {
            return;
        };
        found.down = found.down.max(self.now + delay);
        let (at, client, attempt) = (found.down - self.now, found.client, found.attempt);
        let input = ClientInput::Frame { attempt, body };
        self.after(at, Step::ToClient { client, input });
    }

    /// Delivers a base's outputs to its clients.
    pub(super) fn emit_to_client(&mut self, output: Output) {
        match output {
            Output::Frame { connection, bytes } => {
                self.emit_frame(connection, bytes);
                let found = self.connections.get(&connection);
                let host = found.and_then(|found| self.processes.get_mut(&found.process));
                let announcement = host.and_then(|host| host.clients.sent(connection).map(<[u8]>::to_vec));
                if let Some(announcement) = announcement {
                    self.emit_frame(connection, announcement);
                }
            }
            Output::BackgroundFrame { connection, bytes } => {
                let delay = self.between(300, 30_000);
                let Some(found) = self.connections.get_mut(&connection) else {
                    return;
                };
                found.beside = found.beside.max(self.now + delay);
                let (at, client, attempt) = (found.beside - self.now, found.client, found.attempt);
                self.after(
                    at,
                    Step::ToClient {
                        client,
                        input: ClientInput::Frame { attempt, body: bytes },
                    },
                );
            }
            Output::Datagram { connection, bytes } => {
                let Some(Connection { client, attempt, .. }) = self.connections.get(&connection).copied() else {
                    return;
                };
                let delay = self.between(300, 6_000);
                self.after(
                    delay,
                    Step::ToClient {
                        client,
                        input: ClientInput::Datagram { attempt, bytes },
                    },
                );
            }
            Output::Close { connection, reason } => self.close(connection, reason),
            Output::Reject { connection, rejection } => {
                let mut bytes = Vec::new();
                HelloAnswer::Rejected(rejection).write(&mut bytes);
                self.emit_frame(connection, bytes);
                self.close(connection, CloseReason::Finished);
            }
            Output::SessionOpened { request, opened } => self.session_opened(request, &opened),
            Output::Send { .. }
            | Output::WantIds
            | Output::Begun { .. }
            | Output::Ordered { .. }
            | Output::SessionsEnded { .. }
            | Output::Outbound(_)
            | Output::Download(_)
            | Output::Inquire { .. } => {
                unreachable!("these are not for clients")
            }
        }
    }

    /// Gives the content of a download to the holder that asked for it.
    pub(super) fn prepared(&mut self, hold: Hold, download: Download) {
        let Download {
            id,
            description,
            source,
        } = download;
        let content = match source {
            DownloadSource::Content(bytes) => Ok(DownloadContent {
                hash: value_hash(&bytes),
                bytes: bytes.into(),
            }),
            DownloadSource::File(name) => Err(format!("this game has no file {name}")),
        };
        let prepared = PreparedDownload {
            id,
            description,
            content,
        };
        self.give(hold, Given::Base(BaseInput::Download(prepared)));
    }
}
