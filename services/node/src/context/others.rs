//! Others around a cell part: who is where, and what can be read of them.
//!
//! What is read is no event: behaviour is never run again, and what it makes of it is recorded.

use annals_ids::EntityId;

use super::{Context, Denied};
use crate::{
    around::{Region, Shape},
    behaviour::GhostView,
};

/// Most entities that one question finds: whoever wants to know of more asks for a smaller part.
pub const FOUND_LIMIT: usize = 10_000;

impl Context<'_> {
    /// Who is within so many metres of this part, as the crow flies, but not itself (`entitiesInRange`): of that type, or of
    /// any, ascending.
    ///
    /// # Errors
    /// As for [`entities_in`](Self::entities_in).
    pub fn entities_in_range(&self, metres: f32, entity_type: Option<&str>) -> Result<Vec<EntityId>, Denied> {
        let centre = self.place().map(|place| place.position);
        let centre = centre.ok_or(Denied::CellOnly { what: "look around" })?;
        self.entities_in(Shape::Ball { centre, metres }, entity_type)
    }

    /// Who is in a part of this part's space, but not itself: of that type, or of any, ascending. All that are real on this cell
    /// are known, and those on others up to the ghost distance; so anybody can ask for what is as near as `horizon` of the setting
    /// `spaces` says (radius and hysteresis, if it says nothing). After its cell was taken over it takes a second or two until
    /// those on others are known.
    ///
    /// # Errors
    /// When this is no cell part, there is no such type, a number is none, some of it lies farther away than others are known, or
    /// more than [`FOUND_LIMIT`] are there.
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

    /// What can be read of an entity, be it real here or a ghost: the same of both, which is what ghosts have. `None` if nothing is
    /// known of it on this cell.
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
