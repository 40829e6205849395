//! The two dialects of the language.

/// A dialect of the language. Each reads most of the other's words; they differ in merge order, in the meaning of a
/// repeated name, and in what their engines accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// BigWorld 14.4.
    BigWorld,
    /// KBEngine 2.5.
    KBEngine,
}

impl Dialect {
    /// The name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BigWorld => "BigWorld",
            Self::KBEngine => "KBEngine",
        }
    }

    /// The file in which this dialect declares aliases.
    #[must_use]
    pub fn alias_file(self) -> &'static str {
        match self {
            Self::BigWorld => "entity_defs/alias.xml",
            Self::KBEngine => "entity_defs/types.xml",
        }
    }
}
