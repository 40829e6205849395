//! Which of the two dialects a game is written in.

use crate::{
    grammar::{Dialect, GROUPS, LISTED},
    source::Section,
};

/// What the file names of a game say about its dialect.
pub(crate) struct FileSigns {
    /// `entity_defs/types.xml` is there.
    pub(crate) has_types: bool,
    /// `entity_defs/alias.xml`, `component_defs/`, or lists of services or user data objects are there.
    pub(crate) has_bigworld_files: bool,
}

impl Dialect {
    /// The dialect that the signs speak for; BigWorld if they say nothing.
    pub(crate) fn detect<'s>(
        files: &FileSigns,
        entities: Option<Section<'s>>,
        definitions: impl Iterator<Item = Section<'s>>,
    ) -> Self {
        if let Some(list) = entities {
            if GROUPS.iter().any(|group| list.child(group).is_some()) {
                return Self::BigWorld;
            }
            let has_mark = |child: Section<'_>| {
                let is_mark = |name: &str| LISTED.attributes.iter().any(|mark| mark.name == name);
                child.attributes().iter().any(|attribute| is_mark(attribute.name))
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
