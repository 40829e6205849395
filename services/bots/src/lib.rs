//! Load on a realm, and the proof that a realm keeps what it shows: a library of the command line and of the tests.
//!
//! Responsible for: [`bots`], which play over the real transport and record what they were shown ([`showings`]);
//! [`scenario`]s of what they do, with reports and their comparison; the [`checker`], which compares the records with
//! the archive; the comparison of ledger [`views`] with the ledger; the course of a demonstration ([`demo`]), and
//! damage to show that a check fails ([`tamper`]). Not responsible for: the realm's processes, arguments and printing,
//! which are the command line's.

pub mod bots;
pub mod checker;
pub mod demo;
pub mod progress;
pub mod scenario;
pub mod showings;
pub mod tamper;
pub mod views;
