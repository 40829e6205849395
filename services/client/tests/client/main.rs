//! Integration tests of annals-client. One binary, since each is linked with all dependencies.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod callbacks;
mod model;
mod movements;
mod rules;
