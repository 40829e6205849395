//! Controllers: engine code that moves a cell part or watches its surroundings, until it ends.
//!
//! ```text
//! controllers = last:number count:number (controller:number set){count}
//! step        = 1:u8 set
//!             | 2:u8 leg:number pace:f32
//!             | 3:u8
//!             | 4:u8 entity:number
//!             | 5:u8 entity:number
//! set         = tag:number pace:f32 task
//! task        = 1:u8 rounds:u8 gait leg:number count:number (x:f32 y:f32 z:f32){count}
//!             | 2:u8 entity:number within:f32 gait
//!             | 3:u8 yaw:f32 rate:f32
//!             | 4:u8 range:f32 count:number entity:number{count}
//!             | 5:u8 entity:number x:f32 y:f32 z:f32 yaw:f32 pitch:f32 roll:f32
//! gait        = speed:f32 acceleration:f32 flags:u8
//! ```
//! Floats are 4 bytes, little-endian, and finite. Flags are 1 for [`Facing::Kept`], 2 for [`Height::Changed`] and 4 for
//! [`Ending::Running`].

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{ControllerId, Direction, EntityId, Position};

use crate::encoding::{Malformed, Reader, put_number};

/// Maximum number of controllers of one cell part: far more than any game uses, so that a game that forgets to cancel
/// them notices.
pub const CONTROLLERS: usize = 64;

/// Maximum number of points on a path: 12 kB in an image.
pub const PATH_LIMIT: usize = 1_000;

/// Maximum number of entities that one trap counts as inside; others are reported once some of these have left.
pub const TRAP_LIMIT: usize = 1_000;

/// One controller of a cell part.
#[derive(Clone, Debug, PartialEq)]
pub struct Controller {
    /// Chosen by the behaviour.
    pub tag: u32,
    /// Its speed when last logged (m/s).
    pub pace: f32,
    pub task: Task,
}

/// The tasks of controllers.
#[derive(Clone, Debug, PartialEq)]
pub enum Task {
    /// Follows a path.
    Follow {
        /// The points; at least one.
        path: Vec<Position>,
        /// Index of the next point.
        leg: u32,
        /// What follows after the last point.
        rounds: Rounds,
        /// How it moves.
        gait: Gait,
    },
    /// Follows an entity.
    Chase {
        /// The entity.
        target: EntityId,
        /// Distance at which the entity counts as reached (m).
        within: f32,
        /// How it moves.
        gait: Gait,
    },
    /// Turns on the spot, in the shorter direction.
    Turn {
        /// The final yaw.
        yaw: f32,
        /// Angular speed (rad/s).
        rate: f32,
    },
    /// Reports which entities enter and leave its range: a trap. It is a square, as areas of interest are.
    Watch {
        /// Half the side of the square (m).
        range: f32,
        /// The entities inside, as reported to its behaviour.
        inside: BTreeSet<EntityId>,
    },
    /// Is carried by a vehicle entity.
    Ride {
        vehicle: EntityId,
        /// The place on it.
        seat: Seat,
    },
}

/// Classes of tasks. A part has at most one task of the classes `Movement` and `Turning` at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// Tasks that set the position.
    Movement,
    /// Tasks that set the direction.
    Turning,
    /// Traps; any number.
    Watching,
}

/// What follows after the last point of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounds {
    /// The end.
    Once,
    /// The first point.
    Endless,
}

/// Where a moving entity looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Facing {
    /// In the direction of movement.
    #[default]
    Ahead,
    /// In the direction in which it looked before.
    Kept,
}

/// How movement changes the height of an entity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Height {
    /// Its height stays; the height of the points is ignored.
    #[default]
    Kept,
    /// Its height becomes that of the point.
    Changed,
}

/// How an accelerating entity arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ending {
    /// It slows down to a halt.
    #[default]
    Halting,
    /// At its current speed.
    Running,
}

/// How an entity moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gait {
    /// Maximum speed (m/s).
    pub speed: f32,
    /// Acceleration to that speed (m/s²); 0 for immediately.
    pub acceleration: f32,
    /// Where it looks.
    pub facing: Facing,
    /// How its height changes.
    pub height: Height,
    /// How it arrives.
    pub ending: Ending,
}

