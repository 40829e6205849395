//! The key of a person.

use std::fmt;

use sha2::{Digest, Sha256};

/// Identifies a key without revealing it: the first 8 bytes of a hash of the key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(pub [u8; 8]);

/// The key that seals the data of one person: 32 random bytes. Holding the key allows reading all of that data; once
/// every copy is destroyed, the data is unreadable for ever.
#[derive(Clone, PartialEq, Eq)]
pub struct PersonalKey([u8; 32]);

impl PersonalKey {
    /// Creates a key from these bytes, which must be random.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key itself, for storing it or passing it on.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// The id of the key.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let hash = Sha256::new().chain_update("annals personal key").chain_update(self.0);
        let mut id = [0; 8];
        id.copy_from_slice(&hash.finalize()[..8]);
        KeyId(id)
    }
}

/// Prints the id of the key only: printed output may be stored.
impl fmt::Debug for PersonalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PersonalKey({:02x?})", self.id().0)
    }
}
