//! What a game outside this repository depends on, in one line of its `Cargo.toml`.
//!
//! Responsible for: giving a game the crates that its behaviour and its generated code use ([`def`], [`event`], [`ids`],
//! [`node`], [`client`]), the two services that contain it ([`base`], [`cell`]), and a realm for its tests
//! ([`testing`]). Not responsible for: anything that those crates do.
//!
//! Generated code names these crates through this one with `annals defs generate --through annals_game`.

pub mod testing;

pub use annals_client as client;
pub use annals_def as def;
pub use annals_event as event;
pub use annals_ids as ids;
pub use annals_node as node;

pub use annals_host::service::{FIRST_SPACE, base, cell};
