//! Integration tests of annals-sample. One binary, since each is linked with all dependencies.

mod command_lines;
mod generated;
mod world;
