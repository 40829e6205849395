//! The store over NATS: the process that has the store open serves it, and all others use it through the same
//! [`crate::Store`].
//!
//! One subject, request and reply, protobuf (`message`). Reads carry their read version, so the server keeps no state
//! between requests. A commit carries all its conflict ranges and mutations in one message, or in parts of
//! [`PART_BYTES`] if it is larger, and is applied when the last part has arrived. A watch is a request that is answered
//! late, and repeated.
//!
//! Without an answer: a read or an early part had no effect, so the error is [`crate::StoreError::Unavailable`]; the
//! outcome of a commit whose last part was sent is unknown, so the error is [`crate::StoreError::CommitUnknown`].
//!
//! Both sides belong to one realm and trust each other's data, but not each other's sizes: every message, every queue
//! and all memory of a request is bounded.

mod client;
mod message;
mod server;
mod upload;

use std::time::Duration;

pub use client::RemoteStore;
pub use server::{ServeError, serve};

use crate::limits::{PAGE_BYTES, TRANSACTION_BYTES};

/// Minimum `max_payload` of the nats-server, in bytes: a page or a part, and its envelope. The default of nats-server
/// is 1 MiB.
pub const LEAST_PAYLOAD: usize = 640 * 1024;

/// Largest part of a commit, in bytes.
pub const PART_BYTES: usize = 512 * 1024;

/// Maximum commit message, in bytes: the largest transaction, encoded, with as much again for its structure. A
/// transaction of very many tiny mutations may exceed it and is rejected as too large.
const COMMIT_BYTES: usize = 2 * TRANSACTION_BYTES;

/// Time limit for the answer to a read, or to an early part of a commit.
const READ_TIMEOUT: Duration = Duration::from_secs(2);

/// Time limit for the answer to a commit. A group of commits takes milliseconds; a disk that stalls takes seconds.
const COMMIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Time after which the server answers a watch that nothing has changed yet.
const WATCH_WAIT: Duration = Duration::from_secs(20);

/// Time limit of a client for the answer to a watch.
const WATCH_TIMEOUT: Duration = Duration::from_secs(25);

/// Room around a page or a part, in bytes: its other fields, and NATS' own.
const ROOM: usize = 16 * 1024;

const _: () = assert!(PAGE_BYTES + ROOM <= LEAST_PAYLOAD && PART_BYTES + ROOM <= LEAST_PAYLOAD);
const _: () = assert!(WATCH_WAIT.as_secs() < WATCH_TIMEOUT.as_secs());
