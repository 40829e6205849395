//! AoI settings of a cell part, where they differ from those of its space.
//!
//! They are part of the entity's state, independent of its client: they are handed over with the entity, and survive
//! the loss of its process.

use annals_event::{AreaOfInterest, Body, MANUAL_LIMIT, Sight, SightChange};
use annals_ids::EntityId;

use super::{Context, Denied};

impl Context<'_> {
    /// The AoI of this part, if one was set; else the space's setting applies.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.set_aoi_radius(50.0, 5.0)?;
    /// assert_eq!(own.context.aoi_radius().map(|area| area.radius), Some(50.0));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn aoi_radius(&self) -> Option<AreaOfInterest> {
        self.image().cell().and_then(|cell| cell.sight.area)
    }

    /// Sets the AoI of this part's client, metres (`setAoIRadius`): others enter the view at the radius, and leave it
    /// at radius plus hysteresis. The sum may not exceed the distance up to which others are known where the part
    /// stands; in a space where that is less, the AoI is cut to it.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.set_aoi_radius(50.0, 5.0)?;
    /// assert!(matches!(own.context.set_aoi_radius(5_000.0, 0.0), Err(Denied::Horizon { .. })));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::Distance`] if a distance is negative or not finite;
    /// [`Denied::Horizon`] if the sum is too large; [`Denied::NoMap`] before the owner has received the map.
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

    /// Resets the AoI to the space's setting.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.set_aoi_radius(50.0, 5.0)?;
    /// own.context.reset_aoi_radius()?;
    /// assert_eq!(own.context.aoi_radius(), None);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part.
    pub fn reset_aoi_radius(&mut self) -> Result<(), Denied> {
        let is_so = self.sight()?.area.is_none();
        self.change_sight(is_so, SightChange::Area(None))
    }

    /// Entities that this part's client sees anywhere in its space, ascending.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// own.context.add_to_manual_aoi(monster.entity)?;
    /// assert!(own.context.manual_aoi().eq([monster.entity]));
    /// # Ok(()) });
    /// ```
    pub fn manual_aoi(&self) -> impl Iterator<Item = EntityId> {
        let cell = self.image().cell();
        cell.into_iter().flat_map(|cell| cell.sight.manual.iter().copied())
    }

    /// Adds an entity to the manual AoI: the client sees it at any distance, as long as it is in the same space and
    /// known on this part's cell (`addToManualAoI`), which is certain up to the ghost distance, wherever the two move.
    /// Entities of types that are declared manual are seen only in this way, others in this way and by position.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// own.context.set_aoi_radius(1.0, 0.0)?;
    /// own.context.add_to_manual_aoi(monster.entity)?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.realm.seen(scene.player, "Monster"), [monster.entity]);
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::OwnView`] if the entity is this one; [`Denied::TooManyInView`] if
    /// the manual AoI has [`MANUAL_LIMIT`] entities.
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

    /// Removes an entity from the manual AoI (`removeFromManualAoI`): one whose type is declared manual leaves the
    /// view, any other stays in it while its position keeps it there. Has no effect on one that was not added; an
    /// entity that has ceased to exist has to be removed, too.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// own.context.add_to_manual_aoi(monster.entity)?;
    /// own.context.remove_from_manual_aoi(monster.entity)?;
    /// assert_eq!(own.context.manual_aoi().count(), 0);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part.
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
