//! Controllers of a cell part: each moves it, or watches its surroundings, at every tick until it ends.
//!
//! Each has a number, unique in the part's life, and a tag of the game's choice. Its events are reported to
//! [`Behaviour::controller`](crate::Behaviour::controller). It is part of the entity's state: it is handed over with
//! the entity, and continues from the last logged place after its process was lost.

use annals_event::{Body, CONTROLLERS, Class, Controller, ControllerEvent, Gait, Height, Rounds, Seat, Task};
use annals_ids::{ControllerId, EntityId, Position};

use super::{Context, Denied};

/// Minimum speed and acceleration: metres or radians per second, and metres per second squared. A slower controller
/// would practically never end: at the coordinates of a world its steps are lost in rounding.
const SLOWEST: f32 = 0.001;

/// Minimum duration of a patrol's round, seconds: one tick of a cell, because each passed waypoint is an event.
const ROUND: f32 = 0.1;

impl Context<'_> {
    /// Moves straight to a place in its space (`moveToPoint`, `accelerateToPoint`).
    ///
    /// # Errors
    /// If this is not a cell part, a coordinate is not finite, a speed is below a millimetre per second or not finite,
    /// an acceleration is neither 0 nor such a number, or there are too many controllers.
    pub fn move_to_point(&mut self, to: Position, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        self.move_along(vec![to], gait, tag)
    }

    /// Moves along a path (`accelerateAlongPath`).
    ///
    /// # Errors
    /// As for [`Context::move_to_point`], and if the path is empty, or has more than a thousand places.
    pub fn move_along(&mut self, path: Vec<Position>, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        self.follow(path, Rounds::Once, gait, tag)
    }

    /// Moves along a path in a loop, without end (`patrol`).
    ///
    /// # Errors
    /// As for [`Context::move_along`], and if a round takes less than a tenth of a second.
    pub fn patrol(&mut self, path: Vec<Position>, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        self.follow(path, Rounds::Endless, gait, tag)
    }

    /// Follows another entity of its space until it is within a distance of it, metres (`moveToEntity`). It fails when
    /// the other is not known here any more.
    ///
    /// # Errors
    /// As for [`Context::move_to_point`], and if the other is not known here, or is in another space.
    pub fn move_to_entity(
        &mut self,
        target: EntityId,
        within: f32,
        gait: Gait,
        tag: u32,
    ) -> Result<ControllerId, Denied> {
        let task = Task::Chase { target, within, gait };
        check(&task)?;
        self.meets(target)?;
        self.control(task, tag)
    }

    /// Turns to a direction, at a rate in radians per second (`addYawRotator`).
    ///
    /// # Errors
    /// As for [`Context::move_to_point`].
    pub fn turn_to(&mut self, yaw: f32, rate: f32, tag: u32) -> Result<ControllerId, Denied> {
        self.control(Task::Turn { yaw, rate }, tag)
    }

    /// Reports entities that enter or leave the square of `range` metres to each side (`addProximity`). Entities that
    /// are already inside enter at the next tick. The range is limited by the distance up to which ghosts are known.
    ///
    /// # Errors
    /// As for [`Context::move_to_point`].
    pub fn add_proximity(&mut self, range: f32, tag: u32) -> Result<ControllerId, Denied> {
        let inside = std::collections::BTreeSet::new();
        self.control(Task::Watch { range, inside }, tag)
    }

    /// Rides another entity, in a seat relative to it, until it alights or the vehicle ceases to exist
    /// (`boardVehicle`). Meanwhile positions sent by its client have no lasting effect: the seat determines its place.
    ///
    /// # Errors
    /// As for [`Context::move_to_point`], and if the vehicle is this entity, is known to ride this entity, is in
    /// another space, or is not known here.
    pub fn board(&mut self, vehicle: EntityId, seat: Seat, tag: u32) -> Result<ControllerId, Denied> {
        let rides = self
            .cx
            .image(vehicle)
            .and_then(|image| image.cell())
            .is_some_and(|cell| {
                let mut running = cell.controllers.iter();
                running.any(|(_, running)| matches!(running.task, Task::Ride { .. }))
            });
        if vehicle == self.entity || rides {
            return Err(Denied::Controller {
                why: "an entity cannot ride on itself, or on an entity that rides",
            });
        }
        let task = Task::Ride { vehicle, seat };
        check(&task)?;
        self.meets(vehicle)?;
        self.control(task, tag)
    }

    /// Alights from its vehicle, if any (`alightVehicle`); the entity stays where it is.
    pub fn alight(&mut self) {
        let riding = self.running(|task| matches!(task, Task::Ride { .. }));
        riding
            .into_iter()
            .for_each(|controller| self.cancel_controller(controller));
    }

    /// Ends a controller (`cancel`); has no effect if it has already ended. No event is reported, not even for entities
    /// in a trap.
    pub fn cancel_controller(&mut self, controller: ControllerId) {
        if self.controllers().any(|(running, _)| running == controller) {
            let what = ControllerEvent::Gone;
            self.cx
                .record_for(self.entity, false, Body::Controlled { controller, what });
        }
    }

    /// Stops moving: ends the controller that moves the entity, of any kind (`cancel("Movement")`).
    pub fn stop_moving(&mut self) {
        let moving = self.running(|task| task.class() == Class::Movement);
        moving
            .into_iter()
            .for_each(|controller| self.cancel_controller(controller));
    }

    /// The active controllers, ascending.
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

    /// Starts a controller. It replaces the one of its class.
    fn control(&mut self, task: Task, tag: u32) -> Result<ControllerId, Denied> {
        let Some(cell) = self.image().cell() else {
            return Err(Denied::CellOnly { what: "be controlled" });
        };
        let controller = cell.controllers.next();
        check(&task)?;
        let replaced = match task.class() {
            Class::Watching => Vec::new(),
            class => self.running(|task| task.class() == class),
        };
        if cell_is_full(self.controllers().count() - replaced.len()) {
            return Err(Denied::Controller {
                why: "the entity already has 64 controllers; cancel those that are not needed",
            });
        }
        // A place on a path takes 12 bytes.
        let path = match &task {
            Task::Follow { path, .. } => path.len(),
            _ => 0,
        };
        self.cx.needs(path * 12)?;
        replaced
            .into_iter()
            .for_each(|controller| self.cancel_controller(controller));
        let what = ControllerEvent::Set(Box::new(Controller { tag, pace: 0.0, task }));
        self.cx
            .record_for(self.entity, false, Body::Controlled { controller, what });
        Ok(controller)
    }

    /// Whether an entity is known here, and in the same space.
    fn meets(&self, entity: EntityId) -> Result<(), Denied> {
        let space = self.place().map(|place| place.space);
        let is_known = self.look_at(entity).is_some_and(|seen| Some(seen.place.space) == space);
        // A base part may not have any controller.
        let is_cell = self.image().cell().is_some();
        (is_known || !is_cell)
            .then_some(())
            .ok_or(Denied::UnknownHere { entity })
    }

    fn running(&self, is_meant: impl Fn(&Task) -> bool) -> Vec<ControllerId> {
        let running = self.controllers().filter(|(_, running)| is_meant(&running.task));
        running.map(|(controller, _)| controller).collect()
    }
}

