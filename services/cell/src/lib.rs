//! The cell core: real entities, ghosts, witnesses, hand-over.
//!
//! Responsible for: what a cell owner does beyond what all owners do (`annals-node`): the positions of its entities,
//! the ghosts that it sends and receives (rule V2 of `docs/protocol.md`), the hand-over of entities to other owners
//! (rules H1 to H7), and what the clients of its entities are sent (rule V3). Not responsible for: the map, which the
//! director draws, or clients' connections, which end at bases.
//!
//! Everything sent to others follows the entities' histories: each tick sends, to each receiver, what came after the
//! history number that it has. Lost, skipped and repeated messages therefore need no path of their own.

mod budget;
mod clients;
mod controllers;
mod directed;
mod driving;
mod entity_view;
mod existence;
mod ghost_receiver;
mod ghost_sender;
mod handover;
mod history;
mod input;
mod knowledge;
mod known_entity;
mod movement_encoder;
mod overview;
mod physics;
mod role;
mod sampling;
mod spaces;
mod spatial_index;
mod survey;
mod teleport;
mod territory;
mod view;
mod witness;

pub use ghost_receiver::{Ghost, GhostReceiver};
pub use input::{CellInput, Counters};
pub use role::CellRole;
pub use sampling::TICK;
