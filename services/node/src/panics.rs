//! Panics of behaviour.
//!
//! A recorded event is in the state and in the batch at once ([`crate::journal`]), so wherever behaviour stops, the state
//! agrees with the log. A panic can therefore end like an error that the same line returned: what was recorded before it
//! stays, and the owner continues. Otherwise the caller would send its call again to the next holder of the owner, where
//! it would panic again, without end.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// Begins the message of each assertion of a core. Such a panic is a defect of the core, whose memory may no longer agree
/// with its state.
const OF_CORE: &str = "invariant: ";

/// What an owner does when behaviour panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanicPolicy {
    /// The owner reports it, and continues as after an error.
    Report,
    /// It unwinds through the owner: a test fails at it.
    Propagate,
}

impl PanicPolicy {
    /// Runs behaviour.
    ///
    /// # Errors
    /// The message with which it panicked.
    ///
    /// # Panics
    /// With the panic of behaviour, by [`PanicPolicy::Propagate`]; and with that of a core's own assertion, which only a
    /// new take-over from the log puts right.
    pub fn run<T>(self, behaviour: impl FnOnce() -> T) -> Result<T, String> {
        if self == Self::Propagate {
            return Ok(behaviour());
        }
        catch_unwind(AssertUnwindSafe(behaviour)).map_err(|payload| {
            let message = message(payload.as_ref());
            if message.starts_with(OF_CORE) {
                resume_unwind(payload);
            }
            message.to_owned()
        })
    }
}

/// The message of a panic.
#[must_use]
pub fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
