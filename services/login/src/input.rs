//! Inputs and outputs of the core.

use std::time::Duration;

use annals_ids::{DatabaseId, Epoch, Hash, OwnerId, SessionId, TypeId};
use annals_node::ConnectionId;
use annals_wire::client::{Ban, Credentials, Located, LoginAnswer, LoginRefusal, LoginRequest, Queued, Secret};

use crate::{counts::Counted, turns::Host};

/// Id of a request to another service, repeated in the answer. An answer that is no longer awaited is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// Id of room for one player, within this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RoomId(pub u64);

/// An input of the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// A client's request.
    Request {
        /// The client's connection.
        connection: ConnectionId,
        /// The client's host; hosts take turns.
        host: Host,
        request: LoginRequest,
        /// The keyed hash of the name in the request, if it has one.
        name: Option<Hash>,
        /// 32 random bytes, for the ticket.
        ticket: Secret,
    },
    /// A connection has ended; its log-in is dropped.
    Closed(ConnectionId),
    /// The answer to [`Output::Verify`].
    Verified(AskId, Result<Verdict, Unavailable>),
    /// The answer to [`Output::Place`].
    Placed(AskId, Result<Placed, Unavailable>),
    /// The answer to [`Output::LookUp`]: the owner on which the account is active, if it is.
    LookedUp(AskId, Result<Option<OwnerId>, NotCheckedOut>),
    /// The answer to [`Output::Locate`].
    Located(AskId, Result<Option<Located>, Unavailable>),
    /// The answer to [`Output::CheckOut`].
    CheckedOut(AskId, Result<Checkout, NotCheckedOut>),
    /// The answer to [`Output::Open`].
    Opened(AskId, Result<Opened, Unavailable>),
    /// Another login process has counted this.
    Counted(Counted),
    /// Another login process has admitted a client under this name, whose counts are cleared.
    Forgiven(Hash),
    /// What other login processes have counted before this one started, each with the time until it is forgiven.
    Learned(Vec<(Counted, Duration)>),
    /// Time has passed.
    Time,
    /// Whether new log-ins are refused as busy. Those in progress continue, and bases are located as before: players
    /// who play are not affected.
    Pause(bool),
    /// This process ends: every log-in is refused from now on.
    ShutDown {
        /// Whether the realm shuts down. Otherwise clients are to try another login process.
        with_realm: bool,
    },
}

/// An output of the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Verify what the client shows, and return the account. At most [`MAX_VERIFYING`](crate::MAX_VERIFYING) wait for their answers.
    Verify {
        /// Repeated in the answer.
        ask: AskId,
        /// The credentials that the client sent.
        credentials: Credentials,
    },
    /// Ask the director for a base for a new session, and for room in the realm. Idempotent per room.
    Place {
        /// Repeated in the answer.
        ask: AskId,
        wish: Wish,
    },
    /// The director is to count this room no longer.
    Settle {
        room: RoomId,
        /// The session that was opened with it, which the director counts from now on.
        session: Option<(OwnerId, SessionId)>,
    },
    /// Ask db on which owner an account is active, without checking it out.
    LookUp {
        /// Repeated in the answer.
        ask: AskId,
        account: DatabaseId,
    },
    /// Ask the director where an owner is.
    Locate {
        /// Repeated in the answer.
        ask: AskId,
        owner: OwnerId,
    },
    /// Ask db to check out an account and return its stored properties.
    CheckOut {
        /// Repeated in the answer.
        ask: AskId,
        account: DatabaseId,
        /// The owner to check it out to, unless it is activated on another.
        preferred: OwnerId,
    },
    /// Ask a base to open a session.
    Open {
        /// Repeated in the answer.
        ask: AskId,
        /// The session.
        wanted: Wanted,
    },
    /// The other login processes are to count this too.
    Counted(Counted),
    /// The other login processes are to clear the counts of a name.
    Forgiven(Hash),
    /// Send a client its position in the queue.
    Queued { connection: ConnectionId, queued: Queued },
    /// Answer a client. It is the last output for its connection.
    Answer {
        connection: ConnectionId,
        answer: LoginAnswer,
    },
}

/// Result of verifying credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// They are those of this account.
    Good(Authenticated),
    /// Name and password do not match, or there is no such account; the two are not distinguished. Also: somebody else
    /// has the name that the client registers.
    Wrong(Wrong),
    /// The account is banned; the credentials are right.
    Banned(Ban),
    /// They cannot be used, whatever the account: another reason.
    Refused(LoginRefusal),
}

/// An account whose client is authenticated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authenticated {
    pub account: DatabaseId,
    /// The account's name: as the client wrote it, or as a token or a service names it.
    pub name: String,
    /// Whether it waits like others when the realm is full.
    pub waits: bool,
}

/// A request for a base and for room in the realm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wish {
    /// Id of the room.
    pub room: RoomId,
    /// Whether there must be room: otherwise the realm's limit does not apply.
    pub waits: bool,
    /// For how long the client has waited in the queue, if it is there: it has waited longest in this process.
    pub waited: Option<Duration>,
    /// Number of places in the queue.
    pub waiting: usize,
}

/// The director's answer to a request for a base.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placed {
    /// This is the base.
    Base {
        base: Located,
        /// Whether the realm has a limit of players, so that the room has to be [settled](Output::Settle).
        is_limited: bool,
    },
    /// The realm is full, or others have waited longer.
    Full,
    /// There is no base at present.
    None,
}

/// Wrong credentials, which count as a guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wrong {
    Password,
    Token,
    /// The client registers a name that another account has.
    Taken,
}

impl From<Wrong> for LoginRefusal {
    fn from(wrong: Wrong) -> Self {
        match wrong {
            Wrong::Password => Self::WrongPassword,
            Wrong::Token => Self::WrongToken,
            Wrong::Taken => Self::NameTaken,
        }
    }
}

/// The service did not answer, or was not able to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unavailable;

/// Why an account was not checked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotCheckedOut {
    /// It was banned after its password was verified.
    Banned(Ban),
    Unavailable,
}

/// A checked-out account, with its stored properties.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkout {
    /// The owner that it is checked out to.
    pub owner: OwnerId,
    /// Number of the check-out.
    pub number: u64,
    /// Type of its entity.
    pub type_id: TypeId,
    /// Stored properties, as db encodes them; passed through.
    pub properties: Vec<u8>,
    /// Key for the person's data; passed through; empty if there is none.
    pub key: Vec<u8>,
}

/// A request for a base to open a session.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    /// Owner that is the base.
    pub owner: OwnerId,
    /// Epoch of that owner.
    pub epoch: Epoch,
    pub account: DatabaseId,
    /// Its check-out.
    pub checkout: Checkout,
    /// SHA-256 of the ticket's secret.
    pub ticket: Hash,
    /// The account's name.
    pub name: String,
    /// The realm is full: only in the place of a session that the account has.
    pub replaces_only: bool,
}

/// A base's answer to a request for a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    /// It is open.
    Session {
        session: SessionId,
        /// Epoch of the base.
        epoch: Epoch,
    },
    /// The check-out or the epoch is outdated.
    Outdated,
    /// Refused: there is no room, or the stored properties do not fit the schema.
    Refused,
    /// Refused: another client of the account is connected, and the request does not replace it.
    InUse,
    /// Refused: the account has no session to replace, and the request is for no other.
    NoSession,
}
