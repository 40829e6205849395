//! Controllers of a cell part: what moves it, or watches around it, at every tick until it is over.
//!
//! Each has a number, unique in the part's life, and a tag that is the game's own. What becomes of it is told to
//! [`Behaviour::controller`](crate::Behaviour::controller). It is part of the entity's state: it goes along when the entity
//! is handed over, and goes on from the last logged place when its process was lost.

use annals_event::{Body, CONTROLLERS, Class, Controller, ControllerEvent, Gait, Height, Rounds, Seat, Task};
use annals_ids::{ControllerId, EntityId, Position};

use super::{Context, Denied};

/// Metres or radians per second, and metres per second squared, below which a controller would not come to its end in
/// anybody's lifetime: in the coordinates of a world such steps are lost in rounding.
const SLOWEST: f32 = 0.001;

/// Seconds that a round of a patrol takes at least, a cell's tick: each place that is passed is an event.
const ROUND: f32 = 0.1;

impl Context<'_> {
    /// Goes straight to a place of its space (`moveToPoint`, `accelerateToPoint`).
    ///
    /// # Errors
    /// When this is no cell part, a coordinate is not a finite number, a speed is below a millimetre per second or not a finite
    /// number, an acceleration is neither 0 nor such a number, or there are too many controllers.
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
    /// As for [`Context::move_along`], and when a round takes less than a tenth of a second.
    pub fn patrol(&mut self, path: Vec<Position>, gait: Gait, tag: u32) -> Result<ControllerId, Denied> {
        self.follow(path, Rounds::Endless, gait, tag)
    }

    /// Goes to where another entity of its space is, wherever that goes, until it is within so many metres of it
    /// (`moveToEntity`). It fails when there is nothing known of the other here any more.
    ///
    /// # Errors
    /// As for [`Context::move_to_point`], and when nothing is known of the other here, or it is in another space.
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
    /// As for [`Context::move_to_point`], and when the vehicle is this entity, is known to ride itself, is in another space, or
    /// nothing is known of it here.
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
                why: "nobody rides on itself, or on what rides",
            });
        }
        let task = Task::Ride { vehicle, seat };
        check(&task)?;
        self.meets(vehicle)?;
        self.control(task, tag)
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
            self.cx
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
        check(&task)?;
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
        // A base part is denied any controller.
        let is_cell = self.image().cell().is_some();
        (is_known || !is_cell).then_some(()).ok_or(Denied::Unheard { entity })
    }

    fn running(&self, is_meant: impl Fn(&Task) -> bool) -> Vec<ControllerId> {
        let running = self.controllers().filter(|(_, running)| is_meant(&running.task));
        running.map(|(controller, _)| controller).collect()
    }
}

/// Whether there can be such a controller.
fn check(task: &Task) -> Result<(), Denied> {
    let denied = |why| Err(Denied::Controller { why });
    if !task.is_sound() {
        return denied(
            "a number in it is not finite, a speed or distance is negative, or its path has no place or more than 1,000",
        );
    }
    let speeds = match task {
        Task::Follow { gait, .. } | Task::Chase { gait, .. } => [gait.speed, gait.acceleration],
        Task::Turn { rate, .. } => [*rate, 0.0],
        Task::Watch { .. } | Task::Ride { .. } => [0.0; 2],
    };
    if speeds.iter().any(|speed| *speed > 0.0 && *speed < SLOWEST) {
        return denied("it would never come to an end, below a thousandth of a metre or radian per second");
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

/// How long the way from place to place is, and from the last to the first, metres.
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
