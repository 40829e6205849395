//! Support for code generated from a schema: properties, calls and answers as Rust types.
//!
//! Responsible for the operations that all generated code shares, so that the generated code itself contains only what
//! differs from world to world. Everything goes through [`Context`] and is checked there as for any behaviour;
//! docs/generated-code.md shows how it is used.

mod call;
mod component;
mod edit;
mod later;
mod recipients;

use annals_def::{Path, Schema, Step, Value, typed::Typed};
use annals_event::{
    GlobalScope, Outcome,
    ledger::{Booking, Order},
};
use annals_ids::{Address, ControllerId, MemberId, Part, SpaceId, TimerId, TypeId};
use thiserror::Error;

use crate::{
    behaviour::ControllerSignal,
    context::{Context, Denied},
    ghost_view::GhostView,
    inquiry::{Learned, NotLearned},
    output::Request,
    teleport::TeleportFailed,
};

pub use call::{Failure, Reply, Returned, Wait, answer, argument, arguments, no_method, returned};
pub use edit::{ArrayEdit, Editable, Spot, ValueEdit};
pub use later::Later;
pub use recipients::Recipients;

/// Behaviour was generated from another schema than the realm's.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the game was generated from schema {generated}, but the realm has {found}: run `annals defs generate` on the \
     realm's definitions and rebuild the game"
)]
pub struct OtherSchema {
    /// The fingerprint of the schema that the code was generated from.
    pub generated: String,
    /// The fingerprint of the realm's schema.
    pub found: String,
}

/// An event of a part, other than a call: [`crate::Behaviour`] says when each occurs.
#[derive(Clone, Copy, Debug)]
pub enum Occasion<'a> {
    /// The part was created.
    Created,
    /// The part was recovered after its process was lost.
    Restored,
    /// The part is about to be destroyed.
    Destroyed,
    /// An awaited reply has arrived, or has failed.
    Replied {
        /// The `then` of the wait.
        then: u32,
        /// The `note` of the wait.
        note: &'a [u8],
        /// The reply.
        outcome: &'a Outcome,
    },
    /// A database query was answered, or has failed.
    Learned {
        /// The `then` of the query.
        then: u32,
        /// The `note` of the query.
        note: &'a [u8],
        /// The result.
        outcome: &'a Result<Learned, NotLearned>,
    },
    /// A timer fired.
    Timer { timer: TimerId, tag: u32 },
    /// An event of a controller of a cell part.
    Controller {
        controller: ControllerId,
        tag: u32,
        /// The event.
        signal: ControllerSignal,
    },
    /// A cell part was teleported.
    Teleported {
        /// Its space before.
        before: SpaceId,
    },
    /// A teleport of a cell part failed.
    TeleportFailed {
        /// The reason.
        why: &'a TeleportFailed,
    },
    /// The cell part's space was destroyed.
    SpaceGone,
    /// A client controls the entity from now on.
    ClientAttached,
    /// The entity's client is gone for good.
    ClientLost,
    /// The entity has got a cell part.
    CellGained,
    /// The entity has lost its cell part.
    CellLost,
    /// Global data, or a registration, changed.
    GlobalChanged { scope: GlobalScope, key: &'a str },
    /// The part is ready to serve.
    AppReady {
        /// Whether its owner runs the realm's bootstrap.
        is_bootstrap: bool,
    },
    /// The realm is about to stop.
    AppShuttingDown,
    /// The realm stops.
    AppShutDown {
        /// 0 before clients are disconnected, 1 before entities are written, 2 after that.
        stage: u8,
    },
    /// A request of the part to its owner was denied.
    RequestDenied {
        request: &'a Request,
        /// The reason.
        why: &'a Denied,
    },
    /// The receiver of one-way calls is gone.
    CallsLost {
        /// The receiver.
        to: Address,
    },
    /// The entity's holdings in the ledger are known from now on.
    HoldingsKnown,
    /// The ledger processed something that concerns the entity.
    Booked {
        booking: &'a Booking,
        /// The order of this activation that it answers.
        order: Option<&'a Order>,
    },
}

