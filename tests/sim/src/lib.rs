//! The deterministic simulation: production cores on a simulated log, bus and store.
