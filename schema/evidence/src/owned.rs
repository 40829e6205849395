//! What somebody has had, and what they did with it.

use annals_event::ledger::{Holder, Slots};
use annals_ids::DatabaseId;

use crate::{
    Cited, Contradiction, Inventory, Span,
    holdings::{apply, kept},
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
    /// Adds up what somebody had over the entries that concern it, all of them and in their order. `None` if there are none.
    ///
    /// # Errors
    /// When somebody gives what they do not have.
    pub fn follow(holder: DatabaseId, entries: Vec<Cited>) -> Result<Option<Self>, Contradiction> {
        let mut slots = Slots::new();
        let mut steps = Vec::new();
        for cited in entries {
            let before = slots.clone();
            let entry = cited.entry.number;
            apply(&mut slots, Holder::Stored(holder), &cited.entry)
                .ok_or(Contradiction::Overdrawn { holder, entry })?;
            let after = slots.clone();
            let held = Inventory { before, after };
            steps.push(OwnedStep { cited, held });
        }
        let some = (!steps.is_empty()).then_some(Self { holder, steps });
        Ok(some)
    }

    /// How many assets somebody had, each counted after each step after which they did; counting ends once they are more than
    /// `most`, or a step cannot be done.
    pub(crate) fn told(holder: DatabaseId, entries: &[Cited], most: usize) -> usize {
        let (mut slots, mut told) = (Slots::new(), 0usize);
        for cited in entries {
            let done = apply(&mut slots, Holder::Stored(holder), &cited.entry);
            if told > most || done.is_none() {
                break;
            }
            told = told.saturating_add(kept(&slots));
        }
        told
    }

    /// The last that had been done at the end of a span; `None` before anything was.
    #[must_use]
    pub fn within(&self, span: &Span) -> Option<&OwnedStep> {
        self.steps.iter().rev().find(|step| span.had_come_to(&step.cited))
    }
}
