//! What lies where in a realm's store. This is the only place that knows.

pub mod idempotency;
