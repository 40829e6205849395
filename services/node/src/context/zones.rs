//! Zones: what authors have placed in the world.
//!
//! A zone is read from the definitions' folder when a process starts, and is not in the log. What is made from it is.

use std::sync::Arc;

use annals_def::{PlacedEntity, Zones};
use annals_event::Place;
use annals_ids::{MemberId, Part, SpaceId};

use super::{Context, Denied, Stored};
use crate::output::Request;

impl Context<'_> {
    /// The zones, for their user data objects (`BigWorld.userDataObjects`): an object is constant, every process has it,
    /// and references find it from anywhere.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let zones = own.context.zones();
    /// let camp = zones.get("valley").expect("the author has made it");
    /// let first = &camp.objects[0];
    /// // The same, by generated code, which also reads the properties:
    /// let first = waypoint::Waypoint::find(&zones, first.guid).expect("it is a waypoint");
    /// let next = waypoint::Waypoint::find(&zones, first.next).expect("the author has linked them");
    /// own.context.move_to_point(next.position, Gait::at(first.pace), 0)?;
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn zones(&self) -> Arc<Zones> {
        Arc::clone(self.cx.schema().zones())
    }

    /// Creates the entities of a zone in a space, in the order of its file, beginning with the one at position `from`
    /// (`fetchEntitiesFromChunks`). A base part creates those with a base part, each on this owner and with its cell part
    /// in the space; a cell part creates those without one. So both parts of the entity that manages a space load its
    /// zones, each once: in `created`, or in `cell_gained`.
    ///
    /// Returns the position of the first entity that was not created because one input may record only a few MiB;
    /// `None` after the last one. Continue from there with a timer.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let player = scene.player;
    /// # scene.on_cell(|own| {
    /// let rest = own.context.load_zone("valley", FIRST_SPACE, 0)?;
    /// assert_eq!(rest, None);
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.realm.seen(player, "Monster").len(), 3, "one was there, and two are in the zone");
    /// ```
    ///
    /// # Errors
    /// [`Denied::NoZone`] without such a zone; [`Denied::SpaceGone`] on a cell part, if the space is destroyed;
    /// [`Denied::NoIds`] if no entity id is left.
    pub fn load_zone(&mut self, name: &str, space: SpaceId, from: usize) -> Result<Option<usize>, Denied> {
        let zones = self.zones();
        let zone = zones.get(name).ok_or_else(|| Denied::NoZone { zone: name.into() })?;
        for (position, entity) in zone.entities.iter().enumerate().skip(from) {
            match self.create_placed(entity, space) {
                Ok(()) => {}
                // What was made so far leaves too little room. An entity that never fits is denied.
                Err(Denied::Spent { .. }) if position > from => return Ok(Some(position)),
                Err(denied) => return Err(denied),
            }
        }
        Ok(None)
    }

    /// Creates an entity of a zone, if it begins with a part like this one.
    fn create_placed(&mut self, entity: &PlacedEntity, space: SpaceId) -> Result<(), Denied> {
        let Some(entity_type) = self.cx.type_of(entity.type_id) else {
            return Ok(());
        };
        let begins_with = if entity.based { Part::Base } else { Part::Cell };
        if begins_with != self.part() {
            return Ok(());
        }
        let place = Place {
            space,
            position: entity.position,
            direction: entity.direction,
        };
        let is_of_base = |(member, _): &(MemberId, _)| {
            let property = entity_type.property(*member);
            property.is_some_and(|property| property.is_held_by(Part::Base))
        };
        let (of_base, of_cell) = entity.properties.iter().cloned().partition(is_of_base);
        if begins_with == Part::Cell {
            self.cx.create_cell_only(entity.type_id, place, of_cell, self.around)?;
            return Ok(());
        }
        let entity = self.cx.create_base(entity.type_id, of_base, Stored::default())?;
        self.request(Request::CreateCell {
            entity,
            place,
            properties: of_cell,
        })
    }
}
