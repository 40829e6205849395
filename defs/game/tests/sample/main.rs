//! Integration tests of annals-sample, in one binary: linking takes longer than compiling.

mod command_lines;
mod generated;
mod world;
