//! The store: ordered keys, serializable transactions, versionstamps and watches.
//!
//! Shaped like FoundationDB, which is what production runs, and with its limits. A [`Store`] is held without knowing which
//! implementation is behind it:
//!
//! - [`embedded::EmbeddedStore`], files of one machine, held by one process;
//! - [`fdb`], a FoundationDB cluster, when it is compiled in;
//! - [`remote::RemoteStore`], a store that another process serves over NATS;
//! - [`MemoryStore`], for the simulation and tests, where nothing waits and time is an input.
//!
//! Responsible for: transactions that are strictly serializable and last once they are acknowledged; where things lie in the
//! store ([`layout`]). Not responsible for: what they mean, which is the business of the director and of db.
//!
//! What is archived is read through [`archive`], which hides whether it is [sealed](segment).
//!
//! Reading order: [`Store`] and [`Transaction`] are what callers use; [`Backend`] is what an implementation provides;
//! `sequencer` and `resolver` decide what conflicts; `embedded` makes it last.

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
pub use backend::{Backend, Order, Page, RangeRead, Row};
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
