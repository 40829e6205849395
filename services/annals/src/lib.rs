//! The command line: run a realm, check definitions, read the log.
//!
//! Responsible for: the operator's commands, their arguments and what they print. Not responsible for: anything that a
//! service does; bots and the checker of what they were shown (`annals-bots`).

pub mod audit_command;
pub mod backup;
pub mod backup_command;
pub mod bots_command;
pub mod check_command;
pub mod checkpoint_command;
mod cluster;
pub mod data_command;
mod definition_change;
pub mod defs_command;
pub mod demo_command;
pub mod dev_command;
mod director;
mod kept_checkpoints;
pub mod log_command;
pub mod manual_command;
pub mod new_command;
mod operating;
pub mod person_command;
pub mod play_command;
pub mod progress;
pub mod realm_command;
mod rolling;
pub mod segments;
pub mod stopping;
pub mod tail;
pub mod up;
pub mod up_command;
mod value_json;
