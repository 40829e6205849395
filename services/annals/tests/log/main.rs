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
mod retention;
mod sweep;
mod tail;
mod verify;
mod world;
