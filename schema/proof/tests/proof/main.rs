//! Integration tests of annals-proof, in one binary: linking takes longer than compiling.

mod log_end;
mod notes;
mod others;
mod succession;
mod trees;
