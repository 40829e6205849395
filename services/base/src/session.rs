//! Sessions: clients that are expected, connected or away, and the connection of each.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use annals_event::Trace;
use annals_ids::{CallNumber, DatabaseId, EntityId, OwnerId, SessionId, WorldTime};
use annals_node::{ConnectionId, time::Mono};
use annals_wire::client::{Call, Movements};

use crate::{
    input::{DuplicateLogin, MAX_FORMER, OpenSession},
    view::{Beginning, View},
};

/// Maximum entities per session whose call route is remembered. After one is evicted, a resent call may be routed again
/// to where it was lost before.
const REMEMBERED_ROUNDS: usize = 64;

/// Maximum calls per session that wait until the client's cell part knows the client: as many as a client repeats.
const HELD: usize = 32;

/// Maximum size of their messages, bytes; a single one may be larger.
const HELD_BYTES: usize = 64 << 10;

/// One client's session.
#[derive(Debug)]
pub(crate) struct Session {
    /// The entity that the client controls; its image names this session.
    pub(crate) entity: EntityId,
    /// State of the client's connection.
    pub(crate) phase: Phase,
    /// Digest of the ticket with which it was opened; `None` after a take-over.
    pub(crate) ticket: Option<[u8; 32]>,
    /// The account for which it was opened; `None` after a take-over.
    pub(crate) account: Option<Account>,
    /// When it was opened; zero after a take-over.
    pub(crate) opened: WorldTime,
    /// Policy with which it was opened, for an account that already has a client.
    pub(crate) duplicate: DuplicateLogin,
    /// Digest of the previous token. It is valid until the client sends a frame under the new one, because the frame
    /// with the new one may have been lost.
    pub(crate) former_token: Option<[u8; 32]>,
    /// Encoding of movements on the client's newest connection.
    pub(crate) movements: Movements,
    /// Highest view number that the client has used for the base's view.
    pub(crate) last_view: u64,
    /// The base's view, once the client has begun it on this connection.
    pub(crate) view: Option<View>,
    /// When the client began it.
    pub(crate) begun: Option<Mono>,
    /// The state that the client is shown first of an entity that it has just been given.
    pub(crate) beginning: Option<Beginning>,
    /// Routes of calls, per cell part other than the client's own.
    rounds: BTreeMap<EntityId, Round>,
    /// Calls of the client to its own cell part, which does not know the client yet (C8).
    held: BTreeMap<CallNumber, (Call, Trace)>,
}

/// The account for which a session was opened.
#[derive(Clone, Debug)]
pub(crate) struct Account {
    pub(crate) id: DatabaseId,
    /// The name with which its client logged in; `None` if another owner gave the client.
    pub(crate) name: Option<String>,
}

/// Calls to one part, each sent once, that were routed to the same owner.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The first of them.
    first: CallNumber,
    /// The owner.
    to: OwnerId,
}

/// State of a client's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// The client has a ticket and has not connected yet.
    Expected {
        /// When it expires.
        until: Mono,
    },
    /// The client is connected.
    Connected(ConnectionId),
    /// The client was connected and may reconnect.
    Away {
        /// When it expires.
        until: Mono,
    },
}

impl Phase {
    /// The client's connection.
    pub(crate) fn connection(self) -> Option<ConnectionId> {
        match self {
            Phase::Connected(connection) => Some(connection),
            Phase::Expected { .. } | Phase::Away { .. } => None,
        }
    }

    fn until(self) -> Option<Mono> {
        match self {
            Phase::Expected { until } | Phase::Away { until } => Some(until),
            Phase::Connected(_) => None,
        }
    }
}

