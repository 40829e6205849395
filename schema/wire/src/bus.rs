//! Messages between owners. They are not stored: whatever must survive is in a log, and the bus may lose, repeat, delay
//! and reorder all messages.

mod codec;

use annals_event::{
    Call, Driver, Event, GlobalEntry, GlobalScope, GlobalVersions, Link, Place, SpaceEntry, SpaceVersions, Trace,
};
use annals_ids::{CallNumber, EntityId, Epoch, Hash, HistoryNumber, MemberId, OwnerId, SessionId, SpaceId, TypeId};

use annals_def::Value;

use crate::client::{CallRefusal, Known, Movements, volatile::MovementAck};

pub use codec::{EnvelopeError, PacketBuilder};

/// A message and its sender (rule E7).
#[derive(Clone, Debug, PartialEq)]
pub struct Envelope {
    /// The sending owner.
    pub from: OwnerId,
    /// The epoch of the sender. Receivers drop messages of a lower epoch than they have seen.
    pub epoch: Epoch,
    pub message: Message,
}

/// Messages of one owner to another that arrive together, in the order in which they were sent.
#[derive(Debug)]
pub struct Packet {
    /// The sending owner.
    pub from: OwnerId,
    /// The epoch of the sender.
    pub epoch: Epoch,
    /// Whether the sender reads packets of several messages.
    pub reads_packets: bool,
    /// At least one; an error for each that is malformed or of an unknown kind.
    pub messages: Vec<Result<Message, EnvelopeError>>,
}

/// A message from one owner to another.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A numbered call (C1).
    Call(CallMessage),
    /// Calls up to this number were taken (C3). Sent to the holder of the link's sending end.
    Took {
        link: Link,
        /// The highest number taken.
        upto: CallNumber,
    },
    /// Calls after this one are missing (C2).
    Gap {
        link: Link,
        /// The highest number taken.
        have: CallNumber,
    },
    /// The cell part is not here but, as far as this owner knows, on that owner (C6).
    Moved {
        entity: EntityId,
        /// The owner of its cell part.
        to: OwnerId,
    },
    /// The link's receiver no longer exists; only its home sends this (C6).
    Gone { link: Link },
    /// A client's call was taken but not run.
    Refused {
        link: Link,
        /// The number of the call.
        number: CallNumber,
        reason: CallRefusal,
    },
    /// Between cells: keeps ghosts equal to their real entities (V2).
    Ghost(GhostMessage),
    /// Between cells: keeps copies of a space's data equal (S2).
    Space(SpaceId, SpaceMessage),
    /// Keeps copies of global data equal (R2).
    Global(GlobalScope, GlobalMessage),
    /// Between a witness and the proxy of its client (V3).
    View(ViewMessage),
}

/// A call in transit.
#[derive(Clone, Debug, PartialEq)]
pub struct CallMessage {
    pub link: Link,
    /// The sender's home, so that it can be answered and called back.
    pub from_home: OwnerId,
    /// The receiver's home; that owner knows from this that it is responsible for sending [`Message::Gone`].
    pub to_home: OwnerId,
    /// Its number on the link.
    pub number: CallNumber,
    /// Whether all earlier calls on the link are confirmed, so that the receiver waits for none of them (rule C2).
    pub is_oldest: bool,
    /// The request that it belongs to.
    pub trace: Trace,
    pub call: Call,
}

/// The whole state of a ghost, at one history number.
#[derive(Clone, Debug, PartialEq)]
pub struct GhostImage {
    pub type_id: TypeId,
    pub home: OwnerId,
    /// The session of the client whose entity it is.
    pub session: Option<SessionId>,
    /// The history number of the image.
    pub history: HistoryNumber,
    pub place: Place,
    /// Who moves the entity.
    pub driver: Driver,
    /// The properties that ghosts have.
    pub properties: Vec<(MemberId, Value)>,
}

/// Messages that keep ghosts equal to their real entities.
#[derive(Clone, Debug, PartialEq)]
pub enum GhostMessage {
    /// Create this ghost, or replace it.
    Image { entity: EntityId, image: Box<GhostImage> },
    /// Changes of the real entity: dense history events, in which property changes that ghosts do not hold are replaced
    /// by [`Shown::Hidden`].
    Events {
        entity: EntityId,
        /// The history number before the first.
        after: HistoryNumber,
        /// The events, in order.
        events: Vec<Shown>,
    },
    /// The places of real entities; volatile.
    Moves(Vec<GhostMove>),
    /// The newest history numbers of all ghosts that the sender has on the receiver, once a second.
    Heads(Vec<(EntityId, HistoryNumber)>),
    /// A ghost lacks the events after this number; `None`: the whole image.
    Ask {
        entity: EntityId,
        /// The newest history number it has.
        have: Option<HistoryNumber>,
    },
}

