//! Identifiers and units: newtypes for everything that is counted, named or hashed.
