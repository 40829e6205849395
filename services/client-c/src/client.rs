//! Clients: started, polled, moved, freed.

use std::{
    ffi::c_char,
    ptr,
    sync::{Mutex, MutexGuard, TryLockError},
    time::Duration,
};

use annals_client::{Client, client_endpoint};
use annals_def::{EntityType, Value};
use annals_ids::{EntityId, Part};
use tokio::runtime::{Builder, Runtime};

use crate::{
    config::{AnnalsConfig, read_config},
    event::{AnnalsEvent, Shown},
    failure::{AnnalsError, AnnalsErrorCode, Failure, answering, reporting},
    inputs::{AnnalsDirection, AnnalsPart, AnnalsPosition, borrow, elements, part_of, put, text},
    value::{AnnalsValue, value_at},
    wanted::wanted,
};

/// Threads of a client. Its tasks write and read one connection, and the game's own thread does the rest.
const WORKERS: usize = 1;

/// Time for the realm to learn that a freed client has gone. Then it finds out by itself.
const CLOSE_WITHIN: Duration = Duration::from_millis(300);

/// A client that logs in, plays and resumes by itself, as long as annals_client_poll is called. Different threads may use
/// it one after the other.
#[derive(Debug)]
pub struct AnnalsClient(Mutex<Playing>);

/// A client and what it runs on.
#[derive(Debug)]
pub(crate) struct Playing {
    pub(crate) client: Client,
    endpoint: quinn::Endpoint,
    runtime: Runtime,
    /// The last event.
    shown: Shown,
}

/// Exclusive use of a client.
///
/// # Safety
/// `client` is NULL or misaligned, or a client that was not freed.
pub(crate) unsafe fn using<'a>(client: *const AnnalsClient) -> Result<MutexGuard<'a, Playing>, Failure> {
    // SAFETY: as promised by the caller.
    match unsafe { borrow(client, "client") }?.0.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::WouldBlock) => Err(Failure::new(
            AnnalsErrorCode::InUse,
            "another thread is using the client; use it in one thread at a time",
        )),
        Err(TryLockError::Poisoned(_)) => Err(Failure::new(
            AnnalsErrorCode::Panicked,
            "an earlier call failed by a bug of the library; free the client and start another",
        )),
    }
}

/// The release of the library, NUL-terminated. Header and library belong to the same one.
#[unsafe(no_mangle)]
pub extern "C" fn annals_client_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// Starts a client: it logs in while it is polled. NULL after an error. Free it with annals_client_free. If the login
/// service is given by name, that is looked up first, which may take a while.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_start(
    config: *const AnnalsConfig,
    error: *mut *mut AnnalsError,
) -> *mut AnnalsClient {
    let body = || {
        // SAFETY: the caller passes NULL or a configuration whose pointers are NULL or what they are declared as.
        let config = unsafe { read_config(borrow(config, "config")?) }?;
        let refused = |error: std::io::Error| Failure::of(AnnalsErrorCode::System, &error);
        let mut runtime = Builder::new_multi_thread();
        let runtime = runtime
            .worker_threads(WORKERS)
            .thread_name("annals-client")
            .enable_all();
        let runtime = runtime.build().map_err(refused)?;
        let context = runtime.enter();
        let endpoint = client_endpoint(config.login).map_err(refused)?;
        let client = Client::start(endpoint.clone(), config);
        drop(context);
        let playing = Playing {
            client,
            endpoint,
            runtime,
            shown: Shown::default(),
        };
        Ok(Box::into_raw(Box::new(AnnalsClient(Mutex::new(playing)))))
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, ptr::null_mut(), body) }
}

