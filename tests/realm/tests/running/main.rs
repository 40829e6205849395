//! What is done to a realm while people play in it: everything that comes from outside and is wrong, disks that fill, a bus
//! that goes away, processes that are stopped. Real processes, as `annals up` runs them; the proof is that of the
//! demonstration: what bots were shown against the archive.
//!
//! The binaries are those that the workspace's test build has made beside this test.

mod accounts;
mod backups;
mod bad_input;
mod beginning;
mod browser;
mod cases;
mod checkpoints;
mod clocks;
mod console;
mod crowd;
mod disks;
mod draining;
mod evidence;
mod full_disks;
mod hands;
mod lives;
mod lost;
mod mending;
mod migrating;
mod operators;
mod paused;
mod persons;
mod played;
mod playing;
mod retention;
mod stopping;
mod strangers;
mod strolling;
mod times;
mod trading;
mod visits;