/// A place on a vehicle, in the vehicle's coordinates.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Seat {
    /// To its right, above it, ahead of it (m).
    pub position: Position,
    /// Relative to the vehicle's direction.
    pub direction: Direction,
}

/// A change of a controller.
#[derive(Clone, Debug, PartialEq)]
pub enum ControllerEvent {
    /// It is set. Its number is above all earlier ones of the part.
    Set(Box<Controller>),
    /// It has advanced.
    Advanced {
        /// Index of the next point of its path; 0 where there is no path.
        leg: u32,
        /// Its speed (m/s).
        pace: f32,
    },
    /// It ended, or was cancelled.
    Gone,
    /// An entity entered the trap.
    Caught(EntityId),
    /// An entity left the trap.
    Released(EntityId),
}

/// The controllers of a cell part.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Controllers {
    running: BTreeMap<ControllerId, Controller>,
    last: ControllerId,
}

impl Gait {
    /// Moves at a constant speed, looking ahead, without changing height.
    #[must_use]
    pub fn at(speed: f32) -> Self {
        Self {
            speed,
            acceleration: 0.0,
            facing: Facing::Ahead,
            height: Height::Kept,
            ending: Ending::Halting,
        }
    }

    fn is_sound(self) -> bool {
        is_positive(self.speed) && self.acceleration.is_finite() && self.acceleration >= 0.0
    }
}

impl Task {
    /// The class of the task: decides which other tasks it replaces.
    #[must_use]
    pub fn class(&self) -> Class {
        match self {
            Task::Follow { .. } | Task::Chase { .. } | Task::Ride { .. } => Class::Movement,
            Task::Turn { .. } => Class::Turning,
            Task::Watch { .. } => Class::Watching,
        }
    }

    /// Whether it is valid: its numbers are finite, speeds are positive, and limits are kept.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        match self {
            Task::Follow { path, leg, gait, .. } => {
                let is_within = usize::try_from(*leg).is_ok_and(|leg| leg < path.len());
                is_within && path.len() <= PATH_LIMIT && path.iter().all(|place| place.is_finite()) && gait.is_sound()
            }
            Task::Chase { within, gait, .. } => within.is_finite() && *within >= 0.0 && gait.is_sound(),
            Task::Turn { yaw, rate } => yaw.is_finite() && is_positive(*rate),
            Task::Watch { range, inside } => range.is_finite() && *range >= 0.0 && inside.len() <= TRAP_LIMIT,
            Task::Ride { seat, .. } => seat.position.is_finite() && seat.direction.is_finite(),
        }
    }
}

impl Controllers {
    /// One controller.
    #[must_use]
    pub fn get(&self, controller: ControllerId) -> Option<&Controller> {
        self.running.get(&controller)
    }

    /// All controllers, ascending.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ControllerId, &Controller)> {
        self.running.iter().map(|(id, controller)| (*id, controller))
    }

    /// The number of the next controller.
    #[must_use]
    pub fn next(&self) -> ControllerId {
        self.last.next()
    }

    /// Whether the part never had any.
    #[must_use]
    pub fn is_unused(&self) -> bool {
        self.last == ControllerId(0)
    }

    /// Applies an event.
    pub(crate) fn apply(&mut self, id: ControllerId, what: &ControllerEvent) -> Result<(), &'static str> {
        if let ControllerEvent::Set(controller) = what {
            if id <= self.last {
                return Err("the controller number was used before");
            }
            self.last = id;
            self.running.insert(id, Controller::clone(controller));
            return Ok(());
        }
        let controller = self.running.get_mut(&id).ok_or("there is no such controller")?;
        match (what, &mut controller.task) {
            (ControllerEvent::Gone, _) => {
                self.running.remove(&id);
            }
            (ControllerEvent::Caught(who), Task::Watch { inside, .. }) => {
                if inside.len() >= TRAP_LIMIT || !inside.insert(*who) {
                    return Err("the entity is already in the trap, or the trap is full");
                }
            }
            (ControllerEvent::Released(who), Task::Watch { inside, .. }) => {
                if !inside.remove(who) {
                    return Err("the entity is not in the trap");
                }
            }
            (ControllerEvent::Advanced { leg: next, pace }, Task::Follow { path, leg, .. }) => {
                if usize::try_from(*next).map_or(true, |next| next >= path.len()) {
                    return Err("the path is shorter");
                }
                (*leg, controller.pace) = (*next, *pace);
            }
            (ControllerEvent::Advanced { leg: 0, pace }, Task::Chase { .. }) => controller.pace = *pace,
            _ => return Err("the controller is of another kind"),
        }
        Ok(())
    }

    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.last.0));
        put_number(out, self.running.len() as u64);
        for (id, controller) in &self.running {
            put_number(out, u64::from(id.0));
            controller.write(out);
        }
    }

    /// Takes the controllers of a part that had some; a part that never had any has no bytes for them.
    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("controller");
        let last = take_controller_id(reader)?;
        let running = reader.map(11, "controllers", take_controller_id, Controller::read)?;
        let newest = running.last_key_value().map_or(ControllerId(1), |(id, _)| *id);
        if last < newest || running.contains_key(&ControllerId(0)) {
            return Err(wrong);
        }
        Ok(Self { running, last })
    }
}

