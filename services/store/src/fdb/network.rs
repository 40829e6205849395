//! The client's network thread: started once in a process, and stopped when the last store is dropped.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use ::foundationdb::FdbError;
use ::foundationdb::api::{FdbApiBuilder, NetworkAutoStop};

use super::OpenError;

/// The thread. The client may be used as long as a reference to this exists.
pub(super) struct Network {
    _running: NetworkAutoStop,
}

/// The thread of this process: not started, running, or stopped for good.
static NETWORK: Mutex<Option<Weak<Network>>> = Mutex::new(None);

impl Network {
    /// The running thread; the first call starts it.
    pub(super) fn running() -> Result<Arc<Self>, OpenError> {
        // The guarded state is replaced as a whole, so a panic elsewhere leaves it valid.
        let mut network = NETWORK.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(started) = &*network {
            return started.upgrade().ok_or(OpenError::Stopped);
        }
        // Counts as started even if the start fails: the client's API version can be chosen only once.
        *network = Some(Weak::new());
        let running = Arc::new(Self {
            _running: boot().map_err(|error| client(&error))?,
        });
        *network = Some(Arc::downgrade(&running));
        Ok(running)
    }
}

#[expect(
    unsafe_code,
    reason = "the client must be stopped before the process ends: `Network` is dropped with the last store, which the \
              runtime that uses it outlives"
)]
fn boot() -> Result<NetworkAutoStop, FdbError> {
    let network = FdbApiBuilder::default().build()?;
    // SAFETY: the value returned is kept in `Network` alone, which every store holds and nothing leaks; dropping it stops
    // the thread and waits for its end.
    unsafe { network.boot() }
}

fn client(error: &FdbError) -> OpenError {
    OpenError::Client {
        reason: error.message().to_owned(),
        code: error.code(),
    }
}
