//! The auditor's desk against generated games whose every step is known.

mod answers;
mod called;
mod game;
mod moments;
mod tampering;
