//! The cell core, driven by nothing but its inputs: several cells and a home on a small simulated log and bus.

mod client;
mod existence;
mod faults;
mod game;
mod ghosts;
mod handover;
mod home;
mod oracle;
mod outage;
mod process;
mod views;
mod world;
