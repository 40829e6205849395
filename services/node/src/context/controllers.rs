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
    /// Moves straight to a place in its space (`moveToPoint`, `accelerateToPoint`), at the speed of the gait in m/s.
    /// Reports [`ControllerSignal::Arrived`](crate::ControllerSignal::Arrived), or
    /// [`Failed`](crate::ControllerSignal::Failed), to [`Behaviour::controller`](crate::Behaviour::controller).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// const WALK: u32 = 1;
    /// let to = Position { x: 7.0, y: 0.0, z: 0.0 };
    /// own.context.move_to_point(to, Gait::at(4.0), WALK)?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert_eq!(scene.called(), ["controller 1 Arrived"]);
    /// ```
    ///
    /// # Errors
    /// [`Denied::CellOnly`] on a base part; [`Denied::Controller`] if a coordinate is not finite, a speed is below a
    /// millimetre per second or not finite, an acceleration is neither 0 nor such a number, or the part has 64
    /// controllers.
    pub fn move_to_point(&mut self, to: Position, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        self.move_along(vec![to], gait, tag)
    }

    /// Moves along a path (`accelerateAlongPath`). Reports
    /// [`ControllerSignal::Passed`](crate::ControllerSignal::Passed) at each place but the last, then `Arrived`, or
    /// `Failed`.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// let path = [(7.0, 0.0), (7.0, 2.0)].map(|(x, z)| Position { x, y: 0.0, z });
    /// own.context.move_along(path.to_vec(), Gait { acceleration: 2.0, ..Gait::at(4.0) }, 1)?;
    /// # Ok(()) });
    /// # scene.pass(4_000);
    /// # assert_eq!(scene.called(), ["controller 1 Passed { waypoint: 0 }", "controller 1 Arrived"]);
    /// ```
    ///
    /// # Errors
    /// As [`Context::move_to_point`]; also [`Denied::Controller`] if the path is empty, or has more than a thousand
    /// places.
    pub fn move_along(&mut self, path: Vec<Position>, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        self.follow(path, Rounds::Once, gait, tag)
    }

    /// Moves along a path in a loop, without end (`patrol`). Reports
    /// [`ControllerSignal::Passed`](crate::ControllerSignal::Passed) at each place.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// let posts = [(5.0, 4.0), (5.0, 0.0)].map(|(x, z)| Position { x, y: 0.0, z });
    /// own.context.patrol(posts.to_vec(), Gait::at(8.0), 1)?;
    /// # Ok(()) });
    /// # scene.pass(1_700);
    /// # assert!(scene.called().len() >= 3);
    /// ```
    ///
    /// # Errors
    /// As [`Context::move_along`]; also [`Denied::Controller`] if a round takes less than a tenth of a second.
    pub fn patrol(&mut self, path: Vec<Position>, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        self.follow(path, Rounds::Endless, gait, tag)
    }

    /// Follows another entity of its space until it is within a distance of it, metres (`moveToEntity`). Reports
    /// [`ControllerSignal::Arrived`](crate::ControllerSignal::Arrived), or `Failed` when the other is not known here
    /// any more.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// own.context.move_to_entity(monster.entity, 1.0, Gait::at(4.0), 1)?;
    /// # Ok(()) });
    /// # scene.pass(1_500);
    /// # assert_eq!(scene.called(), ["controller 1 Arrived"]);
    /// ```
    ///
    /// # Errors
    /// As [`Context::move_to_point`]; also [`Denied::UnknownHere`] if the other is not known here, or is in another
    /// space.
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

    /// Turns to a direction, radians, at a rate in radians per second (`addYawRotator`). Reports
    /// [`ControllerSignal::Turned`](crate::ControllerSignal::Turned).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// let north = 0.0;
    /// own.context.turn_to(std::f32::consts::FRAC_PI_2, 6.0, 1)?;
    /// # Ok(()) });
    /// # scene.pass(1_000);
    /// # assert_eq!(scene.called(), ["controller 1 Turned"]);
    /// ```
    ///
    /// # Errors
    /// As [`Context::move_to_point`].
    pub fn turn_to(&mut self, yaw: f32, rate: f32, tag: u32) -> Result<ControllerId, Denied> {
        self.control(Task::Turn { yaw, rate }, tag)
    }

    /// Reports entities that enter or leave the square of `range` metres to each side (`addProximity`):
    /// [`ControllerSignal::Entered`](crate::ControllerSignal::Entered) and [`Left`](crate::ControllerSignal::Left).
    /// Entities that are already inside enter at the next tick. The range is limited by the distance up to which ghosts
    /// are known.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # scene.on_cell(|own| {
    /// const NEAR: u32 = 2;
    /// own.context.add_proximity(4.0, NEAR)?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # assert_eq!(scene.called(), ["controller 2 Entered"]);
    /// ```
    ///
    /// # Errors
    /// As [`Context::move_to_point`].
    pub fn add_proximity(&mut self, range: f32, tag: u32) -> Result<ControllerId, Denied> {
        let inside = std::collections::BTreeSet::new();
        self.control(Task::Watch { range, inside }, tag)
    }

    /// Rides another entity, in a seat relative to it, until it alights or the vehicle ceases to exist
    /// (`boardVehicle`). Meanwhile positions sent by a client have no lasting effect: the seat determines its place.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// let saddle = Seat { position: Position { x: 0.0, y: 1.5, z: 0.0 }, ..Seat::default() };
    /// own.context.board(monster.entity, saddle, 1)?;
    /// # Ok(()) });
    /// # scene.pass(500);
    /// # scene.on_cell(|own| {
    /// # assert_eq!(own.context.place().map(|place| place.position.x), Some(8.0));
    /// # Ok(()) });
    /// ```
    ///
    /// # Errors
    /// As [`Context::move_to_point`]; also [`Denied::Controller`] if the vehicle is this entity or is known to ride
    /// another, and [`Denied::UnknownHere`] if it is not known here or is in another space.
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
    ///
    /// ```
    /// # use annals_reference::*;
    /// # let mut scene = Scene::new();
    /// # let monster = scene.monster;
    /// # scene.on_cell(move |own| {
    /// own.context.board(monster.entity, Seat::default(), 1)?;
    /// own.context.alight();
    /// assert_eq!(own.context.controllers().count(), 0);
    /// # Ok(()) });
    /// ```
    pub fn alight(&mut self) {
        let riding = self.running(|task| matches!(task, Task::Ride { .. }));
        riding
            .into_iter()
            .for_each(|controller| self.cancel_controller(controller));
    }

    /// Ends a controller (`cancel`); has no effect if it has already ended. No event is reported, not even for entities
    /// in a trap.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let trap = own.context.add_proximity(4.0, 2)?;
    /// own.context.cancel_controller(trap);
    /// assert_eq!(own.context.controllers().count(), 0);
    /// # Ok(()) });
    /// ```
    pub fn cancel_controller(&mut self, controller: ControllerId) {
        if self.controllers().any(|(running, _)| running == controller) {
            let what = ControllerEvent::Gone;
            self.cx
                .record_for(self.entity, false, Body::Controlled { controller, what });
        }
    }

    /// Stops moving: ends the controller that moves the entity, of any kind (`cancel("Movement")`).
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// own.context.move_to_point(Position { x: 50.0, y: 0.0, z: 0.0 }, Gait::at(4.0), 1)?;
    /// own.context.stop_moving();
    /// assert_eq!(own.context.controllers().count(), 0);
    /// # Ok(()) });
    /// ```
    pub fn stop_moving(&mut self) {
        let moving = self.running(|task| task.class() == Class::Movement);
        moving
            .into_iter()
            .for_each(|controller| self.cancel_controller(controller));
    }

    /// The active controllers, ascending.
    ///
    /// ```
    /// # use annals_reference::*;
    /// # on_cell(|own| {
    /// let trap = own.context.add_proximity(4.0, 2)?;
    /// let running: Vec<(ControllerId, u32)> = own.context.controllers().map(|(id, it)| (id, it.tag)).collect();
    /// assert_eq!(running, [(trap, 2)]);
    /// # Ok(()) });
    /// ```
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
