//! Which aliases are used, and by what, so that a mistake in an unused alias is not an error.

use std::collections::{BTreeMap, BTreeSet};

use crate::source::FileId;

/// The users of aliases: definition files, and other aliases.
#[derive(Default)]
pub(super) struct UsedTypes<'s> {
    by_file: BTreeMap<FileId, BTreeSet<&'s str>>,
    by_alias: BTreeMap<&'s str, BTreeSet<&'s str>>,
}

impl<'s> UsedTypes<'s> {
    /// Records that a type of this name is used in the declaration of an alias, or in a file.
    pub(super) fn note(&mut self, by: Option<&'s str>, file: FileId, name: &'s str) {
        let users = match by {
            Some(alias) => self.by_alias.entry(alias).or_default(),
            None => self.by_file.entry(file).or_default(),
        };
        users.insert(name);
    }

    /// The names of types used by files selected by `is_read`, directly and through aliases.
    pub(super) fn from(&self, is_read: impl Fn(FileId) -> bool) -> BTreeSet<&'s str> {
        let read = self.by_file.iter().filter(|(file, _)| is_read(**file));
        let mut left: Vec<&str> = read.flat_map(|(_, names)| names).copied().collect();
        let mut used = BTreeSet::new();
        while let Some(name) = left.pop() {
            if used.insert(name) {
                left.extend(self.by_alias.get(name).into_iter().flatten());
            }
        }
        used
    }
}
