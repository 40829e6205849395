//! The store over NATS: whoever holds one serves it, and everybody else reaches it through the same [`crate::Store`].
//!
//! One subject, request and reply, protobuf (`message`). Reads name the version they read at, so the server keeps nothing
//! between requests; a commit carries all that was read and written in one message, or in parts of [`PART_BYTES`] where it
//! is larger, and is applied when the last part has come. A watch is a request that is answered late, and asked again.
//!
//! What can be said when an answer does not come: a read or an early part had no effect, so the store is
//! [`crate::StoreError::Unavailable`]; of a commit whose last part was sent nothing is known, so it is
//! [`crate::StoreError::CommitUnknown`].
//!
//! Both sides belong to one realm and trust each other's word, not each other's sizes: every message, every queue and all
//! memory held for a request is bounded.

mod client;
mod message;
mod server;
mod upload;

use std::time::Duration;

pub use client::RemoteStore;
pub use server::{ServeError, serve};

use crate::limits::{PAGE_BYTES, TRANSACTION_BYTES};

/// Smallest `max_payload` of the nats-server, in bytes: a page or a part, and room for what surrounds it. The default of
/// nats-server is 1 MiB.
pub const LEAST_PAYLOAD: usize = 640 * 1024;

/// Largest part of a commit, in bytes.
pub const PART_BYTES: usize = 512 * 1024;

/// Largest commit message, in bytes: the largest transaction, encoded, with as much again for its structure. One of very
/// many tiny mutations may pass it and is refused as too large.
const COMMIT_BYTES: usize = 2 * TRANSACTION_BYTES;

/// How long the answer to a read, or to an early part of a commit, is awaited.
const READ_PATIENCE: Duration = Duration::from_secs(2);

/// How long the answer to a commit is awaited. A group of commits takes milliseconds; a disk that stalls takes seconds.
const COMMIT_PATIENCE: Duration = Duration::from_secs(5);

/// How long the server lets a watch wait before it says that nothing has changed yet.
const WATCH_WAIT: Duration = Duration::from_secs(20);

/// How long a client awaits the answer to a watch.
const WATCH_PATIENCE: Duration = Duration::from_secs(25);

/// Room around a page or a part, in bytes: the fields beside it, and NATS' own.
const ROOM: usize = 16 * 1024;

const _: () = assert!(PAGE_BYTES + ROOM <= LEAST_PAYLOAD && PART_BYTES + ROOM <= LEAST_PAYLOAD);
const _: () = assert!(WATCH_WAIT.as_secs() < WATCH_PATIENCE.as_secs());
