//! What a game does: the one trait behind which every host of game code sits.

use std::collections::BTreeMap;

use annals_def::{EntityType, Replaced, Value};
use annals_event::{
    CallError, Link, Outcome, Place,
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

/// Who called, and where an answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The link the call came on.
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

/// What a method answers. One-way calls ignore it.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// These values, in the order of the definition.
    Return(Vec<Value>),
    /// An error, carried to the caller.
    Fail(CallError),
    /// Nothing yet: [`Context::answer`] will, with the same [`Caller`].
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

/// What became of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ControllerNews {
    /// It is where it was to go, and the controller is over (`onMove`).
    Arrived,
    /// It came by a place on its path, and goes on (`onMove` of a patrol).
    Passed {
        /// Which of the places.
        waypoint: u32,
    },
    /// It cannot go on and the controller is over (`onMoveFailure`): the entity that it went to is not known here any more, or
    /// is in another space; nobody is responsible for where it would go; or its steps are lost in rounding, so slow is it for
    /// how far away from the origin it is.
    Failed,
    /// It looks where it was to look, and the controller is over (`onTurn`).
    Turned,
    /// Somebody is in the trap (`onEnterTrap`).
    Entered {
        /// Who.
        who: EntityId,
    },
    /// Somebody is in the trap no more, or is no more at all (`onLeaveTrap`).
    Left {
        /// Who.
        who: EntityId,
    },
    /// What it rode on is no more, or in another space, and the controller is over.
    Unseated,
}

/// The base entity with which a realm begins.
#[derive(Clone, Debug, PartialEq)]
pub struct Bootstrap {
    /// Its type.
    pub type_id: TypeId,
    /// Properties of the base part that are not to have their defaults.
    pub properties: Vec<(MemberId, Value)>,
}

/// What can be read of another entity: of a ghost what is known of it on this cell, and of one that is real here the same.
#[derive(Clone, Copy, Debug)]
pub struct GhostView<'a> {
    /// Which entity.
    pub entity: EntityId,
    /// Its type.
    pub entity_type: &'a EntityType,
    /// Where it was heard to be last.
    pub place: Place,
    /// Its home.
    pub home: OwnerId,
    /// Its properties; there may be more among them than ghosts have.
    pub(crate) held: &'a BTreeMap<MemberId, Value>,
}

impl<'a> GhostView<'a> {
    /// Of a ghost that has these properties, at a place.
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

    /// Its storable address, by which it can be called.
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

/// Behaviour of all entity types of a game, on bases and cells alike; [`Context`] tells which entity and part is meant.
///
/// It need not be deterministic: what it did is in the log, and replay never runs it again. It keeps no state of its own
/// between calls, because that would not survive the process; what must last is in properties, timers and the notes of
/// awaited replies.
pub trait Behaviour: Send + Sync {
    /// What the realm begins with (`onBaseAppReady(isBootstrap)`): an entity that makes, once it is
    /// [created](Behaviour::created), whatever else is to be there before anybody comes. It is made when the world has its
    /// first cells, once in the realm's life: by then its `created` can ask for cell parts. A realm whose game had none gets
    /// it when a newer game has.
    fn bootstrap(&self) -> Option<Bootstrap> {
        None
    }

