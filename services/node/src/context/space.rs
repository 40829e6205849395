//! Space data: reading and writing the data of a cell part's space.
//!
//! Every write reaches every cell of the space, and every client whose entity is in it, within a moment. Of concurrent
//! writes to one key, the later one wins, by game time (rule S1).

use annals_event::{
    Body, Geometry, Image, Place, SPACE_KEYS, SPACE_VALUE_BYTES, SpaceData, SpaceEntry, Subject, TimeOfDay,
    space_data::{FIRST_GEOMETRY, FIRST_OWN_KEY, GEOMETRIES, TIME_OF_DAY},
};
use annals_ids::{EntityId, SpaceId};

use super::{Context, Denied};
use crate::{output::Request, owner_context::OwnerContext};

impl OwnerContext {
    /// This owner's copy of a space's data.
    #[must_use]
    pub fn space_data(&self, space: SpaceId) -> Option<&SpaceData> {
        self.state().spaces.get(&space)
    }

    /// Whether a space was destroyed and not opened again, as far as is known here.
    #[must_use]
    pub fn is_gone(&self, space: SpaceId) -> bool {
        self.space_data(space).is_some_and(SpaceData::is_gone)
    }

    /// Writes a value into a space's data, newer than all entries known here.
    ///
    /// # Errors
    /// If the input has reached its limit of recorded bytes.
    pub fn write_space_data(&mut self, space: SpaceId, key: u16, value: Vec<u8>) -> Result<(), Denied> {
        self.needs(value.len())?;
        let (now, by) = (self.now().world, self.owner());
        let version = match self.space_data(space) {
            Some(data) => data.next_version(key, now, by),
            None => SpaceData::default().next_version(key, now, by),
        };
        self.record_space_data(space, SpaceEntry { key, version, value });
        Ok(())
    }

    /// Destroys a space, unless it is destroyed already.
    ///
    /// # Errors
    /// If the input has reached its limit of recorded bytes.
    pub fn destroy_space(&mut self, space: SpaceId) -> Result<(), Denied> {
        self.needs(0)?;
        let by = self.owner();
        let entry = match self.space_data(space) {
            Some(data) => data.destroyed(by),
            None => SpaceData::default().destroyed(by),
        };
        entry.into_iter().for_each(|entry| self.record_space_data(space, entry));
        Ok(())
    }

    /// Opens a space again: all data written before is void, and entities in it belong to an earlier life of the space.
    ///
    /// # Errors
    /// If the input has reached its limit of recorded bytes.
    pub fn open_space(&mut self, space: SpaceId) -> Result<(), Denied> {
        self.needs(0)?;
        let (now, by) = (self.now().world, self.owner());
        let entry = match self.space_data(space) {
            Some(data) => data.opened(now, by),
            None => SpaceData::default().opened(now, by),
        };
        self.record_space_data(space, entry);
        Ok(())
    }

    /// Applies an entry of a space's data, if it is newer than the entry held.
    pub fn record_space_data(&mut self, space: SpaceId, entry: SpaceEntry) {
        self.record(Subject::Owner, false, Body::SpaceData { space, entry });
    }

    /// Whether a real cell part entered its space in an earlier life of the space than the known one: it has to leave.
    #[must_use]
    pub fn is_left_over(&self, entity: EntityId) -> bool {
        let cell = self.image(entity).and_then(Image::cell);
        cell.is_some_and(|cell| cell.life < Some(self.state().life(cell.place.space)))
    }
}

