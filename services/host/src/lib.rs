//! The shells: clock, sockets, files and one thin binary per service.

pub mod child;
pub mod nats;
