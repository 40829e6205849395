//! The auditor, tested with generated games whose every step is known.

mod answers;
mod called;
mod game;
mod moments;
mod tampering;
