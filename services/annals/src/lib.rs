//! The command line: run a realm, check definitions, read the log.

pub mod up;
pub mod up_command;
