//! Admission: sessions that the login service opens, and clients that present a ticket or a token.

use std::net::SocketAddr;

use annals_event::{Body, ClientLink};
use annals_ids::{EntityId, OwnerId, SessionId};
use annals_node::{ConnectionId, NotOpened, Nowhere, Output, OwnerContext};
use annals_personal::Admission;
use annals_wire::client::{
    CloseReason, Hello, HelloAnswer, Movements, Proof, Rejection, Secret, Welcome, protocol_hash,
};

use crate::{
    activation,
    input::{CheckedOut, DuplicateLogin, MAX_SESSIONS, OpenSession, RESUME_WINDOW, TICKET_WINDOW},
    internal_waits::InternalWait,
    role::BaseRole,
    session::{Former, Phase, Session},
    view::OwnView,
};

/// Why a client is not admitted.
enum NotAdmitted {
    Rejected(Rejection),
    /// Its session continues at another owner.
    Given(OwnerId),
}

impl From<Rejection> for NotAdmitted {
    fn from(rejection: Rejection) -> Self {
        Self::Rejected(rejection)
    }
}

/// View radius assumed for observers while there is no map, metres: usual in worlds of this kind.
const USUAL_VIEW: f32 = 500.0;

impl BaseRole {
    pub(crate) fn open_session(&mut self, cx: &mut OwnerContext, wanted: &OpenSession) {
        let request = wanted.request;
        let opened = self.try_open(cx, wanted);
        self.counters.opened += u64::from(opened.is_ok());
        cx.emit(Output::SessionOpened { request, opened });
    }

    fn try_open(&mut self, cx: &mut OwnerContext, wanted: &OpenSession) -> Result<SessionId, NotOpened> {
        activation::check(cx, &wanted.account)?;
        // A repeated request: the answer was lost, or the request was duplicated.
        if let Some(session) = self.sessions.opened_with(&wanted.ticket) {
            return Ok(session);
        }
        if self.recent_bans.contains(cx.now().mono, wanted.account.database) {
            return Err(NotOpened::Banned);
        }
        let live = activation::live(cx, &wanted.account)?;
        if wanted.duplicate == DuplicateLogin::Refuse && self.is_played(cx, &wanted.account, live) {
            return Err(NotOpened::InUse);
        }
        let before = live.and_then(|entity| self.session_of(cx, entity));
        let has_session = before.is_some() || self.sessions.of_account(wanted.account.database).next().is_some();
        if wanted.replaces_only && !has_session {
            return Err(NotOpened::NoSession);
        }
        if self.sessions.len() >= MAX_SESSIONS {
            return Err(NotOpened::Full);
        }
        let session = SessionId(cx.new_entity().ok_or(NotOpened::Full)?.0);
        let entity = match live {
            Some(entity) => {
                activation::learn_key(cx, &wanted.account);
                entity
            }
            None => activation::begin(cx, &wanted.account)?,
        };
        if let Some(before) = before {
            self.replace_session(cx, before, Some(wanted.account.database));
        }
        let until = cx.now().mono.after(TICKET_WINDOW);
        let mut expected = Session::new(entity, Phase::Expected { until }, Some(wanted));
        expected.opened = cx.now().world;
        self.sessions.insert(session, expected);
        self.newest = self.newest.max(session);
        cx.record_for(entity, false, Body::TokenSet(wanted.ticket));
        self.set_client(cx, entity, Some(session));
        Ok(session)
    }

    /// Whether a client of an account is connected, at whichever entity its session is by now. After a take-over only
    /// the session at the account's own entity is known.
    fn is_played(&self, cx: &OwnerContext, account: &CheckedOut, live: Option<EntityId>) -> bool {
        let own = live.and_then(|entity| self.session_of(cx, entity));
        let connected = own.is_some_and(|session| self.sessions.connection(session).is_some());
        connected || self.sessions.is_played(account.database)
    }

    /// Sets the client of an entity on both of its parts. What it waited for because of its former client is over.
    pub(crate) fn set_client(&mut self, cx: &mut OwnerContext, entity: EntityId, session: Option<SessionId>) {
        let proxy = cx.owner();
        let client = session.map(|session| ClientLink { session, proxy });
        InternalWait::ClientTaken.clear(cx, entity);
        InternalWait::ClientComes.clear(cx, entity);
        cx.record_for(entity, false, Body::ClientSet(client));
        self.set_witness(cx, entity, client);
    }

    pub(crate) fn hello(
        &mut self,
        cx: &mut OwnerContext,
        place: (ConnectionId, SocketAddr),
        hello: &Hello,
        fresh_token: Secret,
    ) {
        let (connection, from) = place;
        if self.sessions.at(connection).is_some() {
            return self.refuse(cx, connection);
        }
        match self.check_hello(cx, hello) {
            Ok(entity) => {
                self.admit(cx, from, hello.session, entity);
                self.welcome(cx, connection, hello, entity, fresh_token);
            }
            Err(NotAdmitted::Rejected(rejection)) => {
                self.counters.rejected += 1;
                cx.emit(Output::Reject { connection, rejection });
            }
            Err(NotAdmitted::Given(owner)) => {
                let mut bytes = Vec::new();
                HelloAnswer::Given(owner).write(&mut bytes);
                cx.emit(Output::Frame { connection, bytes });
                let reason = CloseReason::Moved;
                cx.emit(Output::Close { connection, reason });
            }
        }
    }

