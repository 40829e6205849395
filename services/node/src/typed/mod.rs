//! What code generated from a schema stands on: properties, calls and answers as Rust types.
//!
//! Responsible for the few things that generated code calls, so that what is generated is only what differs from one world
//! to another. Everything goes through [`Context`] and is checked there as for any behaviour; docs/generated-code.md shows
//! how it is used.

mod call;
mod component;
mod edit;
mod later;

use annals_def::{Path, Schema, Step, Value, typed::Typed};
use annals_event::{
    Outcome,
    ledger::{Booking, Order},
};
use annals_ids::{Address, ControllerId, MemberId, Part, SpaceId, TimerId, TypeId};
use thiserror::Error;

use crate::{
    behaviour::{ControllerNews, GhostView},
    context::{Context, Denied},
    inquiry::{Learned, NotLearned},
    output::Request,
    teleport::TeleportFailed,
};

pub use call::{Failure, Reply, Returned, Wait, answer, argument, arguments, no_method, returned};
pub use edit::{ArrayEdit, Editable, Spot, ValueEdit};
pub use later::Later;

/// Behaviour was written against another schema than the realm's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the game was generated from the schema {generated}, and the realm's is {found}: run `annals defs generate` on the realm's definitions and build the game again"
)]
pub struct OtherSchema {
    /// The fingerprint of the schema that the code was generated from.
    pub generated: String,
    /// That of the realm's.
    pub found: String,
}

/// What a part is told, beside calls: [`crate::Behaviour`] says when.
#[derive(Clone, Copy, Debug)]
pub enum Occasion<'a> {
    /// It has begun to exist.
    Created,
    /// It is back after its process was lost.
    Restored,
    /// It is about to cease.
    Destroyed,
    /// An awaited reply has come, or will not.
    Replied {
        /// What the entity wanted to be told.
        then: u32,
        /// What it wanted to remember.
        note: &'a [u8],
        /// What was answered.
        outcome: &'a Outcome,
    },
    /// The database has answered what it asked, or will not.
    Learned {
        /// What the entity wanted to be told.
        then: u32,
        /// What it wanted to remember.
        note: &'a [u8],
        /// What was answered.
        outcome: &'a Result<Learned, NotLearned>,
    },
    /// A timer fired.
    Timer {
        /// Which.
        timer: TimerId,
        /// What it was tagged with.
        tag: u32,
    },
    /// Something became of a controller of a cell part.
    Controller {
        /// Which.
        controller: ControllerId,
        /// What it was tagged with.
        tag: u32,
        /// What became of it.
        news: ControllerNews,
    },
    /// A cell part was put somewhere and stands there now.
    Teleported {
        /// In which space it was before.
        before: SpaceId,
    },
    /// A cell part was not put where it was wanted.
    TeleportFailed {
        /// Why.
        why: &'a TeleportFailed,
    },
    /// The space in which the cell part is was destroyed.
    SpaceGone,
    /// A client controls it from now on.
    ClientAttached,
    /// Its client is gone for good.
    ClientLost,
    /// It has a cell part now.
    CellGained,
    /// It has no cell part any more.
    CellLost,
    /// It is ready to serve.
    AppReady {
        /// Whether the realm begins on its owner.
        is_bootstrap: bool,
    },
    /// The realm is about to stop.
    AppShuttingDown,
    /// The realm stops.
    AppShutDown {
        /// 0 before clients are sent away, 1 before entities are written, 2 after that.
        stage: u8,
    },
    /// Something that it asked its owner for was not done.
    RequestDenied {
        /// What.
        request: &'a Request,
        /// Why.
        why: &'a Denied,
    },
    /// The receiver of one-way calls is gone.
    CallsLost {
        /// Which.
        to: Address,
    },
    /// What it holds in the ledger is known from now on.
    HoldingsKnown,
    /// The ledger did something that concerns it.
    Booked {
        /// What.
        booking: &'a Booking,
        /// The order of this life that it answers.
        order: Option<&'a Order>,
    },
}

