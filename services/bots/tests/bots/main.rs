//! Integration tests of annals-bots. One binary, since each is linked with all dependencies.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod bots;
mod checker;
