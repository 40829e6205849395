//! What make bench runs.