impl<'a> Occasion<'a> {
    /// An awaited reply has come, or will not.
    #[must_use]
    pub fn replied(then: u32, note: &'a [u8], outcome: &'a Outcome) -> Self {
        Self::Replied { then, note, outcome }
    }

    /// Something became of a controller of a cell part.
    #[must_use]
    pub fn controller(controller: ControllerId, tag: u32, news: ControllerNews) -> Self {
        Self::Controller { controller, tag, news }
    }

    /// The database has answered what it asked, or will not.
    #[must_use]
    pub fn learned(then: u32, note: &'a [u8], outcome: &'a Result<Learned, NotLearned>) -> Self {
        Self::Learned { then, note, outcome }
    }
}

/// Whether code generated from the schema of this fingerprint can run on a realm with that schema.
///
/// # Errors
/// When it is another one.
pub fn check_schema(generated: &str, schema: &Schema) -> Result<(), OtherSchema> {
    let found = schema.fingerprint().to_string();
    if generated == found {
        return Ok(());
    }
    let generated = generated.to_owned();
    Err(OtherSchema { generated, found })
}

/// A property of a ghost; `None` if ghosts have none of this name.
#[must_use]
pub fn ghost_read<T: Typed>(ghost: &GhostView<'_>, name: &'static str) -> Option<T> {
    T::from_value(ghost.get(name)?).ok()
}

/// The steps of a path within a ghost's property as people name them.
#[must_use]
pub fn ghost_steps(ghost: &GhostView<'_>, property: MemberId, path: &Path) -> Vec<Step> {
    let property = ghost.entity_type.property(property);
    property
        .and_then(|property| path.steps(&property.data_type))
        .unwrap_or_default()
}

/// A property with which a part is to begin.
pub fn initial<T: Typed>(member: u16, value: Option<T>) -> Option<(MemberId, Value)> {
    value.map(|value| (MemberId(member), value.into_value()))
}

impl Context<'_> {
    /// A property that this part holds.
    ///
    /// # Errors
    /// When it holds none of this name, or one of another type.
    pub fn read<T: Typed>(&self, name: &'static str) -> Result<T, Denied> {
        let value = self.get(name)?;
        T::from_value(&value).map_err(|source| Denied::Mismatch {
            member: format!("{}.{name}", self.entity_type().name),
            source: Box::new(source),
        })
    }

    /// Assigns a property. An equal value changes nothing.
    ///
    /// # Errors
    /// As for [`Context::set`].
    pub fn write<T: Typed>(&mut self, name: &'static str, value: T) -> Result<(), Denied> {
        self.set_at(name, &Path::WHOLE, value.into_value())
    }

    /// A personal member; `None` if it was never set.
    ///
    /// # Errors
    /// As for [`Context::personal`], or when it is of another type.
    pub fn read_personal<T: Typed>(&self, name: &'static str) -> Result<Option<T>, Denied> {
        let Some(value) = self.personal(name)? else {
            return Ok(None);
        };
        T::from_value(&value).map(Some).map_err(|source| Denied::Mismatch {
            member: format!("{}.{name}", self.entity_type().name),
            source: Box::new(source),
        })
    }

    /// Seals a personal member and sets it.
    ///
    /// # Errors
    /// As for [`Context::set_personal`].
    pub fn write_personal<T: Typed>(&mut self, name: &'static str, value: T) -> Result<(), Denied> {
        self.set_personal(name, &value.into_value())
    }

    /// Whether this is such a part: whoever wraps a context in a part's own type asks first.
    ///
    /// # Errors
    /// When it is another one.
    pub fn expect_part(&self, type_id: TypeId, part: Part) -> Result<(), Denied> {
        let entity_type = self.entity_type();
        if entity_type.id == type_id && self.part() == part {
            return Ok(());
        }
        Err(Denied::Unknown {
            entity_type: format!("the {} part of {}", self.part(), entity_type.name),
            what: format!("member of the {part} part of type {type_id}"),
        })
    }
}
