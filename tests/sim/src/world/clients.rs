//! Clients: the SDK's core, its connections, and the login service.

use std::collections::BTreeMap;

use annals_base::{BaseInput, CheckedOut, DownloadContent, DuplicateLogin, OpenSession, PreparedDownload};
use annals_client::{
    Attempt, ClientCore, Credentials, EndReason, Event, Input as ClientInput, Millis, Output as ClientOutput,
};
use annals_db::{StoredEntity, accounts, personal};
use annals_def::Value;
use annals_event::OwnerState;
use annals_ids::{
    CallNumber, DatabaseId, Direction, EntityId, Epoch, OwnerId, OwnerKind, Part, Position, ProcessId, SessionId,
};
use annals_node::{
    ConnectionId, NotOpened, Output,
    download::{Download, DownloadSource},
};
use annals_personal::PersonalKey;
use annals_store::immediate;
use annals_wire::client::{
    CloseReason, Hello, HelloAnswer, Located, LoginAnswer, LoginRefusal, LoginRequest, Secret, Ticket, ToServer,
    ToServerDatagram, value_hash,
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
    name: String,
    /// Its current connection, if it has one.
    connection: Option<ConnectionId>,
    /// All events it received, in order.
    pub told: Vec<Event>,
    /// The calls it made.
    pub made: Vec<Made>,
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
    owner: Option<OwnerId>,
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
    attempt: Attempt,
    request: LoginRequest,
}

/// A log-in that waits for a base.
pub(crate) struct Pending {
    client: usize,
    attempt: Attempt,
    secret: Secret,
    base: Located,
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
            told: Vec::new(),
            made: Vec::new(),
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

