//! Verification of proofs, and the parts needed to make them.
//!
//! Responsible for: tree hashes and proofs as in RFC 6962 and RFC 9162, and their interchange formats, all of C2SP:
//! tiles, signed notes, checkpoints, cosignatures of witnesses, proof files. Not responsible for: the source of hashes,
//! the meaning of a leaf, or when something is signed. It does not depend on realms, stores or buses, so a verifier of
//! proofs needs little besides this crate.
//!
//! Every decoder accepts any bytes, and returns a value or an error for the reader. Every value has exactly one
//! encoding.

mod base64;
pub mod checkpoint;
pub mod continuation;
pub mod file;
pub mod key;
pub mod log_end;
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
pub use log_end::LogEnd;
pub use merkle::{Frontier, leaf_hash, node_hash};
pub use note::SignedNote;
pub use shown::{is_unseen, shown};
pub use tile::{Tile, Tiles};
pub use tree::{Node, Span};
pub use verify::{TreeHead, verify_consistency, verify_inclusion};
