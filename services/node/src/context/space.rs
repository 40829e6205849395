//! What a cell part reads of its space's data, and writes into it.
//!
//! All that is written is known to every cell of the space within a moment, and to every client whose entity is in it. Of two
//! that write under one key at once, the later one stays, by game time (rule S1).

use annals_event::{
    Body, Geometry, Image, Place, SPACE_KEYS, SPACE_VALUE_BYTES, SpaceData, SpaceEntry, Subject, TimeOfDay,
    space_data::{FIRST_GEOMETRY, FIRST_OWN_KEY, GEOMETRIES, TIME_OF_DAY},
};
use annals_ids::{EntityId, SpaceId};

use super::{Context, Denied};
use crate::{output::Request, owner_context::OwnerContext};

impl OwnerContext {
    /// What is held here of a space's data.
    #[must_use]
    pub fn space_data(&self, space: SpaceId) -> Option<&SpaceData> {
        self.state().spaces.get(&space)
    }

    /// Whether a space was destroyed and not opened again, as far as is known here.
    #[must_use]
    pub fn is_gone(&self, space: SpaceId) -> bool {
        self.space_data(space).is_some_and(SpaceData::is_gone)
    }

    /// Writes a value into a space's data, above all that is known here.
    ///
    /// # Errors
    /// When the input has recorded as much as one may.
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

    /// A space is gone, if it is there.
    ///
    /// # Errors
    /// When the input has recorded as much as one may.
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

    /// A space is open anew: whatever was written into it before is void, and whoever is in it is of an earlier life.
    ///
    /// # Errors
    /// When the input has recorded as much as one may.
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

    /// Takes an entry of a space's data, which changes what is held if it is newer.
    pub fn record_space_data(&mut self, space: SpaceId, entry: SpaceEntry) {
        self.record(Subject::Owner, false, Body::SpaceData { space, entry });
    }

    /// Whether a cell part that is real here came into its space in an earlier life of it than the one that is known: it has
    /// no business there any more.
    #[must_use]
    pub fn is_left_over(&self, entity: EntityId) -> bool {
        let cell = self.image(entity).and_then(Image::cell);
        cell.is_some_and(|cell| cell.life < Some(self.state().life(cell.place.space)))
    }
}

impl Context<'_> {
    /// What stands under a key in this part's space; nothing for a base part.
    #[must_use]
    pub fn space_data(&self, key: u16) -> Option<&[u8]> {
        self.known_data()?.get(key)
    }

    /// Writes a value under a key of the game's own, [`FIRST_OWN_KEY`] and up, into the data of this part's space
    /// (`setSpaceData`). An empty value is none.
    ///
    /// # Errors
    /// When this is no cell part, there is no such key, the value is too large, the space is gone, or the input has recorded as
    /// much as one may.
    pub fn set_space_data(&mut self, key: u16, value: Vec<u8>) -> Result<(), Denied> {
        if !(FIRST_OWN_KEY..SPACE_KEYS).contains(&key) {
            return Err(Denied::SpaceKey { key });
        }
        self.write_space_data(key, value)
    }

    /// Removes what stands under a key of the game's own (`delSpaceData`). That there is nothing is written also where nothing is
    /// known: another cell may have written something that is not heard here yet.
    ///
    /// # Errors
    /// As for [`set_space_data`](Self::set_space_data).
    pub fn remove_space_data(&mut self, key: u16) -> Result<(), Denied> {
        self.set_space_data(key, Vec::new())
    }

    /// The time of day in this part's space, seconds since midnight, if it was ever set (`spaceTimeOfDay`).
    #[must_use]
    pub fn time_of_day(&self) -> Option<f64> {
        Some(self.known_data()?.day()?.at(self.now()))
    }

    /// It is that time of day in this part's space, in seconds since midnight, and so many seconds of the day go by in one of
    /// game time (`setSpaceTimeOfDay`): 24 makes a day an hour long. It goes on while the realm does, whoever dies.
    ///
    /// # Errors
    /// When this is no cell part, a number is none, the space is gone, or the input has recorded as much as one may.
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

    /// What this part's space looks like: its pieces of geometry, each with its number, ascending.
    pub fn space_geometry(&self) -> impl Iterator<Item = (u8, Geometry)> {
        self.known_data().into_iter().flat_map(SpaceData::geometry)
    }

    /// A piece of geometry stands in this part's space under that number, below [`GEOMETRIES`]: a resource, which clients load,
    /// and where (`addSpaceGeometryMapping`). What stood there under the number before is gone.
    ///
    /// # Errors
    /// When this is no cell part, there is no such number, a coordinate is none, its path is too long, the space is gone, or
    /// the input has recorded as much as one may.
    pub fn add_space_geometry(&mut self, number: u8, geometry: &Geometry) -> Result<(), Denied> {
        if number >= GEOMETRIES || !geometry.is_sound() {
            return Err(Denied::Geometry);
        }
        self.write_space_data(FIRST_GEOMETRY + u16::from(number), geometry.to_value())
    }

    /// The piece of geometry under that number is there no more (`delSpaceGeometryMapping`).
    ///
    /// # Errors
    /// When this is no cell part, there is no such number, the space is gone, or the input has recorded as much as one may.
    pub fn remove_space_geometry(&mut self, number: u8) -> Result<(), Denied> {
        if number >= GEOMETRIES {
            return Err(Denied::Geometry);
        }
        self.write_space_data(FIRST_GEOMETRY + u16::from(number), Vec::new())
    }

    /// This part's space is gone (`destroySpace`): its data with it, and every entity in it is told
    /// [`space_gone`](crate::Behaviour::space_gone) and loses its cell part, this one too. Nobody comes into it any more, until
    /// it is [opened](Self::open_space) again.
    ///
    /// # Errors
    /// When this is no cell part, the space was opened anew since it came in, or the input has recorded as much as one may.
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

    /// The space at a place is open anew, be it gone or not: without any data, and whoever is still in it is told that it is gone.
    /// What this part then makes at that place finds it so (with which a game keeps a pool of spaces). It is asked once this
    /// call is over.
    ///
    /// # Errors
    /// When a coordinate is not a number.
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
        place.map(|place| place.space).ok_or(Denied::CellOnly {
            what: "have to do with a space",
        })
    }

    fn write_space_data(&mut self, key: u16, value: Vec<u8>) -> Result<(), Denied> {
        let space = self.own_space()?;
        if value.len() > SPACE_VALUE_BYTES {
            return Err(Denied::SpaceValue { bytes: value.len() });
        }
        if self.cx.is_gone(space) || self.is_left_over() {
            return Err(Denied::SpaceGone);
        }
        // What is so already is written as well: another cell may have written something else that is not heard here yet.
        self.cx.write_space_data(space, key, value)
    }
}
