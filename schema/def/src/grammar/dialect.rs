//! The two dialects of the language.

/// A dialect of the language. Both read most of the other's words; they differ in what comes first when members are
/// merged, in what a repeated name means, and in what their engines accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Dialect {
    /// As BigWorld 14.4 reads it.
    BigWorld,
    /// As KBEngine 2.5 reads it.
    KBEngine,
}

impl Dialect {
    /// The name that messages use.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::BigWorld => "BigWorld",
            Self::KBEngine => "KBEngine",
        }
    }

    /// Where this dialect declares aliases.
    #[must_use]
    pub fn alias_file(self) -> &'static str {
        match self {
            Self::BigWorld => "entity_defs/alias.xml",
            Self::KBEngine => "entity_defs/types.xml",
        }
    }
}
