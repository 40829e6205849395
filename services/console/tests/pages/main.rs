//! The pages over generated archives with known content: access, the access log, the answers, and the behaviour when
//! the archive or the store is damaged.

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

#[path = "../../../audit/tests/audit/world.rs"]
#[allow(
    dead_code,
    clippy::unwrap_used,
    reason = "the tests of verification ask more of a world, and unwrap what they made"
)]
mod world;
