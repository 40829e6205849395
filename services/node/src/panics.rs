//! Panics of behaviour.
//!
//! A recorded event is in the state and in the batch at once ([`crate::journal`]), so wherever behaviour stops, the state
//! agrees with the log. A panic can therefore end like an error that the same line returned: what was recorded before it
//! stays, and the owner continues. Otherwise the caller would send its call again to the next holder of the owner, where
//! it would panic again, without end.

use std::any::Any;
use std::backtrace::{Backtrace, BacktraceStatus};
use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

/// In the message of each assertion of a core. Such a panic is a defect of the core, whose memory may no longer agree
/// with its state.
const OF_CORE: &str = "invariant: ";

thread_local! {
    /// Whether a panic on this thread would be caught here.
    static IS_CAUGHT: Cell<bool> = const { Cell::new(false) };
    /// Where the last panic that is caught here was, if the hook is installed.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// What an owner does when behaviour panics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PanicPolicy {
    /// The owner reports it, and continues as after an error.
    Report,
    /// It unwinds through the owner: a test fails at it.
    Propagate,
}

/// A panic that was caught.
#[derive(Debug)]
pub struct Panic {
    /// Its message, with the place if the [hook](report_places) is installed, and with the stack if `RUST_BACKTRACE` asks
    /// for that.
    pub message: String,
}

impl PanicPolicy {
    /// Runs behaviour.
    ///
    /// # Errors
    /// The panic with which it ended.
    ///
    /// # Panics
    /// With the panic of behaviour, by [`PanicPolicy::Propagate`]; and with that of a core's own assertion, after which
    /// the owner has to be taken over from its log.
    pub fn run<T>(self, behaviour: impl FnOnce() -> T) -> Result<T, Panic> {
        if self == Self::Propagate {
            return Ok(behaviour());
        }
        let around = IS_CAUGHT.replace(true);
        let ran = catch_unwind(AssertUnwindSafe(behaviour));
        IS_CAUGHT.set(around);
        ran.map_err(|payload| {
            let place = PLACE.take();
            if is_of_core(payload.as_ref()) {
                resume_unwind(payload);
            }
            let message = message(payload.as_ref());
            let message = place.map_or_else(|| message.to_owned(), |place| format!("{message}, at {place}"));
            Panic { message }
        })
    }
}

impl Panic {
    /// Unwinds further, to end the owner.
    pub fn resume(self) -> ! {
        resume_unwind(Box::new(self.message))
    }
}

/// Replaces what is printed at a panic of behaviour: it is reported with its place, so that a log has one entry of it, and
/// a client that can cause it cannot fill the log. For the start of a process.
pub fn report_places() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !IS_CAUGHT.get() || is_of_core(panic.payload()) {
            return print(panic);
        }
        let place = panic.location().map_or_else(String::new, ToString::to_string);
        let stack = Backtrace::capture();
        let place = match stack.status() {
            BacktraceStatus::Captured => format!("{place}\n{stack}"),
            _ => place,
        };
        PLACE.set(Some(place));
    }));
}

fn is_of_core(payload: &(dyn Any + Send)) -> bool {
    message(payload).contains(OF_CORE)
}

/// The message of a panic.
#[must_use]
pub fn message(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}
