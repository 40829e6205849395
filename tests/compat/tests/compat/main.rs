//! Integration tests of annals-compat, in one binary: linking takes longer than compiling.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bus;
mod releases;
