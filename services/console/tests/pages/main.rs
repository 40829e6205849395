//! The pages over generated archives of which all is known: who may see them, what is written down of it, what they say, and what
//! becomes of them when something is not as it was.

mod access;
mod answers;
mod archive;
mod desk;
mod evidence;
mod limits;
mod moments;
mod slow;
mod visitor;
mod written;

#[path = "../../../audit/tests/audit/game.rs"]
#[allow(dead_code, reason = "the auditor's own tests ask more of a game")]
mod game;

#[path = "../../../annals/tests/log/world.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "the tests of the log ask more of a world, and unwrap what they made"
)]
mod world;
