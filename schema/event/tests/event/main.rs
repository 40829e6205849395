//! Integration tests of annals-event, in one binary: linking takes longer than compiling.

mod calls;
mod changes;
mod controllers;
mod fragments;
mod global_data;
mod ledger;
mod log;
mod other_schema;
mod sight;
mod space_data;

#[path = "../../../authoring/tests/authoring/diff/worlds.rs"]
mod worlds;
