//! What a core asks of its shell.

use annals_def::Value;
use annals_event::Place;
use annals_ids::{CallNumber, EntityId, Mailbox, MemberId, OwnerId, SessionId, TransferId};
use annals_wire::{bus::Envelope, client::CloseReason};
use thiserror::Error;

use crate::inquiry::Inquiry;

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
        /// The frame's body.
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
        reason: CloseReason,
    },
    /// A session was opened: the login service may tell the client.
    SessionOpened {
        /// Which request it answers.
        request: u64,
        /// The session, or why there is none.
        opened: Result<SessionId, NotOpened>,
    },
    /// An entity of the database lives here, or not: whoever asked may be told.
    Begun {
        /// Which request it answers.
        request: u64,
        /// The entity, or why there is none.
        begun: Result<Begun, NotOpened>,
    },
    /// An operator's order is in the log, or will not be: whoever asked may be told.
    Ordered {
        /// Which request it answers.
        request: u64,
        /// The order, or why there is none.
        ordered: Result<TransferId, NotOrdered>,
    },
    /// Ask the database on behalf of an entity.
    Inquire {
        /// Who waits.
        entity: EntityId,
        /// The number of its wait for [`crate::inquiry::DATABASE`].
        number: CallNumber,
        /// What is asked.
        inquiry: Inquiry,
    },
    /// Ask the director for a further block of entity ids.
    WantIds,
}

/// An entity of the database that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its base part.
    pub mailbox: Mailbox,
    /// Whether it lived before it was asked for.
    pub was_active: bool,
}

/// Why no session was opened, or no life begun. Display is for the operator; the client is told only that the realm is busy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotOpened {
    /// The check-out belongs to a life that has ended, or to an earlier holding of this owner. The stored entity is to be
    /// looked up and checked out anew.
    #[error("the check-out is out of date; check the entity out again")]
    Outdated,
    /// There is no room, or no entity id is left at this moment.
    #[error("the base has no room for another session; try another base, or again in a moment")]
    Full,
    /// What is stored does not fit the schema, or the type cannot have a client.
    #[error("what is stored does not fit the realm's definitions: {0}")]
    Unfit(String),
    /// Another client of the account is connected, and no second one is admitted. This one is for the client.
    #[error("another client of the account is connected, and the log-in asks for no replacement")]
    InUse,
}

/// Why an operator's order was not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotOrdered {
    /// Whose it is does not live here. It is to be looked for, and its life begun.
    #[error("the entity of the database does not live here; have it begin its life")]
    NotAlive,
    /// It does not know yet what it holds, or has as many orders waiting or as much recorded as it may.
    #[error("the entity takes no orders at this moment; ask again in a moment")]
    NotNow,
    /// Nothing of that kind is ever recorded.
    #[error("it is not recorded: {0}")]
    Refused(String),
}

/// What behaviour asks of its owner with [`Context::request`](crate::Context::request): done when the present call is over.
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
    /// End a cell part: asked by a base part its own, asked by a cell part as [`Request::Destroy`].
    DestroyCell {
        /// Which entity.
        entity: EntityId,
    },
    /// End an entity: asked by a base part one with a base part here, cell part first; asked by a cell part the cell part of
    /// any entity that is real here or has a ghost here.
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
        reason: CloseReason,
    },
    /// Put a cell entity at once somewhere else, in any space.
    Teleport {
        /// Which entity.
        entity: EntityId,
        /// Where to.
        place: Place,
    },
    /// Have a space be there again, if it is gone.
    OpenSpace {
        /// Who asks.
        entity: EntityId,
        /// Somewhere in it: whoever is responsible there opens it.
        place: Place,
    },
}

impl Request {
    /// Whom it concerns.
    #[must_use]
    pub fn entity(&self) -> EntityId {
        match self {
            Request::CreateCell { entity, .. }
            | Request::DestroyCell { entity }
            | Request::Destroy { entity }
            | Request::GiveClient { from: entity, .. }
            | Request::CloseClient { entity, .. }
            | Request::Teleport { entity, .. }
            | Request::OpenSpace { entity, .. } => *entity,
        }
    }
}
