//! Outputs of a core, carried out by its shell.

use std::ops::RangeInclusive;

use annals_def::Value;
use annals_event::Place;
use annals_ids::{
    CallNumber, Direction, EntityId, Mailbox, MemberId, OwnerId, Position, SessionId, SpaceId, TransferId,
};
use annals_wire::{
    bus::Envelope,
    client::{CloseReason, Rejection},
};
use thiserror::Error;

use crate::{download::Download, inquiry::Inquiry, outbound::OutboundCall};

/// A client's connection, as numbered by the shell that holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// An output that leaves through the gate.
#[derive(Clone, Debug, PartialEq)]
pub enum Output {
    /// Publish an envelope to an owner.
    Send {
        /// The receiver.
        to: OwnerId,
        envelope: Envelope,
    },
    /// Write a frame to a client's stream, in order.
    Frame {
        connection: ConnectionId,
        /// The frame's body.
        bytes: Vec<u8>,
    },
    /// Send a datagram to a client.
    Datagram {
        connection: ConnectionId,
        /// The encoded datagram.
        bytes: Vec<u8>,
    },
    /// Close a client's connection.
    Close {
        connection: ConnectionId,
        /// The reason, for the client.
        reason: CloseReason,
    },
    /// Answer a client's hello with this rejection, and close its connection.
    Reject {
        connection: ConnectionId,
        /// The reason, for the client.
        rejection: Rejection,
    },
    /// Result of opening a session: the login service may notify the client.
    SessionOpened {
        /// The request that it answers.
        request: u64,
        /// The session, or why there is none.
        opened: Result<SessionId, NotOpened>,
    },
    /// Result of activating a stored entity, for the requester.
    Begun {
        /// The request that it answers.
        request: u64,
        /// The entity, or why there is none.
        begun: Result<Begun, NotOpened>,
    },
    /// Result of recording an operator's order, for the requester.
    Ordered {
        /// The request that it answers.
        request: u64,
        /// The order, or why there is none.
        ordered: Result<TransferId, NotOrdered>,
    },
    /// Result of ending the sessions of a banned account, for the requester: none is left.
    SessionsEnded {
        /// The request that it answers.
        request: u64,
        /// How many were ended.
        ended: u32,
    },
    /// Query the database on behalf of an entity.
    Inquire {
        /// The waiting entity.
        entity: EntityId,
        /// Number of its wait for [`crate::inquiry::DATABASE`].
        number: CallNumber,
        /// The query.
        inquiry: Inquiry,
    },
    /// Perform an outbound call. It comes again until it is answered.
    Outbound(OutboundCall),
    /// Provide the content of a download to the role. It comes again if that takes long.
    Download(Download),
    /// Send a frame to a client in the background: the others do not wait for it.
    BackgroundFrame {
        connection: ConnectionId,
        /// The frame's body.
        bytes: Vec<u8>,
    },
    /// Request another block of entity ids from the director.
    WantIds,
}

/// A stored entity that is active.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Its base part.
    pub mailbox: Mailbox,
    /// Whether it was active before the request.
    pub was_active: bool,
}

/// The sessions of an owner, as the director counts them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Played {
    /// Their number, with and without a connection.
    pub sessions: u64,
    /// The newest one that was opened, whether it has ended or not; 0 if there was none.
    pub newest: SessionId,
}

/// Why no session was opened, or no entity activated. Display is for the operator; the client receives only that the
/// realm is busy.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotOpened {
    /// The check-out belongs to an activation that has ended, or to an earlier epoch of this owner. The stored entity
    /// has to be looked up and checked out again.
    #[error("the check-out is out of date; check the entity out again")]
    Outdated,
    /// The owner is full, or no entity id is left at this moment.
    #[error("the base has no room for another session; try another base, or again in a moment")]
    Full,
    /// The stored data does not fit the schema, or the type cannot have a client.
    #[error("the stored entity does not fit the realm's definitions: {0}")]
    Unfit(String),
    /// Another client of the account is connected, and the log-in asks for no replacement. The client receives this
    /// reason.
    #[error("another client of the account is connected, and the log-in asks for no replacement")]
    InUse,
    /// The account was banned while it logged in. The next log-in is answered with the reason.
    #[error("the account was banned a moment ago")]
    Banned,
    /// The realm is full, and the account has no session that the log-in could replace. The client waits.
    #[error("the realm is full, and the account has no session to replace")]
    NoSession,
}

