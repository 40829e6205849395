//! Sessions: clients that are expected, here, or away, and which connection is whose.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{CallNumber, DatabaseId, EntityId, OwnerId, SessionId};
use annals_node::{ConnectionId, time::Mono};
use annals_wire::client::Movements;

use crate::{
    input::{DuplicateLogin, MAX_REPLACED, OpenSession},
    view::{Beginning, View},
};

/// For how many entities it is remembered where their calls were passed on to. For one that is forgotten, a call that is
/// sent again may be passed on to where it was lost before.
const REMEMBERED_ROUNDS: usize = 64;

/// One client's session.
#[derive(Debug)]
pub(crate) struct Session {
    /// The entity the client controls; its image names this session.
    pub(crate) entity: EntityId,
    /// Where the client is.
    pub(crate) phase: Phase,
    /// The digest of the ticket with which it was opened; `None` after a take-over.
    pub(crate) ticket: Option<[u8; 32]>,
    /// For which account it was opened, and the name with which its client logged in; `None` after a take-over.
    pub(crate) account: Option<(DatabaseId, String)>,
    /// What was to happen if the account had a client.
    pub(crate) duplicate: DuplicateLogin,
    /// The digest of the token before the newest. It is good until the client was heard under the new one, because the
    /// frame with the new one may have been lost.
    pub(crate) former_token: Option<[u8; 32]>,
    /// How the client is told of movements over its newest connection.
    pub(crate) movements: Movements,
    /// The highest view number that the client used for the base's view.
    pub(crate) last_view: u64,
    /// The base's view, once the client has begun it on this connection.
    pub(crate) view: Option<View>,
    /// When the client began it.
    pub(crate) begun: Option<Mono>,
    /// What the client is shown first of an entity that it has just been given.
    pub(crate) beginning: Option<Beginning>,
    /// Where calls are passed on to, per cell part that is not the client's own.
    rounds: BTreeMap<EntityId, Round>,
}

/// Calls to one part that were sent once each and passed on to the same owner.
#[derive(Clone, Copy, Debug)]
struct Round {
    /// The first of them.
    first: CallNumber,
    /// To whom.
    to: OwnerId,
}

/// Where a session's client is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// It has a ticket and has not come.
    Expected {
        /// When it is given up.
        until: Mono,
    },
    /// It is here.
    Connected(ConnectionId),
    /// It was here.
    Away {
        /// When it is given up.
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
    /// A session of the client of `entity`, opened so; `None` after a take-over.
    pub(crate) fn new(entity: EntityId, phase: Phase, opened: Option<&OpenSession>) -> Self {
        Self {
            entity,
            phase,
            ticket: opened.map(|opened| opened.ticket),
            account: opened.map(|opened| (opened.account.database, opened.name.clone())),
            duplicate: opened.map_or_else(DuplicateLogin::default, |opened| opened.duplicate),
            former_token: None,
            movements: Movements::Plain,
            last_view: 0,
            view: None,
            begun: None,
            beginning: None,
            rounds: BTreeMap::new(),
        }
    }

    /// Ends the view: the client begins one that is new to it, and may do so at once.
    pub(crate) fn end_view(&mut self, beginning: Option<Beginning>) {
        (self.view, self.begun, self.beginning) = (None, None, beginning);
    }

    /// Where a call is passed on to whose receiver may be `heard_of` somewhere, and of which the client's `witness` knows.
    ///
    /// A call that comes again got lost, or was sent to where the receiver is not: what follows goes to the other one.
    pub(crate) fn pass_on(
        &mut self,
        entity: EntityId,
        number: CallNumber,
        heard_of: Option<OwnerId>,
        witness: OwnerId,
    ) -> OwnerId {
        let to = match self.rounds.get(&entity) {
            Some(round) if number > round.first => return round.to,
            Some(round) => heard_of.filter(|at| *at != round.to).unwrap_or(witness),
            None => heard_of.unwrap_or(witness),
        };
        self.rounds.insert(entity, Round { first: number, to });
        if self.rounds.len() > REMEMBERED_ROUNDS {
            self.rounds.pop_first();
        }
        to
    }

    /// Calls to a part were taken up to this number: where they were passed on to is right.
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
    /// The sessions of each account, as far as it is known for which they were opened.
    accounts: BTreeSet<(DatabaseId, SessionId)>,
    due: BTreeSet<(Mono, SessionId)>,
    /// The newest of the sessions that a later log-in has replaced, with the tokens that were good for each.
    replaced: BTreeMap<SessionId, Tokens>,
}

/// The digests of a session's newest token and of the one before it.
pub(crate) type Tokens = [Option<[u8; 32]>; 2];

impl Sessions {
    pub(crate) fn len(&self) -> usize {
        self.sessions.len()
    }

    /// How many have a connection.
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

    /// Whether a client of an account is connected.
    pub(crate) fn is_played(&self, account: DatabaseId) -> bool {
        let of_account = self
            .accounts
            .range((account, SessionId(0))..=(account, SessionId(u64::MAX)));
        of_account.into_iter().any(|(_, id)| self.connection(*id).is_some())
    }

    /// Remembers that a later log-in has replaced a session.
    pub(crate) fn remember_replaced(&mut self, id: SessionId, tokens: Tokens) {
        self.replaced.insert(id, tokens);
        if self.replaced.len() > MAX_REPLACED {
            self.replaced.pop_first();
        }
    }

    /// Whether a session was replaced for which this was a token.
    pub(crate) fn was_replaced(&self, id: SessionId, token: [u8; 32]) -> bool {
        self.replaced
            .get(&id)
            .is_some_and(|tokens| tokens.contains(&Some(token)))
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
        let account = session.account.as_ref().map(|(account, _)| *account);
        self.accounts.extend(account.map(|account| (account, id)));
        self.sessions.insert(id, session);
        self.enter(id, phase);
    }

    /// Takes a session away. Its connection, if it has one, is nobody's from now on.
    pub(crate) fn remove(&mut self, id: SessionId) -> Option<Session> {
        let session = self.sessions.remove(&id)?;
        self.leave(id, session.phase);
        if let Some(ticket) = &session.ticket {
            self.tickets.remove(ticket);
        }
        if let Some((account, _)) = &session.account {
            self.accounts.remove(&(*account, id));
        }
        Some(session)
    }

    /// Changes where a session's client is. Returns the connection it was on, which is nobody's from now on.
    pub(crate) fn set_phase(&mut self, id: SessionId, phase: Phase) -> Option<ConnectionId> {
        let session = self.sessions.get_mut(&id)?;
        let before = std::mem::replace(&mut session.phase, phase);
        self.leave(id, before);
        self.enter(id, phase);
        before.connection()
    }

    /// When the next session is to be given up.
    pub(crate) fn next_due(&self) -> Option<Mono> {
        self.due.first().map(|(at, _)| *at)
    }

    /// A session whose client did not come in time.
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
