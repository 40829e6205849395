//! `annals log`, `annals audit` of entities and moments, `annals realm query`, `cells` and `costs` on generated realms,
//! intact and damaged.

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

use crate::world;
