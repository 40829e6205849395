//! An explicit-state model of the log protocol, and the schedules that each rule prevents.
