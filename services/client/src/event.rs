//! Inputs, outputs and events of the core.

use std::net::SocketAddr;

use annals_def::{Change, Replaced, Value};
use annals_event::{Outcome, SpaceVersion};
use annals_ids::{
    CallNumber, Direction, EntityId, Epoch, Hash, HistoryNumber, MemberId, Part, Position, SessionId, SpaceId, TypeId,
};
use annals_wire::client::{
    Ban, CallRefusal, CloseReason, DownloadId, LoginAnswer, LoginRefusal, LoginRequest, Rejection,
};
use thiserror::Error;

/// Milliseconds on the shell's monotonic clock, from any origin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

impl Millis {
    /// The time so many milliseconds later.
    #[must_use]
    pub fn after(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }
}

/// Number of a request of the core to its shell, so that a late answer is recognised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt(pub u64);

/// An input of the core from its shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The login service answered; `None`: it could not be reached, or its answer could not be decoded. Any number of
    /// [`LoginAnswer::Queued`] may come before the answer.
    LoginAnswered {
        /// The request that was answered.
        attempt: Attempt,
        answer: Option<LoginAnswer>,
    },
    /// The connection to the base is established and its stream is open.
    Connected {
        /// The connection.
        attempt: Attempt,
    },
    /// A frame arrived, without its length.
    Frame {
        /// The connection.
        attempt: Attempt,
        body: Vec<u8>,
    },
    /// A datagram arrived.
    Datagram {
        /// The connection.
        attempt: Attempt,
        bytes: Vec<u8>,
    },
    /// Nothing arrives any more over a connection over which much arrived before. It may be repeated while that lasts.
    Silent {
        /// The connection.
        attempt: Attempt,
    },
    /// The connection failed or was closed. Not required after [`Output::Disconnect`].
    Disconnected {
        /// The connection.
        attempt: Attempt,
        reason: CloseReason,
    },
}

/// An output of the core to its shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Connect to the login service and send this request.
    Login {
        /// Returned with the answer.
        attempt: Attempt,
        request: LoginRequest,
    },
    /// Connect to a base. Close any earlier connection.
    Connect {
        /// Returned with all inputs of this connection.
        attempt: Attempt,
        /// The base's address.
        address: SocketAddr,
        /// The fingerprint of its certificate; `None` if a known authority has signed it.
        certificate: Option<Hash>,
    },
    /// Connect to a base beside the present connection, which stays in use.
    Prepare {
        /// Returned with all inputs of this connection.
        attempt: Attempt,
        /// The base's address.
        address: SocketAddr,
        /// The fingerprint of its certificate; `None` if a known authority has signed it.
        certificate: Option<Hash>,
    },
    /// Write this frame to the prepared connection's stream.
    Greet(Vec<u8>),
    /// Close the present connection, and use the prepared one from now on.
    Switch,
    /// Close the prepared connection.
    Abandon,
    /// Write this frame to the connection's stream.
    Frame(Vec<u8>),
    /// Send this datagram over the connection.
    Datagram(Vec<u8>),
    /// Close the connection.
    Disconnect(CloseReason),
}

