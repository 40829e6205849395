//! The command line: run a realm, check definitions, read the log.
