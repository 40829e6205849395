//! Backups of realms: made while they run, verified, and restored so that they go on.
//!
//! A backup is the archive up to a leaf, and the rows of the store that no log yields ([`annals_db::read_unlogged`]). At its
//! target it is a list, [`manifest::Manifest`], of pieces that are named by their content: sealed segments and packs of rows.
//! Pieces are written once and shared by all backups that list them, so that a backup costs what is new since the one
//! before. The list is written last: what was interrupted is no backup, and its pieces are found by the next one.
//!
//! Reading order: [`target`] is where pieces lie; [`manifest`] what a backup says of itself; [`create`], [`check`] and
//! [`restore`] are the operations.

pub mod check;
pub mod content;
pub mod create;
pub mod manifest;
pub mod restore;
pub mod target;
