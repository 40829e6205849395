//! Backups of generated realms: created, damaged, restored, and interrupted at any point.

#![allow(clippy::unwrap_used, reason = "what is missing in a test has failed it")]

#[path = "../log/world.rs"]
#[allow(
    dead_code,
    reason = "the world is that of the tests of `annals log`, which do more to it"
)]
mod world;

mod commands;
mod pieces;
mod retention;
mod targets;
