//! The cell core: real entities, ghosts, witnesses, hand-over.
//!
//! Responsible for: what a cell owner does beside what all owners do (`annals-node`): where its entities are, which owners
//! have ghosts of them and of which entities it has ghosts itself (rule V2 of `docs/protocol.md`), when an entity goes to
//! another owner (rules H1 to H7), and what the clients of its entities are shown (rule V3). Not responsible for: the map,
//! which the director draws, or clients' connections, which end at bases.
//!
//! Everything that others are shown follows the entities' histories: at each tick whoever has been told an entity up to
//! some history number is told what came after it. So nothing that is lost on the way, skipped or repeated needs a path of
//! its own.

mod budget;
mod controllers;
mod entity_view;
mod existence;
mod ghost_receiver;
mod ghost_sender;
mod handover;
mod history;
mod input;
mod movement_encoder;
mod physics;
mod presence;
mod role;
mod sampling;
mod searching;
mod spaces;
mod spatial_query;
mod survey;
mod teleport;
mod territory;
mod view;
mod witness;

pub use ghost_receiver::{Ghost, GhostReceiver};
pub use input::{CellInput, Counters};
pub use role::CellRole;
pub use sampling::TICK;
