//! Zones: what authors have placed in the world.
//!
//! A zone is read from the definitions' folder when a process starts, and is not in the log. What is made from it is.

use std::sync::Arc;

use annals_def::{PlacedEntity, Value, Zones};
use annals_event::Place;
use annals_ids::{MemberId, Part, SpaceId};

use super::{Context, Denied, Stored};
use crate::{journal::INPUT_LIMIT, output::Request};

/// Maximum entities that one call creates: each is a request, of which one input executes some thousands.
const LOADED_AT_ONCE: usize = 1_000;

/// About the bytes that they record, without what their own behaviour records when they begin.
const LOADED_BYTES: usize = INPUT_LIMIT / 4;

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
    /// # let all = waypoint::Waypoint::all_in(camp);
    /// # assert_eq!(all.iter().map(|one| one.sign.text.0.as_slice()).collect::<Vec<_>>(), [b"north".as_slice(), b""]);
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn zones(&self) -> Arc<Zones> {
        Arc::clone(self.cx.schema().zones())
    }

    /// Creates the entities of a zone in a space, in the order of its file, beginning with the one at position `from`
    /// (`fetchEntitiesFromChunks`). A base part creates those with a base part, each on this owner and with its cell part
    /// in the space; a cell part creates those without one. So both parts of the entity that manages a space load its
    /// zones. A zone that is loaded again is created again: load it in `created`, which is called once.
    ///
    /// Returns the position at which to continue, in a later call, such as that of a timer; `None` after the last entity.
    /// One call creates at most 1,000 entities, and fewer large ones, as one input may record only a few MiB.
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
    /// An error is about the entity at position `from`, and nothing was created: [`Denied::SpaceGone`] on a cell part, if
    /// the space is destroyed; [`Denied::TooLarge`] or [`Denied::Spent`], if it has too large values; [`Denied::NoIds`] if
    /// no entity id is left. [`Denied::NoZone`] without such a zone. On a base part, what prevents a cell part is notified
    /// to the new entity, by [`request_denied`](crate::Behaviour::request_denied).
    pub fn load_zone(&mut self, name: &str, space: SpaceId, from: usize) -> Result<Option<usize>, Denied> {
        let zones = self.zones();
        let zone = zones.get(name).ok_or_else(|| Denied::NoZone { zone: name.into() })?;
        let (mut count, mut bytes) = (0, 0);
        for (position, entity) in zone.entities.iter().enumerate().skip(from) {
            if self.cx.type_of(entity.type_id).is_none() || entity.based != (self.part() == Part::Base) {
                continue;
            }
            if count == LOADED_AT_ONCE || bytes > LOADED_BYTES {
                return Ok(Some(position));
            }
            match self.create_placed(entity, space) {
                Ok(recorded) => bytes += recorded,
                Err(denied) if position == from => return Err(denied),
                // The next call begins with it, and is denied.
                Err(_) => return Ok(Some(position)),
            }
            count += 1;
        }
        Ok(None)
    }

    /// Creates an entity of a zone; returns about how many bytes that records.
    fn create_placed(&mut self, entity: &PlacedEntity, space: SpaceId) -> Result<usize, Denied> {
        let &PlacedEntity { type_id, based, .. } = entity;
        let place = Place {
            space,
            position: entity.position,
            direction: entity.direction,
        };
        let entity_type = self.cx.type_of(type_id);
        let is_of_base = |(member, _): &(MemberId, Value)| {
            let property = entity_type.and_then(|found| found.property(*member));
            property.is_some_and(|property| property.is_held_by(Part::Base))
        };
        let (of_base, of_cell): (Vec<_>, Vec<_>) = entity.properties.iter().cloned().partition(is_of_base);
        let cell_bytes = self.cx.initial_bytes(type_id, Part::Cell, of_cell.clone())?;
        if !based {
            self.cx.create_cell_only(type_id, place, of_cell, self.around)?;
            return Ok(cell_bytes);
        }
        let base_bytes = self.cx.initial_bytes(type_id, Part::Base, of_base.clone())?;
        self.cx.needs(base_bytes + cell_bytes)?;
        let entity = self.cx.create_base(type_id, of_base, Stored::default())?;
        self.request(Request::CreateCell {
            entity,
            place,
            properties: of_cell,
        })?;
        Ok(base_bytes + cell_bytes)
    }
}
