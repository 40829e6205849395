//! What behaviour asks the database, and what it learns.
//!
//! An inquiry is a wait in the entity's state, as that for a reply is, so that each ends once: with an answer or, by its
//! deadline, without one. The inquiry itself is not kept: a process that is lost takes it along, and the deadline says so.
//! Asking again does no harm, as an inquiry changes nothing that another of its kind would change once more.

use annals_def::Value;
use annals_ids::{Address, BatchNumber, DatabaseId, Mailbox, OwnerId, TypeId};
use thiserror::Error;

/// Whom an entity waits for that waits for the database. No owner has this number.
pub const DATABASE: Address = Address::Owner(OwnerId(0));

/// Most entities that are named at once. Whoever wants more asks again for those behind the last.
pub const NAMED_AT_ONCE: usize = 64;

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Inquiry {
    /// Say when db has folded this batch of the asker's log, in which the entity was stored (`writeToDB`'s callback).
    Written {
        /// Which entity of the database.
        database: DatabaseId,
        /// Up to which batch.
        batch: BatchNumber,
    },
    /// The entities of a type that have this value in a property with an index (`lookUpBaseByName` and the like).
    Find {
        /// Of which type.
        type_id: TypeId,
        /// By which property.
        property: String,
        /// What it holds.
        value: Value,
        /// Only those behind this one.
        after: DatabaseId,
    },
    /// Let an entity of the database live, here or where it lives already (`createBaseFromDBID`, `createBaseFromDB`).
    Begin(Wanted),
}

/// Which entity of the database.
#[derive(Clone, Debug, PartialEq)]
pub enum Wanted {
    /// This one.
    Id(DatabaseId),
    /// The one of a type with this identifier.
    Named {
        /// Of which type.
        type_id: TypeId,
        /// Its identifier.
        identifier: Value,
    },
}

/// What comes of an inquiry.
#[derive(Clone, Debug, PartialEq)]
pub enum Learned {
    /// The entity is in the database as it was when it was stored.
    Written {
        /// Which it is.
        database: DatabaseId,
        /// The properties by which it is not found, because another entity has the value and only one may.
        taken: Vec<String>,
    },
    /// These have the value, in the order of their ids; [`NAMED_AT_ONCE`] of them if there may be more.
    Found(Vec<Known>),
    /// It lives.
    Begun {
        /// Which it is.
        database: DatabaseId,
        /// Its base part.
        mailbox: Mailbox,
        /// Whether it lived before it was asked for.
        was_active: bool,
    },
}

/// An entity of the database that was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Known {
    /// Which it is.
    pub database: DatabaseId,
    /// How it is.
    pub life: Life,
}

/// How an entity of the database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// It does not live.
    Offline,
    /// It is checked out, and its life has not begun yet or its beginning is not known to the database.
    Beginning,
    /// This is its base part.
    Active(Mailbox),
}

/// Why nothing is learned.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NotLearned {
    /// No answer came in time: ask again.
    #[error("the database did not answer in time; ask again")]
    Late,
    /// There is no such entity.
    #[error("there is no such entity in the database")]
    Absent,
    /// It cannot be answered as it is.
    #[error("the database cannot answer: {0}")]
    Refused(String),
}
