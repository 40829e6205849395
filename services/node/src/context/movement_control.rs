//! Who says where a cell part goes, and how fast its client may move it.

use annals_event::{Body, Driver, MovementControl};

use super::{Context, Denied};

impl Context<'_> {
    /// Who says where this part goes (`controlledBy`), and its top speeds; `None` of a base part.
    #[must_use]
    pub fn movement_control(&self) -> Option<MovementControl> {
        self.image().cell().map(|cell| cell.movement_control)
    }

    /// Who says where this part goes from now on: its client if it has one, or nobody but behaviour and controllers. Its client
    /// is told where it stands when it says something else.
    ///
    /// # Errors
    /// When this is no cell part, or the input has recorded as much as one may.
    pub fn set_driver(&mut self, driver: Driver) -> Result<(), Denied> {
        let movement_control = self.held_movement_control()?;
        self.set_movement_control(MovementControl {
            driver,
            ..movement_control
        })
    }

    /// How fast its client may move this part, metres per second, and how fast up and down if that is not to count as the rest
    /// does (`topSpeed`, `topSpeedY`); 0 is no limit. What its client says beyond that does not happen, and the client is put
    /// back.
    ///
    /// # Errors
    /// When this is no cell part, a speed is none, or the input has recorded as much as one may.
    pub fn set_top_speed(&mut self, top_speed: f32, top_speed_y: f32) -> Result<(), Denied> {
        let movement_control = self.held_movement_control()?;
        self.set_movement_control(MovementControl {
            top_speed,
            top_speed_y,
            ..movement_control
        })
    }

    fn held_movement_control(&self) -> Result<MovementControl, Denied> {
        self.movement_control().ok_or(Denied::CellOnly { what: "be driven" })
    }

    fn set_movement_control(&mut self, movement_control: MovementControl) -> Result<(), Denied> {
        if !movement_control.is_sound() {
            return Err(Denied::Speed);
        }
        if self.movement_control() != Some(movement_control) {
            self.cx.needs(0)?;
            self.cx
                .record_for(self.entity, false, Body::ControlChanged(movement_control));
        }
        Ok(())
    }
}
