//! A session from log-in to its end, over as many connections and bases as it takes.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc};

use annals_def::{MessageRange, Schema, Value};
use annals_event::SpaceData;
use annals_ids::{CallNumber, Direction, EntityId, Epoch, Hash, OwnerId, Part, Position, SessionId, TypeId};
use annals_wire::client::{
    ClientMember, CloseReason, Hello, HelloAnswer, Located, LoginAnswer, LoginRefusal, LoginRequest, Moved, Password,
    Proof, Reads, Rejection, Ticket, ToServer, ToServerDatagram, Welcome, protocol_hash,
};

use crate::{
    calls::{CallError, Calls, encode_call, exposed_method},
    event::{Attempt, Counters, EndReason, Event, Input, Millis, Output},
    hearing::{Hearing, Silence},
    view::{Seen, View, Views},
};

/// Milliseconds within which the login service must answer; it may have to wake a base first.
const LOGIN_WITHIN: u64 = 10_000;

/// Milliseconds within which a connection to a base must stand. A process that was killed does not refuse, it is silent.
/// Doubled for each attempt that fails: a base that is rushed is slow.
const CONNECT_WITHIN: u64 = 2_000;

/// The longest patience with a connection, milliseconds.
const CONNECT_WITHIN_AT_MOST: u64 = 16_000;

/// Milliseconds within which a base must answer the hello.
const WELCOME_WITHIN: u64 = 5_000;

/// Milliseconds before the second attempt to do anything; doubled for each that fails.
const FIRST_RETRY: u64 = 200;

/// The longest time between two attempts, milliseconds.
const LAST_RETRY: u64 = 5_000;

/// How long the login service wants to be left alone by a client that asked too often, milliseconds.
const THROTTLED_FOR: u64 = 60_000;

/// Who logs in.
#[derive(Clone, Debug)]
pub struct Credentials {
    /// The account.
    pub name: String,
    /// Its password.
    pub password: Password,
}

/// The client's side of a session. It neither waits nor connects: a shell does, on its behalf.
///
/// Call [`ClientCore::start`] once. Then, whenever the shell has something to tell or [`ClientCore::deadline`] has come,
/// call [`ClientCore::handle`] or [`ClientCore::tick`]; the game's own calls are [`ClientCore::call`],
/// [`ClientCore::move_to`] and [`ClientCore::leave`]. After each of them drain [`ClientCore::poll_output`] and
/// [`ClientCore::poll_event`].
#[derive(Debug)]
pub struct ClientCore {
    pub(crate) schema: Arc<Schema>,
    credentials: Credentials,
    /// Which ways of telling movements it says it reads.
    reads: Reads,
    phase: Phase,
    pub(crate) session: Option<Session>,
    attempts: u64,
    /// How often in a row something failed on the way to playing.
    failures: u32,
    jitter: u64,
    pub(crate) views: Views,
    pub(crate) calls: Calls,
    moves: u64,
    pub(crate) counters: Counters,
    pub(crate) hearing: Hearing,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) events: VecDeque<Event>,
}

/// What the core is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// To be started.
    New,
    /// For the login service.
    Asking { attempt: Attempt, until: Millis },
    /// For the connection to a base.
    Connecting { attempt: Attempt, until: Millis },
    /// For the base's answer to the hello.
    Greeting { attempt: Attempt, until: Millis },
    /// For whatever happens.
    Playing { attempt: Attempt },
    /// For the time to try again.
    Resting { until: Millis, then: Next },
    /// For nothing any more.
    Ended,
}

/// What is tried next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    LogIn,
    Locate,
    Connect,
}

/// What has to be remembered to resume.
#[derive(Debug)]
pub(crate) struct Session {
    id: SessionId,
    owner: OwnerId,
    /// The highest epoch of the owner that was heard of (rule E7).
    epoch: Epoch,
    address: SocketAddr,
    certificate: Option<Hash>,
    proof: Proof,
    /// What the client controls, once a base has said so.
    pub(crate) controls: Option<(EntityId, TypeId)>,
}

