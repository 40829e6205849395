//! Backups of generated realms: created, damaged, restored, and interrupted at any point.

mod commands;
mod pieces;
mod retention;
mod targets;

use crate::world;
