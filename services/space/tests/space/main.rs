//! Integration tests of annals-space. One binary, since each is linked with all dependencies.

mod census;
mod oracle;
mod priority;

mod histories;
