//! What earlier releases stored and sent, read by this one: `releases` holds, for each, a backup of a realm in which bots
//! traded, the states of its owners, and messages of its bus. The tests are in
//! `tests/compat/releases.rs`. `bus` holds the fields of all messages of a bus version, which `tests/compat/bus.rs`
//! compares.