/// Whether a controller is valid.
fn check(task: &Task) -> Result<(), Denied> {
    let denied = |why| Err(Denied::Controller { why });
    if !task.is_sound() {
        return denied(
            "a number is not finite, a speed or distance is negative, or its path is empty or longer than 1,000 places",
        );
    }
    let speeds = match task {
        Task::Follow { gait, .. } | Task::Chase { gait, .. } => [gait.speed, gait.acceleration],
        Task::Turn { rate, .. } => [*rate, 0.0],
        Task::Watch { .. } | Task::Ride { .. } => [0.0; 2],
    };
    if speeds.iter().any(|speed| *speed > 0.0 && *speed < SLOWEST) {
        return denied("its speed is below a thousandth of a metre or radian per second, so it would never end");
    }
    match task {
        Task::Follow {
            path,
            rounds: Rounds::Endless,
            gait,
            ..
        } if length_of_round(path, gait.height) < gait.speed * ROUND => {
            denied("a round takes less than a tenth of a second, so it would pass places without end")
        }
        _ => Ok(()),
    }
}

/// Length of the closed path, metres.
fn length_of_round(path: &[Position], height: Height) -> f32 {
    let next = path.iter().cycle().skip(1);
    let flat = |at: &Position| match height {
        Height::Kept => Position { y: 0.0, ..*at },
        Height::Changed => *at,
    };
    path.iter()
        .zip(next)
        .map(|(from, to)| flat(from).distance(flat(to)))
        .sum()
}

fn cell_is_full(controllers: usize) -> bool {
    const _: () = assert!(CONTROLLERS == 64, "the text of the denial names the number");
    controllers >= CONTROLLERS
}
