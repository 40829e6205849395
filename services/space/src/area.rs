//! The area of interest of one observer.

use annals_ids::EntityId;

use crate::{
    bodies::Bodies,
    interest::{Body, Observer},
    layer::LEAP,
    room::Room,
    steps::{Step, Who},
};

/// A change between an observer and a body, in the order of reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The body is out of view, or has ceased to exist.
    Left,
    /// The body is in view.
    Entered,
}

/// A body entered or left an observer's area of interest. Ordered as reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    pub observer: EntityId,
    /// Whether the body entered or left.
    pub change: Change,
    pub body: EntityId,
}

/// The area of interest of one observer.
#[derive(Clone, Debug)]
pub(crate) struct Area {
    observer: Observer,
    /// Whether it was never updated.
    is_new: bool,
    /// Its movement since the last update; `None` after a change of space, a leap, or a change of reach.
    step: Option<Step>,
    /// Visible bodies, ascending.
    seen: Vec<EntityId>,
}

impl Area {
    /// The area of a new observer.
    pub(crate) fn new(observer: Observer) -> Self {
        Self {
            observer,
            is_new: true,
            step: None,
            seen: Vec::new(),
        }
    }

    pub(crate) fn observer(&self) -> &Observer {
        &self.observer
    }

    pub(crate) fn seen(&self) -> &[EntityId] {
        &self.seen
    }

    /// Sets the observer's present state.
    pub(crate) fn turn(&mut self, observer: Observer) {
        let was = std::mem::replace(&mut self.observer, observer);
        let is_same = was.spot.space == observer.spot.space && was.reach == observer.reach;
        let step = Step::between(Some(was.spot.position), Some(observer.spot.position));
        self.step = (!self.is_new && is_same && step.length() <= LEAP).then_some(step);
        self.is_new = false;
    }

    /// Adds the bodies that may have crossed the area's edge: all that have, and some that have not, or twice. Returns
    /// `false` if they are not known, and the area has to be recomputed.
    pub(crate) fn follow_edge(&self, room: &Room, found: &mut Vec<Who>) -> bool {
        let Some(step) = self.step.filter(|_| !room.is_upset()) else {
            return false;
        };
        for (layer, gaze) in room.layers(self.observer.reach, step) {
            layer.crossings(&gaze, found);
        }
        true
    }

    /// Decides on the bodies that may have crossed the edge, by their present positions, and adds the changes.
    pub(crate) fn settle(&mut self, found: &[Who], bodies: &Bodies, sightings: &mut Vec<Sighting>) {
        for &who in found {
            let (body, known) = (bodies.entity(who), bodies.get(who));
            let change = match search(&self.seen, body) {
                Err(at) if body != self.observer.entity && known.is_some_and(|known| self.observer.catches(known)) => {
                    self.seen.insert(at, body);
                    Change::Entered
                }
                Ok(at) if !known.is_some_and(|known| self.observer.holds(known)) => {
                    self.seen.remove(at);
                    Change::Left
                }
                _ => continue,
            };
            sightings.push(self.sighting(change, body));
        }
    }

    /// Recomputes the area from all bodies in its space, and adds the changes.
    pub(crate) fn look(&mut self, room: &Room, bodies: &Bodies, sightings: &mut Vec<Sighting>) {
        let before = std::mem::take(&mut self.seen);
        let is = Some(self.observer.spot.position);
        let layers = room.layers(self.observer.reach, Step::between(is, is));
        for (layer, gaze) in layers {
            layer.near(&gaze, |who, distance| {
                let body = bodies.entity(who);
                let caught = distance <= gaze.enter || before.binary_search(&body).is_ok();
                if caught && body != self.observer.entity {
                    self.seen.push(body);
                }
            });
        }
        self.seen.sort_unstable();
        self.seen.dedup();
        sightings.extend(missing(&before, &self.seen).map(|body| self.sighting(Change::Left, body)));
        sightings.extend(missing(&self.seen, &before).map(|body| self.sighting(Change::Entered, body)));
    }

    /// As [`Interest::keep`](crate::Interest::keep).
    pub(crate) fn keep(&mut self, body: &Body) -> bool {
        let kept = self.observer.entity != body.entity && self.observer.holds(body);
        if kept && let Err(at) = self.seen.binary_search(&body.entity) {
            self.seen.insert(at, body.entity);
        }
        kept
    }

    fn sighting(&self, change: Change, body: EntityId) -> Sighting {
        Sighting {
            observer: self.observer.entity,
            change,
            body,
        }
    }
}

/// Elements of the first slice that are not in the other; both ascend.
fn missing(of: &[EntityId], from: &[EntityId]) -> impl Iterator<Item = EntityId> {
    of.iter().filter(|entity| from.binary_search(entity).is_err()).copied()
}

/// As `binary_search`. The list of visible bodies is mostly out of cache, so the search probes several positions at
/// once rather than one after the other.
fn search(seen: &[EntityId], body: EntityId) -> Result<usize, usize> {
    const PARTS: usize = 16;
    let (mut begin, mut end) = (0, seen.len());
    while end - begin > PARTS {
        let part = (end - begin) / PARTS;
        let before = (1..PARTS).filter(|at| seen[begin + at * part] < body).count();
        begin += before * part;
        if before + 1 < PARTS {
            // The first element of the next part may be the one searched for.
            end = begin + part + 1;
        }
    }
    let within = seen[begin..end].binary_search(&body);
    within.map(|at| begin + at).map_err(|at| begin + at)
}
