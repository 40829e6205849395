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

/// How far an observer sees, metres.
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
/// Driving it: say where bodies are ([`place`](Self::place), [`remove`](Self::remove)) and where observers are
/// ([`observe`](Self::observe), [`forget`](Self::forget)), in any order; then [`update`](Self::update) brings every area up
/// to date and tells what changed. Between two updates nothing changes but by [`keep`](Self::keep). An observer does not
/// see the body of its own id.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    bodies: BTreeMap<EntityId, Body>,
    spaces: BTreeMap<SpaceId, Bodies>,
    observers: BTreeMap<EntityId, Observer>,
}

#[derive(Clone, Copy, Debug)]
struct Body {
    spot: Spot,
    appeal: f32,
}

/// The bodies of one space.
#[derive(Clone, Debug, Default)]
struct Bodies {
    grid: Grid<Body>,
    /// How many have which appeal radius (its bits; none is negative, so that they are in order), for the greatest.
    appeals: BTreeMap<u32, usize>,
}

#[derive(Clone, Debug)]
struct Observer {
    spot: Spot,
    reach: Reach,
    /// Ascending.
    seen: Vec<EntityId>,
}

impl Interest {
    /// Says where a body is, which need not have been there before. `appeal` metres are added to every observer's radius.
    pub fn place(&mut self, entity: EntityId, spot: Spot, appeal: f32) {
        let appeal = appeal.max(0.0);
        let body = Body { spot, appeal };
        let before = self.bodies.insert(entity, body);
        match before {
            Some(before) if before.spot.space == spot.space && before.appeal.to_bits() == appeal.to_bits() => {
                let grid = &mut self.spaces.entry(spot.space).or_default().grid;
                grid.relocate(entity, before.spot.position, spot.position, body);
            }
            _ => {
                before.into_iter().for_each(|before| self.take_out(entity, before));
                let bodies = self.spaces.entry(spot.space).or_default();
                bodies.grid.insert(entity, spot.position, body);
                *bodies.appeals.entry(appeal.to_bits()).or_default() += 1;
            }
        }
    }

    /// Takes a body away, if there is one.
    pub fn remove(&mut self, entity: EntityId) {
        if let Some(body) = self.bodies.remove(&entity) {
            self.take_out(entity, body);
        }
    }

    /// The bodies.
    pub fn bodies(&self) -> impl Iterator<Item = EntityId> {
        self.bodies.keys().copied()
    }

    /// Says where an observer is and how far it sees; it need not have been there before.
    pub fn observe(&mut self, entity: EntityId, spot: Spot, reach: Reach) {
        let observer = self.observers.entry(entity).or_insert_with(|| Observer {
            spot,
            reach,
            seen: Vec::new(),
        });
        (observer.spot, observer.reach) = (spot, reach);
    }

    /// Takes an observer away, if there is one. Nothing is told of what it saw.
    pub fn forget(&mut self, entity: EntityId) {
        self.observers.remove(&entity);
    }

    /// The observers.
    pub fn observers(&self) -> impl Iterator<Item = EntityId> {
        self.observers.keys().copied()
    }

    /// Lets an observer see a body that is between the radius and the hysteresis beyond it, because it saw it before it
    /// was known here. Returns whether it sees it now.
    pub fn keep(&mut self, observer: EntityId, body: EntityId) -> bool {
        let (Some(watching), Some(seen)) = (self.observers.get_mut(&observer), self.bodies.get(&body)) else {
            return false;
        };
        let kept = observer != body && watching.holds(seen);
        if kept && let Err(at) = watching.seen.binary_search(&body) {
            watching.seen.insert(at, body);
        }
        kept
    }

    /// What an observer saw at the last update.
    pub fn seen(&self, observer: EntityId) -> impl Iterator<Item = EntityId> {
        self.observers
            .get(&observer)
            .into_iter()
            .flat_map(|observer| observer.seen.iter().copied())
    }

    /// Brings every area of interest up to date. Tells what changed by observer, first who left, then who entered, each
    /// ascending.
    pub fn update(&mut self) -> Vec<Sighting> {
        let mut sightings = Vec::new();
        for (&id, observer) in &mut self.observers {
            let now = look(self.spaces.get(&observer.spot.space), id, observer);
            let before = std::mem::replace(&mut observer.seen, now);
            if before == observer.seen {
                continue;
            }
            let told = |change, body| Sighting {
                observer: id,
                change,
                body,
            };
            sightings.extend(missing(&before, &observer.seen).map(|body| told(Change::Left, body)));
            sightings.extend(missing(&observer.seen, &before).map(|body| told(Change::Entered, body)));
        }
        sightings
    }

    fn take_out(&mut self, entity: EntityId, body: Body) {
        let Some(bodies) = self.spaces.get_mut(&body.spot.space) else {
            return;
        };
        bodies.grid.remove(entity, body.spot.position);
        let bits = body.appeal.to_bits();
        if let Some(count) = bodies.appeals.get_mut(&bits) {
            *count -= 1;
            if *count == 0 {
                bodies.appeals.remove(&bits);
            }
        }
        if bodies.appeals.is_empty() {
            self.spaces.remove(&body.spot.space);
        }
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

/// What an observer sees, ascending.
fn look(space: Option<&Bodies>, own: EntityId, observer: &Observer) -> Vec<EntityId> {
    let Some(space) = space else {
        return Vec::new();
    };
    let greatest = space
        .appeals
        .last_key_value()
        .map_or(0.0, |(&bits, _)| f32::from_bits(bits));
    let Reach { radius, hysteresis } = observer.reach;
    let mut seen = Vec::with_capacity(observer.seen.len());
    for (entity, body) in space.grid.near(observer.spot.position, radius + hysteresis + greatest) {
        let caught = observer.catches(body) || (observer.holds(body) && observer.seen.binary_search(&entity).is_ok());
        if caught && entity != own {
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
