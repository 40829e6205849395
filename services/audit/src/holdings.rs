//! What is held somewhere, entry by entry.

use std::collections::BTreeMap;

use annals_event::ledger::{Assets, Entry, Holder, Slots};
use annals_ids::{DatabaseId, EntryNumber, Slot};
use annals_store::Store;

use crate::{answer::AuditError, index::Index, rows::About};

/// What somebody held before and after a step, by slot. What is on the table is in neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    /// Before.
    pub before: Slots,
    /// After.
    pub after: Slots,
}

/// Does to what a holder has what an entry says; `None` if it does not have what the entry takes.
pub(crate) fn apply(slots: &mut Slots, holder: Holder, entry: &Entry) -> Option<()> {
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    for posting in &entry.postings {
        let place = posting.account.place;
        if place.holder == holder {
            let units = Assets::units(posting.account.kind, posting.amount.unsigned_abs());
            let list = if posting.amount < 0 { &mut gone } else { &mut come };
            list.push((place.slot, units));
        }
    }
    for passage in &entry.passages {
        let item = Assets::item(passage.serial, passage.kind);
        if passage.from.holder == holder {
            gone.push((passage.from.slot, item.clone()));
        }
        if passage.to.holder == holder {
            come.push((passage.to.slot, item));
        }
    }
    for (slot, assets) in gone {
        take(slots, slot, &assets)?;
    }
    for (slot, assets) in come {
        slots.entry(slot).or_default().add(&assets).ok()?;
    }
    Some(())
}

fn take(slots: &mut Slots, slot: Slot, assets: &Assets) -> Option<()> {
    let held = slots.get_mut(&slot)?;
    held.take(assets).ok()?;
    if held.is_empty() {
        slots.remove(&slot);
    }
    Some(())
}

/// What an entity of the database held before and after each of these entries, by adding up all that concerned it.
pub(crate) async fn inventories(
    index: &Index,
    archive: &Store,
    holder: DatabaseId,
    wanted: &[EntryNumber],
) -> Result<BTreeMap<EntryNumber, Inventory>, AuditError> {
    let mut slots = Slots::new();
    let mut found = BTreeMap::new();
    let mut own = index.entries(About::Holder(holder)).await?.into_iter().peekable();
    for &number in wanted {
        while let Some(earlier) = own.next_if(|own| *own < number) {
            add(index, archive, holder, &mut slots, earlier).await?;
        }
        let before = slots.clone();
        if own.next_if_eq(&number).is_some() {
            add(index, archive, holder, &mut slots, number).await?;
        }
        let after = slots.clone();
        found.insert(number, Inventory { before, after });
    }
    Ok(found)
}

async fn add(
    index: &Index,
    archive: &Store,
    holder: DatabaseId,
    slots: &mut Slots,
    number: EntryNumber,
) -> Result<(), AuditError> {
    let (entry, ..) = index.entry(archive, number).await?;
    apply(slots, Holder::Stored(holder), &entry).ok_or(AuditError::Overdrawn { holder, entry: number })
}
