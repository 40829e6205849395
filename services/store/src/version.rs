//! Versions and versionstamps: the order of commits.

use std::fmt;

/// A point in the history of a store. The version of a commit is greater than every read version given out before it; a
/// read at a version sees exactly the commits up to it. Commits that are processed together may share a version:
/// [`Versionstamp`]s order them. Only the order of versions is meaningful; they are not consecutive in every store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Version(pub u64);

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Ten bytes that identify a commit and sort in commit order: its version, big-endian, then its position among the
/// commits of that version, big-endian (always 0 in stores that give each commit its own version).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Versionstamp(pub [u8; Self::BYTES]);

impl Versionstamp {
    /// Length of a stamp.
    pub const BYTES: usize = 10;

    /// The stamp of the commit at `version` with position `place` in that version.
    #[must_use]
    pub fn new(version: Version, place: u16) -> Self {
        let mut bytes = [0; Self::BYTES];
        bytes[..8].copy_from_slice(&version.0.to_be_bytes());
        bytes[8..].copy_from_slice(&place.to_be_bytes());
        Self(bytes)
    }

    /// The version part.
    #[must_use]
    pub fn version(&self) -> Version {
        let [a, b, c, d, e, f, g, h, _, _] = self.0;
        Version(u64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    /// The position among the commits of that version.
    #[must_use]
    pub fn place(&self) -> u16 {
        let [.., high, low] = self.0;
        u16::from_be_bytes([high, low])
    }
}

impl fmt::Display for Versionstamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
