//! The shells: clock, sockets, files and one thin binary per service.

pub mod child;
pub mod config;
pub mod edge;
pub mod nats;
