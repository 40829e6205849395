//! Runs controllers: what they do at each tick, and how behaviour is notified.
//!
//! A controller is part of its entity's state. What it was set to do, its progress along its path and the entities in
//! its trap are events. In between it only moves its entity, and that is volatile. Each notification of behaviour is a
//! separate input, which also logs that behaviour was notified: both are in one batch, so that neither a crash nor a
//! hand-over loses or repeats it.

mod steps;

use std::{
    collections::{BTreeMap, VecDeque},
    ops::RangeInclusive,
    time::Duration,
};

use annals_event::{Body, Controller, ControllerEvent, Image, OwnerState, Place, TRAP_LIMIT, Task};
use annals_ids::{ControllerId, EntityId};
use annals_node::{ControllerSignal, OwnerContext, time::Mono};
use annals_space::Census;

use crate::{
    knowledge::{Knowledge, spot},
    sampling::log_place,
};
use steps::Course;

/// How long after a take-over an unknown entity may still exist: ghosts arrive once their holders are up.
const AFTER_TAKE_OVER: Duration = Duration::from_secs(30);

/// The same after an entity was taken over from another owner: real entities near it have, or get, ghosts here.
const AFTER_ARRIVAL: Duration = Duration::from_secs(5);

/// Number of notifications in one tick above which traps are not examined; the rest follows at the next tick.
const NOTIFICATION_LIMIT: usize = 10_000;

type Key = (EntityId, ControllerId);

/// All controllers on this owner. Rebuilt from the state after a take-over, except for the progress of running ones,
/// which is not in the state.
#[derive(Debug, Default)]
pub(crate) struct Controllers {
    /// Controllers that move their entities by themselves.
    movers: BTreeMap<Key, Runner>,
    /// Controllers of entities that ride on others; they run after `movers`.
    riders: BTreeMap<Key, Runner>,
    traps: BTreeMap<Key, Runner>,
    /// Notifications of behaviour due in this tick.
    due: VecDeque<(Key, ControllerSignal)>,
    /// When the current tick began, while it has notifications to send.
    tick_in_progress: Option<Mono>,
    census: Census,
    found: Vec<EntityId>,
}

#[derive(Clone, Copy, Debug)]
struct Runner {
    course: Course,
    /// Until then, an unknown entity does not count as gone.
    grace_until: Mono,
}

/// Another entity, as a controller finds it.
enum Other {
    At(Place),
    /// It may exist: no message about it has arrived since this owner was taken over or this entity came here.
    Unlisted,
    Gone,
}

impl Controllers {
    /// The controllers of an owner that is taken over.
    pub(crate) fn take_over(state: &OwnerState, now: Mono) -> Self {
        let mut controllers = Self::default();
        for (entity, image) in &state.entities {
            controllers.adopt(*entity, image, now.after(AFTER_TAKE_OVER));
        }
        controllers
    }

    /// When the current tick began, while it has notifications to send.
    pub(crate) fn tick_in_progress(&self) -> Option<Mono> {
        self.tick_in_progress
    }

    /// Applies what was recorded of an entity.
    pub(crate) fn note(&mut self, cx: &OwnerContext, entity: EntityId, body: &Body) {
        match body {
            Body::Onloaded { .. } | Body::Returned { .. } => {
                if let Some(image) = cx.image(entity) {
                    self.adopt(entity, image, cx.now().mono.after(AFTER_ARRIVAL));
                }
            }
            Body::Offloaded { .. } | Body::Destroyed => self.forget(entity),
            Body::Controlled { controller, what } => match what {
                ControllerEvent::Set(set) => self.begin((entity, *controller), set, cx.now().mono),
                ControllerEvent::Gone => self.end((entity, *controller)),
                ControllerEvent::Advanced { .. } | ControllerEvent::Caught(_) | ControllerEvent::Released(_) => {}
            },
            _ => {}
        }
    }

    /// Logs the progress of the controllers of an entity that is about to leave.
    pub(crate) fn log_course(&self, cx: &mut OwnerContext, entity: EntityId) {
        for ((_, controller), runner) in self.movers.range(all_of(entity)) {
            let Course { leg, pace } = runner.course;
            let logged = running(cx, (entity, *controller)).map(course_of);
            if logged.is_some_and(|logged| logged != runner.course) {
                let (controller, what) = (*controller, ControllerEvent::Advanced { leg, pace });
                cx.record_for(entity, false, Body::Controlled { controller, what });
            }
        }
    }

