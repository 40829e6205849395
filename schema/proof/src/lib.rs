//! What an outsider needs to check a proof, and what is needed to make one.
//!
//! Responsible for: tree hashes and proofs as RFC 6962 and RFC 9162 define them, and the formats in which others read them, all
//! of C2SP: tiles, signed notes, checkpoints, cosignatures of witnesses, proof files. Not responsible for: where hashes come
//! from, what a leaf means, or when something is signed. It knows nothing of realms, stores or buses, so that a verifier of
//! proofs consists of little beside it.
//!
//! Whatever reads bytes in here takes any bytes, and answers with a value or with an error for the reader. Whatever is read has
//! one encoding, these bytes.

mod base64;
pub mod checkpoint;
pub mod continuation;
pub mod file;
pub mod key;
pub mod merkle;
pub mod note;
mod shown;
pub mod succession;
pub mod tile;
pub mod tree;
pub mod verify;

pub use checkpoint::{Checkpoint, Trust, Trusted};
pub use continuation::Continuation;
pub use file::ProofFile;
pub use key::{KeyKind, KeyName, SignerKey, VerifierKey};
pub use merkle::{Frontier, leaf_hash, node_hash};
pub use note::SignedNote;
pub use shown::{is_unseen, shown};
pub use tile::{Tile, Tiles};
pub use tree::{Node, Span};
pub use verify::{TreeHead, verify_consistency, verify_inclusion};
