//! Visibility: the spatial index, areas of interest, and the update queue of a witness.
//!
//! Responsible for: computing, for every observer, which bodies of its space lie within its area of interest
//! ([`Interest`]), which of them is updated next ([`PriorityQueue`]), and which entities are around a place
//! ([`Census`]). Not responsible for: what a body is, what an observer is sent of it, or which cell is responsible for
//! which part of a space.
//!
//! An area of interest is a square in the horizontal plane around its observer, as is usual in the field: `|dx|` and
//! `|dz|` are compared, height is not. A body enters at the radius and leaves only beyond radius plus hysteresis, so
//! that a body at the edge does not enter and leave repeatedly.

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
