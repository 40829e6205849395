//! The auditor: questions about the past, answered from the archive alone, whether its realm is running or not.
//!
//! The auditing process builds an [`Index`] from the archives of a realm's shards, and verifies them as it does so:
//! each batch's bytes, the chain of each log, and for each shard the Merkle tree over all of them. The index only
//! stores positions. Whatever an answer cites is read from the archive again and compared with the verified hash, so
//! that a changed archive, or an index with wrong positions, results in an error and never in an answer. Public
//! asynchronous functions are `#[boxed]` as those of `annals_db`.
//!
//! Responsible for: the index, the entries and events that an answer rests on ([`Index`], [`EntityLog`]), the realm at
//! a moment ([`past`]), evidence for others ([`evidence`]), and the verification of a whole log ([`verify`]). Not
//! responsible for: conclusions from entries (`annals-evidence`), or the presentation of answers (the command line and
//! the console).

mod answer;
pub mod archive;
mod called;
mod cited;
mod comparing;
mod entity;
pub mod evidence;
mod floors;
mod holder;
mod index;
mod intake;
mod lives;
pub mod moment;
mod moments;
pub mod names;
pub mod past;
mod questions;
mod recent;
pub mod replay;
mod rows;
mod sessions;
pub mod verify;

pub use answer::AuditError;
pub use called::holders_of;
pub use comparing::Astray;
pub use entity::{EntityEvent, EntityLog};
pub use floors::Floors;
pub use holder::{Unclear, Who};
pub use index::{Extent, Index, IndexError, Progress};
pub use lives::{LifeStep, Turn};
pub use sessions::{CameIn, Sessions, Who as Behind, named};
