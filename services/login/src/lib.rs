//! The login core: credentials in, a single-use ticket out.
//!
//! Responsible for: the order in which db, director and base are asked for a log-in, retries, time limits, the order in
//! which credentials are verified, how often a name or an address may be tried, how many accounts an address may
//! register, and the order in which clients are admitted to a realm that is full. Not responsible for: passwords and
//! tokens (the shell that answers [verify](Output::Verify) checks them), connections, or sessions (the base core). It
//! has no durable state: log-ins of a login process that dies are lost, and clients start them again.
//!
//! Names and secrets leave it only in the requests that need them.

mod attempt;
mod counts;
mod input;
mod login;
mod places;
mod throttle;
mod turns;

pub use attempt::{LOGIN_WITHIN, TIMEOUT};
pub use counts::{Counted, MAX_SHARED_COUNTS};
pub use input::{
    AskId, Authenticated, Checkout, Input, NotCheckedOut, Opened, Output, Placed, RoomId, Unavailable, Verdict, Wanted,
    Wish, Wrong,
};
pub use login::{Counters, Login, MAX_ATTEMPTS, MAX_PER_NAME, MAX_QUEUED, MAX_VERIFYING, ROOM_EVERY, Refused};
pub use places::{MAX_WAITING, NEWS_AT_LEAST, NEWS_EVERY, PLACE_KEPT};
pub use throttle::{
    GUESS_EVERY, GUESSES, HOST_GUESS_EVERY, HOST_GUESSES, MAX_KEYS, REGISTRATION_EVERY, REGISTRATIONS, Throttle,
};
pub use turns::{Host, Turns};
