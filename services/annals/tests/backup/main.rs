//! Backups of generated realms: created, damaged, restored, and interrupted at any point.

#![allow(clippy::unwrap_used, reason = "what is missing in a test has failed it")]

#[path = "../../../audit/tests/audit/world.rs"]
#[allow(dead_code, reason = "the tests of verification ask more of a world")]
mod world;

mod commands;
mod pieces;
mod retention;
mod targets;
