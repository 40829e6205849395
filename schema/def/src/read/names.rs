//! Names that must differ, each leading to a position in a list.

/// Positions by name. A sorted list: most lists have a few dozen names, which a tree would spread over the memory.
#[derive(Debug, Default)]
pub(crate) struct Names<'s> {
    sorted: Vec<(&'s str, usize)>,
}

impl<'s> Names<'s> {
    /// Room for so many names.
    pub(crate) fn with_capacity(capacity: usize) -> Self {
        Self {
            sorted: Vec::with_capacity(capacity),
        }
    }

    /// Adds a name, or gives the position of the same name that is there already.
    pub(crate) fn insert(&mut self, name: &'s str, position: usize) -> Result<(), usize> {
        match self.sorted.binary_search_by(|(known, _)| (*known).cmp(name)) {
            Ok(at) => Err(self.sorted[at].1),
            Err(at) => {
                self.sorted.insert(at, (name, position));
                Ok(())
            }
        }
    }
}
