//! The director core: liveness, epochs and placement.
//!
//! Responsible for: who is alive ([`Membership`], pure), how a realm starts and stops ([`Lifecycle`], pure), what is granted to whom ([`Grants`], transactions under a term), how
//! spaces are divided ([`Balance`], pure), and the openings that takers record ([`openings`]). Not responsible for: telling
//! anybody: the shell sends grants and maps, and sends them again until they are heard.

mod balance;
mod balancing;
mod cell_scaling;
pub mod division;
mod grants;
mod lifecycle;
mod loads;
mod membership;
pub mod openings;

pub use balance::{Balance, MAP_PERIOD, SpacePlan};
pub use cell_scaling::{Change, Pace};
pub use grants::{Grant, GrantError, Grants, ID_BLOCK, read_owners};
pub use lifecycle::{Desired, Lifecycle, MOST_DELAY, Progress, STAGE_PATIENCE, Stage, Waiting};
pub use loads::NOMINAL_RATE;
pub use membership::{Beat, Decision, Membership, SILENCE};
