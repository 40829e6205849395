//! Holdings, entry by entry.

use annals_event::ledger::{Assets, Entry, Holder, Slots};
use annals_ids::Slot;

/// What a holder held before and after a step, by slot. Assets on the table of a trade are in neither.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inventory {
    pub before: Slots,
    pub after: Slots,
}

/// Number of assets held. An empty slot in the map counts too, because it takes memory.
pub(crate) fn kept(slots: &Slots) -> usize {
    slots.values().map(|assets| assets.count().max(1)).sum()
}

/// Applies an entry to the holdings of a holder; `None` if they lack what the entry takes.
pub fn apply(slots: &mut Slots, holder: Holder, entry: &Entry) -> Option<()> {
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
