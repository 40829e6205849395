//! Support for generated client code: entities in view as Rust types, and events from the perspective of one entity.

use annals_def::{
    Mismatch, Path, Replaced, Schema, Step, Value,
    typed::{Typed, members_of},
};
use annals_event::Outcome;
use annals_ids::{CallNumber, EntityId, Part, TypeId};
use thiserror::Error;

use crate::{
    calls::CallError,
    event::{Event, Showing, What},
    session::ClientCore,
};

/// Result of a call of an exposed method: its number, or why it was not made.
pub type Called = Result<CallNumber, CallError>;

/// The game was generated from definitions whose client interface differs from that of the client's definitions.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "the client's code was generated from client definitions {generated}, but the client has {found}: run `annals defs \
     generate` on the latter and rebuild the client"
)]
pub struct InterfaceMismatch {
    /// The fingerprint of the client interface of the definitions that the code was generated from.
    pub generated: String,
    /// The fingerprint of that of the client's definitions.
    pub found: String,
}

/// An event for an entity's client part.
#[derive(Clone, Debug)]
pub enum EntityEvent<'e> {
    /// It entered a view.
    Entered {
        /// The view.
        part: Part,
    },
    /// A client method was called.
    Called {
        /// Its client number.
        method: u16,
        /// Its arguments.
        args: &'e [Value],
    },
    /// A property was changed.
    Changed {
        /// Its client number.
        property: u16,
        /// The type of the entity.
        type_id: TypeId,
        /// What was replaced.
        change: Replaced,
    },
    /// A call of this client was answered.
    Answered {
        /// The part that was called.
        part: Part,
        /// The method's client number.
        method: u16,
        /// The number of the call.
        call: CallNumber,
        /// The returned values, or the error.
        outcome: &'e Outcome,
    },
}

impl EntityEvent<'_> {
    /// The steps of a path by their names; empty if the path is unknown or this is not a change.
    #[must_use]
    pub fn steps(&self, core: &ClientCore, path: &Path) -> Vec<Step> {
        let Self::Changed { property, type_id, .. } = self else {
            return Vec::new();
        };
        let steps = || {
            let entity_type = core.schema().entity_type(*type_id)?;
            let member = entity_type.client_properties().get(usize::from(*property))?;
            path.steps(&entity_type.property(*member)?.data_type)
        };
        steps().unwrap_or_default()
    }
}

/// Checks that code generated from definitions with this client interface can run on a client with this schema.
///
/// # Errors
/// When the schema has another client interface.
pub fn check_schema(generated: &str, schema: &Schema) -> Result<(), InterfaceMismatch> {
    let found = schema.client_fingerprint().to_string();
    if generated == found {
        return Ok(());
    }
    let generated = generated.to_owned();
    Err(InterfaceMismatch { generated, found })
}

/// Whether an entity is in view and of this type.
#[must_use]
pub fn is_of(core: &ClientCore, entity: EntityId, type_id: TypeId) -> bool {
    type_of(core, entity) == Some(type_id)
}

/// A property of an entity in view; `None` if no view shows it.
#[must_use]
pub fn read<T: Typed>(core: &ClientCore, entity: EntityId, name: &'static str) -> Option<T> {
    T::from_value(core.property(entity, name)?).ok()
}

/// The arguments of a client method, if their number is as declared.
///
/// # Errors
/// When there are more or fewer.
pub fn arguments<const N: usize>(args: &[Value]) -> Result<&[Value; N], Mismatch> {
    members_of(args)
}

/// The events of entities in view that an event of the client contains. Entities that have left since have none.
#[must_use]
pub fn entity_events<'e>(core: &ClientCore, event: &'e Event) -> Vec<(TypeId, EntityId, EntityEvent<'e>)> {
    match event {
        Event::Entered {
            part, entity, type_id, ..
        } => vec![(*type_id, *entity, EntityEvent::Entered { part: *part })],
        Event::Shown(Showing { entity, what, .. }) => {
            let found =
                type_of(core, *entity).and_then(|type_id| Some((type_id, *entity, shown(core, type_id, what)?)));
            found.into_iter().collect()
        }
        Event::Refreshed { entity, replaced, .. } => {
            let Some(type_id) = type_of(core, *entity) else {
                return Vec::new();
            };
            let changes = replaced.iter().filter_map(|(member, old)| {
                let property = core.schema().entity_type(type_id)?.property(*member)?.client_id?;
                let change = Replaced::Whole { old: old.clone() };
                let change = EntityEvent::Changed {
                    property,
                    type_id,
                    change,
                };
                Some((type_id, *entity, change))
            });
            changes.collect()
        }
        _ => Vec::new(),
    }
}

fn shown<'e>(core: &ClientCore, type_id: TypeId, what: &'e What) -> Option<EntityEvent<'e>> {
    let entity_type = core.schema().entity_type(type_id)?;
    Some(match what {
        What::Replied {
            part,
            call,
            method,
            outcome,
        } => EntityEvent::Answered {
            part: *part,
            method: entity_type.method_of(*part, *method)?.client_id?,
            call: *call,
            outcome,
        },
        What::Called { method, args } => EntityEvent::Called {
            method: entity_type.client_methods.get(usize::from(method.0))?.client_id?,
            args,
        },
        What::Changed { property, replaced, .. } => EntityEvent::Changed {
            property: entity_type.property(*property)?.client_id?,
            type_id,
            change: replaced.clone(),
        },
    })
}

fn type_of(core: &ClientCore, entity: EntityId) -> Option<TypeId> {
    let views = [Part::Cell, Part::Base].map(|part| core.view(part).entities().get(&entity));
    views.into_iter().flatten().next().map(|seen| seen.type_id)
}
