//! What the client of a cell part is shown of others, where that is not what the space says for everybody.
//!
//! It is part of the entity's state, whoever's client it has: it goes along when the entity is handed over, and is there when
//! its process was lost.

use annals_event::{AreaOfInterest, Body, MANUAL_LIMIT, Sight, SightChange};
use annals_ids::EntityId;

use super::{Context, Denied};

impl Context<'_> {
    /// How far this part's client sees, if that was set; else it is as far as the space says.
    #[must_use]
    pub fn aoi_radius(&self) -> Option<AreaOfInterest> {
        self.image().cell().and_then(|cell| cell.sight.area)
    }

    /// How far this part's client sees from now on, metres (`setAoIRadius`): others come into view at the radius, and leave it
    /// so much further out. Together they reach no farther than others are known of where it stands; should it come into a space
    /// where less is known, it sees no farther than that there.
    ///
    /// # Errors
    /// When this is no cell part, a distance is none or reaches too far, or the input has recorded as much as one may.
    pub fn set_aoi_radius(&mut self, radius: f32, hysteresis: f32) -> Result<(), Denied> {
        let area = AreaOfInterest { radius, hysteresis };
        let sight = self.sight()?;
        if !area.is_sound() {
            return Err(Denied::Distance);
        }
        let space = self.place().map(|place| place.space);
        let horizon = space
            .and_then(|space| self.around.horizon(space))
            .ok_or(Denied::NoMap)?;
        if area.reach() > horizon {
            let reach = area.reach();
            return Err(Denied::Horizon { reach, horizon });
        }
        let is_so = sight.area == Some(area);
        self.change_sight(is_so, SightChange::Area(Some(area)))
    }

    /// This part's client sees as far as the space says again.
    ///
    /// # Errors
    /// When this is no cell part, or the input has recorded as much as one may.
    pub fn reset_aoi_radius(&mut self) -> Result<(), Denied> {
        let is_so = self.sight()?.area.is_none();
        self.change_sight(is_so, SightChange::Area(None))
    }

    /// Whom this part's client sees wherever in its space they are, ascending.
    pub fn manual_aoi(&self) -> impl Iterator<Item = EntityId> {
        let cell = self.image().cell();
        cell.into_iter().flat_map(|cell| cell.sight.manual.iter().copied())
    }

    /// This part's client sees an entity from now on wherever it is, as long as it is in the same space and known on this
    /// part's cell (`addToManualAoI`): that is up to the ghost distance for certain, wherever the two go. Entities of types that
    /// are declared manual are seen like this alone, others like this as well as by where they are.
    ///
    /// # Errors
    /// When this is no cell part, it is this entity itself, there are too many already, or the input has recorded as much as
    /// one may.
    pub fn add_to_manual_aoi(&mut self, entity: EntityId) -> Result<(), Denied> {
        let sight = self.sight()?;
        if entity == self.entity {
            return Err(Denied::OwnView);
        }
        let is_so = sight.manual.contains(&entity);
        if !is_so && sight.manual.len() >= MANUAL_LIMIT {
            return Err(Denied::TooManyInView);
        }
        self.change_sight(is_so, SightChange::Added(entity))
    }

    /// This part's client sees an entity no more than others (`removeFromManualAoI`): one whose type is declared manual leaves
    /// its view, any other one stays in it for as long as it is where it would stay. One that was not added is none to remove;
    /// one that is no more has to be removed, too.
    ///
    /// # Errors
    /// When this is no cell part, or the input has recorded as much as one may.
    pub fn remove_from_manual_aoi(&mut self, entity: EntityId) -> Result<(), Denied> {
        let is_so = !self.sight()?.manual.contains(&entity);
        self.change_sight(is_so, SightChange::Removed(entity))
    }

    fn sight(&self) -> Result<&Sight, Denied> {
        let cell = self.image().cell();
        cell.map(|cell| &cell.sight)
            .ok_or(Denied::CellOnly { what: "see others" })
    }

    fn change_sight(&mut self, is_so: bool, change: SightChange) -> Result<(), Denied> {
        if !is_so {
            self.cx.needs(0)?;
            self.cx.record_for(self.entity, false, Body::Sighted(change));
        }
        Ok(())
    }
}
