//! Integration tests of annals-host, in one binary: linking takes longer than compiling.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod answers;
mod authentication;
mod child;
mod command_lines;
mod config;
mod edge;
mod front;
mod health;
mod monitoring;
mod nats_access;
mod nats_server;
mod signer;
mod telemetry;
mod waiting;
