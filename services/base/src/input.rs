//! Inputs of a base core, and its limits.

use std::{net::SocketAddr, time::Duration};

use annals_def::Value;
use annals_event::{Trace, ledger::Order};
use annals_ids::{DatabaseId, Epoch, MemberId, SessionId, TypeId};
use annals_node::ConnectionId;
use annals_personal::PersonalKey;
use annals_wire::{
    SpaceMap,
    client::{Ban, Hello, Secret, ToServer, ToServerDatagram},
};

use crate::downloads::PreparedDownload;

/// Maximum time from ticket to first frame: a slow machine loading a world.
pub const TICKET_WINDOW: Duration = Duration::from_secs(60);

/// Time for which a session waits for its client to reconnect: what players are used to (30 s of inactivity).
pub const RESUME_WINDOW: Duration = Duration::from_secs(30);

/// Maximum sessions of one owner. At 10 kB of views, links and queues each they take 100 MB.
pub const MAX_SESSIONS: usize = 10_000;

/// Maximum sessions remembered as replaced by a later log-in, or given to another owner; beyond that the oldest are
/// evicted. A client that was disconnected at that moment gets the reason, or its new owner, when it reconnects. At 80
/// bytes each they take 80 kB.
pub(crate) const MAX_FORMER: usize = 1_000;

/// Time for which a base opens no session for an account whose ban it has received: more than a log-in takes from its
/// check-out, which looks for a ban, to its request to the base.
pub(crate) const BAN_MEMORY: Duration = Duration::from_secs(10);

/// Maximum banned accounts that are remembered for this; beyond that the oldest are evicted.
pub(crate) const MAX_BANNED: usize = 1_000;

/// An input of a base core.
#[derive(Clone, Debug, PartialEq)]
pub enum BaseInput {
    /// The director has changed the map.
    Map(SpaceMap),
    /// The login service requests a session for an account. Answered by [`annals_node::Output::SessionOpened`];
    /// idempotent per ticket.
    OpenSession(OpenSession),
    /// A stored entity is to be activated here. Answered by [`annals_node::Output::Begun`]; idempotent.
    Begin(Begin),
    /// An account was banned: its sessions end. Answered by [`annals_node::Output::SessionsEnded`]; idempotent.
    Ban(BannedAccount),
    /// A ledger order of an operator. Answered by [`annals_node::Output::Ordered`]; idempotent.
    Order(OperatorOrder),
    /// A connection's first frame.
    Hello {
        connection: ConnectionId,
        /// The client's address.
        from: SocketAddr,
        /// The frame.
        hello: Hello,
        /// 32 random bytes: the token for the next resumption of the session.
        fresh_token: Secret,
    },
    /// A later frame.
    Frame {
        connection: ConnectionId,
        frame: ToServer,
        /// The request that it belongs to.
        trace: Trace,
    },
    Datagram {
        connection: ConnectionId,
        datagram: ToServerDatagram,
    },
    /// A connection has ended.
    Closed { connection: ConnectionId },
    /// The answer to [`Output::Download`](annals_node::Output::Download).
    Download(PreparedDownload),
}

/// A request to open a session.
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
    /// Policy if the account already has a client.
    pub duplicate: DuplicateLogin,
    /// The realm is full: whether a session is opened only if the account has one already, which it replaces, or which
    /// plays another entity.
    pub replaces_only: bool,
}

/// Policy for a log-in to an account that already has a client.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DuplicateLogin {
    /// The existing session ends.
    #[default]
    Replace,
    /// The log-in is refused while the other client is connected. A session whose client is away or has not come yet
    /// ends, so that a player whose machine was lost is not locked out.
    Refuse,
}

/// A request to activate a stored entity.
#[derive(Clone, Debug, PartialEq)]
pub struct Begin {
    /// Repeated in the answer.
    pub request: u64,
    pub entity: CheckedOut,
}

/// An operator's order for a stored entity that is activated here.
#[derive(Clone, Debug, PartialEq)]
pub struct OperatorOrder {
    /// Repeated in the answer.
    pub request: u64,
    /// The entity.
    pub database: DatabaseId,
    /// The order, with the operator's warrant in it.
    pub order: Order,
}

/// An account that an operator has banned.
#[derive(Clone, Debug, PartialEq)]
pub struct BannedAccount {
    /// Repeated in the answer.
    pub request: u64,
    /// The account.
    pub account: DatabaseId,
    /// Its newest session here, by the log. After a take-over the account of a session whose client was given to another
    /// entity is not known here.
    pub session: Option<SessionId>,
    /// What the client receives.
    pub ban: Ban,
}

/// A stored entity that is checked out to this owner.
#[derive(Clone, Debug, PartialEq)]
pub struct CheckedOut {
    /// Epoch of this owner, as the director named it before the check-out was made or read. Data from an earlier epoch
    /// is outdated.
    pub epoch: Epoch,
    /// The entity.
    pub database: DatabaseId,
    /// Number of its check-out.
    pub checkout: u64,
    pub type_id: TypeId,
    /// Stored properties of both parts.
    pub properties: Vec<(MemberId, Value)>,
    /// Key that seals this person's personal data; `None` if it was deleted.
    pub key: Option<PersonalKey>,
}

/// Counters of one owner since its take-over, for monitoring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Sessions opened.
    pub opened: u64,
    /// Stored entities activated without a session.
    pub begun: u64,
    /// Operator orders recorded now or before.
    pub ordered: u64,
    /// Clients admitted with a ticket or a token.
    pub welcomed: u64,
    /// Sessions ended because their account was banned.
    pub banned: u64,
    /// Clients rejected.
    pub rejected: u64,
    /// Sessions that expired because their client did not connect or reconnect in time.
    pub expired: u64,
    /// Connections closed because of a second hello.
    pub refused: u64,
    /// Requests of behaviour that were denied.
    pub denied: u64,
    /// Downloads that a client has whole.
    pub downloaded: u64,
}
