//! Integration tests of annals-sim, in one binary: linking takes longer than compiling.

mod drains;
mod learned;
mod seeds;
mod shrinks;
