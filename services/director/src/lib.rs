//! The director core: liveness, epochs and placement.
//!
//! Responsible for: which processes are alive ([`Membership`], pure), how a realm starts and stops ([`Lifecycle`],
//! pure), who may come into a realm with a limit of players ([`Admission`], pure), how its definitions change while it
//! runs ([`Upgrade`], pure), which process is granted which owner ([`Grants`], transactions under a term), how spaces
//! are divided ([`Balance`], pure), and the openings that new holders record ([`openings`]). Not responsible for
//! sending: the shell sends grants and maps, and resends them until they are acknowledged.

mod admission;
mod attention;
mod balance;
mod balancing;
mod cell_scaling;
pub mod division;
mod grants;
mod lifecycle;
mod loads;
mod membership;
pub mod openings;
mod upgrade;

pub use admission::{Admission, FRONT_KEPT, MAX_ROOMS, REPORTED_WITHIN, ROOM_KEPT, RoomRequest, SAME_TIME};
pub use attention::Attention;
pub use balance::{Balance, MAP_PERIOD, SpacePlan};
pub use cell_scaling::{Change, Pace};
pub use grants::{Grant, GrantError, Grants, ID_BLOCK, read_owners};
pub use lifecycle::{Desired, Lifecycle, MOST_DELAY, Progress, STAGE_TIMEOUT, Stage, Waiting};
pub use loads::NOMINAL_RATE;
pub use membership::{
    Beat, ClosedConnections, Decision, Definitions, Duplicate, Membership, RECONNECTION, SILENCE, Unready,
};
pub use upgrade::{Abandoned, CHANGE_TIMEOUT, Upgrade, UpgradeStep};