/// An event for the game.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A new session has started.
    Connected {
        session: SessionId,
        /// The entity that the client controls.
        entity: EntityId,
        type_id: TypeId,
    },
    /// The realm is full, and the client waits in a queue. It comes again when something has changed, and every ten
    /// seconds. [`Event::Connected`] follows, or [`Event::Ended`].
    Queued {
        /// 1 for the client that is admitted next.
        position: u64,
        /// Number of clients that wait.
        length: u64,
    },
    /// The session was resumed after [`Event::Lost`].
    Resumed {
        /// The present epoch of the base.
        epoch: Epoch,
    },
    /// The connection was lost; the client tries to resume by itself.
    Lost(CloseReason),
    /// The account is banned, until then and for this reason. [`Event::Ended`] follows.
    Banned(Ban),
    /// The client has ended; it does nothing any more.
    Ended(EndReason),
    /// The client controls another entity, or the same one, whose cell part has ended. Its view is empty at first.
    Controls { entity: EntityId, type_id: TypeId },
    /// An entity entered a view.
    Entered {
        /// The view.
        part: Part,
        entity: EntityId,
        type_id: TypeId,
        /// The history number of its state in the view: 0 for a new one, and that at which it left for one that returns
        /// while the view still has its state.
        upto: HistoryNumber,
    },
    /// An entity left a view.
    Left {
        /// The view.
        part: Part,
        entity: EntityId,
    },
    /// Properties of an entity were sent in full: all that are visible, or those that have changed since it was last
    /// shown at this level of detail.
    Refreshed {
        /// The view.
        part: Part,
        entity: EntityId,
        /// The history number of the values.
        upto: HistoryNumber,
        /// The properties that were sent, each with the hash of its value's bytes.
        properties: Vec<(MemberId, Hash)>,
        /// The properties whose value differs, with the old value, if the entity was shown before.
        replaced: Vec<(MemberId, Value)>,
    },
    /// A history event of an entity.
    Shown(Showing),
    /// The server set the position of an entity.
    Placed {
        entity: EntityId,
        position: Position,
        direction: Direction,
    },
    /// The client moves this entity from now on ([`ClientCore::move_entity`](crate::ClientCore::move_entity)), or does
    /// not move it any more: behaviour has chosen another driver. At first the client moves its own entity and no other.
    /// Another entity that leaves the view is no longer moved by the client.
    Drives { entity: EntityId, drives: bool },
    /// The client's own entity is in this space: sent once it is known, and when it changes. Entities of another space
    /// have left the view before that.
    SpaceEntered {
        /// The client's own entity.
        entity: EntityId,
        space: SpaceId,
    },
    /// A key in the data of the client's own space has another value, or none any more:
    /// [`ClientCore::space_data`](crate::ClientCore::space_data) has it.
    SpaceDataChanged {
        space: SpaceId,
        key: u16,
        /// The version of the entry that was sent.
        version: SpaceVersion,
    },
    /// A call was delivered but not run.
    CallRefused {
        /// The entity that was called.
        entity: EntityId,
        /// The part that was called.
        part: Part,
        /// The call.
        number: CallNumber,
        reason: CallRefusal,
    },
    /// These calls may not have been delivered: the part was destroyed.
    CallsLost {
        /// The entity that was called.
        entity: EntityId,
        /// The part that was called.
        part: Part,
        /// The calls.
        numbers: Vec<CallNumber>,
    },
    /// More of a download is here, or it begins: at most ten times a second. It continues over reconnections.
    DownloadProgressed {
        id: DownloadId,
        /// What the game calls it.
        description: String,
        /// Bytes that are here.
        received: u64,
        /// Bytes of the whole.
        size: u64,
    },
    /// A download is here as a whole, and its hash was checked.
    Downloaded {
        id: DownloadId,
        /// What the game calls it.
        description: String,
        content: Vec<u8>,
    },
    /// A download that had begun has ended without being whole: its time was over, or it was cancelled.
    DownloadEnded(DownloadId),
    /// The server warns that the client sends too much.
    RateWarned,
}

/// A history event as it was shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Showing {
    /// The view.
    pub part: Part,
    pub entity: EntityId,
    /// Its history number.
    pub number: HistoryNumber,
    /// The fingerprint of what was shown: [`annals_wire::client::change_hash`] or [`annals_wire::client::args_hash`].
    pub hash: Hash,
    /// What happened.
    pub what: What,
}

/// Content of a history event.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A property was changed: all of it, a part, or a slice of an array in it. [`Callbacks`](crate::Callbacks)
    /// distinguish these as scripts do.
    Changed {
        /// Index among the type's properties.
        property: MemberId,
        change: Change,
        /// The old value.
        replaced: Replaced,
    },
    /// A client method was called.
    Called {
        /// Index among the type's client methods.
        method: MemberId,
        /// Its arguments.
        args: Vec<Value>,
    },
    /// A call of this client was answered: its return values, or an error.
    Replied {
        /// The part that was called.
        part: Part,
        /// The number of the call.
        call: CallNumber,
        /// Index of the method among those of the part.
        method: MemberId,
        outcome: Outcome,
    },
}

/// Why a client has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EndReason {
    /// The log-in was refused.
    #[error("the log-in was refused: {0}")]
    LoginRefused(LoginRefusal),
    /// The base refused the client.
    #[error("the base refused the client: {0}")]
    Rejected(Rejection),
    /// The connection was closed for good.
    #[error("the connection was closed: {0}")]
    Closed(CloseReason),
    /// The account is banned: [`Event::Banned`] has said why.
    #[error("the account is banned")]
    Banned,
    /// The game left the session.
    #[error("the client disconnected")]
    Left,
}

impl EndReason {
    /// Whether another client plays the account, which a new log-in would replace, or be refused for.
    #[must_use]
    pub fn is_elsewhere(self) -> bool {
        matches!(
            self,
            Self::Closed(CloseReason::LoggedInElsewhere)
                | Self::Rejected(Rejection::LoggedInElsewhere)
                | Self::LoginRefused(LoginRefusal::LoggedIn)
        )
    }
}

/// Counters of received traffic and of faults that players should not notice. Each counts from 0 over the client's
/// lifetime.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames and datagrams received from bases while playing.
    pub received: u64,
    /// Their bytes, without the lengths of frames.
    pub received_bytes: u64,
    /// Bytes of datagrams, which carry movements.
    pub moves_bytes: u64,
    /// Views restarted because something was missing in them.
    pub view_gaps: u64,
    /// Frames and datagrams of views that had ended.
    pub stale: u64,
    /// Frames and datagrams that could not be decoded.
    pub malformed: u64,
    /// Calls sent again.
    pub resent: u64,
    /// Times the session was resumed.
    pub resumed: u64,
    /// Times another process continued the session, without an interruption.
    pub moved: u64,
    /// Bases that were left because their epoch was outdated.
    pub old_epochs: u64,
}
