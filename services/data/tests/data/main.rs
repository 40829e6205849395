//! Integration tests of annals-data. One binary, since each is linked with all dependencies.

mod files;
mod round_trip;
mod sections;
mod vectors;
