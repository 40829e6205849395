//! The cell core, driven by nothing but its inputs: several cells and a home on a small simulated log and bus.
#![expect(
    clippy::disallowed_types,
    reason = "the game is shared by all cells and records its notifications for the tests"
)]

mod answers;
mod changes;
mod client;
mod controllers;
mod costs;
mod cut_logs;
mod directed;
mod driving;
mod errors;
mod existence;
mod faults;
mod forwarding;
mod game;
mod ghosts;
mod globals;
mod handover;
mod home;
mod interleavings;
mod lives;
mod movements;
mod oracle;
mod outage;
mod overview;
mod panics;
mod physics;
mod process;
mod questions;
mod requests;
mod services;
mod sight;
mod soundness;
mod spaces;
mod teleport;
mod views;
mod world;
