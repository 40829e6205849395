//! Integration tests of annals-store. One binary, since each is linked with all dependencies.

mod conformance;
mod embedded;
mod remote;

mod nats;
