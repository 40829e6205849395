//! What passes between a client and the realm: `docs/client-protocol.md`.
//!
//! One enum per direction and phase: [`LoginRequest`] and [`LoginAnswer`] on a log-in connection, [`Hello`] and
//! [`HelloAnswer`] as the first frames of a play connection, then [`ToServer`] and [`ToClient`], with [`ToServerDatagram`]
//! and [`ToClientDatagram`] beside them. Each has `write`, which appends its one encoding, and `read`, which refuses
//! everything else, never panics, and allocates no more than a fixed multiple of the bytes it was given. [`FrameBuffer`]
//! cuts a stream into frames.
//!
//! Values and arguments are bytes in these frames, in the stream form of `annals_def` (`Form::Shown`). [`ShownWriter`] and
//! [`ShownReader`], which know the schema, make and read those of a view; `annals_def::MessageRange` tells members by a byte.

mod close;
mod downstream;
mod fields;
mod framing;
mod hello;
mod login;
mod movements;
mod shown;
mod upstream;
mod view;
pub mod volatile;

use annals_ids::Hash;
use sha2::{Digest, Sha256};

pub use close::CloseReason;
pub use downstream::{CallRefusal, ToClient};
pub use framing::{FrameBuffer, FrameTooLarge, put_frame};
pub use hello::{Hello, HelloAnswer, Proof, Rejection, Welcome};
pub use login::{
    Located, LoginAnswer, LoginRefusal, LoginRequest, MAX_NAME_BYTES, MAX_PASSWORD_BYTES, Password, Ticket,
};
pub use movements::{Movements, Reads};
pub use shown::{ShowError, Shown, ShownReader, ShownWriter, args_hash, change_hash, property_hash, read_properties};
pub use upstream::{Call, Known, Moved, Stamp, Stamps, ToServer, ToServerDatagram};
pub use view::{Move, Moves, ToClientDatagram, ViewFrame, ViewItem};

/// ALPN of a log-in connection.
pub const LOGIN_ALPN: &[u8] = b"annals-login/1";

/// ALPN of a play connection.
pub const PLAY_ALPN: &[u8] = b"annals-play/1";

/// The format of every frame and datagram. Its hash is what both sides compare.
pub const GRAMMAR: &str = include_str!("grammar.txt");

/// Most bytes of a frame from a client: the stamps of 3,000 entities with long ids, or the longest text one would type.
pub const MAX_UPSTREAM_FRAME: usize = 64 << 10;

/// Most bytes of a frame to a client: one value of the greatest length that a value can have, and 1 MiB around it.
pub const MAX_DOWNSTREAM_FRAME: usize = 17 << 20;
const _: () = assert!(MAX_DOWNSTREAM_FRAME >= annals_def::MAX_LENGTH + (1 << 20));

/// Most bytes of a datagram: what passes every path that QUIC itself accepts (1,200 bytes), its headers taken off.
pub const MAX_DATAGRAM: usize = 1_100;

/// Most history numbers that one [`Stamps`] names. Each takes at most 20 bytes with what stands around it, so that all of
/// them fit a frame.
pub const MAX_STAMPS: usize = 3_000;

/// Entities that have left the cell's view and that a client still has, in case they come back: so many, the newest.
pub const MAX_KEPT: usize = 64;
const _: () = assert!(MAX_STAMPS * 20 + 32 <= MAX_UPSTREAM_FRAME);

/// Names this version of the protocol: SHA-256 of [`GRAMMAR`].
#[must_use]
pub fn protocol_hash() -> Hash {
    Hash(Sha256::digest(GRAMMAR).into())
}

/// The fingerprint of a value or of arguments as a client was shown them, for comparison with the log.
#[must_use]
pub fn value_hash(bytes: &[u8]) -> Hash {
    Hash(Sha256::digest(bytes).into())
}

/// What only the two ends may know: a ticket, or the token with which a session is resumed. It is kept out of logs.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(pub [u8; 32]);

impl Secret {
    /// SHA-256 of the secret: all that needs to be kept of it.
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

/// A member as clients number it: a position in the lists of exposed methods, client methods or client properties that
/// `annals_def::EntityType` gives. What is sent often and short has the low numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientMember(pub u16);

impl std::fmt::Display for ClientMember {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}
