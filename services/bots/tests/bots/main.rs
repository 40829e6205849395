//! Integration tests of annals-bots, in one binary: linking takes longer than compiling.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bots;
mod checker;
