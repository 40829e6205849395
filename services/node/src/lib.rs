//! The core contract: log writer, gate, calls, and the driver that services and simulation share.

pub mod gate;
pub mod time;
pub mod writer;
