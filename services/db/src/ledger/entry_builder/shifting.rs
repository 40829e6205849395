//! Moving assets from one place to another, with all rows that record where they are and how many exist.

use annals_event::ledger::{
    Account, AssetSlot, Assets, HOLDINGS_PER_HOLDER, Holder, Passage, RefusalReason, UNITS_OF_A_KIND,
};
use annals_ids::{AssetKind, DatabaseId};

use super::{EntryBuilder, breach};
use crate::ledger::books::{Item, Nature, Row, Stop, Supply};

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    In,
    Out,
}

impl EntryBuilder<'_> {
    /// Moves assets. The record of an open trade or gift is not changed here: the caller must update it.
    pub(super) fn shift(&mut self, from: AssetSlot, to: AssetSlot, assets: &Assets) -> Result<(), Stop> {
        for (kind, amount) in &assets.units {
            self.count(from, *kind, *amount, Flow::Out)?;
            self.count(to, *kind, *amount, Flow::In)?;
            let units = i64::try_from(*amount).map_err(|_| RefusalReason::NotHeld)?;
            for (place, units) in [(from, -units), (to, units)] {
                *self.postings.entry(Account { place, kind: *kind }).or_default() += units;
            }
        }
        for (serial, kind) in &assets.items {
            let item = self.books.item(*serial)?;
            if item
                != Some(Item {
                    kind: *kind,
                    place: from,
                })
            {
                return Err(RefusalReason::NotHeld.into());
            }
            let moved = Item { kind: *kind, place: to };
            self.books.items.set(*serial, Some(moved));
            self.note_item(from, *kind, Flow::Out)?;
            self.note_item(to, *kind, Flow::In)?;
            self.passages.push(Passage {
                serial: *serial,
                kind: *kind,
                from,
                to,
            });
        }
        self.note_change(from, to, assets)
    }

    fn count(&mut self, at: AssetSlot, kind: AssetKind, amount: u64, flow: Flow) -> Result<(), Stop> {
        let holder = match at.holder {
            Holder::World => return self.supply(kind, Nature::Units, amount, flow),
            Holder::Pending(_) | Holder::Trade(..) => return Ok(()),
            Holder::Stored(holder) => holder,
        };
        let before = self.books.balance(holder, at.slot, kind)?;
        let after = match flow {
            Flow::Out => before.checked_sub(amount).ok_or(RefusalReason::NotHeld)?,
            Flow::In => before.checked_add(amount).ok_or(RefusalReason::Supply)?,
        };
        let row = (holder, at.slot, kind);
        self.books.accounts.set(row, Some(after).filter(|&units| units > 0));
        match (before, after) {
            (0, 1..) => self.note_held(holder, Flow::In),
            (1.., 0) => self.note_held(holder, Flow::Out),
            _ => Ok(()),
        }
    }

    fn note_item(&mut self, at: AssetSlot, kind: AssetKind, flow: Flow) -> Result<(), Stop> {
        match at.holder {
            Holder::World => self.supply(kind, Nature::Items, 1, flow),
            Holder::Pending(_) | Holder::Trade(..) => Ok(()),
            Holder::Stored(holder) => self.note_held(holder, flow),
        }
    }

    /// Updates the supply: assets that leave the world's account exist from then on.
    fn supply(&mut self, kind: AssetKind, nature: Nature, amount: u64, flow: Flow) -> Result<(), Stop> {
        let before = self.books.supply(kind)?.unwrap_or(Supply { nature, exists: 0 });
        if before.nature != nature {
            return Err(RefusalReason::OtherNature.into());
        }
        let exists = match flow {
            Flow::Out => before.exists.checked_add(amount).filter(|&all| all <= UNITS_OF_A_KIND),
            Flow::In => before.exists.checked_sub(amount),
        };
        let exists = match (exists, flow) {
            (Some(exists), _) => exists,
            (None, Flow::Out) => return Err(RefusalReason::Supply.into()),
            (None, Flow::In) => return Err(breach(Row::Supply(kind), "the held amount exceeds the supply")),
        };
        self.books.supplies.set(kind, Some(Supply { nature, exists }));
        Ok(())
    }

    fn note_held(&mut self, holder: DatabaseId, flow: Flow) -> Result<(), Stop> {
        let mut row = self.row(holder)?;
        let held = match flow {
            Flow::In => row.held.checked_add(1),
            Flow::Out => row.held.checked_sub(1),
        };
        row.held = held.ok_or_else(|| breach(Row::Holder(holder), "the number of its holdings is out of range"))?;
        self.books.holders.set(holder, Some(row));
        Ok(())
    }

    fn note_change(&mut self, from: AssetSlot, to: AssetSlot, assets: &Assets) -> Result<(), Stop> {
        let twice = |holder| breach(Row::Holder(holder), "an item moves twice in one entry");
        if let Holder::Stored(holder) = from.holder {
            let gone = &mut self.changes.entry(holder).or_default().gone;
            gone.entry(from.slot)
                .or_default()
                .add(assets)
                .map_err(|_| twice(holder))?;
        }
        if let Holder::Stored(holder) = to.holder {
            let come = &mut self.changes.entry(holder).or_default().come;
            come.entry(to.slot)
                .or_default()
                .add(assets)
                .map_err(|_| twice(holder))?;
        }
        Ok(())
    }

    /// Checks that a holder has room for its new holdings.
    pub(super) fn check_room(&self, holder: DatabaseId) -> Result<(), Stop> {
        if self.row(holder)?.held > HOLDINGS_PER_HOLDER {
            return Err(RefusalReason::Full.into());
        }
        Ok(())
    }
}
