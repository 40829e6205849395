//! Transactions of the fold that the store has accepted and that may not be durable yet.

use std::collections::VecDeque;

use annals_store::{StoreError, Submitted};

use super::Folded;

/// Submitted transactions, in their order, with what each folded.
#[derive(Default)]
pub(super) struct Pipeline {
    submitted: VecDeque<(Submitted, Folded)>,
}

impl Pipeline {
    pub(super) fn push(&mut self, submitted: Submitted, folded: Folded) {
        self.submitted.push_back((submitted, folded));
    }

    pub(super) fn len(&self) -> usize {
        self.submitted.len()
    }

    /// Waits until all are durable. They stay in the pipeline.
    pub(super) async fn wait(&mut self) -> Result<(), StoreError> {
        for (submitted, _) in &mut self.submitted {
            submitted.committed().await?;
        }
        Ok(())
    }

    /// Waits until the first is durable, and removes it. Nothing is removed if the call is cancelled.
    pub(super) async fn next(&mut self) -> Result<Option<Folded>, StoreError> {
        if let Some((submitted, _)) = self.submitted.front_mut() {
            submitted.committed().await?;
        }
        Ok(self.submitted.pop_front().map(|(_, folded)| folded))
    }
}
