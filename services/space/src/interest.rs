//! Areas of interest, kept up to date against everything that moves.

use std::collections::BTreeMap;

use annals_ids::{EntityId, Position, SpaceId};

use crate::grid::Grid;

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

/// What happened between an observer and a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Change {
    /// The body is out of view, or is no more.
    Left,
    /// The body is in view.
    Entered,
}

/// A body came into an observer's area of interest, or went out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Sighting {
    /// Whose area.
    pub observer: EntityId,
    /// What happened.
    pub change: Change,
    /// Who came or went.
    pub body: EntityId,
}

/// The areas of interest of all observers.
///
/// Driving it: [`update`](Self::update) says where everybody is now, brings every area up to date with that, and tells what
/// changed. Between two updates nothing changes but by [`keep`](Self::keep).
#[derive(Clone, Debug, Default)]
pub struct Interest {
    bodies: BTreeMap<EntityId, Body>,
    areas: BTreeMap<EntityId, Area>,
    /// What the last update told.
    sightings: Vec<Sighting>,
}

/// What one observer sees.
#[derive(Clone, Debug)]
struct Area {
    observer: Observer,
    /// Ascending.
    seen: Vec<EntityId>,
}

/// The bodies of one space.
#[derive(Clone, Debug, Default)]
struct Bodies {
    grid: Grid<Body>,
    /// The greatest appeal of any.
    appeal: f32,
}

impl Interest {
    /// Brings every area of interest up to date. Both `bodies` and `observers` ascend by entity, and are all there are now:
    /// who is not among them is gone. Nothing is told of what an observer saw that is gone itself.
    ///
    /// Tells what changed by observer, first who left, then who entered, each ascending.
    ///
    /// # Panics
    /// When bodies or observers do not ascend.
    pub fn update(&mut self, bodies: &[Body], observers: &[Observer]) -> &[Sighting] {
        assert!(
            bodies.is_sorted_by(|one, next| one.entity < next.entity),
            "bodies ascend by entity"
        );
        assert!(
            observers.is_sorted_by(|one, next| one.entity < next.entity),
            "observers ascend by entity"
        );
        let mut spaces: BTreeMap<SpaceId, Bodies> = BTreeMap::new();
        for body in bodies {
            let space = spaces.entry(body.spot.space).or_default();
            space.grid.insert(body.entity, body.spot.position, *body);
            space.appeal = space.appeal.max(body.appeal);
        }
        self.bodies = bodies.iter().map(|body| (body.entity, *body)).collect();
        let mut areas = std::mem::take(&mut self.areas);
        self.sightings.clear();
        for &observer in observers {
            let before = areas.remove(&observer.entity).map_or_else(Vec::new, |area| area.seen);
            let seen = look(spaces.get(&observer.spot.space), &observer, &before);
            let told = |change, body| Sighting {
                observer: observer.entity,
                change,
                body,
            };
            let left = missing(&before, &seen).map(|body| told(Change::Left, body));
            self.sightings.extend(left);
            let entered = missing(&seen, &before).map(|body| told(Change::Entered, body));
            self.sightings.extend(entered);
            self.areas.insert(observer.entity, Area { observer, seen });
        }
        &self.sightings
    }

    /// Lets an observer see a body that is between the radius and the hysteresis beyond it, because it saw it before it
    /// was known here. Returns whether it sees it now.
    pub fn keep(&mut self, observer: EntityId, body: EntityId) -> bool {
        let (Some(area), Some(known)) = (self.areas.get_mut(&observer), self.bodies.get(&body)) else {
            return false;
        };
        let kept = observer != body && area.observer.holds(known);
        if kept && let Err(at) = area.seen.binary_search(&body) {
            area.seen.insert(at, body);
        }
        kept
    }

    /// What an observer saw at the last update, ascending.
    #[must_use]
    pub fn seen(&self, observer: EntityId) -> &[EntityId] {
        self.areas.get(&observer).map_or(&[], |area| &area.seen)
    }
}

impl Observer {
    /// Whether a body enters.
    fn catches(&self, body: &Body) -> bool {
        self.distance(body) <= self.reach.radius + body.appeal
    }

    /// Whether a body that was in view stays in view.
    fn holds(&self, body: &Body) -> bool {
        self.distance(body) <= self.reach.radius + self.reach.hysteresis + body.appeal
    }

    /// How far a body is away along the axis on which it is farther; without end in another space.
    fn distance(&self, body: &Body) -> f32 {
        if self.spot.space != body.spot.space {
            return f32::INFINITY;
        }
        let (own, other) = (self.spot.position, body.spot.position);
        (own.x - other.x).abs().max((own.z - other.z).abs())
    }
}

/// What an observer sees, ascending, if it saw `before`.
fn look(space: Option<&Bodies>, observer: &Observer, before: &[EntityId]) -> Vec<EntityId> {
    let Some(space) = space else {
        return Vec::new();
    };
    let Reach { radius, hysteresis } = observer.reach;
    let mut seen = Vec::with_capacity(before.len());
    let reach = radius + hysteresis + space.appeal;
    for (entity, body) in space.grid.near(observer.spot.position, reach) {
        let caught = observer.catches(body) || (observer.holds(body) && before.binary_search(&entity).is_ok());
        if caught && entity != observer.entity {
            seen.push(entity);
        }
    }
    seen.sort_unstable();
    seen
}

/// What is in the first and not in the other; both ascend.
fn missing(of: &[EntityId], from: &[EntityId]) -> impl Iterator<Item = EntityId> {
    of.iter().filter(|entity| from.binary_search(entity).is_err()).copied()
}
