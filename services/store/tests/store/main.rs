//! Integration tests of annals-store, in one binary: linking takes longer than compiling.

mod conformance;
mod embedded;
mod remote;

mod nats;