impl Session {
    /// A session for the client of `entity`. `opened` is the request; `None` after a take-over.
    pub(crate) fn new(entity: EntityId, phase: Phase, opened: Option<&OpenSession>) -> Self {
        Self {
            entity,
            phase,
            ticket: opened.map(|opened| opened.ticket),
            account: opened.map(|opened| Account {
                id: opened.account.database,
                name: Some(opened.name.clone()),
            }),
            opened: WorldTime(0),
            duplicate: opened.map_or_else(DuplicateLogin::default, |opened| opened.duplicate),
            former_token: None,
            movements: Movements::Plain,
            last_view: 0,
            view: None,
            begun: None,
            beginning: None,
            rounds: BTreeMap::new(),
            held: BTreeMap::new(),
        }
    }

    /// Keeps a call until the client's cell part knows the client. Without room it is dropped, and the client repeats
    /// it.
    pub(crate) fn hold(&mut self, call: Call, trace: Trace) {
        let bytes: usize = self.held.values().map(|(call, _)| call.message.len()).sum();
        let has_room = self.held.len() < HELD && bytes + call.message.len() <= HELD_BYTES;
        if has_room || self.held.is_empty() {
            self.held.entry(call.number).or_insert((call, trace));
        }
    }

    /// Drops the calls that were kept: the client controls another entity, or learns that the cell part has ended.
    pub(crate) fn drop_held(&mut self) {
        self.held.clear();
    }

    /// Takes the calls that were kept, in order.
    pub(crate) fn take_held(&mut self) -> impl Iterator<Item = (Call, Trace)> + use<> {
        std::mem::take(&mut self.held).into_values()
    }

    /// Ends the view. The client begins a new one, and may do so at once.
    pub(crate) fn end_view(&mut self, beginning: Option<Beginning>) {
        (self.view, self.begun, self.beginning) = (None, None, beginning);
    }

    /// Routes a call: to `last_location`, the owner where the receiver was last known to be, or to the client's
    /// `witness`.
    ///
    /// A call that comes again was lost, or sent to where the receiver is not: calls from then on go to the other of
    /// the two.
    pub(crate) fn pass_on(
        &mut self,
        entity: EntityId,
        number: CallNumber,
        last_location: Option<OwnerId>,
        witness: OwnerId,
    ) -> OwnerId {
        let to = match self.rounds.get(&entity) {
            Some(round) if number > round.first => return round.to,
            Some(round) => last_location.filter(|at| *at != round.to).unwrap_or(witness),
            None => last_location.unwrap_or(witness),
        };
        self.rounds.insert(entity, Round { first: number, to });
        if self.rounds.len() > REMEMBERED_ROUNDS {
            self.rounds.pop_first();
        }
        to
    }

    /// Calls to a part were taken up to this number, so their route is right: forgets it.
    pub(crate) fn took(&mut self, entity: EntityId, upto: CallNumber) {
        if self.rounds.get(&entity).is_some_and(|round| round.first <= upto) {
            self.rounds.remove(&entity);
        }
    }
}

/// The sessions of one owner.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    sessions: BTreeMap<SessionId, Session>,
    connections: BTreeMap<ConnectionId, SessionId>,
    tickets: BTreeMap<[u8; 32], SessionId>,
    /// Sessions by the account for which they were opened, where that is known.
    accounts: BTreeSet<(DatabaseId, SessionId)>,
    due: BTreeSet<(Mono, SessionId)>,
    /// The newest sessions that a later log-in has replaced, or whose client was given to another owner.
    former: BTreeMap<SessionId, (Tokens, Former)>,
    /// The same sessions, oldest first; also some that have returned.
    formerly: VecDeque<SessionId>,
}

/// Digests of a session's newest token and of the previous one.
pub(crate) type Tokens = [Option<[u8; 32]>; 2];

/// What became of a session that is no longer here.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Former {
    /// A later log-in has replaced it.
    Replaced,
    /// Its client was given to an entity at another owner, where it continues.
    Given(OwnerId),
}

impl Sessions {
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Number of sessions with a connection.
    pub(crate) fn connected(&self) -> usize {
        self.connections.len()
    }

