//! The store: ordered keys, serializable transactions, versionstamps and watches.
//!
//! Modelled on FoundationDB, the production store, and with its limits. A [`Store`] hides which implementation is
//! behind it:
//!
//! - [`embedded::EmbeddedStore`]: files on one machine, used by one process;
//! - [`fdb`]: a FoundationDB cluster, if compiled in;
//! - [`remote::RemoteStore`]: a store that another process serves over NATS;
//! - [`MemoryStore`]: for the simulation and tests; it never waits, and time is an input.
//!
//! Responsible for: strictly serializable transactions that are durable once acknowledged, and the layout of keys in
//! the store ([`layout`]). Not responsible for the meaning of the data: that belongs to the director and to db.
//!
//! [`archive`] reads archived batches, [sealed](segment) or not, through one interface.
//!
//! Reading order: [`Store`] and [`Transaction`] are the interface for callers; [`Backend`] is the interface that an
//! implementation provides; `sequencer` and `resolver` detect conflicts; `embedded` makes commits durable.

mod ahead;
pub mod archive;
mod archived_batch;
mod backend;
#[cfg(feature = "conformance")]
pub mod conformance;
mod draft;
pub mod embedded;
mod error;
pub mod faults;
pub mod fdb;
mod key;
mod largest;
pub mod layout;
pub mod limits;
mod memory;
mod mutation;
pub mod remote;
mod resolver;
pub mod segment;
mod sequencer;
mod state;
mod store;
mod transaction;
pub mod tuple;
mod version;
mod watches;

pub use archived_batch::ArchivedBatch;
pub use backend::{Backend, Page, RangeRead, Row, ScanOrder, Submitted};
pub use error::{Retry, StoreError};
pub use key::{KeyRange, key_after, prefix_end};
pub use largest::Largest;
pub use memory::{MemoryStore, immediate};
pub use mutation::{CommitRequest, Mutation, Stamped};
pub use sequencer::Committed;
pub use state::{StoreState, WatchId};
pub use store::{Once, Store};
pub use transaction::{SnapshotReads, Transaction};
pub use version::{Version, Versionstamp};
