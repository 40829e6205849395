//! Integration tests of annals-wire, in one binary: linking takes longer than compiling.

#![allow(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

mod cells;
mod client_hostile;
mod client_vectors;
mod load;
mod map;
mod overview;
mod packing;
mod predicted_vectors;
mod shown;
mod volatile;

mod support;
