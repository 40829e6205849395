//! The owners of an item over time, with the causes of each change.

use annals_event::ledger::{AssetSlot, Holder};
use annals_ids::{AssetKind, Serial};

use crate::{Cited, Contradiction, Span};

/// The whole path of an item, from its making.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// The item.
    pub serial: Serial,
    pub kind: AssetKind,
    /// Its moves, in order; never empty.
    pub steps: Vec<ItemStep>,
}

/// One move of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemStep {
    /// The entry that moved it.
    pub cited: Cited,
    /// Its former place.
    pub from: AssetSlot,
    /// Its new place.
    pub to: AssetSlot,
}

impl Item {
    /// Follows an item through all entries that moved it, in order. `None` if there are none.
    ///
    /// # Errors
    /// When a step does not begin where the previous one ended, or an entry does not move the item exactly once.
    pub fn follow(serial: Serial, entries: Vec<Cited>) -> Result<Option<Self>, Contradiction> {
        let mut steps: Vec<ItemStep> = Vec::new();
        let mut kind = None;
        let mut at = Holder::World;
        let mut slot = None;
        for cited in entries {
            let astray = Contradiction::Astray {
                serial,
                entry: cited.entry.number,
            };
            let mut moved = cited.entry.passages.iter().filter(|passage| passage.serial == serial);
            let Some(passage) = moved.next() else {
                return Err(astray);
            };
            let follows = passage.from.holder == at && slot.is_none_or(|slot| slot == passage.from.slot);
            if !follows || moved.next().is_some() || kind.is_some_and(|kind| kind != passage.kind) {
                return Err(astray);
            }
            (kind, at, slot) = (Some(passage.kind), passage.to.holder, Some(passage.to.slot));
            let (from, to) = (passage.from, passage.to);
            steps.push(ItemStep { cited, from, to });
        }
        Ok(kind.map(|kind| Self { serial, kind, steps }))
    }

    /// Its place at the end of a span; `None` before it was made.
    #[must_use]
    pub fn place_within(&self, span: &Span) -> Option<AssetSlot> {
        let last = self.steps.iter().rev().find(|step| span.had_come_to(&step.cited));
        last.map(|step| step.to)
    }
}