/// Maximum size of the values in one [`SpaceMessage::Entries`] (bytes); larger sets are split.
pub const SPACE_MESSAGE_BYTES: usize = 64 << 10;

/// Messages that keep copies of a space's data equal.
#[derive(Clone, Debug, PartialEq)]
pub enum SpaceMessage {
    /// The versions that the sender has, once a second to one other owner of the space in turn. A receiver with newer
    /// entries sends them.
    Versions {
        /// The versions.
        have: SpaceVersions,
        /// Whether it answers such a message; an answer is not answered.
        is_answer: bool,
    },
    /// Entries that the receiver lacks, as far as is known; values of at most [`SPACE_MESSAGE_BYTES`].
    Entries(Vec<SpaceEntry>),
}

/// Divides entries into as few runs as needed, each of at most `limit` bytes or of a single entry.
pub fn runs<T>(entries: &[T], limit: usize, length: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    let mut rest = entries;
    std::iter::from_fn(move || {
        let mut bytes = 0;
        let fit = rest.iter().take_while(|entry| {
            bytes += length(entry);
            bytes <= limit
        });
        let (run, after) = rest.split_at(fit.count().max(1).min(rest.len()));
        rest = after;
        (!run.is_empty()).then_some(run)
    })
}

/// Maximum size of the entries in one [`GlobalMessage::Entries`] (bytes); larger sets are split.
pub const GLOBAL_MESSAGE_BYTES: usize = 64 << 10;

/// Messages that keep copies of global data equal.
#[derive(Clone, Debug, PartialEq)]
pub enum GlobalMessage {
    /// The [digest](annals_event::GlobalData::digest) of what the sender holds, once a second to one other owner in turn.
    /// A receiver with another one answers with its versions.
    Digest(Hash),
    /// The versions that the sender has. A receiver with newer entries sends them.
    Versions {
        /// The versions.
        have: GlobalVersions,
        /// Whether it answers such a message; an answer is not answered.
        is_answer: bool,
    },
    /// Entries that the receiver lacks, as far as is known; at most [`GLOBAL_MESSAGE_BYTES`].
    Entries(Vec<GlobalEntry>),
}

/// The place of a real entity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GhostMove {
    pub entity: EntityId,
    /// Counts its movements, so that older ones are dropped.
    pub sequence: u64,
    pub place: Place,
}

/// A history event as it leaves its owner.
#[derive(Clone, Debug, PartialEq)]
pub enum Shown {
    /// The receiver has no copy of the changed property; only the number is sent.
    Hidden,
    Event(Box<Event>),
}

/// A movement of an entity by the client of another one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DrivenMovement {
    pub session: SessionId,
    /// The client's entity.
    pub driver: EntityId,
    /// The entity that was moved.
    pub driven: EntityId,
    /// The history number up to which the client was shown that entity when it moved it.
    pub upto: HistoryNumber,
    /// Counts the client's movements.
    pub sequence: u64,
    /// The new place; its space is not known to the client.
    pub place: Place,
}

/// Messages between a witness and the proxy of its client.
#[derive(Clone, Debug, PartialEq)]
pub enum ViewMessage {
    /// Frames for the client's stream, encoded as in `client`, in the order of the view's numbers.
    Frames {
        session: SessionId,
        /// One encoded frame each.
        frames: Vec<Vec<u8>>,
    },
    /// A datagram for the client; volatile.
    Datagram {
        session: SessionId,
        /// The encoded datagram.
        bytes: Vec<u8>,
    },
    /// The client restarts its view and lists what it has (V3).
    Stamps {
        session: SessionId,
        /// The entity whose witness is addressed.
        entity: EntityId,
        /// Counts the client's view restarts, to distinguish frames of earlier views.
        view: u64,
        /// What the client has.
        known: Known,
        /// How movements are encoded for it.
        movements: Movements,
    },
    /// The client moved the entity it controls; volatile.
    Moved {
        session: SessionId,
        entity: EntityId,
        /// Counts the client's movements.
        sequence: u64,
        /// The new place.
        place: Place,
    },
    /// The client moved another entity than its own, which it drives; volatile. The holder of the client's entity
    /// forwards it to the holder of the driven one.
    Drove(DrivenMovement),
    /// The client acknowledges movements that it has read; volatile.
    MovementAck {
        session: SessionId,
        /// The entity whose witness is addressed.
        entity: EntityId,
        view: u64,
        /// The acknowledgement.
        ack: MovementAck,
    },
}
