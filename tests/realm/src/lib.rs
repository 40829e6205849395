//! End-to-end tests on real processes.
