//! The holdings of a stored entity over time, and its orders.

use annals_event::ledger::{Holder, Slots};
use annals_ids::DatabaseId;

use crate::{
    Cited, Contradiction, Inventory, Span,
    holdings::{apply, kept},
};

/// The history of a stored entity's holdings, through all its activations.
#[derive(Clone, Debug, PartialEq)]
pub struct Owned {
    /// The stored entity.
    pub holder: DatabaseId,
    /// Its orders, refused ones included, and entries of others that affected its holdings. Never empty.
    pub steps: Vec<OwnedStep>,
}

/// One entry, and the holdings around it.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnedStep {
    /// The entry.
    pub cited: Cited,
    /// What the entity held.
    pub held: Inventory,
}

impl Owned {
    /// Computes the holdings over all entries that concern a stored entity, in order. `None` if there are none.
    ///
    /// # Errors
    /// When it gives assets that it does not hold.
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

    /// Number of assets held, each counted after each step after which it is held; counting ends above `most`, or when
    /// a step is not possible.
    pub(crate) fn count_assets(holder: DatabaseId, entries: &[Cited], most: usize) -> usize {
        let (mut slots, mut count) = (Slots::new(), 0usize);
        for cited in entries {
            let done = apply(&mut slots, Holder::Stored(holder), &cited.entry);
            if count > most || done.is_none() {
                break;
            }
            count = count.saturating_add(kept(&slots));
        }
        count
    }

    /// The last step at the end of a span; `None` before the first.
    #[must_use]
    pub fn within(&self, span: &Span) -> Option<&OwnedStep> {
        self.steps.iter().rev().find(|step| span.had_come_to(&step.cited))
    }
}
