//! Backups of realms: taken while a realm runs, verified, and restored so that the realm continues.
//!
//! A backup is the archive up to a leaf, and the rows of the store that cannot be derived from a log
//! ([`annals_db::read_unlogged`]). At its target it is a list, [`manifest::Manifest`], of pieces named by their
//! content: sealed segments and packs of rows. Pieces are written once and shared by all backups that list them, so a
//! backup costs only what is new since the previous one. The list is written last: an interrupted backup has no list,
//! and the next backup reuses its pieces.
//!
//! Reading order: [`target`] is the storage of pieces; [`manifest`] the list; [`create`], [`check`] and [`restore`] the
//! operations.

pub mod check;
pub mod content;
pub mod create;
pub mod folded;
pub mod manifest;
mod merged;
pub mod restore;
pub mod target;
