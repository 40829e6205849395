//! Evidence made of generated archives, whose signers are the real ones, and what becomes of it when it is changed.

mod anchors;
mod archive;
mod bundles;
mod commands;
mod handed_out;
mod hostile;
mod omissions;
mod receipts;
mod tampering;

#[path = "../../../audit/tests/audit/game.rs"]
#[allow(dead_code, reason = "the auditor's own tests ask more of a game")]
mod game;
