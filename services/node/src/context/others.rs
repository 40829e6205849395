//! Spatial queries of a cell part: finding other entities, and reading them.
//!
//! Reads are not events: behaviour is never run again, and its effects are recorded.

use annals_ids::EntityId;

use super::{Context, Denied};
use crate::{
    around::{Region, Shape},
    ghost_view::GhostView,
};

/// Maximum entities that one query finds: to find more, query smaller regions.
pub const FOUND_LIMIT: usize = 10_000;

impl Context<'_> {
    /// Entities within a distance of this part in metres, except itself (`entitiesInRange`): of one type, or of any,
    /// ascending.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// let near = own.context.entities_in_range(10.0, Some("Monster"))?;
    /// assert_eq!(near, [monster.entity]);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`entities_in`](Self::entities_in).
    pub fn entities_in_range(&self, metres: f32, entity_type: Option<&str>) -> Result<Vec<EntityId>, Denied> {
        let centre = self.place().map(|place| place.position);
        let centre = centre.ok_or(Denied::CellOnly { what: "look around" })?;
        self.entities_in(Shape::Ball { centre, metres }, entity_type)
    }

    /// Entities in a region of this part's space, except itself: of one type, or of any, ascending. All entities that
    /// are real on this cell are known, and those on other cells up to the ghost distance. So any query within
    /// `horizon` of the setting `spaces` (by default radius plus hysteresis) succeeds. After a take-over of the cell it
    /// takes a second or two until the entities on others are known.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let centre = own.context.place().unwrap_or_default().position;
    /// let near = own.context.entities_in(Shape::Square { centre, metres: 5.0 }, None)?;
    /// assert_eq!(near.len(), 1);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::Unknown`] without such a type; [`Denied::Distance`] if a number
    /// is invalid; [`Denied::Beyond`] if some of the region lies farther away than others are known;
    /// [`Denied::TooManyFound`] if more than [`FOUND_LIMIT`] entities match; [`Denied::NoMap`] before the owner has
    /// received the map.
    pub fn entities_in(&self, shape: Shape, entity_type: Option<&str>) -> Result<Vec<EntityId>, Denied> {
        let space = self.place().map(|place| place.space);
        let space = space.ok_or(Denied::CellOnly { what: "look around" })?;
        if !shape.is_sound() {
            return Err(Denied::Distance);
        }
        let wanted = match entity_type {
            None => None,
            Some(name) => {
                let found = self.cx.schema().type_named(name);
                Some(
                    found
                        .ok_or_else(|| self.unknown(format!("entity type {name} beside it")))?
                        .id,
                )
            }
        };
        let mut found = Vec::new();
        self.around.find(self.cx, &Region { space, shape }, &mut found)?;
        found.retain(|entity| {
            let is_wanted = || {
                self.look_at(*entity)
                    .is_some_and(|seen| Some(seen.entity_type.id) == wanted)
            };
            *entity != self.entity && (wanted.is_none() || is_wanted())
        });
        if found.len() > FOUND_LIMIT {
            return Err(Denied::TooManyFound { found: found.len() });
        }
        Ok(found)
    }

    /// The readable properties of an entity: for a real one here and a ghost alike, those that ghosts have. `None` if
    /// the entity is not known on this cell.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// let seen = own.context.look_at(monster.entity).expect("it is 3 m away");
    /// assert_eq!(seen.get("hp"), Some(&Value::Int(30)));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn look_at(&self, entity: EntityId) -> Option<GhostView<'_>> {
        let Some(image) = self.cx.image(entity) else {
            return self.around.ghost(self.cx.schema(), entity);
        };
        Some(GhostView {
            entity,
            entity_type: self.cx.entity_type(entity)?,
            home: image.home,
            place: self.cx.place(entity)?,
            held: &image.properties,
        })
    }
}
