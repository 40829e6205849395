//! Integration tests of annals-node. One binary, since each is linked with all dependencies.

mod gate;
mod journal;
mod panics;
mod showing;
mod writer;
