//! What a base core is given, and the limits it keeps.

use std::{net::SocketAddr, time::Duration};

use annals_def::Value;
use annals_event::{Trace, ledger::Order};
use annals_ids::{CallNumber, DatabaseId, EntityId, Epoch, MemberId, TypeId};
use annals_node::{
    ConnectionId,
    inquiry::{Learned, NotLearned},
};
use annals_personal::PersonalKey;
use annals_wire::{
    SpaceMap,
    client::{Hello, Secret, ToServer, ToServerDatagram},
};

/// How long a client may take from its ticket to its first frame: a slow machine loading a world.
pub const TICKET_WINDOW: Duration = Duration::from_secs(60);

/// How long a session waits for its client to come back: what players are used to (30 s of inactivity).
pub const RESUME_WINDOW: Duration = Duration::from_secs(30);

/// Most sessions of one owner. At 10 kB of views, links and queues each they take 100 MB.
pub const MAX_SESSIONS: usize = 10_000;

/// Sessions that were replaced by a later log-in, of which the newest are remembered: so that a client that was away at that
/// moment is told why its session is gone. At 80 bytes each they take 80 kB.
pub(crate) const MAX_REPLACED: usize = 1_000;

/// An input of a base core.
#[derive(Clone, Debug, PartialEq)]
pub enum BaseInput {
    /// The director has drawn the map anew.
    Map(SpaceMap),
    /// The login service wants a session for an account. Answered by [`annals_node::Output::SessionOpened`]; asking again
    /// with the same ticket has the effect of once.
    OpenSession(OpenSession),
    /// An entity of the database is to live here. Answered by [`annals_node::Output::Begun`]; asking again has the effect of
    /// once.
    Begin(Begin),
    /// An operator orders something of the ledger. Answered by [`annals_node::Output::Ordered`]; asking again has the effect
    /// of once.
    Order(OperatorOrder),
    /// The answer to [`annals_node::Output::Inquire`].
    Learned {
        /// Who asked.
        entity: EntityId,
        /// The number of its wait.
        number: CallNumber,
        /// The answer.
        outcome: Result<Learned, NotLearned>,
    },
    /// A connection's first frame.
    Hello {
        /// Which connection.
        connection: ConnectionId,
        /// The client's end of it.
        from: SocketAddr,
        /// The frame.
        hello: Hello,
        /// 32 random bytes: the token with which the session can be resumed the next time.
        fresh_token: Secret,
    },
    /// A further frame.
    Frame {
        /// Which connection.
        connection: ConnectionId,
        /// The frame.
        frame: ToServer,
        /// Which request it belongs to.
        trace: Trace,
    },
    /// A datagram.
    Datagram {
        /// Which connection.
        connection: ConnectionId,
        /// All of it.
        datagram: ToServerDatagram,
    },
    /// A connection has ended.
    Closed {
        /// Which connection.
        connection: ConnectionId,
    },
}

/// A session that is to be opened.
#[derive(Clone, Debug, PartialEq)]
pub struct OpenSession {
    /// Repeated in the answer.
    pub request: u64,
    /// The account's entity.
    pub account: CheckedOut,
    /// SHA-256 of the ticket's secret.
    pub ticket: [u8; 32],
    /// The name with which the client logged in.
    pub name: String,
    /// What happens if the account has a client.
    pub duplicate: DuplicateLogin,
}

/// What happens at a log-in to an account that has a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicateLogin {
    /// The session before ends.
    #[default]
    Replace,
    /// The log-in is refused while the other client is connected. A session whose client is away or has not come yet ends, so
    /// that a player whose machine was lost is not locked out.
    Refuse,
}

/// An entity of the database that is to live.
#[derive(Clone, Debug, PartialEq)]
pub struct Begin {
    /// Repeated in the answer.
    pub request: u64,
    /// The entity.
    pub entity: CheckedOut,
}

/// What an operator orders for an entity of the database that lives here.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorOrder {
    /// Repeated in the answer.
    pub request: u64,
    /// Which entity.
    pub database: DatabaseId,
    /// What, with the operator's warrant in it.
    pub order: Order,
}

/// An entity of the database that is checked out to this owner.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedOut {
    /// The epoch of this owner, as the director named it before the check-out was made or read. What was found out in an
    /// earlier holding is out of date.
    pub epoch: Epoch,
    /// Which entity.
    pub database: DatabaseId,
    /// The number of its check-out.
    pub checkout: u64,
    /// Its type.
    pub type_id: TypeId,
    /// What is stored of it, of both parts.
    pub properties: Vec<(MemberId, Value)>,
    /// The key under which what is known of this person is sealed; `None` if it was forgotten.
    pub key: Option<PersonalKey>,
}

/// What happened on one owner since it was taken over, for whoever watches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sessions opened.
    pub opened: u64,
    /// Lives of entities of the database that were asked for without a session, and began.
    pub begun: u64,
    /// Orders of operators that were recorded, or had been.
    pub ordered: u64,
    /// Clients that came with a ticket or a token and were taken.
    pub welcomed: u64,
    /// Clients that were turned away.
    pub rejected: u64,
    /// Sessions that ended because their client did not come, or not come back.
    pub expired: u64,
    /// Connections closed because they said hello twice.
    pub refused: u64,
    /// Requests of behaviour that could not be fulfilled.
    pub denied: u64,
}
