//! Personal data, sealed under a key per person before it enters a log: destroying the key erases the data, while
//! everything that was hashed stays unchanged (rules P5 to P8, docs/personal-data.md).
//!
//! Responsible for: keys, the sealed form, and what is sealed of a log-in. Not responsible for: where keys are stored,
//! who may have one, and the source of random bytes. It is a crate of its own so that a program that only checks proofs
//! needs no cipher.

mod admission;
mod key;
mod sealed;

pub use admission::{Admission, AdmissionMalformed, NAME_LIMIT};
pub use key::{KeyId, PersonalKey};
pub use sealed::{NotOpened, OVERHEAD_LIMIT, open, seal, sealed_with};