    pub(super) fn tell_client(&mut self, client: usize, input: ClientInput) {
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
                player.told.push(event);
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
                self.clients[client].connection = Some(connection);
                let delay = self.between(500, 5_000);
                self.after(
                    delay,
                    Step::Connect {
                        client,
                        connection,
                        process,
                    },
                );
            }
            ClientOutput::Frame(bytes) => {
                let Some(connection) = self.clients[client].connection else {
                    return;
                };
                let delay = self.between(300, 3_000);
                let Some(found) = self.connections.get_mut(&connection) else {
                    return;
                };
                found.up = found.up.max(self.now + delay);
                let at = found.up - self.now;
                self.after(at, Step::Frame { connection, bytes });
            }
            ClientOutput::Datagram(bytes) => {
                let Some(connection) = self.clients[client].connection else {
                    return;
                };
                if !self.roll().is_multiple_of(20) {
                    let delay = self.between(300, 6_000);
                    self.after(delay, Step::Datagram { connection, bytes });
                }
            }
            ClientOutput::Prepare { .. } | ClientOutput::Greet(_) | ClientOutput::Switch | ClientOutput::Abandon => {
                unreachable!("no base of the simulation announces a move")
            }
            ClientOutput::Disconnect(_) => {
                if let Some(connection) = self.clients[client].connection.take() {
                    let delay = self.between(300, 3_000);
                    self.after(delay, Step::Hangup { connection });
                }
            }
        }
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
                self.tell_base(
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
                let owner = hello.owner;
                if let Some(found) = self.connections.get_mut(&connection) {
                    found.owner = Some(owner);
                }
                let fresh_token = self.secret();
                if !self.tell_base(
                    found.process,
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
            self.tell_base(found.process, owner, BaseInput::Datagram { connection, datagram });
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
        if let Some(owner) = found.owner {
            self.tell_base(found.process, owner, BaseInput::Closed { connection });
        }
    }

    fn tell_base(&mut self, process: ProcessId, owner: OwnerId, input: BaseInput) -> bool {
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
    }

    /// Delivers a base's outputs to its clients.
    pub(super) fn emit_to_client(&mut self, output: Output) {
        match output {
            Output::Frame { connection, bytes } => {
                let delay = self.between(300, 3_000);
                let Some(found) = self.connections.get_mut(&connection) else {
                    return;
                };
                found.down = found.down.max(self.now + delay);
                let (at, client, attempt) = (found.down - self.now, found.client, found.attempt);
                self.after(
                    at,
                    Step::ToClient {
                        client,
                        input: ClientInput::Frame { attempt, body: bytes },
                    },
                );
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
                self.emit_to_client(Output::Frame { connection, bytes });
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

    /// The login service, in one step; the decisions of `annals-login` are tested in its own crate.
    pub(super) fn log_in(&mut self, client: usize, call: LoginCall) {
        let LoginCall { attempt, request } = call;
        let answer = match request {
            LoginRequest::LogIn { .. } => match self.open(client, attempt) {
                None => return,
                Some(refusal) => LoginAnswer::Refused(refusal),
            },
            LoginRequest::Locate { owner, .. } => match self.located(owner) {
                Some((located, _)) => LoginAnswer::Located(located),
                None => LoginAnswer::Refused(LoginRefusal::NotHeld),
            },
        };
        let input = ClientInput::LoginAnswered {
            attempt,
            answer: Some(answer),
        };
        self.after(1_000, Step::ToClient { client, input });
    }

    /// Asks a base for a session; `None` while the answer is pending.
    fn open(&mut self, client: usize, attempt: Attempt) -> Option<LoginRefusal> {
        let name = self.clients[client].name.clone();
        let entity = StoredEntity {
            entity_type: "Avatar".to_owned(),
            ..StoredEntity::default()
        };
        let schema = std::sync::Arc::clone(&self.schema);
        let created = immediate(accounts::create(&self.store, name.as_bytes(), "", &entity, &schema));
        let Ok(account) = created else {
            return Some(LoginRefusal::Busy);
        };
        let Some(preferred) = self.any_base() else {
            return Some(LoginRefusal::Busy);
        };
        let Ok(Some(checkout)) = immediate(accounts::check_out(&self.store, account.database, preferred)) else {
            return Some(LoginRefusal::Busy);
        };
        let Some((base, hold)) = self.located(checkout.owner) else {
            return Some(LoginRefusal::Busy);
        };
        let secret = self.secret();
        let request = self.next_login;
        self.next_login += 1;
        let wanted = self.wanted(request, base.epoch, account.database, checkout.number, &secret);
        self.logins.insert(
            request,
            Pending {
                client,
                attempt,
                secret,
                base,
            },
        );
        self.give(hold, Given::Base(BaseInput::OpenSession(wanted)));
        None
    }

    fn wanted(&self, request: u64, epoch: Epoch, account: DatabaseId, checkout: u64, secret: &Secret) -> OpenSession {
        let entity_type = self.schema.type_named("Avatar").expect("the game has avatars");
        let stored = immediate(accounts::load(&self.truth(), account)).expect("the store in memory answers");
        let properties = stored
            .map(|stored| {
                [Part::Base, Part::Cell]
                    .map(|part| stored.properties_of(entity_type, part))
                    .concat()
            })
            .unwrap_or_default();
        OpenSession {
            request,
            account: CheckedOut {
                epoch,
                database: account,
                checkout,
                type_id: entity_type.id,
                properties,
                key: self.key(account),
            },
            ticket: secret.digest().0,
            name: account.to_string(),
            duplicate: DuplicateLogin::Replace,
            replaces_only: false,
        }
    }

    /// A person's key; db creates it on first use.
    pub(super) fn key(&self, person: DatabaseId) -> Option<PersonalKey> {
        let fresh = [person.0.to_le_bytes()[0]; 32];
        immediate(personal::key(&self.truth(), person, fresh)).expect("the store in memory answers")
    }

    /// The keys of all persons with an activation in a state.
    pub(super) fn keys(&self, state: &OwnerState) -> BTreeMap<DatabaseId, PersonalKey> {
        let lives = state.databases.keys();
        lives.filter_map(|&person| Some((person, self.key(person)?))).collect()
    }

    pub(super) fn any_base(&mut self) -> Option<OwnerId> {
        let owners: Vec<OwnerId> = self
            .director
            .as_ref()?
            .membership
            .live_owners(OwnerKind::Base)
            .collect();
        let choice = self.roll();
        owners
            .get(usize::try_from(choice % owners.len().max(1) as u64).ok()?)
            .copied()
    }

    pub(super) fn located(&self, owner: OwnerId) -> Option<(Located, Hold)> {
        let hold = self.holder(owner)?;
        let epoch = self.processes.get(&hold.process)?.owners.get(&owner)?.epoch;
        let port = u16::try_from(hold.process.0).expect("a run has few processes");
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], port));
        Some((
            Located {
                owner,
                epoch,
                address,
                certificate: None,
            },
            hold,
        ))
    }

    fn session_opened(&mut self, request: u64, opened: &Result<SessionId, NotOpened>) {
        let Some(Pending {
            client,
            attempt,
            secret,
            base,
        }) = self.logins.remove(&request)
        else {
            return;
        };
        let answer = match opened {
            Ok(session) => LoginAnswer::Ticket(Ticket {
                session: *session,
                secret,
                base,
            }),
            Err(_) => LoginAnswer::Refused(LoginRefusal::Busy),
        };
        let input = ClientInput::LoginAnswered {
            attempt,
            answer: Some(answer),
        };
        self.after(1_000, Step::ToClient { client, input });
    }

    fn secret(&mut self) -> Secret {
        let mut bytes = [0; 32];
        for chunk in bytes.chunks_exact_mut(8) {
            chunk.copy_from_slice(&self.roll().to_le_bytes());
        }
        Secret(bytes)
    }
}
