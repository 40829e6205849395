//! A game's callbacks for property changes: `set_x`, `setNested_x` and `setSlice_x` of the entities in view.
//!
//! A game registers callbacks by type and property, and passes every [`Event`] to [`Callbacks::dispatch`]. A change of
//! a part goes to the `nested` callback and one of a slice to the `slice` callback; without one, `set` is called
//! without an old value, since the whole was not replaced. Callbacks run after the change, when the view has the new
//! value, and in the order of the events.

use std::{collections::BTreeMap, ops::Range};

use annals_def::{DataType, Replaced, Schema, Step, Value};
use annals_ids::{EntityId, Part, SpaceId, TypeId};
use thiserror::Error;

use crate::{
    event::{Event, Showing},
    session::ClientCore,
    typed::{EntityEvent, entity_events},
    view::EntityView,
};

/// A callback that could never be called.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoSuchProperty {
    /// The definitions have no such type.
    #[error("the definitions have no entity type {entity_type}")]
    Type {
        /// The name given.
        entity_type: String,
    },
    /// The type has no such property.
    #[error("{entity_type} has no property {property}")]
    Property {
        entity_type: String,
        /// The name given.
        property: String,
    },
    /// No client is shown it.
    #[error("{entity_type}.{property} ({flag}) is not sent to clients")]
    Hidden {
        entity_type: String,
        property: String,
        /// Its distribution flag.
        flag: &'static str,
    },
    /// It has no parts that change separately.
    #[error("{entity_type}.{property} is {found}, whose parts and slices never change separately; register set")]
    NoParts {
        entity_type: String,
        property: String,
        /// Its type.
        found: String,
    },
}

/// A change of a property: which entity, and its present state in the view.
#[derive(Clone, Copy, Debug)]
pub struct Changed<'a> {
    /// The entity's id.
    pub entity: EntityId,
    /// The view.
    pub part: Part,
    /// The entity's state.
    pub seen: &'a EntityView,
}

