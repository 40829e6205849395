//! Integration tests of annals-sim. One binary, since each is linked with all dependencies.

mod drains;
mod learned;
mod seeds;
mod shrinks;
