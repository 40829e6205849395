//! The director core: liveness, epochs and placement.
//!
//! Responsible for: who is alive ([`Roster`], pure), how a realm starts and stops ([`Course`], pure), what is granted to whom ([`Grants`], transactions under a term), how
//! spaces are divided ([`Balance`], pure), and the openings that takers record ([`openings`]). Not responsible for: telling
//! anybody: the shell sends grants and maps, and sends them again until they are heard.

mod balance;
mod course;
pub mod division;
mod grants;
mod loads;
pub mod openings;
mod roster;
mod settling;
mod staffing;

pub use balance::{Balance, MAP_PERIOD, SpacePlan};
pub use course::{Course, Desired, MOST_DELAY, Progress, STAGE_PATIENCE, Stage, Waiting};
pub use grants::{Grant, GrantError, Grants, ID_BLOCK, read_owners};
pub use loads::NOMINAL_RATE;
pub use roster::{Beat, Decision, Roster, SILENCE};
pub use staffing::{Change, Pace};
