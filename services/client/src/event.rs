//! What goes into the core and what comes out of it.

use std::net::SocketAddr;

use annals_def::{Change, Replaced, Value};
use annals_event::SpaceVersion;
use annals_ids::{
    CallNumber, Direction, EntityId, Epoch, Hash, HistoryNumber, MemberId, Part, Position, SessionId, SpaceId, TypeId,
};
use annals_wire::client::{CallRefusal, CloseReason, LoginAnswer, LoginRefusal, LoginRequest, Rejection};
use thiserror::Error;

/// Milliseconds on the shell's monotonic clock, from any beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Millis(pub u64);

impl Millis {
    /// The moment so many milliseconds later.
    #[must_use]
    pub fn after(self, milliseconds: u64) -> Self {
        Self(self.0.saturating_add(milliseconds))
    }
}

/// Numbers what the core asks of its shell, so that an answer which comes too late is known as such.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attempt(pub u64);

/// What the shell tells the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Input {
    /// The login service answered; `None`: it could not be reached, or what it said was no answer.
    LoginAnswered {
        /// To which request.
        attempt: Attempt,
        /// What.
        answer: Option<LoginAnswer>,
    },
    /// The connection to the base stands and its stream is open.
    Connected {
        /// Which connection.
        attempt: Attempt,
    },
    /// A frame came, without its length.
    Frame {
        /// On which connection.
        attempt: Attempt,
        /// Its body.
        body: Vec<u8>,
    },
    /// A datagram came.
    Datagram {
        /// On which connection.
        attempt: Attempt,
        /// Its bytes.
        bytes: Vec<u8>,
    },
    /// The connection could not be made, or is no more. After [`Output::Disconnect`] it need not be told.
    Disconnected {
        /// Which connection.
        attempt: Attempt,
        /// Why.
        reason: CloseReason,
    },
}

/// What the core asks of its shell.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Connect to the login service and ask this.
    Login {
        /// Goes back with the answer.
        attempt: Attempt,
        /// What to ask.
        request: LoginRequest,
    },
    /// Connect to a base. A connection that stood before is to be closed.
    Connect {
        /// Goes back with everything that comes of it.
        attempt: Attempt,
        /// Where it listens.
        address: SocketAddr,
        /// The fingerprint of the certificate it must show; `None`: one that a known authority has signed.
        certificate: Option<Hash>,
    },
    /// Write this frame to the connection's stream.
    Frame(Vec<u8>),
    /// Send this datagram over the connection.
    Datagram(Vec<u8>),
    /// Close the connection.
    Disconnect(CloseReason),
}

