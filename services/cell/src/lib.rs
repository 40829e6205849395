//! The cell core: real entities, ghosts, witnesses, hand-over.
//!
//! Responsible for: what a cell owner does that a base owner does not. [`CellRole`] is its part in the core contract of
//! `annals-node`; `lifecycle` makes and ends cell parts, `handover` passes them to other cells (rules H1 to H7), `haunts` and
//! `ghosts` are the two sides of what stands near a boundary (V2), `witness` shows clients what is around (V3). Not
//! responsible for: the index behind areas of interest (`annals-space`), or whatever all owners have in common.

mod ghosts;
mod handover;
mod haunts;
mod lifecycle;
mod role;
mod witness;

pub use ghosts::{Ghost, Ghosts};
pub use role::{CellInput, CellRole, TICK};