/// Closes the connection, which takes up to a third of a second, and frees the client. NULL is allowed. Without
/// annals_client_leave before, the realm takes the player for disconnected.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_free(client: *mut AnnalsClient) {
    if client.is_null() {
        return;
    }
    // SAFETY: the caller passes a client that was not freed and that nothing else uses.
    let client = unsafe { Box::from_raw(client) };
    answering((), || {
        let Playing {
            client,
            endpoint,
            runtime,
            shown,
        } = client.0.into_inner().unwrap_or_else(|poisoned| poisoned.into_inner());
        drop((client, shown));
        runtime.block_on(async {
            let _ = tokio::time::timeout(CLOSE_WITHIN, endpoint.wait_idle()).await;
        });
        // Waits for its thread: a program may unload the library next.
        drop(runtime);
        Ok(())
    });
}

/// Takes the next event, and waits for one for up to so many milliseconds; 0 does not wait. Returns whether there was one;
/// if not, the event's kind is ANNALS_EVENT_KIND_NONE. The client does everything in these calls: call it in every frame until
/// it returns false. After ANNALS_EVENT_KIND_ENDED it returns false at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_poll(
    client: *mut AnnalsClient,
    timeout_ms: u32,
    event: *mut AnnalsEvent,
    error: *mut *mut AnnalsError,
) -> bool {
    let body = || {
        // SAFETY: the caller passes NULL or a place for an event.
        unsafe { put(event, AnnalsEvent::NONE) };
        if event.is_null() {
            return Err(Failure::argument("event is NULL"));
        }
        // SAFETY: the caller passes NULL or a client.
        let mut playing = unsafe { using(client) }?;
        let Playing {
            client, runtime, shown, ..
        } = &mut *playing;
        let timeout = Duration::from_millis(timeout_ms.into());
        let next = runtime.block_on(async { tokio::time::timeout(timeout, client.next()).await });
        let Some(next) = next.ok().flatten() else {
            shown.clear();
            return Ok(false);
        };
        let next = shown.take(client.core(), next);
        // SAFETY: the caller passes NULL or a place for an event.
        unsafe { put(event, next) };
        Ok(true)
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, false, body) }
}

/// Calls an exposed method of an entity in view. The call is carried out once, however often connections break; it is
/// kept and repeated until the realm has logged its effects. `number`, which may be NULL, receives the number that
/// ANNALS_EVENT_KIND_ANSWERED, ANNALS_EVENT_KIND_CALL_REFUSED and ANNALS_EVENT_KIND_CALLS_LOST name. `args` are pointers
/// to as many values, of which copies are sent; numbers, text and lists are converted to the types of the method. Returns
/// false after an error.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_call(
    client: *mut AnnalsClient,
    entity: u64,
    part: AnnalsPart,
    method: *const c_char,
    args: *const *const AnnalsValue,
    arg_count: usize,
    number: *mut u64,
    error: *mut *mut AnnalsError,
) -> bool {
    let body = || {
        // SAFETY: the caller passes NULL or a client, NULL or a text, and NULL or so many pointers to values.
        let (mut playing, method, args) = unsafe {
            (
                using(client)?,
                text(method, "method")?,
                elements(args, arg_count, "args")?,
            )
        };
        let (part, entity) = (part_of(part)?, EntityId(entity));
        // SAFETY: the caller passes NULL or values of this library.
        let args = args.iter().map(|arg| unsafe { value_at(*arg, "an argument") });
        let args = args.collect::<Result<Vec<_>, _>>()?;
        let args = arguments(&playing.client, (entity, part, method), &args);
        let Playing { client, runtime, .. } = &mut *playing;
        let _context = runtime.enter();
        let called = client.call(entity, part, method, &args)?;
        // SAFETY: the caller passes NULL or a place for a number.
        unsafe { put(number, called.0) };
        Ok(true)
    };
    // SAFETY: the caller passes NULL or a place for an error.
    unsafe { reporting(error, false, body) }
}

