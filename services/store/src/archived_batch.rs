//! A batch in the archive: whole, or what remains after its events were deleted (rule F14).

use std::borrow::Cow;

/// First byte of the stored form of a thinned batch. A whole batch begins with the version of its encoding, which never
/// has this value.
const THINNED: u8 = 0xff;

/// An archived batch in its stored form. Both forms begin with the batch's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArchivedBatch {
    /// As it was logged.
    Whole(Vec<u8>),
    /// Without its events.
    Thinned(Vec<u8>),
}

impl ArchivedBatch {
    /// Reads the stored form.
    #[must_use]
    pub fn of(mut stored: Vec<u8>) -> Self {
        if stored.first() == Some(&THINNED) {
            stored.remove(0);
            Self::Thinned(stored)
        } else {
            Self::Whole(stored)
        }
    }

    /// The stored form.
    #[must_use]
    pub fn stored(&self) -> Cow<'_, [u8]> {
        match self {
            Self::Whole(bytes) => Cow::Borrowed(bytes),
            Self::Thinned(bytes) => Cow::Owned([&[THINNED][..], bytes].concat()),
        }
    }

    /// Bytes that begin with the header.
    #[must_use]
    pub fn header(&self) -> &[u8] {
        match self {
            Self::Whole(bytes) | Self::Thinned(bytes) => bytes,
        }
    }

    /// The whole batch, if it is there.
    #[must_use]
    pub fn whole(self) -> Option<Vec<u8>> {
        match self {
            Self::Whole(bytes) => Some(bytes),
            Self::Thinned(_) => None,
        }
    }

    /// Whether its events were deleted.
    #[must_use]
    pub fn is_thinned(&self) -> bool {
        matches!(self, Self::Thinned(_))
    }

    /// Size of the stored form, in bytes.
    #[must_use]
    pub fn size(&self) -> usize {
        self.header().len() + usize::from(self.is_thinned())
    }
}
