//! What the examples of the behaviour reference run in: a small world, a realm in memory, and a player in it.
//!
//! [`on_cell`] and [`on_base`] run a function as behaviour of the player's avatar; [`Scene`] does so several times and
//! says which hooks were called in between. [`hooks!`] completes a game of which an example shows some hooks of
//! [`hero`], and [`enter`] plays it. Not responsible for: anything that a game uses. Only examples depend on this crate.

mod completing;
mod scene;

/// Types of the definitions in `tests/reference/defs`.
#[rustfmt::skip]
pub mod defs {
    include!(concat!(env!("OUT_DIR"), "/defs.rs"));
}

use std::{path::Path, sync::Arc};

use annals_def::{Schema, Style, check_dir, render};

pub use annals_def::{self as def, Change, Replaced, Value};
pub use annals_event::{
    self as event, Audience, CallError, Driver, Facing, Gait, Geometry, GlobalScope, Height, Outcome, Place, Seat,
    ledger::{Assets, Booking, Order},
};
pub use annals_game::{
    FIRST_SPACE,
    testing::{self, BASE, EAST, TestRealm, WEST},
};
pub use annals_ids::{
    self as ids, Address, ControllerId, DatabaseId, Direction, EntityId, Mailbox, Part, Position, SpaceId, TimerId,
    TypeId,
};
pub use annals_node::{
    self as node, Answer, Behaviour, Bootstrap, Caller, Context, ControllerSignal, Denied, GhostView, Request, Shape,
    TeleportFailed,
    inquiry::{Learned, NotLearned, Wanted},
    space_key,
    typed::{Failure, Later, Reply, Wait},
};
pub use annals_wire::client::CloseReason;

pub use completing::{begin, enter};
pub use defs::{Dispatcher, Game, Item, account, avatar, hero, kinds, monster, note_store, slots, waypoint};
pub use scene::{Scene, on_account, on_base, on_cell};

/// The compiled definitions of the examples' world.
///
/// # Panics
/// If they have errors.
#[must_use]
pub fn schema() -> Arc<Schema> {
    let (schema, diagnostics) = check_dir(&definitions());
    match schema {
        Some(schema) => Arc::new(schema),
        None => panic!("{}", render(&diagnostics, Style::Plain)),
    }
}

/// The folder of the definitions.
#[must_use]
pub fn definitions() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("defs")
}

/// A place in the first space, metres east and north of its origin.
#[must_use]
pub fn at(x: f32, z: f32) -> Place {
    Place {
        space: FIRST_SPACE,
        position: Position { x, y: 0.0, z },
        direction: Direction::default(),
    }
}
