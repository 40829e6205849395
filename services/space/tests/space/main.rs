//! Integration tests of annals-space, in one binary: linking takes longer than compiling.

mod census;
mod oracle;
mod priority;

mod histories;