/// Why an operator's order was not recorded.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotOrdered {
    /// The entity is not active here. It has to be looked up, and activated.
    #[error("the stored entity is not activated here; activate it first")]
    NotAlive,
    /// The entity's holdings are not known yet, or it has the maximum of waiting orders or of recorded bytes.
    #[error("the entity cannot accept orders at the moment; try again shortly")]
    NotNow,
    /// Such an order is never recorded.
    #[error("the order is not recorded: {0}")]
    Refused(String),
}

/// A request of behaviour to its owner, made with [`Context::request`](crate::Context::request): executed after the
/// present call.
///
/// ```
/// # use annals_reference::*;
/// # let mut scene = Scene::new();
/// # let account = scene.account;
/// # scene.on_base(move |own| {
/// // Back to the choice of an avatar: the account gets the client, and the avatar ends.
/// let avatar = own.context.entity();
/// own.context.request(Request::GiveClient { from: avatar, to: account })?;
/// own.context.request(Request::Destroy { entity: avatar })?;
/// # Ok(()) });
/// # scene.pass(1_000);
/// # assert!(scene.called().contains(&"cell_lost".to_owned()));
/// ```
///
/// ```
/// # use annals_reference::*;
/// # let mut scene = Scene::new();
/// # scene.on_base(|own| {
/// // A client that sends too much is disconnected.
/// let entity = own.context.entity();
/// own.context.request(Request::CloseClient { entity, reason: CloseReason::Ended })?;
/// # Ok(()) });
/// # scene.pass(1_000);
/// # assert!(scene.called().contains(&"client_lost".to_owned()));
/// ```
///
/// ```
/// # use annals_reference::*;
/// # let mut scene = Scene::new();
/// # scene.on_base(|own| {
/// // An arena, in a space of its own among those that the realm has for this.
/// let arena = hero::BaseMailbox::create(own.context, hero::NewBase::default())?;
/// let spaces = SpaceId(2)..=SpaceId(3);
/// let Place { position, direction, .. } = at(0.0, 0.0);
/// arena.create_cell_in_new_space(own.context, spaces, position, direction, hero::NewCell::default())?;
/// # Ok(()) });
/// # scene.pass(1_000);
/// # let arenas = scene.realm.count(&[WEST, EAST], "Hero");
/// # assert_eq!(arenas, 1);
/// # scene.on_base(|own| {
/// // Later, on any owner:
/// assert!(own.context.global_base(&space_key(SpaceId(2))).is_some());
/// # Ok(()) });
/// ```
///
/// ```
/// # use annals_reference::*;
/// # let mut scene = Scene::new();
/// # let monster = scene.monster;
/// # scene.on_base(move |own| {
/// // A companion that appears beside the monster.
/// let pet = hero::BaseMailbox::create(own.context, hero::NewBase::default())?;
/// pet.create_cell_near(own.context, monster, Position { x: 1.0, y: 0.0, z: 0.0 }, hero::NewCell::default())?;
/// # Ok(()) });
/// # scene.pass(1_000);
/// # assert_eq!(scene.realm.count(&[WEST, EAST], "Hero"), 1);
/// ```
///
/// ```
/// # use annals_reference::*;
/// # let mut scene = Scene::new();
/// # scene.on_cell(|own| {
/// // What a monster has found is to survive the realm.
/// let entity = own.context.entity();
/// own.context.request(Request::Store { entity })?;
/// # Ok(()) });
/// # scene.pass(1_000);
/// # let avatar = &scene.realm.state(BASE).entities[&scene.avatar];
/// # assert!(avatar.base().is_some_and(|base| base.database.0 != 0), "{avatar:?}");
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Request {
    /// Create the cell part of a base entity.
    CreateCell {
        entity: EntityId,
        place: Place,
        /// Cell properties that differ from their defaults.
        properties: Vec<(MemberId, Value)>,
    },
    /// Create the cell part of a base entity near the cell part of another entity, in its space and direction: at an offset
    /// from its place at the time of the lookup, metres.
    CreateCellNear {
        entity: EntityId,
        /// The other entity; either of its mailboxes.
        beside: Mailbox,
        offset: Position,
        /// Cell properties that differ from their defaults.
        properties: Vec<(MemberId, Value)>,
    },
    /// Create the cell part of a base entity in the lowest of these spaces that no other entity has claimed, as far as is
    /// known on its owner (`createInNewSpace`). The space is opened before, as by [`Request::OpenSpace`], and stays the entity's until that
    /// ends, or [deregisters](crate::Context::deregister_globally) its [`space_key`](crate::space_key).
    CreateCellInNewSpace {
        entity: EntityId,
        /// The spaces of which one is meant.
        spaces: RangeInclusive<SpaceId>,
        position: Position,
        direction: Direction,
        /// Cell properties that differ from their defaults.
        properties: Vec<(MemberId, Value)>,
    },
    /// Destroy a cell part: from a base part, its own; from a cell part, as [`Request::Destroy`].
    DestroyCell { entity: EntityId },
    /// Destroy an entity: from a base part, one with a base part here, cell part first; from a cell part, the cell part
    /// of any entity that is real here or has a ghost here.
    Destroy { entity: EntityId },
    /// Move a base entity's client to another entity with a base part, on this owner or another one. If that is on
    /// another owner, the client connects there, and keeps controlling this one until it is accepted there; a request to
    /// destroy this one is executed after that.
    GiveClient {
        /// The entity that has the client.
        from: EntityId,
        /// The entity that receives it; either of its mailboxes.
        to: Mailbox,
    },
    /// Close the connection of a base entity's client.
    CloseClient {
        /// The client's entity.
        entity: EntityId,
        /// The reason, for the client.
        reason: CloseReason,
    },
    /// Teleport a cell entity, to any space.
    Teleport {
        entity: EntityId,
        /// The destination.
        place: Place,
    },
    /// Call a client method of another entity on the client of this one alone, if that client sees it.
    InvokeFor {
        /// The entity whose client is meant.
        viewer: EntityId,
        /// The entity on which it is called.
        entity: EntityId,
        /// The method's name.
        method: String,
        args: Vec<Value>,
    },
    /// Register a base entity that waits for it as a global base.
    Register {
        entity: EntityId,
        /// The number of its wait.
        number: CallNumber,
        /// The key.
        key: String,
    },
    /// End a registration of a base entity as a global base.
    Deregister {
        entity: EntityId,
        /// The key.
        key: String,
    },
    /// From a cell part: store its entity (`writeToDB`), as [`Context::store`](crate::Context::store) does on the base
    /// part. What the cell part has recorded before is stored. If no id is left for a new stored entity, `request_denied` of
    /// the base part is called.
    Store { entity: EntityId },
    /// Open a space again, if it is destroyed.
    OpenSpace {
        /// The requesting entity.
        entity: EntityId,
        /// A position in it: the cell responsible for it opens the space.
        place: Place,
    },
}

impl Request {
    /// The entity that the request concerns.
    #[must_use]
    pub fn entity(&self) -> EntityId {
        match self {
            Request::CreateCell { entity, .. }
            | Request::CreateCellNear { entity, .. }
            | Request::CreateCellInNewSpace { entity, .. }
            | Request::DestroyCell { entity }
            | Request::Destroy { entity }
            | Request::GiveClient { from: entity, .. }
            | Request::CloseClient { entity, .. }
            | Request::Teleport { entity, .. }
            | Request::InvokeFor { viewer: entity, .. }
            | Request::Register { entity, .. }
            | Request::Deregister { entity, .. }
            | Request::Store { entity }
            | Request::OpenSpace { entity, .. } => *entity,
        }
    }
}
