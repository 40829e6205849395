//! What the log records: events, batches, chain hashes, and the state they fold into.
//!
//! Responsible for: the bytes of the log ([`latest`], versioned by module), their hashes, and how they change an
//! owner's state ([`OwnerState`]). Not responsible for: when a batch is closed or appended (the log writer), what an
//! event means to a game (behaviour), or who may see it (the schema).
//!
//! Formats are written down as grammars at the top of their modules. Nothing in this crate panics on bytes from
//! outside.

mod encoding;
mod migration;
mod state;
pub mod v1;

pub use encoding::{Malformed, ORDINALS, Reader, put_bytes, put_number};
pub use migration::{Migration, Receivers, calls_of, types_of};
pub use state::{ENDED_KEPT, Impossible, LedgerTail, OwnerState};
pub use v1 as latest;
pub use v1::{
    adoption::Adoption,
    audience::Audience,
    batch::{Batch, Consumed, FrozenBatch, Gathering, HEADER_BYTES, Header, Imprint, MAX_REALM_BYTES, Tail, Trace},
    call::{Call, CallError, CellCreation, ClientLink, Link, Outcome, Place, Registration, RequestedBase},
    controller::{
        CONTROLLERS, Class, Controller, ControllerEvent, Controllers, Ending, Facing, Gait, Height, PATH_LIMIT, Rounds,
        Seat, TRAP_LIMIT, Task,
    },
    event::{Awaiting, BaseCreation, Body, Cause, Event, Subject, Timer},
    former_cell::FormerCell,
    given_client::{GivenClient, GivenOutcome},
    global_data::{
        GLOBAL_KEY_BYTES, GLOBAL_KEYS, GLOBAL_VALUE_BYTES, GlobalData, GlobalEntry, GlobalScope, GlobalVersion,
        GlobalVersions,
    },
    image::{BaseImage, CellImage, HISTORY_KEPT, Image, Links, PartImage, Sent},
    ledger,
    movement_control::{Driver, MovementControl},
    sight::{AreaOfInterest, MANUAL_LIMIT, Sight, SightChange},
    space_data::{
        self, Geometry, SPACE_KEYS, SPACE_VALUE_BYTES, SpaceData, SpaceEntry, SpaceVersion, SpaceVersions, TimeOfDay,
    },
    thinned::{Thinned, calls_confirmed, calls_made},
};
