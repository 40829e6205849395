//! The director core: liveness, epochs and placement.
