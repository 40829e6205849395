//! The auditor's desk: questions about the past, answered from the archive alone, whether its realm runs or not.
//!
//! An [`Index`] is built by whoever asks, from an archive that it verifies on the way: each batch's bytes, the chain of each
//! log, and the Merkle tree over all of them. It says where things stand and no more. Whatever an answer cites is read from
//! the archive again and held against the hash that was verified, so an archive that was changed since, or an index that
//! points elsewhere, ends in an error and not in an answer.
//!
//! Responsible for: the index, and which entries and events an answer rests on. Not responsible for: what follows from entries,
//! which `annals-evidence` says; where an archive is found and how answers are printed, which is the business of the command line
//! and of the console.

mod answer;
mod cited;
mod entity;
mod index;
mod intake;
mod moments;
mod questions;
mod rows;

pub use answer::AuditError;
pub use entity::{EntityEvent, EntityLog};
pub use index::{Extent, Index, IndexError, Progress};
