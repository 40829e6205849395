//! Integration tests of annals-director, in one binary: linking takes longer than compiling.

mod admission;
mod balance;
mod grants;
mod openings;