impl ControllerEvent {
    /// The name of the change, as tools print it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            ControllerEvent::Set(_) => "controller set",
            ControllerEvent::Advanced { .. } => "controller advanced",
            ControllerEvent::Gone => "controller gone",
            ControllerEvent::Caught(_) => "trap entered",
            ControllerEvent::Released(_) => "trap left",
        }
    }

    /// Appends the controller's number and the change.
    pub(crate) fn write(&self, id: ControllerId, out: &mut Vec<u8>) {
        put_number(out, u64::from(id.0));
        match self {
            ControllerEvent::Set(controller) => {
                out.push(1);
                controller.write(out);
            }
            ControllerEvent::Advanced { leg, pace } => {
                out.push(2);
                put_number(out, u64::from(*leg));
                put_floats(out, [*pace]);
            }
            ControllerEvent::Gone => out.push(3),
            ControllerEvent::Caught(who) => {
                out.push(4);
                put_number(out, who.0);
            }
            ControllerEvent::Released(who) => {
                out.push(5);
                put_number(out, who.0);
            }
        }
    }

    pub(crate) fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("controller event");
        Ok(match reader.byte("controller event")? {
            1 => ControllerEvent::Set(Box::new(Controller::read(reader)?)),
            2 => ControllerEvent::Advanced {
                leg: reader.narrow("leg")?,
                pace: take_float(reader)?,
            },
            3 => ControllerEvent::Gone,
            4 => ControllerEvent::Caught(EntityId(reader.number("entity")?)),
            5 => ControllerEvent::Released(EntityId(reader.number("entity")?)),
            _ => return Err(wrong),
        })
    }
}

impl Controller {
    fn write(&self, out: &mut Vec<u8>) {
        put_number(out, u64::from(self.tag));
        put_floats(out, [self.pace]);
        match &self.task {
            Task::Follow {
                path,
                leg,
                rounds,
                gait,
            } => {
                out.extend([1, u8::from(*rounds == Rounds::Endless)]);
                gait.write(out);
                put_number(out, u64::from(*leg));
                put_number(out, path.len() as u64);
                path.iter().for_each(|place| put_position(out, *place));
            }
            Task::Chase { target, within, gait } => {
                out.push(2);
                put_number(out, target.0);
                put_floats(out, [*within]);
                gait.write(out);
            }
            Task::Turn { yaw, rate } => {
                out.push(3);
                put_floats(out, [*yaw, *rate]);
            }
            Task::Watch { range, inside } => {
                out.push(4);
                put_floats(out, [*range]);
                put_number(out, inside.len() as u64);
                inside.iter().for_each(|entity| put_number(out, entity.0));
            }
            Task::Ride { vehicle, seat } => {
                out.push(5);
                put_number(out, vehicle.0);
                put_position(out, seat.position);
                let Direction { yaw, pitch, roll } = seat.direction;
                put_floats(out, [yaw, pitch, roll]);
            }
        }
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("task of a controller");
        let controller = Self {
            tag: reader.narrow("tag")?,
            pace: take_float(reader)?,
            task: Task::read(reader)?,
        };
        if controller.task.is_sound() {
            Ok(controller)
        } else {
            Err(wrong)
        }
    }
}

