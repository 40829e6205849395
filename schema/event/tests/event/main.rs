//! Integration tests of annals-event. One binary, since each is linked with all dependencies.

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