impl<'a> Occasion<'a> {
    /// An awaited reply has arrived, or has failed.
    #[must_use]
    pub fn replied(then: u32, note: &'a [u8], outcome: &'a Outcome) -> Self {
        Self::Replied { then, note, outcome }
    }

    /// An event of a controller of a cell part.
    #[must_use]
    pub fn controller(controller: ControllerId, tag: u32, signal: ControllerSignal) -> Self {
        Self::Controller {
            controller,
            tag,
            signal,
        }
    }

    /// A database query was answered, or has failed.
    #[must_use]
    pub fn learned(then: u32, note: &'a [u8], outcome: &'a Result<Learned, NotLearned>) -> Self {
        Self::Learned { then, note, outcome }
    }
}

/// Checks that code generated from the schema with this fingerprint can run on a realm with that schema.
///
/// # Errors
/// If the schemas differ.
pub fn check_schema(generated: &str, schema: &Schema) -> Result<(), OtherSchema> {
    let found = schema.fingerprint().to_string();
    if generated == found {
        return Ok(());
    }
    let generated = generated.to_owned();
    Err(OtherSchema { generated, found })
}

/// Reads a property of a ghost; `None` if ghosts have none of this name.
#[must_use]
pub fn ghost_read<T: Typed>(ghost: &GhostView<'_>, name: &'static str) -> Option<T> {
    T::from_value(ghost.get(name)?).ok()
}

/// The steps of a path within a ghost's property, with their names.
#[must_use]
pub fn ghost_steps(ghost: &GhostView<'_>, property: MemberId, path: &Path) -> Vec<Step> {
    let property = ghost.entity_type.property(property);
    property
        .and_then(|property| path.steps(&property.data_type))
        .unwrap_or_default()
}

/// An initial property of a part.
pub fn initial<T: Typed>(member: u16, value: Option<T>) -> Option<(MemberId, Value)> {
    value.map(|value| (MemberId(member), value.into_value()))
}

impl Context<'_> {
    /// Reads a property that this part holds.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let hp: i32 = own.context.read("hp")?;
    /// assert_eq!(hp, 10);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::get`]; [`Denied::Mismatch`] if the property has another type.
    pub fn read<T: Typed>(&self, name: &'static str) -> Result<T, Denied> {
        let value = self.get(name)?;
        T::from_value(&value).map_err(|source| Denied::Mismatch {
            member: format!("{}.{name}", self.entity_type().name),
            source: Box::new(source),
        })
    }

    /// Assigns a property. An equal value changes nothing.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.write("hp", 7_i32)?;
    /// assert_eq!(own.hp()?, 7);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::set`].
    pub fn write<T: Typed>(&mut self, name: &'static str, value: T) -> Result<(), Denied> {
        self.set_at(name, &Path::WHOLE, value.into_value())
    }

    /// Reads a personal member; `None` if it was never set.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_account(|own| {
    /// own.context.write_personal("email", "ann@example.org".to_owned())?;
    /// let email: Option<String> = own.context.read_personal("email")?;
    /// assert_eq!(email.as_deref(), Some("ann@example.org"));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::personal`]; [`Denied::Mismatch`] if the member has another type.
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
    /// ```
    /// # use annals_reference::*;
    /// # on_account(|own| {
    /// own.context.write_personal("email", "ann@example.org".to_owned())?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::set_personal`].
    pub fn write_personal<T: Typed>(&mut self, name: &'static str, value: T) -> Result<(), Denied> {
        self.set_personal(name, &value.into_value())
    }

    /// Checks that this is the given part of the given type: called before a context is wrapped in a part's own type.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// assert!(own.context.expect_part(avatar::TYPE, Part::Cell).is_ok());
    /// assert!(own.context.expect_part(monster::TYPE, Part::Cell).is_err());
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::Unknown`] if it is another part.
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