    /// The entity that the client controls, if it may be admitted.
    fn check_hello(&self, cx: &OwnerContext, hello: &Hello) -> Result<EntityId, NotAdmitted> {
        if hello.protocol != protocol_hash() {
            return Err(Rejection::WrongProtocol.into());
        }
        if hello.owner != cx.owner() || hello.epoch > cx.epoch() {
            return Err(Rejection::Elsewhere.into());
        }
        if hello.schema != cx.schema().client_fingerprint() {
            return Err(Rejection::WrongSchema.into());
        }
        let Some(session) = self.sessions.get(hello.session) else {
            let (Proof::Ticket(token) | Proof::Resume(token)) = &hello.proof;
            return Err(match self.sessions.former(hello.session, token.digest().0) {
                Some(Former::Given(to)) => NotAdmitted::Given(to),
                Some(Former::Replaced) => Rejection::LoggedInElsewhere.into(),
                None => Rejection::UnknownSession.into(),
            });
        };
        let newest = token(cx, session.entity);
        let good = match &hello.proof {
            Proof::Ticket(ticket) => newest == Some(ticket.digest().0),
            Proof::Resume(token) => [newest, session.former_token].contains(&Some(token.digest().0)),
        };
        if good {
            Ok(session.entity)
        } else {
            Err(Rejection::UnknownSession.into())
        }
    }

    /// Records the client's account and address (rule P6). After a take-over the account for which the session was
    /// opened is not known; then the entity that it controls now stands for the person. Without a key to seal them
    /// under, the admission is recorded without account and address, since those recorded before may be of another
    /// client.
    fn admit(&self, cx: &mut OwnerContext, from: SocketAddr, session: SessionId, entity: EntityId) {
        let account = self.sessions.get(session).and_then(|session| session.account.clone());
        let person = account.as_ref().map(|account| account.id);
        let person = person.or_else(|| cx.person(entity));
        let admission = Admission {
            account: account.and_then(|account| account.name),
            address: from.to_string(),
        };
        let sealed = person.and_then(|person| cx.seal(person, &admission.encode()));
        let admitted = Body::Admitted {
            session,
            person: person.unwrap_or_default(),
            sealed: sealed.unwrap_or_default(),
        };
        cx.record_for(entity, false, admitted);
    }

    fn welcome(
        &mut self,
        cx: &mut OwnerContext,
        connection: ConnectionId,
        hello: &Hello,
        entity: EntityId,
        fresh_token: Secret,
    ) {
        let id = hello.session;
        let movements = Movements::choose(hello.reads, self.widest_view());
        let schema = std::sync::Arc::clone(cx.schema());
        let shown = cx
            .image(entity)
            .and_then(|image| OwnView::new(&schema, cx.tally(), entity, image));
        let (Some(shown), Some(session)) = (shown, self.sessions.get_mut(id)) else {
            return;
        };
        let comes_first = matches!(session.phase, Phase::Expected { .. }) || matches!(hello.proof, Proof::Ticket(_));
        session.former_token = match &hello.proof {
            // A ticket is valid once.
            Proof::Ticket(_) => None,
            Proof::Resume(token) => Some(token.digest().0),
        };
        session.movements = movements;
        session.end_view(comes_first.then(|| shown.beginning()));
        let type_id = shown.client_type();
        InternalWait::ClientComes.clear(cx, entity);
        cx.record_for(entity, false, Body::TokenSet(fresh_token.digest().0));
        if let Some(connection) = self.sessions.set_phase(id, Phase::Connected(connection)) {
            let reason = CloseReason::Replaced;
            cx.emit(Output::Close { connection, reason });
        }
        self.counters.welcomed += 1;
        let welcome = Welcome {
            session: id,
            epoch: cx.epoch(),
            entity,
            type_id,
            token: fresh_token,
            movements,
        };
        let mut bytes = Vec::new();
        HelloAnswer::Welcome(welcome).write(&mut bytes);
        cx.emit(Output::Frame { connection, bytes });
        if comes_first {
            cx.run(entity, &Nowhere, |behaviour, context| {
                behaviour.client_attached(context);
            });
        }
    }

    /// Largest distance at which observers see, metres.
    fn widest_view(&self) -> f32 {
        let spaces = self.map.iter().flat_map(|map| map.spaces.values());
        spaces
            .map(|space| space.aoi_radius + space.aoi_hysteresis)
            .max_by(f32::total_cmp)
            .unwrap_or(USUAL_VIEW)
    }

    pub(crate) fn closed(&mut self, cx: &mut OwnerContext, connection: ConnectionId) {
        if let Some(session) = self.sessions.at(connection) {
            let until = cx.now().mono.after(RESUME_WINDOW);
            self.sessions.set_phase(session, Phase::Away { until });
        }
    }

    /// Closes the connection of a client that violates the protocol. Its session can be resumed.
    fn refuse(&mut self, cx: &mut OwnerContext, connection: ConnectionId) {
        self.counters.refused += 1;
        let reason = CloseReason::Malformed;
        cx.emit(Output::Close { connection, reason });
        self.closed(cx, connection);
    }
}

/// Digest of the token that an entity's client must present.
pub(crate) fn token(cx: &OwnerContext, entity: EntityId) -> Option<[u8; 32]> {
    cx.image(entity)?.base()?.token
}
