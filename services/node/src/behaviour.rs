//! Game code: the trait behind which every host of game code sits.

use std::collections::BTreeMap;

use annals_def::{EntityType, Replaced, Value};
use annals_event::{
    CallError, GlobalScope, Link, Outcome, Place,
    ledger::{Booking, Order},
};
use annals_ids::{
    Address, CallNumber, ControllerId, EntityId, Mailbox, MemberId, OwnerId, Part, SessionId, SpaceId, TimerId, TypeId,
};

use crate::{
    context::{Context, Denied},
    inquiry::{Learned, NotLearned},
    output::Request,
    teleport::TeleportFailed,
};

/// The caller of a method, and the address for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The link on which the call came.
    pub link: Link,
    /// The caller's home.
    pub home: OwnerId,
    /// The call's number; 0 for a call within one owner, which needs none.
    pub number: CallNumber,
    /// Whether the caller waits for an answer.
    pub wants_reply: bool,
}

impl Caller {
    /// The client session, if a client called.
    #[must_use]
    pub fn client(&self) -> Option<SessionId> {
        match self.link.from {
            Address::Client(session) => Some(session),
            _ => None,
        }
    }
}

/// Result of a method call. One-way calls ignore it.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// These values, in the order of the definition.
    Return(Vec<Value>),
    /// An error, returned to the caller.
    Fail(CallError),
    /// No answer yet: the game calls [`Context::answer`] later, with the same [`Caller`].
    Later,
}

impl Answer {
    /// The answer of a method without return values.
    pub const DONE: Answer = Answer::Return(Vec::new());

    pub(crate) fn outcome(self) -> Option<Outcome> {
        match self {
            Answer::Return(values) => Some(Ok(values)),
            Answer::Fail(error) => Some(Err(error)),
            Answer::Later => None,
        }
    }
}

/// An event of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControllerSignal {
    /// The entity has arrived, and the controller has ended (`onMove`).
    Arrived,
    /// The entity has passed a waypoint, and goes on (`onMove` of a patrol).
    Passed {
        /// Index of the waypoint.
        waypoint: u32,
    },
    /// The entity cannot go on, and the controller has ended (`onMoveFailure`): the target entity is not known here any
    /// more, or is in another space; no cell is responsible for the next position; or the steps are lost in rounding,
    /// because the entity is too slow for its distance from the origin.
    Failed,
    /// The entity looks in the wanted direction, and the controller has ended (`onTurn`).
    Turned,
    /// An entity has entered the trap (`onEnterTrap`).
    Entered {
        /// The entity in the trap.
        who: EntityId,
    },
    /// An entity has left the trap, or has ceased to exist (`onLeaveTrap`).
    Left {
        /// The entity that left.
        who: EntityId,
    },
    /// The vehicle has ceased to exist or is in another space, and the controller has ended.
    Unseated,
}

/// The first base entity of a realm.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    pub type_id: TypeId,
    /// Properties of the base part that differ from their defaults.
    pub properties: Vec<(MemberId, Value)>,
}

/// Read access to another entity: to the properties of a ghost, or to the same ones of an entity that is real here.
#[derive(Clone, Copy, Debug)]
pub struct GhostView<'a> {
    pub entity: EntityId,
    pub entity_type: &'a EntityType,
    /// Its last known place.
    pub place: Place,
    pub home: OwnerId,
    /// Its properties; may include some that ghosts do not have.
    pub(crate) held: &'a BTreeMap<MemberId, Value>,
}

impl<'a> GhostView<'a> {
    /// A view of an entity with these properties, at a place.
    #[must_use]
    pub fn new(
        (entity, entity_type): (EntityId, &'a EntityType),
        (home, place): (OwnerId, Place),
        held: &'a BTreeMap<MemberId, Value>,
    ) -> Self {
        Self {
            entity,
            entity_type,
            place,
            home,
            held,
        }
    }

    /// A property that ghosts have.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        let property = self.entity_type.property_named(name)?;
        let is_ghosted = property.distribution.to_ghosts();
        self.held.get(&property.index).filter(|_| is_ghosted)
    }

    /// Its storable address, for calls.
    #[must_use]
    pub fn mailbox(&self, part: Part) -> Mailbox {
        Mailbox {
            entity: self.entity,
            home: self.home,
            type_id: self.entity_type.id,
            part,
        }
    }
}

/// Behaviour of all entity types of a game, on bases and cells alike; [`Context`] names the entity and part.
///
/// It need not be deterministic: its effects are in the log, and replay never runs it again. It must keep no state of
/// its own between calls, because that would be lost with the process; lasting state belongs in properties, timers and
/// the notes of awaited replies.
pub trait Behaviour: Send + Sync {
    /// The first entity of the realm (`onBaseAppReady(isBootstrap)`): once it is [created](Behaviour::created), it
    /// creates everything that must exist before the first player connects. It is created once in the realm's life,
    /// when the world has its first cells, so that its `created` can request cell parts. A realm whose game had none
    /// gets it when a newer game has one.
    fn bootstrap(&self) -> Option<Bootstrap> {
        None
    }

