//! Names in an order that makes lookup fast.
//!
//! Names are compared by length first: that does not read their letters, and distinguishes most of them. The order is
//! used for lookup only and is not visible outside.

use std::{cmp::Ordering, collections::BTreeMap};

/// Shorter names first; names of equal length by their letters.
pub(crate) fn by_length(a: &str, b: &str) -> Ordering {
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}

/// A name in the order of [`by_length`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Name<'s>(pub(crate) &'s str);

impl Ord for Name<'_> {
    fn cmp(&self, other: &Self) -> Ordering {
        by_length(self.0, other.0)
    }
}

impl PartialOrd for Name<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// Maximum names in a sorted list before a tree replaces it: an insertion moves all that follow.
const MAX_LISTED: usize = 128;

/// Unique names, each with its position in a list. Most lists have a few dozen names, which a tree would spread over
/// the memory.
#[derive(Debug, Default)]
pub(crate) struct Names<'s> {
    /// Sorted; empty once a tree replaces it.
    few: Vec<(Name<'s>, usize)>,
    many: BTreeMap<Name<'s>, usize>,
}

impl<'s> Names<'s> {
    /// Reserves capacity for this many names.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            few: Vec::with_capacity(capacity.min(MAX_LISTED)),
            many: BTreeMap::new(),
        }
    }

    /// Adds a name, or returns the position of the name that is already present.
    pub(crate) fn insert(&mut self, name: &'s str, position: usize) -> Result<(), usize> {
        let name = Name(name);
        if self.many.is_empty() {
            match self.few.binary_search_by(|(known, _)| known.cmp(&name)) {
                Ok(at) => return Err(self.few[at].1),
                Err(at) if self.few.len() < MAX_LISTED => {
                    self.few.insert(at, (name, position));
                    return Ok(());
                }
                Err(_) => self.many.extend(self.few.drain(..)),
            }
        }
        match self.many.get(&name) {
            Some(&known) => Err(known),
            None => {
                self.many.insert(name, position);
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_one_leads_to_the_first_however_many_there_are() {
        let texts: Vec<String> = (0..1_000).map(|i| format!("name{i}")).collect();
        let mut names = Names::with_capacity(texts.len());
        for (i, text) in texts.iter().enumerate() {
            assert_eq!(names.insert(text, i), Ok(()));
            assert_eq!(names.insert(&texts[i / 2], 5_000), Err(i / 2));
        }
    }
}
