//! Names that must differ, each leading to a position in a list.

use std::collections::BTreeMap;

/// How many names a sorted list holds before a tree takes its place: putting one in moves all that follow.
const MAX_LISTED: usize = 128;

/// Positions by name. Most lists have a few dozen names, which a tree would spread over the memory.
#[derive(Debug, Default)]
pub(crate) struct Names<'s> {
    /// Sorted; empty once there are too many.
    few: Vec<(&'s str, usize)>,
    many: BTreeMap<&'s str, usize>,
}

impl<'s> Names<'s> {
    /// Room for so many names.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            few: Vec::with_capacity(capacity.min(MAX_LISTED)),
            many: BTreeMap::new(),
        }
    }

    /// Adds a name, or gives the position of the same name that is there already.
    pub(crate) fn insert(&mut self, name: &'s str, position: usize) -> Result<(), usize> {
        if self.many.is_empty() {
            match self.few.binary_search_by(|(known, _)| (*known).cmp(name)) {
                Ok(at) => return Err(self.few[at].1),
                Err(at) if self.few.len() < MAX_LISTED => {
                    self.few.insert(at, (name, position));
                    return Ok(());
                }
                Err(_) => self.many.extend(self.few.drain(..)),
            }
        }
        match self.many.get(name) {
            Some(&known) => Err(known),
            None => {
                self.many.insert(name, position);
                Ok(())
            }
        }
    }
}
