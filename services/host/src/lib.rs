//! The shells: clock, sockets, files and one thin binary per service.

pub mod child;
pub mod clock;
pub mod config;
pub mod edge;
pub mod health;
pub mod log;
pub mod nats;
pub mod telemetry;
