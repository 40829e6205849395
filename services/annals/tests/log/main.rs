//! `annals log`, `annals audit` of entities and moments, `annals realm query`, `cells` and `costs` on generated realms,
//! intact and damaged.

#![allow(clippy::unwrap_used, reason = "what is missing in a test has failed it")]

mod carrier;
mod cells;
mod costs;
mod directory;
mod live;
mod past;
mod query;
mod resuming;
mod retention;
mod segments;
mod tail;

#[path = "../../../audit/tests/audit/world.rs"]
#[allow(dead_code, reason = "the tests of verification ask more of a world")]
mod world;