    fn adopt(&mut self, entity: EntityId, image: &Image, grace_until: Mono) {
        self.forget(entity);
        let Some(cell) = image.cell() else { return };
        for (controller, set) in cell.controllers.iter() {
            self.begin((entity, controller), set, grace_until);
        }
    }

    fn begin(&mut self, key: Key, set: &Controller, grace_until: Mono) {
        let runner = Runner {
            course: course_of(set),
            grace_until,
        };
        let runners = match set.task {
            Task::Follow { .. } | Task::Chase { .. } | Task::Turn { .. } => &mut self.movers,
            Task::Ride { .. } => &mut self.riders,
            Task::Watch { .. } => &mut self.traps,
        };
        runners.insert(key, runner);
    }

    fn end(&mut self, key: Key) {
        for runners in [&mut self.movers, &mut self.riders, &mut self.traps] {
            runners.remove(&key);
        }
    }

    fn forget(&mut self, entity: EntityId) {
        for runners in [&mut self.movers, &mut self.riders, &mut self.traps] {
            while let Some((&key, _)) = runners.range(all_of(entity)).next() {
                runners.remove(&key);
            }
        }
    }

    /// Moves all entities by one tick, and collects the notifications that are due.
    fn run(&mut self, cx: &mut OwnerContext, known: &Knowledge) {
        let now = cx.now().mono;
        for runners in [&mut self.movers, &mut self.riders] {
            for (key, runner) in runners {
                let signal = advance(cx, known, (*key, runner), |waypoint| {
                    self.due.push_back((*key, ControllerSignal::Passed { waypoint }));
                });
                self.due.extend(signal.map(|signal| (*key, signal)));
            }
        }
        if self.traps.is_empty() {
            return;
        }
        self.census.take(known.all_entities(cx));
        for (key, runner) in &self.traps {
            let Some((centre, Task::Watch { range, inside })) = place_and_task(cx, *key) else {
                continue;
            };
            self.found.clear();
            self.census.square(spot(&centre), *range, &mut self.found);
            self.found.retain(|found| *found != key.0);
            if self.due.len() > NOTIFICATION_LIMIT || inside.iter().eq(&self.found) {
                continue;
            }
            let is_in_grace = now < runner.grace_until;
            let is_left = |who: &&EntityId| {
                let is_known = !is_in_grace || known.place(cx, **who).is_some();
                is_known && self.found.binary_search(who).is_err()
            };
            let left = inside.iter().filter(is_left);
            self.due
                .extend(left.map(|who| (*key, ControllerSignal::Left { who: *who })));
            let room = TRAP_LIMIT.saturating_sub(inside.len());
            let entered = self.found.iter().filter(|who| !inside.contains(who)).take(room);
            self.due
                .extend(entered.map(|who| (*key, ControllerSignal::Entered { who: *who })));
        }
    }

    /// Runs the controllers of a tick. Returns whether notifications must be sent before the tick goes on.
    pub(crate) fn begin_tick(&mut self, cx: &mut OwnerContext, known: &Knowledge) -> bool {
        // Where no owner is responsible nothing moves, and before the map is known that is everywhere.
        if known.territory.is_known() {
            self.run(cx, known);
        }
        let waits = !self.due.is_empty();
        self.tick_in_progress = waits.then_some(cx.now().mono);
        waits
    }

    /// Sends the next notification of this tick, as a separate input. Returns whether there was one.
    pub(crate) fn notify_next(&mut self, cx: &mut OwnerContext, known: &Knowledge) -> bool {
        let Some((key, signal)) = self.due.pop_front() else {
            self.tick_in_progress = None;
            return false;
        };
        let (entity, controller) = key;
        // An earlier notification may have ended it.
        let Some(set) = running(cx, key) else { return true };
        let tag = set.tag;
        let runner = self.movers.get(&key);
        let pace = runner.map_or(set.pace, |runner| runner.course.pace);
        let Some(what) = event_of(&set.task, signal, pace) else {
            return true;
        };
        // After a crash it is then where it was when this happened, and so is the entity that came or left.
        log_place(cx, entity);
        if let ControllerSignal::Entered { who } | ControllerSignal::Left { who } = signal {
            log_place(cx, who);
        }
        cx.record_for(entity, false, Body::Controlled { controller, what });
        cx.run(entity, known, |behaviour, context| {
            behaviour.controller(context, controller, tag, signal);
        });
        true
    }
}

