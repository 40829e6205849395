//! Integration tests of annals-client, in one binary: linking takes longer than compiling.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod callbacks;
mod model;
mod movements;
mod rules;
