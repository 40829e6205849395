//! Database queries of behaviour, and their results; also requests for entities on other owners, and registrations.
//!
//! A query is a wait in the entity's state, like the wait for a reply, so that each ends once: with an answer, or
//! without one at its deadline. The query itself is not stored: if the process is lost, so is the query, and the
//! deadline reports that. Retrying is harmless, because queries are idempotent.

use annals_def::Value;
use annals_ids::{Address, BatchNumber, CallNumber, DatabaseId, EntityId, Mailbox, MemberId, OwnerId, TypeId};
use thiserror::Error;

/// The address for which an entity waits when it waits for the database. No owner has this number.
pub const DATABASE: Address = Address::Owner(OwnerId(0));

/// Maximum entities in one result. To get more, query again for those after the last.
pub const NAMED_AT_ONCE: usize = 64;

/// A query.
#[derive(Clone, Debug, PartialEq)]
pub enum Inquiry {
    /// Report when db has folded this batch of the requester's log, in which the entity was stored (`writeToDB`'s
    /// callback).
    Written {
        /// The stored entity.
        database: DatabaseId,
        batch: BatchNumber,
    },
    /// Entities of a type that have this value in an indexed property (`lookUpBaseByName` and the like).
    Find {
        type_id: TypeId,
        property: String,
        value: Value,
        /// Only entities after this one.
        after: DatabaseId,
    },
    /// Activate a stored entity, here unless it is active elsewhere (`createBaseFromDBID`, `createBaseFromDB`).
    Begin(Wanted),
    /// Have the director name the base owner on which to create this entity (`createBaseAnywhere`). The answer is not
    /// for behaviour: the core calls that owner.
    Place(NewBase),
}

/// An entity with a base part that is to be created on another owner.
#[derive(Clone, Debug, PartialEq)]
pub struct NewBase {
    pub type_id: TypeId,
    /// Properties that differ from their defaults.
    pub properties: Vec<(MemberId, Value)>,
}

/// Names a stored entity.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// By its id.
    Id(DatabaseId),
    /// By a type and its identifier.
    Named { type_id: TypeId, identifier: Value },
}

/// The answer to [`Output::Inquire`](crate::Output::Inquire), for the entity that asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Answered {
    pub entity: EntityId,
    /// Number of its wait.
    pub number: CallNumber,
    pub answer: Answer,
}

/// An answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// The result, for behaviour.
    Result(Result<Learned, NotLearned>),
    /// To [`Inquiry::Place`]: the owner on which the entity is to be created.
    Place { on: OwnerId, new: NewBase },
}

/// Result of a query.
#[derive(Clone, Debug, PartialEq)]
pub enum Learned {
    /// The entity is in the database as it was when it was stored.
    Written {
        /// The stored entity.
        database: DatabaseId,
        /// Unique properties by which it is not found, because another entity has the value already.
        taken: Vec<String>,
    },
    /// Entities with the value, in the order of their ids; [`NAMED_AT_ONCE`] of them if there may be more.
    Found(Vec<Known>),
    /// The entity is active.
    Begun {
        /// The stored entity.
        database: DatabaseId,
        /// Its base part.
        mailbox: Mailbox,
        /// Whether it was active before the request.
        was_active: bool,
    },
    /// The entity was created, on another owner or on this one.
    Created {
        /// Its base part.
        mailbox: Mailbox,
    },
    /// The entity is registered as a global base.
    Registered {
        /// The key.
        key: String,
    },
}

/// A stored entity that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Its id.
    pub database: DatabaseId,
    /// Its activation state.
    pub life: Life,
}

/// Activation state of a stored entity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Not active.
    Offline,
    /// Checked out; its activation has not begun yet, or the database does not know of it.
    Beginning,
    /// Active; this is its base part.
    Active(Mailbox),
}

/// Why a query has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotLearned {
    /// No answer in time: retry.
    #[error("no answer arrived in time; ask again")]
    Late,
    /// There is no such entity.
    #[error("there is no such entity in the database")]
    Absent,
    /// Another entity is registered under the key.
    #[error("entity {} is registered under the key", .0.entity)]
    Taken(Mailbox),
    /// The query cannot be answered.
    #[error("it was refused: {0}")]
    Refused(String),
}
