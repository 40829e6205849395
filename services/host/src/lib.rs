//! The shells: clock, sockets, files and one thin binary per service.

pub mod base;
pub mod cell;
pub mod child;
pub mod claim;
pub mod clock;
pub mod comparing;
pub mod config;
pub mod db;
pub mod director;
pub mod edge;
pub mod front;
mod gauge;
pub mod health;
pub mod holder;
pub mod keeper;
pub mod lives;
pub mod log;
pub mod login;
pub mod nats;
pub mod process;
mod registry;
pub mod service;
pub mod signer;
pub mod source;
pub mod store;
pub mod telemetry;
pub mod world;