/// The arguments as values of the types that the method declares, if there is such a method.
fn arguments(client: &Client, (entity, part, method): (EntityId, Part, &str), args: &[&Value]) -> Vec<Value> {
    let found = type_of(client, entity).and_then(|entity_type| match part {
        Part::Base => entity_type.base_method_named(method),
        Part::Cell => entity_type.cell_method_named(method),
    });
    let declared = found.map(|method| method.args.as_slice()).unwrap_or_default();
    let of_type = |(index, arg): (usize, &&Value)| match declared.get(index) {
        Some(argument) => wanted(arg, &argument.data_type),
        None => (*arg).clone(),
    };
    args.iter().enumerate().map(of_type).collect()
}

/// The type of an entity in view, or of the one that the client controls.
fn type_of(client: &Client, entity: EntityId) -> Option<&EntityType> {
    let core = client.core();
    let seen = [Part::Cell, Part::Base].map(|part| core.view(part).entities().get(&entity));
    let seen = seen.into_iter().flatten().next().map(|seen| seen.type_id);
    let controlled = core.controls().filter(|(own, _)| *own == entity);
    core.schema()
        .entity_type(seen.or(controlled.map(|(_, type_id)| type_id))?)
}

/// Moves the entity that the client controls. Call it up to ten times per second while it moves. Returns false if there
/// is no connection to send it on or the client does not drive the entity; after an error, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_move(
    client: *mut AnnalsClient,
    position: AnnalsPosition,
    direction: AnnalsDirection,
    error: *mut *mut AnnalsError,
) -> bool {
    // SAFETY: the caller passes NULL or a client, and NULL or a place for an error.
    unsafe { moving(client, (position, direction), error, Client::move_to) }
}

/// Moves an entity that the client drives, as annals_client_move does its own. Returns false if there is no connection to
/// send it on or the client does not drive the entity; after an error, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_move_entity(
    client: *mut AnnalsClient,
    entity: u64,
    position: AnnalsPosition,
    direction: AnnalsDirection,
    error: *mut *mut AnnalsError,
) -> bool {
    let moved = |client: &mut Client, position, direction| client.move_entity(EntityId(entity), position, direction);
    // SAFETY: the caller passes NULL or a client, and NULL or a place for an error.
    unsafe { moving(client, (position, direction), error, moved) }
}

/// # Safety
/// `client` is NULL or a client that was not freed; `error` is NULL or a place for an error.
unsafe fn moving(
    client: *mut AnnalsClient,
    (position, direction): (AnnalsPosition, AnnalsDirection),
    error: *mut *mut AnnalsError,
    moved: impl FnOnce(&mut Client, annals_ids::Position, annals_ids::Direction) -> bool,
) -> bool {
    let body = || {
        let (position, direction) = (
            annals_ids::Position::from(position),
            annals_ids::Direction::from(direction),
        );
        if !position.is_finite() || !direction.is_finite() {
            return Err(Failure::argument(
                "a part of the position or direction is not a finite number",
            ));
        }
        // SAFETY: as promised by the caller.
        let mut playing = unsafe { using(client) }?;
        let Playing { client, runtime, .. } = &mut *playing;
        let _context = runtime.enter();
        Ok(moved(client, position, direction))
    };
    // SAFETY: as promised by the caller.
    unsafe { reporting(error, false, body) }
}

/// Ends the session. Poll until ANNALS_EVENT_KIND_ENDED, then free the client.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_leave(client: *mut AnnalsClient) {
    // SAFETY: the caller passes NULL or a client.
    unsafe { with(client, Client::leave) }
}

/// Drops the connection as a failing network would; the client resumes. For tests of a game.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn annals_client_cut(client: *mut AnnalsClient) {
    // SAFETY: the caller passes NULL or a client.
    unsafe { with(client, Client::cut) }
}

/// # Safety
/// `client` is NULL or a client that was not freed.
unsafe fn with(client: *mut AnnalsClient, act: impl FnOnce(&mut Client)) {
    answering((), || {
        // SAFETY: as promised by the caller.
        let mut playing = unsafe { using(client) }?;
        let Playing { client, runtime, .. } = &mut *playing;
        let _context = runtime.enter();
        act(client);
        Ok(())
    });
}
