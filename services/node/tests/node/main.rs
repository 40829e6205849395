//! Integration tests of annals-node, in one binary: linking takes longer than compiling.

mod gate;
mod journal;
mod showing;
mod writer;
