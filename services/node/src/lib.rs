//! The core contract: log writer, gate, calls, and the driver that services and simulation share.
//!
//! Responsible for what cell and base owners have in common: recording events ([`journal`]), appending them
//! ([`writer`]), holding outputs until their events are in the log ([`gate`]), calls that are executed exactly once,
//! timers, and the trait behind which game code sits ([`Behaviour`]). Not responsible for: space, clients' connections,
//! or anything that waits. A shell drives an [`Owner`], and the simulation drives the same one.

mod around;
mod behaviour;
mod call_limits;
mod call_links;
pub mod chain;
mod context;
pub mod download;
mod ended_cells;
mod exposed;
pub mod follow;
pub mod gate;
mod ghost_view;
mod global_exchange;
mod ids;
pub mod inquiry;
pub mod journal;
mod lifecycle_events;
mod near;
pub mod outbound;
mod output;
mod owner;
mod owner_context;
pub mod panics;
mod routes;
mod schedule;
mod showing;
mod tally;
mod teleport;
mod temporaries;
pub mod time;
mod trail;
mod trouble;
pub mod typed;
mod view_frames;
mod waits;
pub mod writer;

pub use around::{Around, Nowhere, Region, Shape};
pub use behaviour::{Answer, Behaviour, Bootstrap, Caller, ControllerSignal};
pub use context::{
    Context, DEFAULT_TIMEOUT_MS, Denied, FOUND_LIMIT, MAX_VALUE_BYTES, SPACE_CLAIM, Stored, check_args, check_reply,
    space_key,
};
pub use ghost_view::GhostView;
pub use ids::{BLOCK, IdBlocks};
pub use lifecycle_events::{LifecycleEvent, ShutDown};
pub use output::{Begun, ConnectionId, NotOpened, NotOrdered, Output, Played, Request};
pub use owner::{Beginning, ClientCallStatus, Input, Owner, Role};
pub use owner_context::OwnerContext;
pub use panics::PanicPolicy;
pub use showing::{Showing, Viewer, shown_upto};
pub use tally::{Cost, CostKind, Member, Tally};
pub use teleport::TeleportFailed;
pub use trail::Trail;
pub use trouble::{ALARM, OwnerError};
pub use view_frames::ViewFrames;
