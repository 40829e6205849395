//! Integration tests of annals, in one binary: linking takes longer than compiling.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod backup;
mod data;
mod defs;
mod dist;
mod generated;
mod guide;
mod log;
mod lsp;
mod manual;
mod operators;
mod tampering;
mod upgrading;

#[path = "../../../audit/tests/audit/world.rs"]
#[allow(dead_code, reason = "the tests of verification ask more of a world")]
mod world;

#[path = "../../../verify/tests/evidence/archive.rs"]
#[allow(dead_code, reason = "the tests of evidence ask more of an archive")]
mod evidence;

#[path = "../../../audit/tests/audit/game.rs"]
#[allow(dead_code, reason = "the auditor's own tests ask more of a game")]
mod game;
