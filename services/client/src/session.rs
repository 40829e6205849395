//! A session from log-in to its end, over as many connections and bases as needed.

use std::{collections::VecDeque, net::SocketAddr, sync::Arc};

use annals_def::{MessageRange, Schema, Value};
use annals_event::SpaceData;
use annals_ids::{CallNumber, EntityId, Epoch, Hash, OwnerId, Part, SessionId, TypeId};
use annals_wire::client::{
    Ban, ClientMember, CloseReason, Credentials, Hello, HelloAnswer, Located, LoginAnswer, LoginRefusal, LoginRequest,
    Proof, Queued, Reads, Rejection, Ticket, ToServer, Welcome, protocol_hash,
};

use crate::{
    calls::{CallError, Calls, encode_call, exposed_method},
    downloads::Downloads,
    event::{Attempt, Counters, EndReason, Event, Input, Millis, Output},
    held_ack::HeldAck,
    moving::Successor,
    probe::Probe,
    sent_moves::SentMoves,
    update_gaps::{Silence, UpdateGaps},
    view::{EntityView, View, Views},
};

/// Timeout of the login service's answer, milliseconds; it may have to activate a base first.
const LOGIN_WITHIN: u64 = 10_000;

/// Timeout of the next news from the queue of a full realm, milliseconds: three times as long as the login service is
/// silent.
const QUEUED_WITHIN: u64 = 30_000;

/// Timeout of a connection to a base, milliseconds. A process that was killed does not refuse connections but is
/// silent. Doubled for each failed attempt: a base under a rush of clients is slow.
const CONNECT_WITHIN: u64 = 2_000;

/// Maximum timeout of a connection, milliseconds.
const CONNECT_WITHIN_AT_MOST: u64 = 16_000;

/// Timeout of a base's answer to the hello, milliseconds.
const WELCOME_WITHIN: u64 = 5_000;

/// Timeout of a welcome by the next base once the present one has closed the connection, milliseconds: several round
/// trips of a busy machine, since a session that is resumed instead is interrupted.
pub(crate) const MOVED_WITHIN: u64 = 2_000;

/// Milliseconds before the second attempt of any step; doubled for each that fails.
const FIRST_RETRY: u64 = 200;

/// Maximum time between two attempts, milliseconds.
const LAST_RETRY: u64 = 5_000;

/// Milliseconds before a client that logged in too often tries again.
const THROTTLED_FOR: u64 = 60_000;

/// The client's side of a session. It does not wait or connect: a shell does so on its behalf.
///
/// Call [`ClientCore::start`] once. Then, for each input of the shell call [`ClientCore::handle`], and when
/// [`ClientCore::deadline`] has come [`ClientCore::tick`]; the game's own calls are [`ClientCore::call`],
/// [`ClientCore::move_to`] and [`ClientCore::leave`]. After each of them drain [`ClientCore::poll_output`] and
/// [`ClientCore::poll_event`].
#[derive(Debug)]
pub struct ClientCore {
    pub(crate) schema: Arc<Schema>,
    credentials: Credentials,
    /// The encodings of movements that it offers to read.
    reads: Reads,
    phase: Phase,
    pub(crate) session: Option<Session>,
    attempts: u64,
    /// Consecutive failures on the way to playing.
    pub(crate) failures: u32,
    jitter: u64,
    pub(crate) views: Views,
    pub(crate) calls: Calls,
    pub(crate) downloads: Downloads,
    pub(crate) sent_moves: SentMoves,
    pub(crate) held_ack: HeldAck,
    pub(crate) counters: Counters,
    pub(crate) update_gaps: UpdateGaps,
    /// The questions about the base's place, while it is silent.
    pub(crate) probe: Option<Probe>,
    /// The connection to the process that will serve the session, beside the present one.
    pub(crate) next: Option<Successor>,
    /// Whether the present attempt continues a session that another process or owner handed over.
    pub(crate) is_moving: bool,
    /// Until then a failure of that is no interruption.
    pub(crate) retries_until: Millis,
    /// Announcements of other processes since the last welcome.
    pub(crate) announcements: u32,
    pub(crate) outputs: VecDeque<Output>,
    pub(crate) events: VecDeque<Event>,
}

