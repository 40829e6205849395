//! What a core asks of its shell.

use annals_def::Value;
use annals_event::Place;
use annals_ids::{EntityId, MemberId, OwnerId, SessionId};
use annals_wire::bus::Envelope;

/// A client's connection, as the shell that holds it counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// What leaves through the gate.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Publish this to an owner.
    Send {
        /// Which owner.
        to: OwnerId,
        /// What.
        envelope: Envelope,
    },
    /// Write this to a client's stream, in order.
    Frame {
        /// Which connection.
        connection: ConnectionId,
        /// The encoded frame.
        bytes: Vec<u8>,
    },
    /// Send this to a client as a datagram.
    Datagram {
        /// Which connection.
        connection: ConnectionId,
        /// The encoded datagram.
        bytes: Vec<u8>,
    },
    /// Close a client's connection.
    Close {
        /// Which connection.
        connection: ConnectionId,
        /// Why, for the client.
        reason: String,
    },
    /// A session was opened: the login service may tell the client.
    SessionOpened {
        /// Which request it answers.
        request: u64,
        /// The session, or why there is none.
        opened: Result<SessionId, String>,
    },
    /// Ask the director for a further block of entity ids.
    WantIds,
}

/// What behaviour asks of its role; done when the present call is over.
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Make the cell part of a base entity.
    CreateCell {
        /// Which entity.
        entity: EntityId,
        /// Where.
        place: Place,
        /// Cell properties that are not to have their defaults.
        properties: Vec<(MemberId, Value)>,
    },
    /// End the cell part of a base entity.
    DestroyCell {
        /// Which entity.
        entity: EntityId,
    },
    /// End an entity part that is real here.
    Destroy {
        /// Which entity.
        entity: EntityId,
    },
    /// Give a base entity's client to another base entity on this owner.
    GiveClient {
        /// Who has it.
        from: EntityId,
        /// Who is to have it.
        to: EntityId,
    },
    /// Close the connection of a base entity's client.
    CloseClient {
        /// Whose client.
        entity: EntityId,
        /// Why, for the client.
        reason: String,
    },
    /// Move a cell entity at once to a place in its space.
    Teleport {
        /// Which entity.
        entity: EntityId,
        /// Where to.
        place: Place,
    },
}
