//! Disturbances of a realm during play: invalid input from outside, full disks, bus outages, stopped processes. Real
//! processes, as `annals up` runs them; the check is that of the demonstration: what bots were shown is compared with
//! the archive.
//!
//! The binaries are those that the workspace's test build has made beside this test.

mod accounts;
mod backups;
mod bad_input;
mod bans;
mod beginning;
mod browser;
mod c_client;
mod cases;
mod checkpoints;
mod clocks;
mod collector;
mod console;
mod crowd;
mod dashboards;
mod demo;
mod deployed;
mod disks;
mod draining;
mod evidence;
mod full_disks;
mod giving;
mod globals;
mod hands;
mod lives;
mod logging_in;
mod lost;
mod migrating;
mod new_client;
mod operator_pages;
mod operators;
mod page;
mod paused;
mod persons;
mod played;
mod playing;
mod prometheus;
mod queue;
mod repair;
mod retention;
mod rotating;
mod runbook;
mod scenarios;
mod secured;
mod shards;
mod stopping;
mod strangers;
mod strolling;
mod times;
mod tracing;
mod trading;
mod typescript;
mod upgrading;
mod visits;
mod warnings;
mod watching;
