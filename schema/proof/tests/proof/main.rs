//! Integration tests of annals-proof. One binary, since each is linked with all dependencies.

mod log_end;
mod notes;
mod others;
mod succession;
mod trees;
