//! Evidence from generated archives with real signers, and the detection of changes to it.

mod anchors;
mod archive;
mod bundles;
mod commands;
mod handed_out;
mod hostile;
mod log_ends;
mod omissions;
mod receipts;
mod tampering;

#[path = "../../../audit/tests/audit/game.rs"]
#[allow(dead_code, reason = "the auditor's own tests ask more of a game")]
mod game;