    /// The part was created.
    fn created(&self, _context: &mut Context<'_>) {}

    /// The part was recovered after its process was lost (`onRestore`).
    fn restored(&self, _context: &mut Context<'_>) {}

    /// The part is about to be destroyed (`onDestroy`).
    fn destroyed(&self, _context: &mut Context<'_>) {}

    /// A method is called. Number and types of the arguments match the definition, and a client's right to call was
    /// checked.
    fn call(&self, context: &mut Context<'_>, method: MemberId, args: &[Value], caller: &Caller) -> Answer;

    /// An awaited reply has arrived, or has failed.
    fn replied(&self, _context: &mut Context<'_>, _then: u32, _note: &[u8], _outcome: &Outcome) {}

    /// The database query with this `then` and `note` was answered, or has failed (base part).
    fn learned(&self, _context: &mut Context<'_>, _then: u32, _note: &[u8], _outcome: &Result<Learned, NotLearned>) {}

    /// A timer fired.
    fn timer(&self, _context: &mut Context<'_>, _timer: TimerId, _tag: u32) {}

    /// An event of a controller with that tag (cell part): `onMove`, `onMoveFailure`, `onTurn`, `onEnterTrap`,
    /// `onLeaveTrap` and the like.
    fn controller(&self, _context: &mut Context<'_>, _controller: ControllerId, _tag: u32, _signal: ControllerSignal) {}

    /// The entity's client wants to move it there, within its top speed (cell part; the custom physics validator).
    /// Returns whether to accept the move. If not, the client is moved back to the entity's place, which this method
    /// may change.
    fn client_moves(&self, _context: &mut Context<'_>, _to: Place) -> bool {
        true
    }

    /// A client controls the entity from now on (base part).
    fn client_attached(&self, _context: &mut Context<'_>) {}

    /// The client is gone for good (`onClientDeath`, base part).
    fn client_lost(&self, _context: &mut Context<'_>) {}

    /// The entity has got a cell part (`onGetCell`, base part).
    fn cell_gained(&self, _context: &mut Context<'_>) {}

    /// The entity has no cell part any more (`onLoseCell`, base part): it has ended, and all its calls are delivered; or
    /// the cell has denied its creation. From here on the next one may be requested.
    fn cell_lost(&self, _context: &mut Context<'_>) {}

    /// The entity's holdings in the ledger are known from now on, with its open trades and its reservations for others
    /// (base part of a stored entity, once in each activation). [`Context::ledger`] returns all of it.
    fn holdings_known(&self, _context: &mut Context<'_>) {}

    /// The ledger processed something that concerns the entity: one of its orders was executed or refused, it received
    /// a gift, one of its trades changed, or a deadline passed (base part). [`Context::ledger`] already includes the
    /// change; `order` is the order of this activation that it answers.
    fn booked(&self, _context: &mut Context<'_>, _booking: &Booking, _order: Option<&Order>) {}

    /// The cell part's space was destroyed (`onSpaceGone`). The cell part is destroyed after this call, unless it
    /// requests a teleport into another space: then it stays until that has succeeded, or is destroyed when it has
    /// failed.
    fn space_gone(&self, _context: &mut Context<'_>) {}

    /// A property of a ghost has changed; the ghost holds the new value already (`callableOnGhost`). `replaced`
    /// distinguishes the whole property (`set_x`), a part (`setNested_x`) and a slice (`setSlice_x`), and holds the old
    /// value. It is called on every cell that has a ghost of the entity and never for the real one. For a ghost that
    /// has missed events, the difference is reported as a change of the whole property.
    fn ghost_changed(&self, _ghost: &GhostView<'_>, _property: MemberId, _replaced: &Replaced) {}

    /// Whether [`global_changed`](Self::global_changed) is called for parts of this type. Let few entities follow, such
    /// as managers: each change calls each of them.
    fn follows_global_data(&self, _entity_type: TypeId) -> bool {
        false
    }

    /// A value of the global data, or a registration, was set or removed, here or on another owner (`onGlobalData`,
    /// `onDelGlobalData`, `onBaseAppData`, `onCellAppData` and the like): read it from the context. Called for the parts
    /// of types that [follow](Self::follows_global_data), in the input that records the change. Of several changes to a
    /// key in a short time, other owners may receive only the last.
    fn global_changed(&self, _context: &mut Context<'_>, _scope: GlobalScope, _key: &str) {}

    /// The part is ready to serve (`onAppReady(isBootstrap)`): its owner has just received the division of the spaces,
    /// after the realm's start as after a take-over. Called for every part present at that time, with `is_bootstrap` on
    /// the base owner that runs the realm's bootstrap.
    fn app_ready(&self, _context: &mut Context<'_>, _is_bootstrap: bool) {}

    /// The realm is about to stop (`onAppShuttingDown`): notify players, finish long work, and start none.
    fn app_shutting_down(&self, _context: &mut Context<'_>) {}

    /// The realm stops (`onAppShutDown(stage)`): 0 before clients are disconnected, 1 before stored entities are
    /// written, 2 after that and for the last time. Changes at stage 2 are in the log, but not in the database.
    fn app_shut_down(&self, _context: &mut Context<'_>, _stage: u8) {}

    /// The cell part was teleported and stands at its destination (`onTeleport`, `onTeleportSuccess`); before, it was
    /// in space `before`, which may be another (`onEnteringSpace`). This is called on the cell that holds it after the
    /// teleport.
    fn teleported(&self, _context: &mut Context<'_>, _before: SpaceId) {}

    /// A teleport failed (`onTeleportFailure`). The cell part stands where it stood, with its state unchanged.
    fn teleport_failed(&self, _context: &mut Context<'_>, _why: &TeleportFailed) {}

    /// A request that the part made with [`Context::request`] was denied, because of a change since it was made, or of
    /// something that only its owner knows (`onGiveClientToFailure`). By default, this is written to the process log.
    fn request_denied(&self, context: &mut Context<'_>, _request: &Request, why: &Denied) {
        context.report(why.clone());
    }

    /// The receiver of one-way calls is gone; the newest of them may not have been consumed.
    fn calls_lost(&self, _context: &mut Context<'_>, _to: Address) {}
}