impl Context<'_> {
    /// The value of a key of this part's space; `None` for a base part.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// const DOOR: u16 = 256;
    /// own.context.set_space_data(DOOR, b"open".to_vec())?;
    /// assert_eq!(own.context.space_data(DOOR), Some(b"open".as_slice()));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn space_data(&self, key: u16) -> Option<&[u8]> {
        self.known_data()?.get(key)
    }

    /// Writes a value into the data of this part's space (`setSpaceData`), under a key of the game's own range:
    /// [`FIRST_OWN_KEY`] and up. An empty value counts as none.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// const DOOR: u16 = 256;
    /// own.context.set_space_data(DOOR, b"open".to_vec())?;
    /// assert!(matches!(own.context.set_space_data(1, Vec::new()), Err(Denied::SpaceKey { key: 1 })));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::SpaceKey`] if the key is not one of the game's;
    /// [`Denied::SpaceValue`] if the value has more than 4,096 bytes; [`Denied::SpaceGone`] if the space is destroyed.
    pub fn set_space_data(&mut self, key: u16, value: Vec<u8>) -> Result<(), Denied> {
        if !(FIRST_OWN_KEY..SPACE_KEYS).contains(&key) {
            return Err(Denied::SpaceKey { key });
        }
        self.write_space_data(key, value)
    }

    /// Removes the value of a key of the game's own range (`delSpaceData`). The removal is written even if no value is
    /// known here: another cell may have written one that has not arrived here yet.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// # own.context.set_space_data(256, b"open".to_vec())?;
    /// own.context.remove_space_data(256)?;
    /// assert_eq!(own.context.space_data(256), None);
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`set_space_data`](Self::set_space_data).
    pub fn remove_space_data(&mut self, key: u16) -> Result<(), Denied> {
        self.set_space_data(key, Vec::new())
    }

    /// The time of day in this part's space, seconds since midnight, if it was ever set (`spaceTimeOfDay`).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// assert_eq!(own.context.time_of_day(), None);
    /// own.context.set_time_of_day(43_200.0, 24.0)?;
    /// assert_eq!(own.context.time_of_day(), Some(43_200.0));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn time_of_day(&self) -> Option<f64> {
        Some(self.known_data()?.day()?.at(self.now()))
    }

    /// Sets the time of day in this part's space, seconds since midnight, and its rate, seconds of the day per second
    /// of game time (`setSpaceTimeOfDay`): 24 makes a day an hour long. It advances as long as the realm runs, across
    /// process failures.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// // Noon, and a day of one hour.
    /// own.context.set_time_of_day(43_200.0, 24.0)?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::TimeOfDay`] if a number is not finite; [`Denied::SpaceGone`] if
    /// the space is destroyed.
    pub fn set_time_of_day(&mut self, initial: f64, game_seconds_per_second: f64) -> Result<(), Denied> {
        let day = TimeOfDay {
            initial,
            rate: game_seconds_per_second,
            set: self.now(),
        };
        if !day.is_sound() {
            return Err(Denied::TimeOfDay);
        }
        self.write_space_data(TIME_OF_DAY, day.to_value())
    }

    /// The pieces of geometry of this part's space, each with its number, ascending.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// assert_eq!(own.context.space_geometry().count(), 0);
    /// # Ok(()) });
    /// ```
    pub fn space_geometry(&self) -> impl Iterator<Item = (u8, Geometry)> {
        self.known_data().into_iter().flat_map(SpaceData::geometry)
    }

    /// Sets the piece of geometry of this part's space with that number, below [`GEOMETRIES`]: a resource, which
    /// clients load, and its position (`addSpaceGeometryMapping`). It replaces a previous piece with the number.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let rows = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [100.0, 0.0, 0.0]];
    /// let castle = Geometry { path: "spaces/castle".to_owned(), transform: rows };
    /// own.context.add_space_geometry(0, &castle)?;
    /// assert!(own.context.space_geometry().eq([(0, castle)]));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::Geometry`] if the number or a coordinate is invalid;
    /// [`Denied::SpaceValue`] if its path is too long; [`Denied::SpaceGone`] if the space is destroyed.
    pub fn add_space_geometry(&mut self, number: u8, geometry: &Geometry) -> Result<(), Denied> {
        if number >= GEOMETRIES || !geometry.is_sound() {
            return Err(Denied::Geometry);
        }
        self.write_space_data(FIRST_GEOMETRY + u16::from(number), geometry.to_value())
    }

    /// Removes the piece of geometry with that number (`delSpaceGeometryMapping`).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.remove_space_geometry(0)?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`add_space_geometry`](Self::add_space_geometry).
    pub fn remove_space_geometry(&mut self, number: u8) -> Result<(), Denied> {
        if number >= GEOMETRIES {
            return Err(Denied::Geometry);
        }
        self.write_space_data(FIRST_GEOMETRY + u16::from(number), Vec::new())
    }

    /// Destroys this part's space (`destroySpace`) and its data. For every entity in it, including this one,
    /// [`space_gone`](crate::Behaviour::space_gone) is called and the cell part destroyed. No entity can enter the
    /// space until it is [opened](Self::open_space) again.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// own.context.destroy_space()?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert!(scene.called().contains(&"space_gone".to_owned()));
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::SpaceGone`] if the space was opened again since the part entered
    /// it.
    pub fn destroy_space(&mut self) -> Result<(), Denied> {
        let space = self.own_space()?;
        if self.cx.is_gone(space) {
            return Ok(());
        }
        if self.is_left_over() {
            return Err(Denied::SpaceGone);
        }
        self.cx.destroy_space(space)
    }

    /// Opens the space at a place again, whether it is destroyed or not: its data is cleared, and entities that are
    /// still in it are notified that it is gone. Cell parts that this part then creates at that place find it open
    /// ([`CreateCellInNewSpace`](crate::Request::CreateCellInNewSpace) does both for a space that nobody has). The
    /// request is made after this call.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| own.context.destroy_space());
    /// # scene.pass(1_000);
    /// # scene.realm.until("the client controls the base part", |realm| realm.players[0].core.controls().is_some());
    /// # scene.on_base(|own| {
    /// own.context.open_space(at(5.0, 0.0))?;
    /// avatar::BaseMailbox::of(own.context).create_cell(own.context, at(5.0, 0.0), avatar::NewCell::default())?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert!(scene.called().contains(&"cell_gained".to_owned()));
    /// ```
    ///
    /// # Errors
    /// [`Denied::Place`] if a coordinate is not finite. Later, [`request_denied`](crate::Behaviour::request_denied)
    /// gets [`Denied::NoSpace`] if there is no such space.
    pub fn open_space(&mut self, place: Place) -> Result<(), Denied> {
        let entity = self.entity();
        self.request(Request::OpenSpace { entity, place })
    }

    fn is_left_over(&self) -> bool {
        self.cx.is_left_over(self.entity())
    }

    fn known_data(&self) -> Option<&SpaceData> {
        self.cx.space_data(self.place()?.space)
    }

    fn own_space(&self) -> Result<SpaceId, Denied> {
        let place = self.place();
        place
            .map(|place| place.space)
            .ok_or(Denied::CellOnly { what: "access a space" })
    }

    fn write_space_data(&mut self, key: u16, value: Vec<u8>) -> Result<(), Denied> {
        let space = self.own_space()?;
        if value.len() > SPACE_VALUE_BYTES {
            return Err(Denied::SpaceValue { bytes: value.len() });
        }
        if self.cx.is_gone(space) || self.is_left_over() {
            return Err(Denied::SpaceGone);
        }
        // An unchanged value is written as well: another cell may have written a different one that has not arrived
        // here yet.
        self.cx.write_space_data(space, key, value)
    }
}
