//! The protocol between a client and the realm: `docs/client-protocol.md`.
//!
//! One enum per direction and phase: [`LoginRequest`] and [`LoginAnswer`] on a log-in connection, [`Hello`] and
//! [`HelloAnswer`] as the first frames of a play connection, then [`ToServer`] and [`ToClient`], with
//! [`ToServerDatagram`] and [`ToClientDatagram`] beside them. Each has `write`, which appends its one encoding, and
//! `read`, which rejects everything else, never panics, and allocates no more than a fixed multiple of the bytes it was
//! given. [`FrameBuffer`] splits a stream into frames.
//!
//! Values and arguments are bytes in these frames, in the stream form of `annals_def` (`Form::Shown`). [`ShownWriter`]
//! and [`ShownReader`], which know the schema, write and read those of a view; `annals_def::MessageRange` identifies
//! members by a byte.

mod ban;
mod close;
mod download;
mod downstream;
mod fields;
mod framing;
mod hello;
mod login;
mod movements;
mod reply;
mod shown;
mod upstream;
mod view;
pub mod volatile;
mod web_socket;

use annals_ids::Hash;
use sha2::{Digest, Sha256};

pub use ban::{Ban, MAX_BAN_REASON_BYTES};
pub use close::CloseReason;
pub use download::{
    DownloadBegun, DownloadChunk, DownloadId, DownloadProgress, MAX_CHUNK_BYTES, MAX_DESCRIPTION_BYTES,
    MAX_DOWNLOAD_BYTES,
};
pub use downstream::{CallRefusal, ToClient};
pub use framing::{FrameBuffer, FrameTooLarge, put_frame};
pub use hello::{Hello, HelloAnswer, Proof, Rejection, Welcome};
pub use login::{
    Credentials, Located, LoginAnswer, LoginRefusal, LoginRequest, MAX_NAME_BYTES, MAX_PASSWORD_BYTES, MAX_TOKEN_BYTES,
    Password, Queued, Ticket, Token,
};
pub use movements::{Movements, Reads};
pub use reply::{MAX_CALL_ERROR_BYTES, Reply, exposed_method, reply_hash};
pub use shown::{ShowError, Shown, ShownReader, ShownWriter, args_hash, change_hash, property_hash, read_properties};
pub use upstream::{Call, Drove, Known, Moved, Stamp, Stamps, ToServer, ToServerDatagram};
pub use view::{Move, Moves, ToClientDatagram, ViewFrame, ViewItem};
pub use web_socket::WebSocketMessage;

/// ALPN of a log-in connection.
pub const LOGIN_ALPN: &[u8] = b"annals-login/1";

/// ALPN of a play connection.
pub const PLAY_ALPN: &[u8] = b"annals-play/1";

/// The format of every frame and datagram. Both sides compare its hash.
pub const GRAMMAR: &str = include_str!("grammar.txt");

/// Maximum size of a frame from a client (bytes): the stamps of 3,000 entities with long ids, or the longest text a
/// user would type.
pub const MAX_UPSTREAM_FRAME: usize = 64 << 10;

/// Maximum size of a frame to a client (bytes): one value of maximum length, and 1 MiB around it.
pub const MAX_DOWNSTREAM_FRAME: usize = 17 << 20;
const _: () = assert!(MAX_DOWNSTREAM_FRAME >= annals_def::MAX_LENGTH + (1 << 20));

/// Maximum size of a datagram (bytes): fits every path that QUIC itself accepts (1,200 bytes), less its headers.
pub const MAX_DATAGRAM: usize = 1_100;

/// Maximum number of history numbers in one [`Stamps`]. Each takes at most 20 bytes including its context, so all of
/// them fit in a frame.
pub const MAX_STAMPS: usize = 3_000;

/// Number of entities (the newest) that have left the cell's view and that a client still keeps, in case they return.
pub const MAX_KEPT: usize = 64;
const _: () = assert!(MAX_STAMPS * 20 + 32 <= MAX_UPSTREAM_FRAME);

/// Identifies this version of the protocol: SHA-256 of [`GRAMMAR`].
#[must_use]
pub fn protocol_hash() -> Hash {
    Hash(Sha256::digest(GRAMMAR).into())
}

/// The fingerprint of a value or of arguments as a client was shown them, for comparison with the log.
#[must_use]
pub fn value_hash(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}

/// A secret of the two ends: a ticket, or the token with which a session is resumed. It is not printed, to keep it out
/// of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl Secret {
    /// SHA-256 of the secret: the only form in which it needs to be stored.
    #[must_use]
    pub fn digest(&self) -> Hash {
        Hash(Sha256::digest(self.0).into())
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(..)")
    }
}

/// A member by its client number: an index into the list of exposed methods, client methods or client properties of
/// `annals_def::EntityType`. Members that are sent often and are short have the low numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientMember(pub u16);

impl std::fmt::Display for ClientMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
