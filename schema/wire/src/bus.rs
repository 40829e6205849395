//! What owners tell each other. Nothing here is kept: whatever must survive is in a log, and the bus may lose, repeat,
//! delay and reorder all of it.

mod codec;

use annals_event::{Call, Event, Link, Place, SpaceEntry, SpaceVersions, Trace};
use annals_ids::{CallNumber, EntityId, Epoch, HistoryNumber, MemberId, OwnerId, SessionId, SpaceId, TypeId};

use annals_def::Value;

use crate::client::{CallRefusal, Known, Movements, volatile::Heard};

pub use codec::EnvelopeError;

/// A message and who sent it (rule E7).
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The sending owner.
    pub from: OwnerId,
    /// Under which holding it was sent. Receivers drop what comes from a lower one than they have seen.
    pub epoch: Epoch,
    /// What is said.
    pub message: Message,
}

/// What one owner says to another.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A numbered call (C1).
    Call(CallMessage),
    /// Calls up to this number were taken (C3). Goes to whoever holds the link's sending end.
    Took {
        /// Which link.
        link: Link,
        /// The highest number taken.
        upto: CallNumber,
    },
    /// Calls after this one are missing (C2).
    Gap {
        /// Which link.
        link: Link,
        /// The highest number taken.
        have: CallNumber,
    },
    /// The cell part is not here but, as far as this owner knows, there (C6).
    Moved {
        /// Which entity.
        entity: EntityId,
        /// Where.
        to: OwnerId,
    },
    /// The link's receiver does not exist any more; only its home says so (C6).
    Gone {
        /// Which link.
        link: Link,
    },
    /// A client's call was taken but not run.
    Refused {
        /// Which link.
        link: Link,
        /// Which call.
        number: CallNumber,
        /// Why.
        reason: CallRefusal,
    },
    /// Between cells: what keeps ghosts alike (V2).
    Ghost(GhostMessage),
    /// Between cells: what keeps copies of a space's data alike (S2).
    Space(SpaceId, SpaceMessage),
    /// Between a witness and the proxy of its client (V3).
    View(ViewMessage),
}

/// A call on its way.
#[derive(Clone, Debug, PartialEq)]
pub struct CallMessage {
    /// Which link.
    pub link: Link,
    /// The sender's home, so that it can be answered and called back.
    pub from_home: OwnerId,
    /// The receiver's home, so that it knows that it is the one to say [`Message::Gone`].
    pub to_home: OwnerId,
    /// Its number on the link.
    pub number: CallNumber,
    /// Which request it belongs to.
    pub trace: Trace,
    /// What is asked.
    pub call: Call,
}

/// All that a ghost is made of, at one history number.
#[derive(Clone, Debug, PartialEq)]
pub struct GhostImage {
    /// Its type.
    pub type_id: TypeId,
    /// Its home.
    pub home: OwnerId,
    /// Whose client's entity it is.
    pub session: Option<SessionId>,
    /// The history number that the image stands for.
    pub history: HistoryNumber,
    /// Where it is.
    pub place: Place,
    /// The properties that ghosts have.
    pub properties: Vec<(MemberId, Value)>,
}

/// What keeps ghosts alike.
#[derive(Clone, Debug, PartialEq)]
pub enum GhostMessage {
    /// Make this ghost, or replace it.
    Image {
        /// Which entity.
        entity: EntityId,
        /// What it is.
        image: Box<GhostImage>,
    },
    /// What happened to the real one: dense history events, property changes that ghosts do not hold taken out of their
    /// bodies by [`Shown::Hidden`].
    Events {
        /// Which entity.
        entity: EntityId,
        /// The history number before the first.
        after: HistoryNumber,
        /// In order.
        events: Vec<Shown>,
    },
    /// Where the real ones are; volatile.
    Moves(Vec<GhostMove>),
    /// The newest history numbers of all ghosts that the sender has there, once a second.
    Heads(Vec<(EntityId, HistoryNumber)>),
    /// A ghost lacks what follows this number; `None`: all of it.
    Ask {
        /// Which entity.
        entity: EntityId,
        /// The newest it has.
        have: Option<HistoryNumber>,
    },
}

/// Most bytes of values in one [`SpaceMessage::Entries`]: what is beyond that goes into another one.
pub const SPACE_MESSAGE_BYTES: usize = 64 << 10;

/// What keeps copies of a space's data alike.
#[derive(Clone, Debug, PartialEq)]
pub enum SpaceMessage {
    /// What the sender has, once a second to one other owner of the space in turn. Who has something newer sends it.
    Versions {
        /// Which versions.
        have: SpaceVersions,
        /// Whether it is the answer to such a message, and gets none.
        is_answer: bool,
    },
    /// What the receiver lacks, as far as is known; values of at most [`SPACE_MESSAGE_BYTES`].
    Entries(Vec<SpaceEntry>),
}

/// Where a real entity is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GhostMove {
    /// Which entity.
    pub entity: EntityId,
    /// Counts its movements, so that older ones are dropped.
    pub sequence: u64,
    /// Where.
    pub place: Place,
}

/// A history event as it leaves its owner.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// The receiver has no copy of what changed; only the number is told.
    Hidden,
    /// What happened.
    Event(Box<Event>),
}

/// Between a witness and the proxy of its client.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewMessage {
    /// Frames for the client's stream, encoded as `client` says, in the order of the view's numbers.
    Frames {
        /// Whose.
        session: SessionId,
        /// One encoded frame each.
        frames: Vec<Vec<u8>>,
    },
    /// A datagram for the client; volatile.
    Datagram {
        /// Whose.
        session: SessionId,
        /// The encoded datagram.
        bytes: Vec<u8>,
    },
    /// The client begins anew and names what it has (V3).
    Stamps {
        /// Which client.
        session: SessionId,
        /// The entity whose witness is meant.
        entity: EntityId,
        /// Counts the client's beginnings, so that frames of an earlier view are told apart.
        view: u64,
        /// What it has.
        known: Known,
        /// How it is told of movements.
        movements: Movements,
    },
    /// The client moved the entity it controls; volatile.
    Moved {
        /// Which client.
        session: SessionId,
        /// Which entity.
        entity: EntityId,
        /// Counts the client's movements.
        sequence: u64,
        /// Where to.
        place: Place,
    },
    /// The client says what it has read of movements; volatile.
    Heard {
        /// Which client.
        session: SessionId,
        /// The entity whose witness is meant.
        entity: EntityId,
        /// Of which view.
        view: u64,
        /// What it has read.
        heard: Heard,
    },
}
