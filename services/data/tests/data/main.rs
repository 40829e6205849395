//! Integration tests of annals-data, in one binary: linking takes longer than compiling.

mod files;
mod round_trip;
mod sections;
mod vectors;