impl ClientCore {
    /// A client of the realm with this schema. `seed` only spreads the retries of many clients.
    #[must_use]
    pub fn new(schema: Arc<Schema>, credentials: Credentials, seed: u64) -> Self {
        Self {
            schema,
            credentials,
            reads: Reads::Predicted,
            phase: Phase::New,
            session: None,
            attempts: 0,
            failures: 0,
            jitter: seed,
            views: Views::default(),
            calls: Calls::default(),
            moves: 0,
            counters: Counters::default(),
            hearing: Hearing::default(),
            outputs: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The same client, that says it reads no more than these ways of telling movements.
    #[must_use]
    pub fn reading(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    /// Logs in. Does nothing when called again.
    pub fn start(&mut self, now: Millis) {
        if self.phase == Phase::New {
            self.try_next(now, Next::LogIn);
        }
    }

    /// Takes what the shell has to tell.
    pub fn handle(&mut self, now: Millis, input: Input) {
        match (input, self.phase) {
            (Input::LoginAnswered { attempt, answer }, Phase::Asking { attempt: mine, .. }) if attempt == mine => {
                self.login_answered(now, answer);
            }
            (Input::Connected { attempt }, Phase::Connecting { attempt: mine, .. }) if attempt == mine => {
                let until = now.after(WELCOME_WITHIN);
                self.phase = Phase::Greeting { attempt, until };
                self.say_hello();
            }
            (Input::Frame { attempt, body }, Phase::Greeting { attempt: mine, .. }) if attempt == mine => {
                self.greeted(now, attempt, &body);
            }
            (Input::Frame { attempt, body }, Phase::Playing { attempt: mine }) if attempt == mine => {
                self.take_frame(now, &body);
            }
            (Input::Datagram { attempt, bytes }, Phase::Playing { attempt: mine }) if attempt == mine => {
                self.take_datagram(now, &bytes);
            }
            (
                Input::Disconnected { attempt, reason },
                Phase::Connecting { attempt: mine, .. } | Phase::Greeting { attempt: mine, .. },
            ) if attempt == mine => self.unreachable(now, reason),
            (Input::Disconnected { attempt, reason }, Phase::Playing { attempt: mine }) if attempt == mine => {
                self.lost(now, reason);
            }
            // It concerns an attempt that was given up.
            _ => {}
        }
    }

    /// Does what the time has come for.
    pub fn tick(&mut self, now: Millis) {
        match self.phase {
            Phase::Asking { until, .. } if until <= now => self.login_answered(now, None),
            Phase::Connecting { until, .. } | Phase::Greeting { until, .. } if until <= now => {
                self.outputs.push_back(Output::Disconnect(CloseReason::Silent));
                self.unreachable(now, CloseReason::Silent);
            }
            Phase::Resting { until, then } if until <= now => self.try_next(now, then),
            Phase::Playing { .. } => {
                for source in [Part::Base, Part::Cell] {
                    if self
                        .views
                        .get(source)
                        .deadline()
                        .is_some_and(|deadline| deadline <= now)
                    {
                        self.begin_view(now, source);
                    }
                }
                if self.calls.deadline().is_some_and(|deadline| deadline <= now) {
                    for call in self.calls.due(now) {
                        self.send(&ToServer::Call(call));
                    }
                }
            }
            _ => {}
        }
    }

    /// When [`ClientCore::tick`] is to be called at the latest.
    #[must_use]
    pub fn deadline(&self) -> Option<Millis> {
        match self.phase {
            Phase::New | Phase::Ended => None,
            Phase::Asking { until, .. }
            | Phase::Connecting { until, .. }
            | Phase::Greeting { until, .. }
            | Phase::Resting { until, .. } => Some(until),
            Phase::Playing { .. } => [
                self.views.base.deadline(),
                self.views.cell.deadline(),
                self.calls.deadline(),
            ]
            .into_iter()
            .flatten()
            .min(),
        }
    }

    /// Takes out what the shell is to do next.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Takes out what the game is to know next.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Calls an exposed method of an entity in view. The call is kept until the server has logged its effects, over
    /// reconnections and take-overs.
    ///
    /// # Errors
    /// When there is no such method in view, the arguments do not fit it, or too much is unconfirmed already.
    pub fn call(
        &mut self,
        now: Millis,
        entity: EntityId,
        part: Part,
        method: &str,
        args: &[Value],
    ) -> Result<CallNumber, CallError> {
        let controls = self.controls().ok_or(CallError::NoSession)?;
        let type_id = self
            .views
            .type_of(entity)
            .or_else(|| (controls.0 == entity).then_some(controls.1));
        let entity_type = type_id.and_then(|type_id| self.schema.entity_type(type_id));
        let entity_type = entity_type.ok_or(CallError::NotInView(entity))?;
        let method = exposed_method(entity_type, part, method)?;
        let message = encode_call(MessageRange::of_calls(entity_type, part), method, args)?;
        let number = self.calls.make(entity, part, message)?;
        if matches!(self.phase, Phase::Playing { .. }) {
            for call in self.calls.sendable(now, entity, part) {
                self.send(&ToServer::Call(call));
            }
        }
        Ok(number)
    }

    /// Moves the entity that the client controls. Says whether there was a connection over which to tell it.
    pub fn move_to(&mut self, position: Position, direction: Direction) -> bool {
        let (Phase::Playing { .. }, Some((entity, _))) = (self.phase, self.controls()) else {
            return false;
        };
        self.moves += 1;
        self.views.cell.move_own(entity, position, direction);
        let mut bytes = Vec::new();
        ToServerDatagram::Moved(Moved {
            sequence: self.moves,
            position,
            direction,
        })
        .write(&mut bytes);
        self.outputs.push_back(Output::Datagram(bytes));
        true
    }

    /// Ends the session.
    pub fn leave(&mut self) {
        if self.phase == Phase::Ended {
            return;
        }
        if matches!(self.phase, Phase::Playing { .. }) {
            self.send(&ToServer::Bye);
        }
        self.outputs.push_back(Output::Disconnect(CloseReason::Finished));
        self.end(EndReason::Left);
    }

    /// The entity that the client controls, and its type.
    #[must_use]
    pub fn controls(&self) -> Option<(EntityId, TypeId)> {
        self.session.as_ref()?.controls
    }

    /// Whether there is a connection over which the session goes on.
    #[must_use]
    pub fn is_playing(&self) -> bool {
        matches!(self.phase, Phase::Playing { .. })
    }

    /// Whether it is over: there will be no more outputs, and no events but those that wait.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// What the base shows of the client's own entity, or the witness of all that is around.
    #[must_use]
    pub fn view(&self, source: Part) -> &View {
        self.views.get(source)
    }

    /// An entity around, as the cell's view shows it.
    #[must_use]
    pub fn entity(&self, entity: EntityId) -> Option<&Seen> {
        self.views.cell.entities().get(&entity)
    }

    /// The data of the space in which the client's own entity is, as far as it was told; none before that.
    #[must_use]
    pub fn space_data(&self) -> Option<&SpaceData> {
        self.views.cell.space().map(|(_, data)| data)
    }

    /// The time of day where the client's own entity is, seconds since midnight, if somebody said what it is
    /// (`spaceTimeOfDay`).
    #[must_use]
    pub fn time_of_day(&self, now: Millis) -> Option<f64> {
        let world = self.views.cell.world_time(now)?;
        Some(self.space_data()?.day()?.at(world))
    }

    /// A property of an entity by its name, from whichever view shows it.
    #[must_use]
    pub fn property(&self, entity: EntityId, name: &str) -> Option<&Value> {
        let property = self
            .schema
            .entity_type(self.views.type_of(entity)?)?
            .property_named(name)?;
        let part = if property.distribution.on_base() {
            Part::Base
        } else {
            Part::Cell
        };
        let seen = self.views.get(part).entities().get(&entity)?;
        seen.property(ClientMember(property.client_id?))
    }

    /// The definitions the client works with.
    #[must_use]
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// How many calls are not confirmed yet.
    #[must_use]
    pub fn unconfirmed_calls(&self) -> usize {
        self.calls.kept()
    }

    /// What happened that players should not notice.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            resent: self.calls.resent(),
            ..self.counters
        }
    }

    /// When news of the cell's view came last.
    #[must_use]
    pub fn heard_at(&self) -> Option<Millis> {
        self.hearing.last()
    }

    /// The times, of [`SILENCE`](crate::SILENCE) milliseconds and more, in which nothing was heard of the cell's view:
    /// the newest ones, in order.
    pub fn silences(&self) -> impl Iterator<Item = Silence> {
        self.hearing.silences().iter().copied()
    }

    fn next_attempt(&mut self) -> Attempt {
        self.attempts += 1;
        Attempt(self.attempts)
    }

    pub(crate) fn try_next(&mut self, now: Millis, next: Next) {
        let attempt = self.next_attempt();
        let request = match (&self.session, next) {
            (Some(session), Next::Connect) => {
                let within = doubled(CONNECT_WITHIN, self.failures, CONNECT_WITHIN_AT_MOST);
                let until = now.after(within);
                self.phase = Phase::Connecting { attempt, until };
                let (address, certificate) = (session.address, session.certificate);
                self.outputs.push_back(Output::Connect {
                    attempt,
                    address,
                    certificate,
                });
                return;
            }
            (Some(session), Next::Locate) => LoginRequest::Locate {
                owner: session.owner,
                session: session.id,
            },
            (None, _) | (Some(_), Next::LogIn) => LoginRequest::LogIn {
                protocol: protocol_hash(),
                name: self.credentials.name.clone(),
                password: self.credentials.password.clone(),
            },
        };
        self.phase = Phase::Asking {
            attempt,
            until: now.after(LOGIN_WITHIN),
        };
        self.outputs.push_back(Output::Login { attempt, request });
    }

    /// Waits a while, longer after each failure and not as long as others do, then tries something.
    fn rest(&mut self, now: Millis, then: Next) {
        let longest = doubled(FIRST_RETRY, self.failures, LAST_RETRY);
        self.failures = self.failures.saturating_add(1);
        self.jitter = self
            .jitter
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let wait = longest / 2 + (self.jitter >> 33) % (longest / 2);
        self.phase = Phase::Resting {
            until: now.after(wait),
            then,
        };
    }

    fn login_answered(&mut self, now: Millis, answer: Option<LoginAnswer>) {
        match answer {
            Some(LoginAnswer::Ticket(ticket)) => self.take_ticket(now, ticket),
            Some(LoginAnswer::Located(located)) => self.take_location(now, &located),
            Some(LoginAnswer::Refused(reason)) => self.login_refused(now, reason),
            // The base may well be where it was.
            None if self.session.is_some() => self.rest(now, Next::Connect),
            None => self.rest(now, Next::LogIn),
        }
    }

    fn login_refused(&mut self, now: Millis, reason: LoginRefusal) {
        let asked = if self.session.is_some() {
            Next::Locate
        } else {
            Next::LogIn
        };
        match reason {
            LoginRefusal::Busy | LoginRefusal::NotHeld => self.rest(now, asked),
            LoginRefusal::Throttled => {
                let until = now.after(THROTTLED_FOR);
                self.phase = Phase::Resting { until, then: asked };
            }
            LoginRefusal::WrongPassword
            | LoginRefusal::Banned
            | LoginRefusal::WrongProtocol
            | LoginRefusal::UnknownSession
            | LoginRefusal::ShuttingDown
            | LoginRefusal::UnfitName
            | LoginRefusal::LoggedIn => self.end(EndReason::LoginRefused(reason)),
        }
    }

    fn take_ticket(&mut self, now: Millis, ticket: Ticket) {
        // A new session: what was seen and called in one that never came to be welcomed means nothing.
        let Ticket { session, secret, base } = ticket;
        self.session = Some(Session {
            id: session,
            owner: base.owner,
            epoch: base.epoch,
            address: base.address,
            certificate: base.certificate,
            proof: Proof::Ticket(secret),
            controls: None,
        });
        self.try_next(now, Next::Connect);
    }

    fn take_location(&mut self, now: Millis, located: &Located) {
        let Some(session) = self.session.as_mut().filter(|session| session.owner == located.owner) else {
            return self.rest(now, Next::LogIn);
        };
        if located.epoch < session.epoch {
            self.counters.old_epochs += 1;
            return self.rest(now, Next::Locate);
        }
        session.epoch = located.epoch;
        session.address = located.address;
        session.certificate = located.certificate;
        self.try_next(now, Next::Connect);
    }

    fn say_hello(&mut self) {
        let Some(session) = &self.session else {
            return;
        };
        let hello = Hello {
            protocol: protocol_hash(),
            schema: self.schema.client_fingerprint(),
            owner: session.owner,
            epoch: session.epoch,
            session: session.id,
            proof: session.proof.clone(),
            reads: self.reads,
        };
        let mut body = Vec::new();
        hello.write(&mut body);
        self.outputs.push_back(Output::Frame(body));
    }

    fn greeted(&mut self, now: Millis, attempt: Attempt, body: &[u8]) {
        match HelloAnswer::read(body) {
            Ok(HelloAnswer::Welcome(welcome)) => self.welcomed(now, attempt, welcome),
            Ok(HelloAnswer::Rejected(reason)) => {
                self.outputs.push_back(Output::Disconnect(CloseReason::Finished));
                self.rejected(now, reason);
            }
            Err(_) => {
                self.counters.malformed += 1;
                self.outputs.push_back(Output::Disconnect(CloseReason::Malformed));
                self.rest(now, Next::Locate);
            }
        }
    }

    fn rejected(&mut self, now: Millis, reason: Rejection) {
        let never_welcomed = self.session.as_ref().is_some_and(|session| session.controls.is_none());
        match reason {
            Rejection::Elsewhere => self.rest(now, Next::Locate),
            Rejection::Busy => self.rest(now, Next::Connect),
            // The ticket was used up by a welcome that got lost.
            Rejection::UnknownSession if never_welcomed => {
                self.session = None;
                self.rest(now, Next::LogIn);
            }
            Rejection::WrongProtocol
            | Rejection::WrongSchema
            | Rejection::UnknownSession
            | Rejection::LoggedInElsewhere => {
                self.end(EndReason::Rejected(reason));
            }
        }
    }

    fn welcomed(&mut self, now: Millis, attempt: Attempt, welcome: Welcome) {
        let Welcome {
            session: id,
            epoch,
            entity,
            type_id,
            token,
            movements,
        } = welcome;
        let Some(session) = self
            .session
            .as_mut()
            .filter(|session| session.id == id && session.epoch <= epoch)
        else {
            self.counters.old_epochs += 1;
            self.outputs.push_back(Output::Disconnect(CloseReason::Moved));
            return self.rest(now, Next::Locate);
        };
        session.epoch = epoch;
        session.proof = Proof::Resume(token);
        let before = session.controls.replace((entity, type_id));
        self.views.cell.tell_movements(movements);
        self.phase = Phase::Playing { attempt };
        self.failures = 0;
        if before.is_some() {
            self.counters.resumed += 1;
            self.events.push_back(Event::Resumed { epoch });
        } else {
            self.events.push_back(Event::Connected {
                session: id,
                entity,
                type_id,
            });
        }
        if before.is_some_and(|before| before != (entity, type_id)) {
            self.controls_another(entity, type_id);
        }
        self.begin_view(now, Part::Base);
        self.begin_view(now, Part::Cell);
        for call in self.calls.reconnected(now) {
            self.send(&ToServer::Call(call));
        }
    }

    /// A base could not be reached, or left without an answer.
    fn unreachable(&mut self, now: Millis, reason: CloseReason) {
        if is_final(reason) {
            return self.end(EndReason::Closed(reason));
        }
        self.rest(now, Next::Locate);
    }

    pub(crate) fn end(&mut self, reason: EndReason) {
        self.phase = Phase::Ended;
        self.events.push_back(Event::Ended(reason));
    }
}

/// Whether a connection that was closed for this reason would be closed for it again.
pub(crate) fn is_final(reason: CloseReason) -> bool {
    match reason {
        CloseReason::Finished
        | CloseReason::Replaced
        | CloseReason::LoggedInElsewhere
        | CloseReason::Ended
        | CloseReason::TooFast
        | CloseReason::Malformed
        | CloseReason::TooLarge => true,
        CloseReason::Lost
        | CloseReason::Moved
        | CloseReason::ShuttingDown
        | CloseReason::TooSlow
        | CloseReason::Silent
        | CloseReason::Full => false,
    }
}

/// So long, doubled so often, but not longer than that.
fn doubled(first: u64, times: u32, at_most: u64) -> u64 {
    first.saturating_mul(1 << times.min(16)).min(at_most)
}