    /// The session that was opened with this ticket.
    pub(crate) fn opened_with(&self, ticket: &[u8; 32]) -> Option<SessionId> {
        self.tickets.get(ticket).copied()
    }

    pub(crate) fn get(&self, id: SessionId) -> Option<&Session> {
        self.sessions.get(&id)
    }

    pub(crate) fn get_mut(&mut self, id: SessionId) -> Option<&mut Session> {
        self.sessions.get_mut(&id)
    }

    /// The sessions that were opened for an account.
    pub(crate) fn of_account(&self, account: DatabaseId) -> impl Iterator<Item = SessionId> {
        let of_account = self
            .accounts
            .range((account, SessionId(0))..=(account, SessionId(u64::MAX)));
        of_account.map(|(_, id)| *id)
    }

    /// Whether any client of an account is connected.
    pub(crate) fn is_played(&self, account: DatabaseId) -> bool {
        self.of_account(account).any(|id| self.connection(id).is_some())
    }

    /// Remembers what became of a session, with the tokens that were valid for it.
    pub(crate) fn remember(&mut self, id: SessionId, tokens: Tokens, former: Former) {
        self.former.insert(id, (tokens, former));
        self.formerly.push_back(id);
        if self.formerly.len() > MAX_FORMER
            && let Some(oldest) = self.formerly.pop_front()
            && !self.formerly.contains(&oldest)
        {
            self.former.remove(&oldest);
        }
    }

    /// What became of a session, if this was a token of it.
    pub(crate) fn former(&self, id: SessionId, token: [u8; 32]) -> Option<Former> {
        let (tokens, former) = self.former.get(&id)?;
        tokens.contains(&Some(token)).then_some(*former)
    }

    /// The session on a connection.
    pub(crate) fn at(&self, connection: ConnectionId) -> Option<SessionId> {
        self.connections.get(&connection).copied()
    }

    /// The connection of a session's client.
    pub(crate) fn connection(&self, id: SessionId) -> Option<ConnectionId> {
        self.get(id)?.phase.connection()
    }

    pub(crate) fn insert(&mut self, id: SessionId, session: Session) {
        let phase = session.phase;
        self.tickets.extend(session.ticket.map(|ticket| (ticket, id)));
        let account = session.account.as_ref().map(|account| account.id);
        self.accounts.extend(account.map(|account| (account, id)));
        self.sessions.insert(id, session);
        self.former.remove(&id);
        self.enter(id, phase);
    }

    /// Removes a session. Its connection, if any, then belongs to no session.
    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        self.leave(id, session.phase);
        if let Some(ticket) = &session.ticket {
            self.tickets.remove(ticket);
        }
        if let Some(account) = &session.account {
            self.accounts.remove(&(account.id, id));
        }
        Some(session)
    }

    /// Sets the state of a session's client. Returns its previous connection, which then belongs to no session.
    pub(crate) fn set_phase(&mut self, id: SessionId, phase: Phase) -> Option<ConnectionId> {
        let session = self.sessions.get_mut(&id)?;
        let before = std::mem::replace(&mut session.phase, phase);
        self.leave(id, before);
        self.enter(id, phase);
        before.connection()
    }

    /// When the next session expires.
    pub(crate) fn next_due(&self) -> Option<Mono> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A session that has expired.
    pub(crate) fn overdue(&self, now: Mono) -> Option<SessionId> {
        self.due.first().filter(|(at, _)| *at <= now).map(|(_, id)| *id)
    }

    fn enter(&mut self, id: SessionId, phase: Phase) {
        if let Some(connection) = phase.connection() {
            self.connections.insert(connection, id);
        }
        self.due.extend(phase.until().map(|until| (until, id)));
    }

    fn leave(&mut self, id: SessionId, phase: Phase) {
        if let Some(connection) = phase.connection() {
            self.connections.remove(&connection);
        }
        if let Some(until) = phase.until() {
            self.due.remove(&(until, id));
        }
    }
}
