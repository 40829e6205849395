//! Who says where a cell part goes, and how fast its client may move it.

use annals_event::{Body, Driver, Reins};

use super::{Context, Denied};

impl Context<'_> {
    /// Who says where this part goes (`controlledBy`), and its top speeds; `None` of a base part.
    #[must_use]
    pub fn reins(&self) -> Option<Reins> {
        self.image().cell().map(|cell| cell.reins)
    }

    /// Who says where this part goes from now on: its client if it has one, or nobody but behaviour and controllers. Its client
    /// is told where it stands when it says something else.
    ///
    /// # Errors
    /// When this is no cell part, or the input has recorded as much as one may.
    pub fn set_driver(&mut self, driver: Driver) -> Result<(), Denied> {
        let reins = self.reins_held()?;
        self.take_reins(Reins { driver, ..reins })
    }

    /// How fast its client may move this part, metres per second, and how fast up and down if that is not to count as the rest
    /// does (`topSpeed`, `topSpeedY`); 0 is no limit. What its client says beyond that does not happen, and the client is put
    /// back.
    ///
    /// # Errors
    /// When this is no cell part, a speed is none, or the input has recorded as much as one may.
    pub fn set_top_speed(&mut self, top_speed: f32, top_speed_y: f32) -> Result<(), Denied> {
        let reins = self.reins_held()?;
        self.take_reins(Reins {
            top_speed,
            top_speed_y,
            ..reins
        })
    }

    fn reins_held(&self) -> Result<Reins, Denied> {
        self.reins().ok_or(Denied::CellOnly { what: "be driven" })
    }

    fn take_reins(&mut self, reins: Reins) -> Result<(), Denied> {
        if !reins.is_sound() {
            return Err(Denied::Speed);
        }
        if self.reins() != Some(reins) {
            self.desk.needs(0)?;
            self.desk.record_for(self.entity, false, Body::Reined(reins));
        }
        Ok(())
    }
}
