//! The login core: credentials in, a single-use ticket out.
//!
//! Responsible for: the order in which db, director and base are asked for a log-in, what is asked again, when it is given
//! up, whose password is compared next, and how often a name may be tried. Not responsible for: passwords (whoever is asked to [verify](Output::Verify)
//! compares them), connections, or what a session is (the base core). It keeps nothing that must last: a login process that
//! dies loses log-ins that begin again.
//!
//! No name and no secret leaves it but in the question that needs it.

mod attempt;
mod login;
mod throttle;
mod turns;

pub use attempt::{LOGIN_WITHIN, PATIENCE};
pub use login::{
    AskId, Checkout, Counters, Input, Login, MAX_ATTEMPTS, MAX_PER_NAME, MAX_QUEUED, MAX_VERIFYING, Opened, Output,
    Unavailable, Verdict, Wanted,
};
pub use throttle::{GUESS_EVERY, GUESSES, MAX_NAMES, Throttle};
pub use turns::{Host, Turns};
