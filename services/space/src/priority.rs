//! The priority queue of a witness: which entity is updated next.
//!
//! An observer cannot be sent updates of all entities at every tick. Each entity in its view has a priority; the lower,
//! the sooner its turn comes. A turn raises it by a *delta* that grows with the distance ([`Scheme`]). So distant
//! entities are updated less often, and neither near nor distant ones starve the other: over time, the numbers of turns
//! are inversely proportional to the deltas.
//!
//! The scheme, the cap and the throttle are BigWorld's (`seeds/001`, "the priority of an `EntityCache`"). Two things
//! are better here than there. Its queue restarts from zero whenever every entity had a turn, which makes the next
//! order arbitrary, and it lifts each entity that had a turn to the first that had none, which gives near and distant
//! entities the same share when bandwidth is scarce. Here the queue has a time of its own. In a tick in which every due
//! entity had a turn, it advances by the cap, or to the lowest priority if that is farther; it stops when bytes run
//! out. A priority is lifted to that time only. So a delta of n caps is a turn every n ticks while there is room, and
//! no entity gathers credit meanwhile that it could spend at the expense of others under shortage. An entity that is
//! alone, or as distant as all the others, has more turns than that, as in BigWorld.

/// Increase of an entity's priority at each turn, by its distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    /// Delta at distance 0.
    pub near: f64,
    /// Increase per metre.
    pub per_metre: f64,
    /// Largest delta.
    pub most: f64,
}

impl Default for Scheme {
    /// One fifth of the distance plus 1, at most 101, reached at 500 m.
    fn default() -> Self {
        Self {
            near: 1.0,
            per_metre: 0.2,
            most: 101.0,
        }
    }
}

/// Maximum ratio of a delta to the previous one: the update rate of an entity that moves away quickly falls gradually.
const GROWTH: f64 = 1.125;

/// The position of one entity in the queue of one observer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Priority {
    value: f64,
    /// The previous delta; `None` before the first turn.
    delta: Option<f64>,
}

impl Priority {
    /// The priority; the lower, the sooner.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.value
    }
}

/// The queue's time. It does not hold the entities: each entry is a [`Priority`] that the caller keeps.
///
/// Driving it, at each tick: give a turn ([`turn`](Self::turn)) to entities that are due ([`is_due`](Self::is_due)),
/// lowest priority first, for as long as there is room; then call [`end_tick`](Self::end_tick).
#[derive(Clone, Debug)]
pub struct PriorityQueue {
    scheme: Scheme,
    cap: f64,
    time: f64,
}

impl PriorityQueue {
    /// Advance of the queue's time per tick: entities up to 20 m away have a turn at every tick.
    pub const CAP: f64 = 5.0;

    /// An empty queue.
    ///
    /// # Panics
    /// If the cap or the largest delta is not positive, or `near` or `per_metre` is negative.
    #[must_use]
    pub fn new(scheme: Scheme, cap: f64) -> Self {
        assert!(
            cap > 0.0 && scheme.per_metre >= 0.0,
            "cap is positive, and per_metre is not negative"
        );
        assert!(
            scheme.near >= 0.0 && scheme.most > 0.0,
            "near is not negative, and the largest delta is positive"
        );
        Self { scheme, cap, time: 0.0 }
    }

    /// The priority of a new entity: its turn is at once.
    #[must_use]
    pub fn enter(&self) -> Priority {
        Priority {
            value: self.time,
            delta: None,
        }
    }

    /// Whether it may have a turn at this tick.
    #[must_use]
    pub fn is_due(&self, priority: &Priority) -> bool {
        priority.value < self.time + self.cap
    }

    /// Raises the priority of an entity that has a turn, by its distance in metres.
    pub fn turn(&self, priority: &mut Priority, distance: f32) {
        let Scheme { near, per_metre, most } = self.scheme;
        let wanted = (near + f64::from(distance) * per_metre).min(most);
        let delta = priority.delta.map_or(wanted, |last| wanted.min(last * GROWTH));
        *priority = Priority {
            value: (priority.value + delta).max(self.time),
            delta: Some(delta),
        };
    }

    /// Ends a tick. `first` is the lowest priority of all now; `left` says whether an entity that was due had no turn.
    pub fn end_tick(&mut self, first: Option<f64>, left: bool) {
        let gone_on = if left { self.time } else { self.time + self.cap };
        self.time = first.map_or(gone_on, |first| first.max(gone_on));
    }
}

impl Default for PriorityQueue {
    fn default() -> Self {
        Self::new(Scheme::default(), Self::CAP)
    }
}
