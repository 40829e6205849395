//! Drives a base owner as its shell does: login service, clients, a cell and a log on one side, the owner on the other.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod accounts;
mod admission;
mod answers;
mod bans;
mod bootstrap;
mod calls;
mod cell;
mod costs;
mod downloads;
mod elsewhere;
mod faults;
mod further_cells;
mod game;
mod giving;
mod globals;
mod host;
mod inquiries;
mod ledger;
mod lifecycle;
mod near;
mod new_spaces;
mod operators;
mod outbound;
mod personal;
mod player;
mod races;
mod requests;
mod services;
mod stopping;
mod views;
