//! The auditor's checkpointed: questions about the past, answered from the archive alone, whether its realm runs or not.
//!
//! An [`Index`] is built by whoever asks, from an archive that it verifies on the way: each batch's bytes, the chain of each
//! log, and the Merkle tree over all of them. It says where things stand and no more. Whatever an answer cites is read from
//! the archive again and held against the hash that was verified, so an archive that was changed since, or an index that
//! points elsewhere, ends in an error and not in an answer.
//!
//! Responsible for: the index, which entries and events an answer rests on ([`Index`], [`EntityLog`]), the realm at a moment
//! ([`past`]), and evidence for others ([`evidence`]). Not responsible for: what follows from entries, which `annals-evidence`
//! says; how answers are shown, which is the business of the command line and of the console.

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

pub use answer::AuditError;
pub use called::holders_of;
pub use comparing::Astray;
pub use entity::{EntityEvent, EntityLog};
pub use floors::Floors;
pub use holder::{Unclear, Who};
pub use index::{Extent, Index, IndexError, Progress};
pub use lives::{LifeStep, Turn};
pub use sessions::{CameIn, Sessions, Who as Behind, named};
