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

    /// Sets who moves this part (`controlledBy`): its client if it has one, only behaviour and controllers, or the
    /// client of another entity. Clients learn whether they move an entity; one that sends another place although it
    /// does not is corrected.
    ///
    /// The client of another entity moves this one while that entity has it in view. Otherwise nobody does: if the
    /// other entity ends or loses its client, behaviour chooses another driver.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// // A cutscene: the client cannot move.
    /// own.context.set_driver(Driver::Server)?;
    /// // A horse is ridden: the rider's client moves it.
    /// let rider = EntityId(700);
    /// own.context.set_driver(Driver::ClientOf(rider))?;
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part.
    pub fn set_driver(&mut self, driver: Driver) -> Result<(), Denied> {
        let movement_control = self.held_movement_control()?;
        let driver = match driver {
            Driver::ClientOf(entity) if entity == self.entity => Driver::Client,
            driver => driver,
        };
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
        let before = self.movement_control();
        if before != Some(movement_control) {
            self.cx.needs(0)?;
            // Ghosts and clients need to know the driver, and not the top speeds.
            let is_shown = before.is_some_and(|before| before.driver != movement_control.driver);
            self.cx
                .record_for(self.entity, is_shown, Body::ControlChanged(movement_control));
        }
        Ok(())
    }
}