/// What the game is told.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// A new session plays.
    Connected {
        /// The session.
        session: SessionId,
        /// The entity that the client controls.
        entity: EntityId,
        /// Its type.
        type_id: TypeId,
    },
    /// The session goes on after [`Event::Lost`].
    Resumed {
        /// The epoch of the base now.
        epoch: Epoch,
    },
    /// The connection was lost; the client tries to resume by itself.
    Lost(CloseReason),
    /// It is over; the client does nothing any more.
    Ended(EndReason),
    /// The client controls another entity, and sees nothing at first.
    Controls {
        /// Which.
        entity: EntityId,
        /// Its type.
        type_id: TypeId,
    },
    /// An entity came into a view.
    Entered {
        /// Which view.
        part: Part,
        /// Which entity.
        entity: EntityId,
        /// Its type.
        type_id: TypeId,
        /// The history number for which the view holds it: 0 for one that is new, and what it was when it left for one that comes
        /// back and that the view still had.
        upto: HistoryNumber,
    },
    /// An entity is out of a view.
    Left {
        /// Which view.
        part: Part,
        /// Which entity.
        entity: EntityId,
    },
    /// Properties of an entity were told as they are: all that can be seen of it, or those that have changed since it was last
    /// seen in such detail.
    Refreshed {
        /// Which view.
        part: Part,
        /// Which entity.
        entity: EntityId,
        /// The history number for which it stands.
        upto: HistoryNumber,
        /// The properties that were told, each with the hash of its value's bytes.
        properties: Vec<(MemberId, Hash)>,
        /// The properties that had another value, and which, if the entity was shown before.
        replaced: Vec<(MemberId, Value)>,
    },
    /// Something happened to an entity.
    Shown(Showing),
    /// The server put an entity somewhere.
    Placed {
        /// Which entity.
        entity: EntityId,
        /// Where.
        position: Position,
        /// Looking where.
        direction: Direction,
    },
    /// The client's own entity is in this space: told once it is known, and when it is another one. Who is not in it has
    /// left the view before that.
    SpaceEntered {
        /// Which entity.
        entity: EntityId,
        /// Which space.
        space: SpaceId,
    },
    /// Something else stands under a key in the data of the space in which the client's own entity is, or nothing any more:
    /// [`ClientCore::space_data`](crate::ClientCore::space_data) has it.
    SpaceDataChanged {
        /// Which space.
        space: SpaceId,
        /// Which key.
        key: u16,
        /// Since when: the version of the entry that was told.
        version: SpaceVersion,
    },
    /// A call was taken but not run.
    CallRefused {
        /// To which entity.
        entity: EntityId,
        /// To which part.
        part: Part,
        /// Which call.
        number: CallNumber,
        /// Why.
        reason: CallRefusal,
    },
    /// These calls may not have been taken: the part exists no more.
    CallsLost {
        /// To which entity.
        entity: EntityId,
        /// To which part.
        part: Part,
        /// Which calls.
        numbers: Vec<CallNumber>,
    },
    /// The client sends too much.
    RateWarned,
}

/// A history event as it was shown.
#[derive(Clone, Debug, PartialEq)]
pub struct Showing {
    /// In which view.
    pub part: Part,
    /// To which entity it happened.
    pub entity: EntityId,
    /// Its place in what can be seen of that part.
    pub number: HistoryNumber,
    /// The fingerprint of what was shown: [`annals_wire::client::change_hash`] or [`annals_wire::client::args_hash`].
    pub hash: Hash,
    /// What happened.
    pub what: What,
}

/// What a history event shows.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A property was changed: the whole of it, a part, or a slice of an array in it. [`Callbacks`](crate::Callbacks) tell
    /// these apart as scripts do.
    Changed {
        /// Index among the type's properties.
        property: MemberId,
        /// What was put where.
        change: Change,
        /// What was there before.
        replaced: Replaced,
    },
    /// A client method was called.
    Called {
        /// Index among the type's client methods.
        method: MemberId,
        /// Its arguments.
        args: Vec<Value>,
    },
}

/// Why a client does nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum EndReason {
    /// The log-in was refused.
    #[error("the log-in was refused: {0}")]
    LoginRefused(LoginRefusal),
    /// The base does not take the client.
    #[error("the base refused the client: {0}")]
    Rejected(Rejection),
    /// The connection was closed for good.
    #[error("the connection was closed: {0}")]
    Closed(CloseReason),
    /// The game left.
    #[error("the client left")]
    Left,
}

impl EndReason {
    /// Whether the account is played by another client, which logging in again would put out, or not get past.
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

/// What was heard, and what happened that players should not notice. Each counts from 0 in the client's life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames and datagrams that came from bases while playing.
    pub heard: u64,
    /// Their bytes, without the lengths of frames.
    pub heard_bytes: u64,
    /// Those of datagrams: of movements.
    pub moves_bytes: u64,
    /// Views begun anew because something was missing in them.
    pub holes: u64,
    /// Frames and datagrams of views that had ended.
    pub stale: u64,
    /// Frames and datagrams that could not be read.
    pub malformed: u64,
    /// Calls sent again.
    pub resent: u64,
    /// Times the session was resumed.
    pub resumed: u64,
    /// Bases that were left because they held a lower epoch.
    pub old_epochs: u64,
}
