//! The auditor's desk: questions about the past, answered from the archive alone, whether its realm runs or not.
//!
//! An [`Index`] is built by whoever asks, from an archive that it verifies on the way: each batch's bytes, the chain of each
//! log, and the Merkle tree over all of them. It says where things stand and no more. Whatever an answer cites is read from
//! the archive again and held against the hash that was verified, so an archive that was changed since, or an index that
//! points elsewhere, ends in an error and not in an answer.
//!
//! Responsible for: the index, what the answers are, and what they rest on. Not responsible for: where an archive is found
//! and how answers are printed, which is the business of the command line and of the console.
//!
//! Reading order: [`Index`], then [`Item`], [`Trade`] and [`Owned`], which are made of [`Cited`] entries, and [`EntityLog`], which
//! is made of events.

mod answer;
mod cited;
mod entity;
mod holdings;
mod index;
mod intake;
mod item;
mod moments;
mod owned;
mod rows;
mod span;
mod trade;

pub use answer::AuditError;
pub use cited::{Asked, Cited};
pub use entity::{EntityEvent, EntityLog};
pub use holdings::Inventory;
pub use index::{Extent, Index, IndexError, Progress};
pub use item::{Item, ItemStep};
pub use owned::{Owned, OwnedStep};
pub use span::{Span, Until};
pub use trade::{Trade, TradeSide, TradeStep};
