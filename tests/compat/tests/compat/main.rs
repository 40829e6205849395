//! Integration tests of annals-compat. One binary, since each is linked with all dependencies.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bus;
mod releases;
