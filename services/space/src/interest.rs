//! Areas of interest, updated as bodies and observers move.

use std::collections::BTreeMap;

use annals_ids::{EntityId, Position, SpaceId};

use crate::{
    area::{Area, Sighting},
    bodies::Bodies,
    room::Room,
    steps::{Step, Who, paired},
};

/// A position in a space.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    pub space: SpaceId,
    /// The position. Finite.
    pub position: Position,
}

/// A visible object.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    pub entity: EntityId,
    /// Its position.
    pub spot: Spot,
    /// Added to every observer's radius for this body, metres; finite and not negative.
    pub appeal: f32,
}

/// An entity with an area of interest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observer {
    /// The entity. It does not see the body of its own id.
    pub entity: EntityId,
    /// Its position.
    pub spot: Spot,
    /// The size of its area of interest.
    pub reach: Reach,
}

/// Size of an area of interest, metres; finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// Half the side of the square within which bodies enter.
    pub radius: f32,
    /// Distance beyond the radius at which bodies leave.
    pub hysteresis: f32,
}

/// The areas of interest of all observers.
///
/// Driving it: [`update`](Self::update) takes all present positions, updates every area, and reports the changes.
/// Between two updates only [`keep`](Self::keep) changes areas.
///
/// How it works: an area changes only when a body crosses its edge. So only a ring around the edge is searched, as wide
/// as the hysteresis and the movement of both sides. The interior is never searched, however many bodies it holds.
/// Bodies that appeared, vanished or leapt are compared with every observer, and the area of an observer that leapt or
/// whose reach changed is recomputed.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    bodies: Bodies,
    /// Ascending by observer.
    areas: Vec<Area>,
    rooms: BTreeMap<SpaceId, Room>,
    /// Bodies that may have crossed the edges of some areas, area by area. May hold duplicates and bodies that have
    /// not.
    found: Vec<Who>,
    /// For each of those areas the end of its part of `found`; `None` if it has to be recomputed.
    edges: Vec<Option<usize>>,
    /// Changes of one area.
    sightings: Vec<Sighting>,
}

/// Areas updated together: enough that the visible bodies of several are fetched from memory at a time, and few enough
/// that the candidates found along their edges take little room.
const TOGETHER: usize = 1_024;

impl Interest {
    /// Updates every area of interest. `bodies` and `observers` ascend by entity and are complete: one that is missing
    /// is gone. The areas of removed observers are not reported.
    ///
    /// Reports the changes in order: by observer, first bodies that left, then bodies that entered, each ascending.
    ///
    /// # Panics
    /// If bodies or observers do not ascend.
    pub fn update(&mut self, bodies: &[Body], observers: &[Observer], report: impl FnMut(Sighting)) {
        assert!(
            bodies.is_sorted_by(|one, next| one.entity < next.entity),
            "bodies ascend by entity"
        );
        assert!(
            observers.is_sorted_by(|one, next| one.entity < next.entity),
            "observers ascend by entity"
        );
        self.rooms.values_mut().for_each(Room::clear);
        self.bodies.step(bodies, |body, who, step| {
            let room = self.rooms.entry(body.spot.space).or_default();
            room.take(who, body.appeal, step);
        });
        self.turn(observers);
        self.rooms.values_mut().for_each(Room::sort);
        self.look(report);
        self.rooms.retain(|_, room| !room.is_empty());
    }

    /// Adds a body between the radius and the hysteresis beyond it to an observer's area, because the observer saw it
    /// before it was known here. Returns whether the observer sees it now.
    pub fn keep(&mut self, observer: EntityId, body: EntityId) -> bool {
        let Ok(area) = self.area(observer) else { return false };
        self.bodies.of(body).is_some_and(|body| self.areas[area].keep(body))
    }

    /// The bodies in an observer's area at the last update, ascending.
    #[must_use]
    pub fn seen(&self, observer: EntityId) -> &[EntityId] {
        self.area(observer).map_or(&[], |at| self.areas[at].seen())
    }

    /// Index of an observer's area, or the index at which to insert it.
    fn area(&self, observer: EntityId) -> Result<usize, usize> {
        self.areas
            .binary_search_by_key(&observer, |area| area.observer().entity)
    }

    /// Sets the present observers.
    fn turn(&mut self, observers: &[Observer]) {
        let known = self.areas.iter().map(|area| area.observer().entity);
        if !known.eq(observers.iter().map(|observer| observer.entity)) {
            let before = std::mem::take(&mut self.areas);
            let areas = paired(
                before,
                observers,
                |area| area.observer().entity,
                |observer| observer.entity,
            );
            let areas = areas.filter_map(|(area, observer)| Some((area, observer?)));
            self.areas = areas
                .map(|(area, observer)| area.unwrap_or_else(|| Area::new(*observer)))
                .collect();
        }
        for (area, observer) in self.areas.iter_mut().zip(observers) {
            area.turn(*observer);
            let room = self.rooms.entry(observer.spot.space).or_default();
            room.observe(observer.reach, area.seen().len());
        }
    }

    /// Updates all areas. First all edges are searched, and only then the candidates are decided on: the lists of
    /// visible bodies are mostly out of cache, and this order fetches several at a time.
    fn look(&mut self, mut report: impl FnMut(Sighting)) {
        let room = |area: &Area| &self.rooms[&area.observer().spot.space];
        for areas in self.areas.chunks_mut(TOGETHER) {
            self.found.clear();
            self.edges.clear();
            for area in &*areas {
                let is_known = area.follow_edge(room(area), &mut self.found);
                self.edges.push(is_known.then_some(self.found.len()));
            }
            let mut begin = 0;
            for (area, edge) in areas.iter_mut().zip(&self.edges) {
                match *edge {
                    Some(end) if end == begin => continue,
                    Some(end) => {
                        area.settle(&self.found[begin..end], &self.bodies, &mut self.sightings);
                        begin = end;
                    }
                    None => area.look(room(area), &self.bodies, &mut self.sightings),
                }
                self.sightings.sort_unstable();
                self.sightings.drain(..).for_each(&mut report);
            }
        }
    }
}

impl Reach {
    /// Distance at which a body of that appeal enters, metres.
    pub(crate) fn enter(self, appeal: f32) -> f32 {
        self.radius + appeal
    }

    /// Distance up to which it stays, metres.
    pub(crate) fn hold(self, appeal: f32) -> f32 {
        self.radius + self.hysteresis + appeal
    }
}

impl Observer {
    /// Whether a body enters.
    pub(crate) fn catches(&self, body: &Body) -> bool {
        self.distance(body) <= self.reach.enter(body.appeal)
    }

    /// Whether a body that was in view stays in view.
    pub(crate) fn holds(&self, body: &Body) -> bool {
        self.distance(body) <= self.reach.hold(body.appeal)
    }

    /// Distance of a body along the farther axis; infinite in another space.
    fn distance(&self, body: &Body) -> f32 {
        if self.spot.space != body.spot.space {
            return f32::INFINITY;
        }
        Step::between(Some(self.spot.position), Some(body.spot.position)).length()
    }
}
