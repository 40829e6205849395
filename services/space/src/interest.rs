//! Areas of interest, kept up to date against everything that moves.

use std::collections::BTreeMap;

use annals_ids::{EntityId, Position, SpaceId};

use crate::{
    area::{Area, Sighting},
    bodies::Bodies,
    room::Room,
    steps::{Step, Who, paired},
};

/// Where something is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// In which space.
    pub space: SpaceId,
    /// Where. Finite.
    pub position: Position,
}

/// Something that can be seen.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    /// Which entity.
    pub entity: EntityId,
    /// Where it is.
    pub spot: Spot,
    /// How much farther than others it is seen, metres, finite and not negative: this is added to every observer's radius.
    pub appeal: f32,
}

/// Someone who sees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Observer {
    /// Which entity. It does not see the body of its own id.
    pub entity: EntityId,
    /// Where it is.
    pub spot: Spot,
    /// How far it sees.
    pub reach: Reach,
}

/// How far an observer sees, metres; finite and not negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Reach {
    /// Half the side of the square within which bodies enter.
    pub radius: f32,
    /// How much further out a body must be to leave.
    pub hysteresis: f32,
}

/// The areas of interest of all observers.
///
/// Driving it: [`update`](Self::update) says where everybody is now, brings every area up to date with that, and tells what
/// changed. Between two updates nothing changes but by [`keep`](Self::keep).
///
/// How it works: an area changes only when something crosses its edge, so only the ring is looked at in which that can have
/// happened, which is as wide as the hysteresis and what both sides have moved. Within an area nothing is looked at, however
/// much is in it. Who appeared, vanished or leapt is compared with everybody, and who looks from elsewhere or farther than
/// before looks anew.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    bodies: Bodies,
    /// Ascending by observer.
    areas: Vec<Area>,
    rooms: BTreeMap<SpaceId, Room>,
    /// Who may have crossed the edges of some areas, area by area. The same may stand there twice, or wrongly.
    found: Vec<Who>,
    /// For each of those areas where its part of `found` ends; `None` if it has to look anew.
    edges: Vec<Option<usize>>,
    /// What changed in one area.
    sightings: Vec<Sighting>,
}

/// Areas that are brought up to date together: so many that what their observers see is fetched from memory for several at
/// a time, and so few that what was found along their edges takes little room.
const TOGETHER: usize = 1_024;

impl Interest {
    /// Brings every area of interest up to date. Both `bodies` and `observers` ascend by entity, and are all there are now:
    /// who is not among them is gone. Nothing is told of what an observer saw that is gone itself.
    ///
    /// Tells what changed, in order: by observer, first who left, then who entered, each ascending.
    ///
    /// # Panics
    /// When bodies or observers do not ascend.
    pub fn update(&mut self, bodies: &[Body], observers: &[Observer], told: impl FnMut(Sighting)) {
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
        self.look(told);
        self.rooms.retain(|_, room| !room.is_empty());
    }

    /// Lets an observer see a body that is between the radius and the hysteresis beyond it, because it saw it before it
    /// was known here. Returns whether it sees it now.
    pub fn keep(&mut self, observer: EntityId, body: EntityId) -> bool {
        let Ok(area) = self.area(observer) else { return false };
        self.bodies.of(body).is_some_and(|body| self.areas[area].keep(body))
    }

    /// What an observer saw at the last update, ascending.
    #[must_use]
    pub fn seen(&self, observer: EntityId) -> &[EntityId] {
        self.area(observer).map_or(&[], |at| self.areas[at].seen())
    }

    /// Where the area of an observer is, or would be.
    fn area(&self, observer: EntityId) -> Result<usize, usize> {
        self.areas
            .binary_search_by_key(&observer, |area| area.observer().entity)
    }

    /// Takes in where the observers are now.
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

    /// Brings all areas up to date. First their edges are followed, and only then it is decided on what was found there: what
    /// an observer sees is mostly far away in memory, and like this it is fetched for several at a time.
    fn look(&mut self, mut told: impl FnMut(Sighting)) {
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
                self.sightings.drain(..).for_each(&mut told);
            }
        }
    }
}

impl Reach {
    /// How near a body of that appeal enters, metres.
    pub(crate) fn enter(self, appeal: f32) -> f32 {
        self.radius + appeal
    }

    /// How near it stays.
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

    /// How far a body is away along the axis on which it is farther; without end in another space.
    fn distance(&self, body: &Body) -> f32 {
        if self.spot.space != body.spot.space {
            return f32::INFINITY;
        }
        Step::between(Some(self.spot.position), Some(body.spot.position)).length()
    }
}
