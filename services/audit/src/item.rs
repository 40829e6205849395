//! Who owned an item, when, and why.

use annals_event::ledger::{Holder, Place};
use annals_ids::{AssetKind, EntryNumber, Serial};
use annals_store::Store;

use crate::{answer::AuditError, cited::Cited, index::Index, rows::About, span::Span};

/// The whole way of an item, from where it was made.
#[derive(Clone, Debug, PartialEq)]
pub struct Item {
    /// Which item.
    pub serial: Serial,
    /// Of which kind.
    pub kind: AssetKind,
    /// Where it went, in order; never empty.
    pub steps: Vec<ItemStep>,
}

/// One move of an item.
#[derive(Clone, Debug, PartialEq)]
pub struct ItemStep {
    /// What moved it.
    pub cited: Cited,
    /// From where.
    pub from: Place,
    /// To where.
    pub to: Place,
}

impl Item {
    /// Follows an item through the archive, as far as that was taken in.
    ///
    /// # Errors
    /// When there is no such item, or what the answer would rest on is not as it was: every step begins where the one before
    /// ended, and is what its asker's log asked for.
    pub async fn find(index: &Index, archive: &Store, serial: Serial) -> Result<Self, AuditError> {
        let mut steps: Vec<ItemStep> = Vec::new();
        let mut kind = None;
        let mut at = Holder::World;
        let mut slot = None;
        for number in index.entries(About::Item(serial)).await? {
            let cited = index.cite(archive, number).await?;
            let passages: Vec<_> = cited.entry.passages.clone();
            let mut moved = passages.into_iter().filter(|passage| passage.serial == serial);
            let passage = moved.next().ok_or(AuditError::Misled(number))?;
            let follows = passage.from.holder == at && slot.is_none_or(|slot| slot == passage.from.slot);
            if !follows || moved.next().is_some() || kind.is_some_and(|kind| kind != passage.kind) {
                return Err(astray(serial, number));
            }
            (kind, at, slot) = (Some(passage.kind), passage.to.holder, Some(passage.to.slot));
            let (from, to) = (passage.from, passage.to);
            steps.push(ItemStep { cited, from, to });
        }
        let kind = kind.ok_or(AuditError::NoItem(serial))?;
        Ok(Self { serial, kind, steps })
    }

    /// Where it was at the end of a span; `None` before it was made.
    #[must_use]
    pub fn place_within(&self, span: &Span) -> Option<Place> {
        let last = self.steps.iter().rev().find(|step| span.had_come_to(&step.cited));
        last.map(|step| step.to)
    }
}

fn astray(serial: Serial, entry: EntryNumber) -> AuditError {
    AuditError::Astray { serial, entry }
}
