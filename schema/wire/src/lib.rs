//! Bus messages, subjects and client frames.
//!
//! Responsible for: the shape and bytes of everything sent between processes and between a client and the realm. Not
//! responsible for: sending it, or what must be in the log before it may be sent.

pub mod bus;
pub mod cells;
pub mod client;
pub mod control;
pub mod load;
mod map;
pub mod overview;
mod subjects;

pub use map::{CellArea, HANDOVER_DEPTH, Space, SpaceMap};
pub use subjects::Subjects;