    /// The part has begun to exist.
    fn created(&self, _context: &mut Context<'_>) {}

    /// The part is back after its process was lost (`onRestore`).
    fn restored(&self, _context: &mut Context<'_>) {}

    /// The part is about to cease (`onDestroy`).
    fn destroyed(&self, _context: &mut Context<'_>) {}

    /// A method is called. Number and types of the arguments are those of the definition, and a client's right to call
    /// was checked.
    fn call(&self, context: &mut Context<'_>, method: MemberId, args: &[Value], caller: &Caller) -> Answer;

    /// An awaited reply has come, or will not.
    fn replied(&self, _context: &mut Context<'_>, _then: u32, _note: &[u8], _outcome: &Outcome) {}

    /// The database has answered what was asked with this `then` and `note`, or will not (base part).
    fn learned(&self, _context: &mut Context<'_>, _then: u32, _note: &[u8], _outcome: &Result<Learned, NotLearned>) {}

    /// A timer fired.
    fn timer(&self, _context: &mut Context<'_>, _timer: TimerId, _tag: u32) {}

    /// Something became of a controller with that tag (cell part): `onMove`, `onMoveFailure`, `onTurn`, `onEnterTrap`,
    /// `onLeaveTrap` and the like.
    fn controller(&self, _context: &mut Context<'_>, _controller: ControllerId, _tag: u32, _news: ControllerNews) {}

    /// The entity's client wants to move it there, and can: it is fast enough (cell part; the custom physics validator).
    /// Whether it happens; the client is put where the entity is if it does not, and where that is can be changed here.
    fn client_moves(&self, _context: &mut Context<'_>, _to: Place) -> bool {
        true
    }

    /// A client controls the entity from now on (base part).
    fn client_attached(&self, _context: &mut Context<'_>) {}

    /// The client is gone for good (`onClientDeath`, base part).
    fn client_lost(&self, _context: &mut Context<'_>) {}

    /// The entity has a cell part now (`onGetCell`, base part).
    fn cell_gained(&self, _context: &mut Context<'_>) {}

    /// The entity has no cell part any more (`onLoseCell`, base part).
    fn cell_lost(&self, _context: &mut Context<'_>) {}

    /// What the entity holds in the ledger is known from now on, with its open trades and what it has reserved for others
    /// (base part of an entity of the database, once in each life). [`Context::ledger`] has all of it.
    fn holdings_known(&self, _context: &mut Context<'_>) {}

    /// The ledger did something that concerns the entity: one of its orders was executed or refused, somebody gave it
    /// something, a trade of its changed or a deadline came (base part). [`Context::ledger`] is as it is after that; `order` is
    /// the order of this life that it answers.
    fn booked(&self, _context: &mut Context<'_>, _booking: &Booking, _order: Option<&Order>) {}

    /// The space in which the cell part is was destroyed (`onSpaceGone`), and the cell part ceases when this call is over, unless
    /// it asks to be put into another space: then it has until that is done or has failed.
    fn space_gone(&self, _context: &mut Context<'_>) {}

    /// A property of a ghost has changed; the ghost holds the new value already (`callableOnGhost`). `replaced` tells the
    /// whole property (`set_x`), a part (`setNested_x`) and a slice (`setSlice_x`) from one another, and what was there. It is
    /// called on every cell that has a ghost of the entity and never for the real one. A ghost that has missed events is told
    /// what is different, as a change of the whole property.
    fn ghost_changed(&self, _ghost: &GhostView<'_>, _property: MemberId, _replaced: &Replaced) {}

    /// The part is ready to serve (`onAppReady(isBootstrap)`): its owner has just been told how the spaces are divided, after
    /// the realm's start as after a take-over. Called for every part that is there then, with `is_bootstrap` on the base
    /// owner on which the realm begins.
    fn app_ready(&self, _context: &mut Context<'_>, _is_bootstrap: bool) {}

    /// The realm is about to stop (`onAppShuttingDown`): time to tell players, to end what takes long, and to begin nothing
    /// that does.
    fn app_shutting_down(&self, _context: &mut Context<'_>) {}

    /// The realm stops (`onAppShutDown(stage)`): 0 before clients are sent away, 1 before entities of the database are
    /// written, 2 after that and for the last time. What is changed at 2 is in the log, but not in the database.
    fn app_shut_down(&self, _context: &mut Context<'_>, _stage: u8) {}

    /// The cell part was put somewhere and stands there now (`onTeleport`, `onTeleportSuccess`); before, it was in space
    /// `before`, which may be another (`onEnteringSpace`). Wherever it was put: this is called on the cell that holds it then.
    fn teleported(&self, _context: &mut Context<'_>, _before: SpaceId) {}

    /// The cell part was not put where it was wanted (`onTeleportFailure`). It stands where it stood, and has all that it had.
    fn teleport_failed(&self, _context: &mut Context<'_>, _why: &TeleportFailed) {}

    /// Something that the part asked for with [`Context::request`] was not done, because of what has changed since it was
    /// asked for, or of what only its owner knows (`onGiveClientToFailure`). Unless a game does something about it, the
    /// process's log says so.
    fn request_denied(&self, context: &mut Context<'_>, _request: &Request, why: &Denied) {
        context.report(why.clone());
    }

    /// The receiver of one-way calls is gone; the newest of them may not have been taken.
    fn calls_lost(&self, _context: &mut Context<'_>, _to: Address) {}
}