impl Task {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let wrong = reader.malformed("task");
        Ok(match reader.byte("task")? {
            1 => {
                let rounds = match reader.byte("rounds")? {
                    0 => Rounds::Once,
                    1 => Rounds::Endless,
                    _ => return Err(wrong),
                };
                let gait = Gait::read(reader)?;
                let leg = reader.narrow("leg")?;
                let count = reader.count(12, "path")?;
                let path = (0..count).map(|_| take_position(reader)).collect::<Result<_, _>>()?;
                Task::Follow {
                    path,
                    leg,
                    rounds,
                    gait,
                }
            }
            2 => Task::Chase {
                target: EntityId(reader.number("entity")?),
                within: take_float(reader)?,
                gait: Gait::read(reader)?,
            },
            3 => Task::Turn {
                yaw: take_float(reader)?,
                rate: take_float(reader)?,
            },
            4 => Task::Watch {
                range: take_float(reader)?,
                inside: take_inside(reader)?,
            },
            5 => Task::Ride {
                vehicle: EntityId(reader.number("entity")?),
                seat: Seat {
                    position: take_position(reader)?,
                    direction: Direction {
                        yaw: take_float(reader)?,
                        pitch: take_float(reader)?,
                        roll: take_float(reader)?,
                    },
                },
            },
            _ => return Err(wrong),
        })
    }
}

impl Gait {
    fn write(self, out: &mut Vec<u8>) {
        put_floats(out, [self.speed, self.acceleration]);
        let facing = u8::from(self.facing == Facing::Kept);
        let height = u8::from(self.height == Height::Changed);
        let ending = u8::from(self.ending == Ending::Running);
        out.push(facing | height << 1 | ending << 2);
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (speed, acceleration) = (take_float(reader)?, take_float(reader)?);
        let wrong = reader.malformed("gait");
        let flags = reader.byte("gait")?;
        if flags > 7 {
            return Err(wrong);
        }
        let is_set = |bit: u8| flags & bit != 0;
        Ok(Self {
            speed,
            acceleration,
            facing: if is_set(1) { Facing::Kept } else { Facing::Ahead },
            height: if is_set(2) { Height::Changed } else { Height::Kept },
            ending: if is_set(4) { Ending::Running } else { Ending::Halting },
        })
    }
}

/// Takes a controller id that as many more can follow, as any [ordinal](Reader::ordinal).
pub(crate) fn take_controller_id(reader: &mut Reader<'_>) -> Result<ControllerId, Malformed> {
    reader.short_ordinal("controller").map(ControllerId)
}

fn take_inside(reader: &mut Reader<'_>) -> Result<BTreeSet<EntityId>, Malformed> {
    let wrong = reader.malformed("who is in the trap");
    let count = reader.count(1, "who is in the trap")?;
    let mut inside = BTreeSet::new();
    for _ in 0..count {
        let entity = EntityId(reader.number("entity")?);
        if inside.last().is_some_and(|last| *last >= entity) {
            return Err(wrong);
        }
        inside.insert(entity);
    }
    Ok(inside)
}

fn put_position(out: &mut Vec<u8>, Position { x, y, z }: Position) {
    put_floats(out, [x, y, z]);
}

fn take_position(reader: &mut Reader<'_>) -> Result<Position, Malformed> {
    Ok(Position {
        x: take_float(reader)?,
        y: take_float(reader)?,
        z: take_float(reader)?,
    })
}

fn put_floats<const N: usize>(out: &mut Vec<u8>, values: [f32; N]) {
    values
        .iter()
        .for_each(|value| out.extend(value.to_bits().to_le_bytes()));
}

fn take_float(reader: &mut Reader<'_>) -> Result<f32, Malformed> {
    let wrong = reader.malformed("number of a controller");
    let value = f32::from_bits(u32::from_le_bytes(reader.array("number of a controller")?));
    if value.is_finite() { Ok(value) } else { Err(wrong) }
}

fn is_positive(value: f32) -> bool {
    value.is_finite() && value > 0.0
}
