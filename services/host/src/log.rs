//! The log on JetStream: rules L4 to L6 and F4 to F6 of `docs/protocol.md`, as far as they concern a server.
//!
//! Responsible for: the stream that holds a shard's logs, appending to it and reading from it in the ways the protocol
//! allows, and carrying out the decisions of a [`Writer`](annals_node::writer::Writer). Not responsible for deciding
//! anything.

mod driver;
mod history;
mod logs;
mod reader;

/// What [`History::read`] has read of a log.
pub use annals_node::follow::Reading;
pub use driver::{Driver, Holding, LogCore, Recording, Registry};
pub use history::{Entry, Fault, History, Lane, ReadError, Verdict};
pub use logs::Logs;
pub use reader::Reader;
