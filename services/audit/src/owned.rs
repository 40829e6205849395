//! What somebody has had, and what they did with it.

use annals_ids::DatabaseId;
use annals_store::Store;

use crate::{
    answer::AuditError,
    cited::Cited,
    holdings::{Inventory, inventories},
    index::Index,
    rows::About,
    span::Span,
};

/// All that a stored entity has had, through all its lives.
#[derive(Clone, Debug, PartialEq)]
pub struct Owned {
    /// Which stored entity.
    pub holder: DatabaseId,
    /// What it asked for, and what others did that concerned what it had; what was refused included. Never empty.
    pub steps: Vec<OwnedStep>,
}

/// One thing that was done, or was to be.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedStep {
    /// What.
    pub cited: Cited,
    /// What the entity held.
    pub held: Inventory,
}

impl Owned {
    /// Follows what somebody had through the archive, as far as that was taken in.
    ///
    /// # Errors
    /// When the archive has no entry about it, or what the answer would rest on is not as it was: every step is what its asker's
    /// log asked for, and nobody gives what they do not have.
    pub async fn find(index: &Index, archive: &Store, holder: DatabaseId) -> Result<Self, AuditError> {
        let numbers = index.entries(About::Holder(holder)).await?;
        let held = inventories(index, archive, holder, &numbers).await?;
        let mut steps = Vec::new();
        for (number, held) in held {
            let cited = index.cite(archive, number).await?;
            steps.push(OwnedStep { cited, held });
        }
        if steps.is_empty() {
            return Err(AuditError::NoHolder(holder));
        }
        Ok(Self { holder, steps })
    }

    /// The last that had been done at the end of a span; `None` before anything was.
    #[must_use]
    pub fn within(&self, span: &Span) -> Option<&OwnedStep> {
        self.steps.iter().rev().find(|step| span.had_come_to(&step.cited))
    }
}