/// What the core is waiting for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The start.
    New,
    /// The login service's answer.
    Asking { attempt: Attempt, until: Millis },
    /// The connection to a base.
    Connecting { attempt: Attempt, until: Millis },
    /// The base's answer to the hello.
    Greeting { attempt: Attempt, until: Millis },
    /// Frames and datagrams.
    Playing { attempt: Attempt },
    /// The time of the next attempt.
    Resting { until: Millis, then: Next },
    /// Nothing any more.
    Ended,
}

/// The next attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    LogIn,
    Locate,
    Connect,
}

/// State that is needed to resume.
#[derive(Debug)]
pub(crate) struct Session {
    id: SessionId,
    owner: OwnerId,
    /// The highest known epoch of the owner (rule E7).
    epoch: Epoch,
    address: SocketAddr,
    certificate: Option<Hash>,
    proof: Proof,
    /// The entity that the client controls, once a base has named it.
    pub(crate) controls: Option<(EntityId, TypeId)>,
}

impl Session {
    /// Whether a welcome is one of this session, from a base that is not outdated.
    fn is_of(&self, welcome: &Welcome) -> bool {
        self.id == welcome.session && self.epoch <= welcome.epoch
    }
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
            downloads: Downloads::default(),
            sent_moves: SentMoves::default(),
            held_ack: HeldAck::default(),
            counters: Counters::default(),
            update_gaps: UpdateGaps::default(),
            probe: None,
            next: None,
            is_moving: false,
            retries_until: Millis(0),
            announcements: 0,
            outputs: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// The same client, restricted to these encodings of movements.
    #[must_use]
    pub fn reading(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }

    /// Starts the log-in. Further calls do nothing.
    pub fn start(&mut self, now: Millis) {
        if self.phase == Phase::New {
            self.try_next(now, Next::LogIn);
        }
    }

    /// Handles an input of the shell.
    pub fn handle(&mut self, now: Millis, input: Input) {
        if self.handle_next(now, &input) {
            return;
        }
        match (input, self.phase) {
            (Input::LoginAnswered { attempt, answer }, Phase::Asking { attempt: mine, .. }) if attempt == mine => {
                self.login_answered(now, answer);
            }
            (Input::LoginAnswered { attempt, answer }, Phase::Playing { .. }) => {
                self.answered_while_silent(now, attempt, answer.as_ref());
            }
            (Input::Silent { attempt }, Phase::Playing { attempt: mine }) if attempt == mine => {
                self.fallen_silent(now);
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
                self.probe = None;
                self.take_frame(now, &body);
            }
            (Input::Datagram { attempt, bytes }, Phase::Playing { attempt: mine }) if attempt == mine => {
                self.probe = None;
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

    /// Does what is due.
    pub fn tick(&mut self, now: Millis) {
        match self.phase {
            Phase::Asking { until, .. } if until <= now => self.login_answered(now, None),
            Phase::Connecting { until, .. } | Phase::Greeting { until, .. } if until <= now => {
                self.outputs.push_back(Output::Disconnect(CloseReason::Silent));
                self.unreachable(now, CloseReason::Silent);
            }
            Phase::Resting { until, then } if until <= now => self.try_next(now, then),
            Phase::Playing { .. } => {
                self.ask_while_silent(now);
                self.answer_download(now);
                if self.next.as_ref().is_some_and(|next| next.until <= now) {
                    self.abandon_next();
                }
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
                self.move_again(now);
                self.outputs
                    .extend(self.held_ack.take_overdue(now).map(Output::Datagram));
            }
            _ => {}
        }
    }

    /// When [`ClientCore::tick`] must be called at the latest.
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
                self.downloads.deadline(),
                self.sent_moves.deadline(),
                self.held_ack.deadline(),
                self.probe.map(|probe| probe.again_at),
                self.next.as_ref().map(|next| next.until),
            ]
            .into_iter()
            .flatten()
            .min(),
        }
    }