type Set<G> = Box<dyn FnMut(&mut G, Changed<'_>, Option<&Value>)>;
type Nested<G> = Box<dyn FnMut(&mut G, Changed<'_>, &[Step], &Value)>;
type SpaceChanged<G> = Box<dyn FnMut(&mut G, SpaceId, u16, Option<&[u8]>)>;
type Slice<G> = Box<dyn FnMut(&mut G, Changed<'_>, &[Step], Range<u32>, &[Value])>;

/// The callbacks of one property.
struct Handlers<G> {
    data_type: DataType,
    set: Option<Set<G>>,
    nested: Option<Nested<G>>,
    slice: Option<Slice<G>>,
}

/// A game's callbacks. `G` is the state that callbacks work on.
pub struct Callbacks<G> {
    /// By type and the property's client number.
    handlers: BTreeMap<(TypeId, u16), Handlers<G>>,
    space: Option<SpaceChanged<G>>,
}

impl<G> Default for Callbacks<G> {
    fn default() -> Self {
        let (handlers, space) = (BTreeMap::new(), None);
        Self { handlers, space }
    }
}

impl<G> Callbacks<G> {
    /// Calls `set` when the property is replaced, with the old value; and, without one, when a part or a slice changes
    /// that has no callback of its own. A later callback replaces an earlier one.
    ///
    /// # Errors
    /// When there is no such property, or no client is shown it.
    pub fn set(
        &mut self,
        schema: &Schema,
        (entity_type, property): (&str, &str),
        set: impl FnMut(&mut G, Changed<'_>, Option<&Value>) + 'static,
    ) -> Result<(), NoSuchProperty> {
        self.handlers(schema, entity_type, property)?.set = Some(Box::new(set));
        Ok(())
    }

    /// Calls `nested` when a part of the property is replaced, with the path to it and the old value there.
    ///
    /// # Errors
    /// When there is no such property, no client is shown it, or it has no parts.
    pub fn nested(
        &mut self,
        schema: &Schema,
        (entity_type, property): (&str, &str),
        nested: impl FnMut(&mut G, Changed<'_>, &[Step], &Value) + 'static,
    ) -> Result<(), NoSuchProperty> {
        self.parts(schema, entity_type, property)?.nested = Some(Box::new(nested));
        Ok(())
    }

    /// Calls `slice` when elements of an array in the property are replaced, with the path to the array, the range of
    /// the new elements, and the old elements.
    ///
    /// # Errors
    /// When there is no such property, no client is shown it, or it has no parts.
    pub fn slice(
        &mut self,
        schema: &Schema,
        (entity_type, property): (&str, &str),
        slice: impl FnMut(&mut G, Changed<'_>, &[Step], Range<u32>, &[Value]) + 'static,
    ) -> Result<(), NoSuchProperty> {
        self.parts(schema, entity_type, property)?.slice = Some(Box::new(slice));
        Ok(())
    }

    /// Calls `changed` when the value of a key changes in the data of the client's own space, with the new value
    /// (`onSpaceData`), or without one when the key was removed.
    pub fn space_data(&mut self, changed: impl FnMut(&mut G, SpaceId, u16, Option<&[u8]>) + 'static) {
        self.space = Some(Box::new(changed));
    }

    /// Calls the callbacks of an event. None is called for an entity that has left the view since.
    pub fn dispatch(&mut self, game: &mut G, core: &ClientCore, event: &Event) {
        if let (Event::SpaceDataChanged { space, key, .. }, Some(changed)) = (event, &mut self.space)
            && let Some((_, data)) = core.view(Part::Cell).space().filter(|(now, _)| now == space)
        {
            changed(game, *space, *key, data.get(*key));
        }
        let (Event::Shown(Showing { part, .. }) | Event::Refreshed { part, .. }) = event else {
            return;
        };
        for (type_id, entity, event) in entity_events(core, event) {
            if let EntityEvent::Changed { property, change, .. } = event
                && let Some(seen) = core.view(*part).entities().get(&entity)
            {
                let part = *part;
                self.call(game, (type_id, property), Changed { entity, part, seen }, &change);
            }
        }
    }

    fn call(&mut self, game: &mut G, key: (TypeId, u16), changed: Changed<'_>, replaced: &Replaced) {
        let Some(handlers) = self.handlers.get_mut(&key) else {
            return;
        };
        let steps = |path: &annals_def::Path| path.steps(&handlers.data_type).unwrap_or_default();
        match (replaced, &mut handlers.nested, &mut handlers.slice) {
            (Replaced::Nested { path, old }, Some(nested), _) => nested(game, changed, &steps(path), old),
            (Replaced::Slice { path, range, old }, _, Some(slice)) => {
                slice(game, changed, &steps(path), range.clone(), old);
            }
            _ => {
                let old = match replaced {
                    Replaced::Whole { old } => Some(old),
                    Replaced::Nested { .. } | Replaced::Slice { .. } => None,
                };
                if let Some(set) = &mut handlers.set {
                    set(game, changed, old);
                }
            }
        }
    }

    fn handlers(
        &mut self,
        schema: &Schema,
        entity_type: &str,
        property: &str,
    ) -> Result<&mut Handlers<G>, NoSuchProperty> {
        let found = schema.type_named(entity_type);
        let found = found.ok_or_else(|| NoSuchProperty::Type {
            entity_type: entity_type.to_owned(),
        })?;
        let named = found.property_named(property);
        let named = named.ok_or_else(|| NoSuchProperty::Property {
            entity_type: entity_type.to_owned(),
            property: property.to_owned(),
        })?;
        let Some(client_id) = named.client_id else {
            return Err(NoSuchProperty::Hidden {
                entity_type: entity_type.to_owned(),
                property: property.to_owned(),
                flag: named.distribution.flag(),
            });
        };
        let handlers = self.handlers.entry((found.id, client_id));
        Ok(handlers.or_insert_with(|| Handlers {
            data_type: named.data_type.clone(),
            set: None,
            nested: None,
            slice: None,
        }))
    }

    /// As `handlers`, for a property that has parts.
    fn parts(
        &mut self,
        schema: &Schema,
        entity_type: &str,
        property: &str,
    ) -> Result<&mut Handlers<G>, NoSuchProperty> {
        let handlers = self.handlers(schema, entity_type, property)?;
        match &handlers.data_type {
            DataType::Array(_) | DataType::FixedDict(_) => Ok(handlers),
            other => Err(NoSuchProperty::NoParts {
                entity_type: entity_type.to_owned(),
                property: property.to_owned(),
                found: other.to_string(),
            }),
        }
    }
}
