//! The login core: credentials in, a single-use ticket out.
//!
//! Responsible for: the order in which db, director and base are asked for a log-in, retries, time limits, the order in
//! which passwords are verified, and how often a name may be tried. Not responsible for: passwords (the service that
//! answers [verify](Output::Verify) compares them), connections, or sessions (the base core). It has no durable state:
//! log-ins of a login process that dies are lost, and clients start them again.
//!
//! Names and secrets leave it only in the requests that need them.

mod attempt;
mod login;
mod throttle;
mod turns;

pub use attempt::{LOGIN_WITHIN, TIMEOUT};
pub use login::{
    AskId, Checkout, Counters, Input, Login, MAX_ATTEMPTS, MAX_PER_NAME, MAX_QUEUED, MAX_VERIFYING, NotCheckedOut,
    Opened, Output, Unavailable, Verdict, Wanted,
};
pub use throttle::{GUESS_EVERY, GUESSES, MAX_NAMES, Throttle};
pub use turns::{Host, Turns};
