//! Who sees whom: the spatial index and areas of interest.
//!
//! Responsible for: which entities each observer has in view after every move, by the rule that BigWorld and KBEngine share:
//! one comes into view at the radius, leaves it beyond radius plus hysteresis, and distance is the larger of |dx| and |dz|, so
//! that an area of interest is a square whatever the height. Not responsible for: what an observer is shown.

use std::collections::{BTreeMap, BTreeSet};

use annals_ids::{EntityId, Position, SpaceId};

/// Where an entity stands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spot {
    /// In which space.
    pub space: SpaceId,
    /// Where in it.
    pub position: Position,
}

/// How far observers of a space see, metres.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sight {
    /// Half the side of the square.
    pub radius: f32,
    /// How much further out somebody must be to leave it.
    pub hysteresis: f32,
}

/// Something came into view or went out of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Change {
    /// Who sees.
    pub observer: EntityId,
    /// Whom.
    pub entity: EntityId,
    /// Whether from now on, or no longer.
    pub enters: bool,
}

/// The areas of interest of all observers.
#[derive(Clone, Debug, Default)]
pub struct Interest {
    views: BTreeMap<EntityId, BTreeSet<EntityId>>,
}

impl Interest {
    /// An entity observes from now on; it sees nothing before the next [`Interest::update`].
    pub fn observe(&mut self, observer: EntityId) {
        self.views.entry(observer).or_default();
    }

    /// It observes no longer. Nothing is told about what it had in view.
    pub fn forget(&mut self, observer: EntityId) {
        self.views.remove(&observer);
    }

    /// What an observer has in view, itself not included.
    #[must_use]
    pub fn view(&self, observer: EntityId) -> Option<&BTreeSet<EntityId>> {
        self.views.get(&observer)
    }

    /// Who has an entity in view, not counting itself.
    pub fn observers(&self, entity: EntityId) -> impl Iterator<Item = EntityId> {
        self.views
            .iter()
            .filter(move |(_, view)| view.contains(&entity))
            .map(|(observer, _)| *observer)
    }

    /// Brings all views up to date with where everybody stands now. An entity without a spot is nowhere, and an observer
    /// without one sees nothing. Changes come by observer, then by entity.
    pub fn update(
        &mut self,
        spots: &BTreeMap<EntityId, Spot>,
        sight: impl Fn(SpaceId) -> Option<Sight>,
    ) -> Vec<Change> {
        let mut grids: BTreeMap<SpaceId, Grid> = BTreeMap::new();
        let mut changes = Vec::new();
        for (observer, view) in &mut self.views {
            let seen = match spots.get(observer).and_then(|spot| Some((spot, sight(spot.space)?))) {
                None => BTreeSet::new(),
                Some((spot, sight)) => {
                    let grid = grids
                        .entry(spot.space)
                        .or_insert_with(|| Grid::new(spot.space, sight, spots));
                    let near = grid.around(spot.position);
                    let keeps = |(entity, position): &(EntityId, Position)| {
                        let reach = if view.contains(entity) {
                            sight.radius + sight.hysteresis
                        } else {
                            sight.radius
                        };
                        *entity != *observer && distance(spot.position, *position) <= reach
                    };
                    near.filter(keeps).map(|(entity, _)| entity).collect()
                }
            };
            let entered = seen.difference(view).map(|entity| (*entity, true));
            let left = view.difference(&seen).map(|entity| (*entity, false));
            let mut changed: Vec<(EntityId, bool)> = entered.chain(left).collect();
            changed.sort_unstable();
            changes.extend(changed.into_iter().map(|(entity, enters)| Change {
                observer: *observer,
                entity,
                enters,
            }));
            *view = seen;
        }
        changes
    }
}

/// The metric of areas of interest.
#[must_use]
pub fn distance(a: Position, b: Position) -> f32 {
    (a.x - b.x).abs().max((a.z - b.z).abs())
}

/// A space cut into squares as wide as anybody sees, so that whatever is in view lies in nine of them.
struct Grid {
    side: f32,
    squares: BTreeMap<(i64, i64), Vec<(EntityId, Position)>>,
}

impl Grid {
    fn new(space: SpaceId, sight: Sight, spots: &BTreeMap<EntityId, Spot>) -> Self {
        // A square of less than a metre would cost more than it saves.
        let side = (sight.radius + sight.hysteresis).max(1.0);
        let mut grid = Self {
            side,
            squares: BTreeMap::new(),
        };
        for (entity, spot) in spots.iter().filter(|(_, spot)| spot.space == space) {
            let square = grid.square(spot.position);
            grid.squares.entry(square).or_default().push((*entity, spot.position));
        }
        grid
    }

    fn square(&self, position: Position) -> (i64, i64) {
        (
            (position.x / self.side).floor() as i64,
            (position.z / self.side).floor() as i64,
        )
    }

    fn around(&self, position: Position) -> impl Iterator<Item = (EntityId, Position)> {
        let (column, row) = self.square(position);
        let squares = (column.saturating_sub(1)..=column.saturating_add(1))
            .flat_map(move |column| (row.saturating_sub(1)..=row.saturating_add(1)).map(move |row| (column, row)));
        squares
            .filter_map(|square| self.squares.get(&square))
            .flatten()
            .copied()
    }
}
