//! Controllers of a cell part: what moves it, or watches around it, at every tick until it is over.
//!
//! Each has a number, unique in the part's life, and a tag that is the game's own. What becomes of it is told to
//! [`Behaviour::controller`](crate::Behaviour::controller). It is part of the entity's state: it goes along when the entity
//! is handed over, and goes on from the last logged place when its process was lost.

use annals_event::{Body, CONTROLLERS, Class, Controller, ControllerEvent, Gait, Rounds, Seat, Task};
use annals_ids::{ControllerId, EntityId, Position};

use super::{Context, Denied};

impl Context<'_> {
    /// Goes straight to a place of its space (`moveToPoint`, `accelerateToPoint`).
    ///
    /// # Errors
    /// When this is no cell part, a number is none or no speed, or there are too many controllers.
    pub fn move_to_point(&mut self, to: Position, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        self.move_along(vec![to], gait, tag)
    }

    /// Goes from place to place (`accelerateAlongPath`).
    ///
    /// # Errors
    /// As for [`Context::move_to_point`], and when the path has no place, or more than a thousand.
    pub fn move_along(&mut self, path: Vec<Position>, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        self.follow(path, Rounds::Once, gait, tag)
    }

    /// Goes from place to place, and from the last to the first again, without end (`patrol`).
    ///
    /// # Errors
    /// As for [`Context::move_along`].
    pub fn patrol(&mut self, path: Vec<Position>, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        self.follow(path, Rounds::Endless, gait, tag)
    }

    /// Goes to where another entity of its space is, wherever that goes, until it is within so many metres of it
    /// (`moveToEntity`). It fails when there is nothing known of the other here any more.
    ///
    /// # Errors
    /// As for [`Context::move_to_point`].
    pub fn move_to_entity(
        &mut self,
        target: EntityId,
        within: f32,
        gait: Gait,
        tag: u32,
    ) -> Result<ControllerId, Denied> {
        self.control(Task::Chase { target, within, gait }, tag)
    }

    /// Turns until it looks in a direction, by so many radians per second (`addYawRotator`).
    ///
    /// # Errors
    /// As for [`Context::move_to_point`].
    pub fn turn_to(&mut self, yaw: f32, rate: f32, tag: u32) -> Result<ControllerId, Denied> {
        self.control(Task::Turn { yaw, rate }, tag)
    }

    /// Watches who comes into the square of so many metres to each side, and who leaves it (`addProximity`). Who is there
    /// already comes in at the next tick. It sees no farther than ghosts are.
    ///
    /// # Errors
    /// As for [`Context::move_to_point`].
    pub fn add_proximity(&mut self, range: f32, tag: u32) -> Result<ControllerId, Denied> {
        let inside = std::collections::BTreeSet::new();
        self.control(Task::Watch { range, inside }, tag)
    }

    /// Goes where another entity goes, in this place on it, until it alights or the other is no more (`boardVehicle`).
    /// Meanwhile what its client says of where it is does not last: it stands where it sits.
    ///
    /// # Errors
    /// As for [`Context::move_to_point`], and when the vehicle is this entity, or is known to ride itself.
    pub fn board(&mut self, vehicle: EntityId, seat: Seat, tag: u32) -> Result<ControllerId, Denied> {
        let rides = self
            .desk
            .image(vehicle)
            .and_then(|image| image.cell())
            .is_some_and(|cell| {
                let mut running = cell.controllers.iter();
                running.any(|(_, running)| matches!(running.task, Task::Ride { .. }))
            });
        if vehicle == self.entity || rides {
            return Err(Denied::Controller {
                why: "nobody rides on itself, or on what rides",
            });
        }
        self.control(Task::Ride { vehicle, seat }, tag)
    }

    /// Alights from whatever it rides (`alightVehicle`); it stays where it is.
    pub fn alight(&mut self) {
        let riding = self.running(|task| matches!(task, Task::Ride { .. }));
        riding
            .into_iter()
            .for_each(|controller| self.cancel_controller(controller));
    }

    /// Ends a controller (`cancel`); one that is over is none to end. Nobody is told, not even of who is in a trap.
    pub fn cancel_controller(&mut self, controller: ControllerId) {
        if self.controllers().any(|(running, _)| running == controller) {
            let what = ControllerEvent::Gone;
            self.desk
                .record_for(self.entity, false, Body::Controlled { controller, what });
        }
    }

    /// Stands still: ends what moves it, whichever controller that is (`cancel("Movement")`).
    pub fn stop_moving(&mut self) {
        let moving = self.running(|task| task.class() == Class::Movement);
        moving
            .into_iter()
            .for_each(|controller| self.cancel_controller(controller));
    }

    /// What runs, ascending.
    pub fn controllers(&self) -> impl Iterator<Item = (ControllerId, &Controller)> {
        let cell = self.image().cell();
        cell.into_iter().flat_map(|cell| cell.controllers.iter())
    }

    fn follow(&mut self, path: Vec<Position>, rounds: Rounds, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        let leg = 0;
        self.control(
            Task::Follow {
                path,
                leg,
                rounds,
                gait,
            },
            tag,
        )
    }

    /// Begins a controller. It takes the place of the one of its class.
    fn control(&mut self, task: Task, tag: u32) -> Result<ControllerId, Denied> {
        let Some(cell) = self.image().cell() else {
            return Err(Denied::CellOnly { what: "be controlled" });
        };
        let controller = cell.controllers.next();
        if !task.is_sound() {
            return Err(Denied::Controller {
                why: "a number in it is none, a speed is not positive, or its path is too long or has no place",
            });
        }
        let replaced = match task.class() {
            Class::Watching => Vec::new(),
            class => self.running(|task| task.class() == class),
        };
        if cell_is_full(self.controllers().count() - replaced.len()) {
            return Err(Denied::Controller {
                why: "it has 64 controllers already; cancel those that are not needed",
            });
        }
        // A place on a path takes 12 bytes.
        let path = match &task {
            Task::Follow { path, .. } => path.len(),
            _ => 0,
        };
        self.desk.needs(path * 12)?;
        replaced
            .into_iter()
            .for_each(|controller| self.cancel_controller(controller));
        let what = ControllerEvent::Set(Box::new(Controller { tag, pace: 0.0, task }));
        self.desk
            .record_for(self.entity, false, Body::Controlled { controller, what });
        Ok(controller)
    }

    fn running(&self, is_meant: impl Fn(&Task) -> bool) -> Vec<ControllerId> {
        let running = self.controllers().filter(|(_, running)| is_meant(&running.task));
        running.map(|(controller, _)| controller).collect()
    }
}

fn cell_is_full(controllers: usize) -> bool {
    const _: () = assert!(CONTROLLERS == 64, "the text of the denial names the number");
    controllers >= CONTROLLERS
}
