//! Whose turn it is: the priority queue of a witness.
//!
//! An observer cannot be told of everybody at every tick. Each entity in its view has a priority; the lower, the sooner its
//! turn comes. A turn raises it by a *delta* that grows with the distance ([`Scheme`]), so what is far is told of less
//! often, and what is near is never starved by it nor starves it: over time, turns are to one another as the deltas are,
//! the other way round.
//!
//! The scheme, the cap and the throttle are BigWorld's (`seeds/001`, "the priority of an `EntityCache`"). Two things are better here
//! than there. Its queue starts again from nothing whenever everybody had a turn, which makes the next order one of chance,
//! and lifts whoever had a turn to the first who had none, which gives near and far the same share where bytes are scarce.
//! Here the queue has a time of its own, which goes on by the cap, or to the lowest priority if that is farther, at a tick in
//! which all had a turn whose turn it was; it waits where bytes ran out. A priority is lifted to that time only. So a delta
//! of so many caps is a turn every so many ticks while there is room, and nobody gathers credit meanwhile, to use it up at
//! the expense of others when there is none. Who is alone, or far away like everybody else, has more turns than that, as
//! there.

/// How much farther the priority of an entity is put back at each turn, by its distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scheme {
    /// The delta of what stands at the observer's feet.
    pub near: f64,
    /// What each metre adds.
    pub per_metre: f64,
    /// The largest delta.
    pub most: f64,
}

impl Default for Scheme {
    /// One fifth of the distance and 1, at most 101: what is 500 m away.
    fn default() -> Self {
        Self {
            near: 1.0,
            per_metre: 0.2,
            most: 101.0,
        }
    }
}

/// How many times as large as the last one a delta is at most: who walks away quickly is told of less often by degrees.
const GROWTH: f64 = 1.125;

/// The place of one entity in the queue of one observer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Priority {
    value: f64,
    /// The last delta; `None` before the first turn.
    delta: Option<f64>,
}

impl Priority {
    /// The lower, the sooner.
    #[must_use]
    pub fn value(&self) -> f64 {
        self.value
    }
}

/// See the module. It knows nobody: who is in it holds a [`Priority`].
///
/// Driving it, at each tick: give a turn ([`turn`](Self::turn)) to whoever [`is_due`](Self::is_due), lowest priority first,
/// for as long as there is room; then [`end_tick`](Self::end_tick).
#[derive(Clone, Debug)]
pub struct PriorityQueue {
    scheme: Scheme,
    cap: f64,
    time: f64,
}

impl PriorityQueue {
    /// How far priorities go on in a tick: what is up to 20 m away has a turn at every tick.
    pub const CAP: f64 = 5.0;

    /// An empty queue.
    ///
    /// # Panics
    /// When the cap is not positive, or a delta could be none.
    #[must_use]
    pub fn new(scheme: Scheme, cap: f64) -> Self {
        assert!(cap > 0.0 && scheme.per_metre >= 0.0, "time goes on");
        assert!(scheme.near >= 0.0 && scheme.most > 0.0, "a turn puts back");
        Self { scheme, cap, time: 0.0 }
    }

    /// The place of somebody new: its turn is at once.
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

    /// Puts back whoever has a turn, by its distance in metres.
    pub fn turn(&self, priority: &mut Priority, distance: f32) {
        let Scheme { near, per_metre, most } = self.scheme;
        let wanted = (near + f64::from(distance) * per_metre).min(most);
        let delta = priority.delta.map_or(wanted, |last| wanted.min(last * GROWTH));
        *priority = Priority {
            value: (priority.value + delta).max(self.time),
            delta: Some(delta),
        };
    }

    /// Ends a tick. `first` is the lowest priority of all now; `left` says whether somebody whose turn it was had none.
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
