//! The key of a person.

use std::fmt;

use sha2::{Digest, Sha256};

/// Names a key without giving it away: the first 8 bytes of a hash of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct KeyId(pub [u8; 8]);

/// The key under which what is known of one person is sealed: 32 random bytes. Whoever has it reads all of it; once nobody has
/// it, nobody ever does.
#[derive(Clone, PartialEq, Eq)]
pub struct PersonalKey([u8; 32]);

impl PersonalKey {
    /// A key of these bytes, which have to be random.
    #[must_use]
    pub const fn new(bytes: [u8; 32]) -> Self {
        Self(bytes)
    }

    /// The key itself, for whoever keeps it or passes it on.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> KeyId {
        let hash = Sha256::new().chain_update("annals personal key").chain_update(self.0);
        let mut id = [0; 8];
        id.copy_from_slice(&hash.finalize()[..8]);
        KeyId(id)
    }
}

/// Shows the key's name: what is printed may be kept somewhere.
impl fmt::Debug for PersonalKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PersonalKey({:02x?})", self.id().0)
    }
}
