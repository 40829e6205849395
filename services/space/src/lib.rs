//! Who sees whom, and when: the spatial index, areas of interest, and the queue of who is told of next.
//!
//! Responsible for: telling, for every observer, which bodies of its space lie within its area of interest ([`Interest`]),
//! whose turn it is among them ([`PriorityQueue`]), and who is around a place ([`Census`]). Not responsible for: what a body
//! is, what an observer is shown of it, or who is responsible for which part of a space.
//!
//! An area of interest is a square in the horizontal plane around its observer, as everywhere in this field: `|dx|` and
//! `|dz|` are compared, height is not. A body enters at the radius and leaves only beyond radius and hysteresis, so that
//! one that stands on the edge does not come and go.

mod area;
mod bodies;
mod census;
mod interest;
mod layer;
mod priority;
mod room;
mod squares;
mod steps;

pub use area::{Change, Sighting};
pub use census::Census;
pub use interest::{Body, Interest, Observer, Reach, Spot};
pub use priority::{Priority, PriorityQueue, Scheme};
