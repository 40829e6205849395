//! Movement control: who moves a cell part, and how fast its client may move it.

use annals_event::{Body, Driver, MovementControl};

use super::{Context, Denied};

impl Context<'_> {
    /// The part's driver (`controlledBy`), and its top speeds; `None` for a base part.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let control = own.context.movement_control().expect("a cell part has one");
    /// assert_eq!((control.driver, control.top_speed), (Driver::Client, 0.0));
    /// # Ok(()) });
    /// ```
    #[must_use]
    pub fn movement_control(&self) -> Option<MovementControl> {
        self.image().cell().map(|cell| cell.movement_control)
    }

    /// Sets who moves this part: its client if it has one, or only behaviour and controllers. A client that sends
    /// another place is corrected.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// // A cutscene: the client cannot move.
    /// own.context.set_driver(Driver::Server)?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part.
    pub fn set_driver(&mut self, driver: Driver) -> Result<(), Denied> {
        let movement_control = self.held_movement_control()?;
        self.set_movement_control(MovementControl {
            driver,
            ..movement_control
        })
    }

    /// Sets the top speed at which the client may move this part, and a separate vertical one if it is not to count
    /// with the rest, metres per second (`topSpeed`, `topSpeedY`); 0 is no limit. Faster moves of the client are
    /// rejected, and the client is moved back.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// // 6 m/s on the ground, and any speed in a fall.
    /// own.context.set_top_speed(6.0, 100.0)?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::Speed`] if a speed is not a number, negative or infinite.
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
