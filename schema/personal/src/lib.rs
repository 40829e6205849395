//! What is known of persons: sealed under a key of their own before it comes into a log, so that it is gone with the key while
//! everything that was hashed stays as it is (rules P5 to P8, docs/personal-data.md).
//!
//! Responsible for: keys, the sealed form, and what is sealed of a log-in. Not responsible for: where keys are kept, who may
//! have one, and where random bytes come from. It is a crate so that whoever only checks proofs does without a cipher.

mod admission;
mod key;
mod sealed;

pub use admission::{Admission, AdmissionMalformed, NAME_LIMIT};
pub use key::{KeyId, PersonalKey};
pub use sealed::{NotOpened, OVERHEAD_LIMIT, open, seal, sealed_with};
