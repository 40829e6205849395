//! Entities around a cell part, as behaviour reads them.

use std::collections::BTreeMap;

use annals_def::{EntityType, Value};
use annals_event::Place;
use annals_ids::{EntityId, Mailbox, MemberId, OwnerId, Part};

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
    /// A view of an entity with these properties, at a place; for tests of behaviour that reads one.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let schema = schema();
    /// # let monster = schema.type_named("Monster").expect("the world has monsters");
    /// let held = [(ids::MemberId(0), Value::Int(30))].into();
    /// let view = GhostView::new((EntityId(5), monster), (EAST, at(8.0, 0.0)), &held);
    /// assert_eq!(view.get("hp"), Some(&Value::Int(30)));
    /// ```
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

    /// A property that ghosts have; `None` for another, and for one that the type does not have.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// let seen = own.context.look_at(monster.entity).expect("it is 3 m away");
    /// assert_eq!(seen.get("hp"), Some(&Value::Int(30)));
    /// assert_eq!(seen.place.position.x, 8.0);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&'a Value> {
        let property = self.entity_type.property_named(name)?;
        let is_ghosted = property.distribution.to_ghosts();
        self.held.get(&property.index).filter(|_| is_ghosted)
    }

    /// Its storable address, for calls.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// let seen = own.context.look_at(monster.entity).expect("it is 3 m away");
    /// let mailbox = seen.mailbox(Part::Cell);
    /// monster::CellMailbox(mailbox).take_damage(own.context, 5)?;
    /// # Ok(()) });
    /// # scene.pass(300);
    /// # assert_eq!(scene.realm.read(scene.player, scene.monster.entity, "hp"), Some(25));
    /// ```
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