    /// Takes the next output for the shell.
    pub fn poll_output(&mut self) -> Option<Output> {
        let output = self.outputs.pop_front()?;
        if self.is_playing()
            && matches!(output, Output::Frame(_) | Output::Datagram(_))
            && let Some(ack) = self.held_ack.take()
        {
            // Right behind it, so that both leave in one packet.
            self.outputs.push_front(Output::Datagram(ack));
        }
        Some(output)
    }

    /// Takes the next event for the game.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Calls an exposed method of an entity in view. The call is kept until the server has logged its effects, over
    /// reconnections and take-overs.
    ///
    /// # Errors
    /// When there is no such method in view, the arguments are not of its types, or too much is unconfirmed already.
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

    /// Ends the session. Calls that wait for confirmations of earlier ones are not sent.
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

    /// Whether the session has a connection to its base.
    #[must_use]
    pub fn is_playing(&self) -> bool {
        matches!(self.phase, Phase::Playing { .. })
    }

    /// Whether the client has ended: there will be no more outputs, and no events but those already queued.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        self.phase == Phase::Ended
    }

    /// The base's view of the client's own entity, or the cell's view of its surroundings.
    #[must_use]
    pub fn view(&self, source: Part) -> &View {
        self.views.get(source)
    }

    /// An entity in the cell's view.
    #[must_use]
    pub fn entity(&self, entity: EntityId) -> Option<&EntityView> {
        self.views.cell.entities().get(&entity)
    }

    /// The data of the client's own space, as far as it was sent; `None` before that.
    #[must_use]
    pub fn space_data(&self) -> Option<&SpaceData> {
        self.views.cell.space().map(|(_, data)| data)
    }

    /// The time of day where the client's own entity is, seconds since midnight, if the space has one
    /// (`spaceTimeOfDay`).
    #[must_use]
    pub fn time_of_day(&self, now: Millis) -> Option<f64> {
        let world = self.views.cell.world_time(now)?;
        Some(self.space_data()?.day()?.at(world))
    }

    /// A property of an entity by its name, from either view.
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

    /// Number of unconfirmed calls.
    #[must_use]
    pub fn unconfirmed_calls(&self) -> usize {
        self.calls.kept()
    }

    /// Counters of traffic and faults.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters {
            resent: self.calls.resent(),
            ..self.counters
        }
    }

    /// When the last update of the cell's view arrived.
    #[must_use]
    pub fn last_received_at(&self) -> Option<Millis> {
        self.update_gaps.last()
    }

    /// The periods of at least [`GAP`](crate::GAP) milliseconds without updates of the cell's view: the newest ones, in
    /// order. Where nothing moves, updates are a second apart.
    pub fn gaps(&self) -> impl Iterator<Item = Silence> {
        self.update_gaps.gaps().iter().copied()
    }

    /// The periods of at least [`SILENCE`](crate::SILENCE) milliseconds without updates of the cell's view: the newest
    /// ones, in order.
    pub fn silences(&self) -> impl Iterator<Item = Silence> {
        self.update_gaps.silences().iter().copied()
    }

    pub(crate) fn next_attempt(&mut self) -> Attempt {
        self.attempts += 1;
        Attempt(self.attempts)
    }

    /// The question for the place of the session's base.
    pub(crate) fn where_is_the_base(&self) -> Option<LoginRequest> {
        let session = self.session.as_ref()?;
        Some(LoginRequest::Locate {
            owner: session.owner,
            session: session.id,
        })
    }

    /// Whether the session's base is held by another process than the one that the client is connected to.
    pub(crate) fn is_elsewhere(&self, located: &Located) -> bool {
        let of_it = |session: &&Session| session.owner == located.owner && located.epoch > session.epoch;
        self.session.as_ref().filter(of_it).is_some()
    }

    pub(crate) fn try_next(&mut self, now: Millis, next: Next) {
        let attempt = self.next_attempt();
        self.probe = None;
        self.abandon_next();
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
            (_, next) => {
                let located = self.where_is_the_base().filter(|_| next == Next::Locate);
                located.unwrap_or_else(|| LoginRequest::LogIn {
                    protocol: protocol_hash(),
                    credentials: self.credentials.clone(),
                })
            }
        };
        self.phase = Phase::Asking {
            attempt,
            until: now.after(LOGIN_WITHIN),
        };
        self.outputs.push_back(Output::Login { attempt, request });
    }

    /// Waits for a random time, longer after each failure, then makes the next attempt.
    fn rest(&mut self, now: Millis, then: Next) {
        self.end_move(now, CloseReason::Lost);
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
            Some(LoginAnswer::Banned(ban)) => self.banned(ban),
            Some(LoginAnswer::Queued(queued)) => self.queued(now, queued),
            // The base may still be where it was, if that was ever known.
            None if self.session.as_ref().is_some_and(|session| session.epoch > Epoch(0)) => {
                self.rest(now, Next::Connect);
            }
            None if self.session.is_some() => self.rest(now, Next::Locate),
            None => self.rest(now, Next::LogIn),
        }
    }

    /// The answer comes when there is room.
    fn queued(&mut self, now: Millis, Queued { position, length }: Queued) {
        if let Phase::Asking { until, .. } = &mut self.phase {
            *until = now.after(QUEUED_WITHIN);
            self.failures = 0;
            self.events.push_back(Event::Queued { position, length });
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
                self.end_move(now, CloseReason::Lost);
                let until = now.after(THROTTLED_FOR);
                self.phase = Phase::Resting { until, then: asked };
            }
            LoginRefusal::WrongPassword
            | LoginRefusal::WrongProtocol
            | LoginRefusal::UnknownSession
            | LoginRefusal::ShuttingDown
            | LoginRefusal::UnfitName
            | LoginRefusal::LoggedIn
            | LoginRefusal::WrongToken
            | LoginRefusal::OtherCredentials
            | LoginRefusal::NameTaken
            | LoginRefusal::NoRegistration
            | LoginRefusal::NoAccount => self.end(EndReason::LoginRefused(reason)),
        }
    }

    pub(crate) fn banned(&mut self, ban: Ban) {
        self.events.push_back(Event::Banned(ban));
        self.end(EndReason::Banned);
    }

    fn take_ticket(&mut self, now: Millis, ticket: Ticket) {
        // A new session: views and calls of one that was never welcomed are void.
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

    pub(crate) fn take_location(&mut self, now: Millis, located: &Located) {
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

    /// The owner of the session's base.
    pub(crate) fn session_owner(&self) -> Option<OwnerId> {
        Some(self.session.as_ref()?.owner)
    }

    /// Sets the owner at which the session continues, whatever its epoch is.
    pub(crate) fn set_owner(&mut self, owner: OwnerId) {
        if let Some(session) = &mut self.session {
            (session.owner, session.epoch) = (owner, Epoch(0));
        }
    }

    /// Sets the address of the process that serves the session.
    pub(crate) fn set_address(&mut self, address: SocketAddr, certificate: Option<Hash>) {
        if let Some(session) = &mut self.session {
            session.address = address;
            session.certificate = certificate;
        }
    }

    /// The prepared connection is all there is: waits for its welcome.
    pub(crate) fn wait_for(&mut self, now: Millis, next: &Successor) {
        let (attempt, until) = (next.attempt, now.after(MOVED_WITHIN));
        self.phase = if next.is_connected {
            Phase::Greeting { attempt, until }
        } else {
            Phase::Connecting { attempt, until }
        };
    }

    /// Whether a welcome is one of the present session.
    pub(crate) fn is_welcome(&self, welcome: &Welcome) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_of(welcome))
    }

    fn say_hello(&mut self) {
        if let Some(body) = self.hello() {
            self.outputs.push_back(Output::Frame(body));
        }
    }

    /// The body of the first frame to a base.
    pub(crate) fn hello(&self) -> Option<Vec<u8>> {
        let session = self.session.as_ref()?;
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
        Some(body)
    }

    fn greeted(&mut self, now: Millis, attempt: Attempt, body: &[u8]) {
        match HelloAnswer::read(body) {
            Ok(HelloAnswer::Welcome(welcome)) => self.welcomed(now, attempt, welcome),
            Ok(HelloAnswer::Rejected(reason)) => {
                self.outputs.push_back(Output::Disconnect(CloseReason::Finished));
                self.rejected(now, reason);
            }
            Ok(HelloAnswer::Given(owner)) => {
                self.outputs.push_back(Output::Disconnect(CloseReason::Moved));
                self.goes_to(now, owner);
                self.rest(now, Next::Locate);
            }
            Err(_) => {
                self.counters.malformed += 1;
                self.end_move(now, CloseReason::Malformed);
                self.outputs.push_back(Output::Disconnect(CloseReason::Malformed));
                self.rest(now, Next::Locate);
            }
        }
    }

    fn rejected(&mut self, now: Millis, reason: Rejection) {
        self.end_move(now, CloseReason::Moved);
        let never_welcomed = self.session.as_ref().is_some_and(|session| session.controls.is_none());
        match reason {
            Rejection::Elsewhere => self.rest(now, Next::Locate),
            Rejection::Busy => self.rest(now, Next::Connect),
            // The ticket was used up by a welcome that was lost.
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

    pub(crate) fn welcomed(&mut self, now: Millis, attempt: Attempt, welcome: Welcome) {
        let Some(session) = self.session.as_mut().filter(|session| session.is_of(&welcome)) else {
            self.counters.old_epochs += 1;
            self.end_move(now, CloseReason::Moved);
            self.outputs.push_back(Output::Disconnect(CloseReason::Moved));
            return self.rest(now, Next::Locate);
        };
        let Welcome {
            session: id,
            epoch,
            entity,
            type_id,
            token,
            movements,
        } = welcome;
        session.epoch = epoch;
        session.proof = Proof::Resume(token);
        let before = session.controls.replace((entity, type_id));
        self.views.cell.set_movements(movements);
        self.phase = Phase::Playing { attempt };
        self.failures = 0;
        self.announcements = 0;
        self.retries_until = now;
        let is_moved = std::mem::take(&mut self.is_moving);
        if before.is_some() && is_moved {
            self.counters.moved += 1;
        } else if before.is_some() {
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

    /// A base could not be reached, or did not answer.
    fn unreachable(&mut self, now: Millis, reason: CloseReason) {
        self.end_move(now, reason);
        if is_final(reason) {
            return self.end(EndReason::Closed(reason));
        }
        self.rest(now, Next::Locate);
    }

    pub(crate) fn end(&mut self, reason: EndReason) {
        self.abandon_next();
        self.phase = Phase::Ended;
        self.events.push_back(Event::Ended(reason));
    }
}

/// Whether a retry would be closed for the same reason.
pub(crate) fn is_final(reason: CloseReason) -> bool {
    match reason {
        CloseReason::Finished
        | CloseReason::Replaced
        | CloseReason::LoggedInElsewhere
        | CloseReason::Banned
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

/// `first` doubled `times` times, at most `at_most`.
pub(crate) fn doubled(first: u64, times: u32, at_most: u64) -> u64 {
    first.saturating_mul(1 << times.min(16)).min(at_most)
}
