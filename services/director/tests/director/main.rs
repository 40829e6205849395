//! Integration tests of annals-director. One binary, since each is linked with all dependencies.

mod admission;
mod balance;
mod grants;
mod openings;
