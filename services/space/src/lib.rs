//! Who sees whom: the spatial index and areas of interest.
//!
//! Responsible for: telling, for every observer, which bodies of its space lie within its area of interest ([`Interest`]).
//! Not responsible for: what a body is, what an observer is shown of it, or who is responsible for which part of a space.
//!
//! An area of interest is a square in the horizontal plane around its observer, as everywhere in this field: `|dx|` and
//! `|dz|` are compared, height is not. A body enters at the radius and leaves only beyond radius and hysteresis, so that
//! one that stands on the edge does not come and go.

mod area;
mod bodies;
mod interest;
mod layer;
mod room;
mod squares;
mod steps;

pub use area::{Change, Sighting};
pub use interest::{Body, Interest, Observer, Reach, Spot};