/// Moves an entity by one tick. Returns the final notification of the controller, unless it goes on.
fn advance(
    cx: &mut OwnerContext,
    known: &Knowledge,
    (key, runner): (Key, &mut Runner),
    passed: impl FnMut(u32),
) -> Option<ControllerSignal> {
    let (from, task) = place_and_task(cx, key)?;
    let (mut to, before, course) = (from, runner.course, &mut runner.course);
    let is_in_grace = cx.now().mono < runner.grace_until;
    let find = |entity| match known.place(cx, entity) {
        Some(other) if other.space == from.space => Other::At(other),
        None if is_in_grace => Other::Unlisted,
        _ => Other::Gone,
    };
    let signal = match task {
        Task::Follow { path, rounds, gait, .. } => {
            let arrived = steps::follow(&mut to, course, (path, *rounds, *gait), passed);
            let has_progressed = to.position != from.position || *course != before;
            outcome(arrived.then_some(ControllerSignal::Arrived), has_progressed)
        }
        Task::Chase { target, within, gait } => match find(*target) {
            Other::At(target) => {
                let arrived = steps::chase(&mut to, course, (target.position, *within), *gait);
                let has_progressed = to.position != from.position || *course != before;
                outcome(arrived.then_some(ControllerSignal::Arrived), has_progressed)
            }
            Other::Unlisted => None,
            Other::Gone => Some(ControllerSignal::Failed),
        },
        Task::Turn { yaw, rate } => {
            let turned = steps::turn(&mut to.direction, *yaw, *rate);
            outcome(
                turned.then_some(ControllerSignal::Turned),
                to.direction != from.direction,
            )
        }
        Task::Ride { vehicle, seat } => match find(*vehicle) {
            Other::At(vehicle) => {
                to = steps::seated(&vehicle, seat);
                None
            }
            Other::Unlisted => None,
            Other::Gone => Some(ControllerSignal::Unseated),
        },
        Task::Watch { .. } => None,
    };
    if to == from {
        return signal;
    }
    let is_somewhere = to.is_sound() && known.territory.owner_at(&to).is_some();
    if !is_somewhere {
        return Some(ControllerSignal::Failed);
    }
    cx.move_to(key.0, to);
    signal
}

/// The notification after a step. A controller fails if neither the position nor its progress has changed, as a step
/// lost in rounding: it would never end.
fn outcome(end: Option<ControllerSignal>, has_progressed: bool) -> Option<ControllerSignal> {
    end.or((!has_progressed).then_some(ControllerSignal::Failed))
}

/// The event that is logged with a notification; `None` if the notification is obsolete.
fn event_of(task: &Task, signal: ControllerSignal, pace: f32) -> Option<ControllerEvent> {
    match (signal, task) {
        (ControllerSignal::Passed { waypoint }, Task::Follow { path, .. }) => {
            let next = waypoint.saturating_add(1);
            let is_last = usize::try_from(next).map_or(true, |next| next >= path.len());
            Some(ControllerEvent::Advanced {
                leg: if is_last { 0 } else { next },
                pace,
            })
        }
        (ControllerSignal::Entered { who }, Task::Watch { inside, .. }) => {
            (!inside.contains(&who)).then_some(ControllerEvent::Caught(who))
        }
        (ControllerSignal::Left { who }, Task::Watch { inside, .. }) => {
            inside.contains(&who).then_some(ControllerEvent::Released(who))
        }
        (
            ControllerSignal::Arrived
            | ControllerSignal::Failed
            | ControllerSignal::Turned
            | ControllerSignal::Unseated,
            _,
        ) => Some(ControllerEvent::Gone),
        _ => None,
    }
}

/// The place of a controller's entity, and the controller's task.
fn place_and_task(cx: &OwnerContext, key: Key) -> Option<(Place, &Task)> {
    Some((cx.place(key.0)?, &running(cx, key)?.task))
}

fn running(cx: &OwnerContext, (entity, controller): Key) -> Option<&Controller> {
    cx.image(entity)?.cell()?.controllers.get(controller)
}

/// The progress of a controller as last logged.
fn course_of(set: &Controller) -> Course {
    let leg = match set.task {
        Task::Follow { leg, .. } => leg,
        _ => 0,
    };
    Course { leg, pace: set.pace }
}

fn all_of(entity: EntityId) -> RangeInclusive<Key> {
    (entity, ControllerId(0))..=(entity, ControllerId(u32::MAX))
}
