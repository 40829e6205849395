//! The auditor, tested with generated games whose every step is known; and the verification of logs, tested with
//! generated realms, intact and damaged.

#![allow(clippy::unwrap_used, reason = "what is missing in a test has failed it")]

mod answers;
mod called;
mod game;
mod moments;
mod past;
mod shards;
mod sweep;
mod tampering;
mod verify;
mod walks;
mod words;
#[allow(dead_code, reason = "the tests of `annals log` ask more of a world")]
mod world;
