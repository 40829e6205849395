//! Which of the two dialects a game is written in.

use crate::source::Section;

/// A dialect of the language. Both read most of the other's words; they differ in what comes first when members are
/// merged, in what a repeated name means, and in what their engines accept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// As BigWorld 14.4 reads it.
    BigWorld,
    /// As KBEngine 2.5 reads it.
    KBEngine,
}

/// What the file names of a game say about its dialect.
pub(crate) struct FileSigns {
    /// `entity_defs/types.xml` is there.
    pub(crate) has_types: bool,
    /// `entity_defs/alias.xml`, `component_defs/`, or lists of services or user data objects are there.
    pub(crate) has_bigworld_files: bool,
}

impl Dialect {
    /// The name that messages use.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::BigWorld => "BigWorld",
            Self::KBEngine => "KBEngine",
        }
    }

    /// Where this dialect declares aliases.
    pub(crate) fn alias_file(self) -> &'static str {
        match self {
            Self::BigWorld => "entity_defs/alias.xml",
            Self::KBEngine => "entity_defs/types.xml",
        }
    }

    /// The dialect that the signs speak for; BigWorld if they say nothing.
    pub(crate) fn detect<'s>(
        files: &FileSigns,
        entities: Option<Section<'s>>,
        definitions: impl Iterator<Item = Section<'s>>,
    ) -> Self {
        if let Some(list) = entities {
            if list.child("ClientServerEntities").is_some() || list.child("ServerOnlyEntities").is_some() {
                return Self::BigWorld;
            }
            let marks = ["hasBase", "hasCell", "hasClient"];
            let has_mark = |child: Section<'_>| {
                child
                    .attributes()
                    .iter()
                    .any(|attribute| marks.contains(&attribute.name))
            };
            if list.children().any(has_mark) {
                return Self::KBEngine;
            }
        }
        if files.has_types != files.has_bigworld_files {
            return if files.has_types {
                Self::KBEngine
            } else {
                Self::BigWorld
            };
        }
        for definition in definitions {
            if definition.child("Implements").is_some() || definition.child("LoDLevels").is_some() {
                return Self::BigWorld;
            }
            if definition.child("Interfaces").is_some() || definition.child("DetailLevels").is_some() {
                return Self::KBEngine;
            }
        }
        Self::BigWorld
    }
}
