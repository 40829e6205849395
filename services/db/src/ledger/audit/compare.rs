//! Compares the ledger's rows with its entries, and with each other.

use std::collections::{BTreeMap, BTreeSet};

use annals_event::ledger::{AssetSlot, Holder};
use annals_ids::{AssetKind, DatabaseId, Serial, Slot, TransferId, WallTime};

use super::{Audit, Finding, Terms, rows::Rows};
use crate::ledger::books::{Nature, Open};

impl Audit {
    /// Compares the rows with the sums of the entries.
    pub(super) fn compare(&mut self, rows: &Rows) {
        let mut found: BTreeMap<(AssetSlot, AssetKind), i128> = BTreeMap::new();
        for ((holder, slot, kind), units) in &rows.accounts {
            found.insert((stored(*holder, *slot), *kind), i128::from(*units));
        }
        let mut escrow: BTreeMap<Serial, AssetSlot> = BTreeMap::new();
        for (id, open) in &rows.open {
            for (place, assets) in open.places() {
                for (kind, units) in &assets.units {
                    *found.entry((place, *kind)).or_default() += i128::from(*units);
                }
                escrow.extend(assets.items.keys().map(|serial| (*serial, place)));
            }
            self.check_open(rows, *id, open);
        }
        for (kind, supply) in &rows.supplies {
            if supply.nature == Nature::Units && supply.exists > 0 {
                found.insert((world(), *kind), -i128::from(supply.exists));
            }
        }
        let units = std::mem::take(&mut self.units);
        let places: BTreeSet<_> = units.keys().chain(found.keys()).copied().collect();
        for (place, kind) in places {
            let of = |map: &BTreeMap<_, i128>| map.get(&(place, kind)).copied().unwrap_or(0);
            if of(&units) != of(&found) {
                let row = format!("the balance of kind {kind} at {place:?}");
                self.differ(&row, &of(&units), &of(&found));
            }
            self.add_to_sum(place, kind, of(&found));
        }
        self.check_items(rows, &escrow);
        self.check_holders(rows);
        self.check_terms(rows);
        self.check_stray(rows);
        for (kind, (made, destroyed)) in std::mem::take(&mut self.made) {
            let sum = self.report.sums.entry(kind).or_default();
            (sum.made, sum.destroyed) = (made, destroyed);
            let (exists, there) = (made.saturating_sub(destroyed), sum.held + sum.in_escrow);
            if exists != there {
                self.differ(&format!("what exists of kind {kind}"), &exists, &there);
            }
            let supply = rows.supplies.get(&kind).map_or(0, |supply| u128::from(supply.exists));
            if exists != supply {
                self.differ(&format!("the supply of kind {kind}"), &exists, &supply);
            }
        }
    }

    fn check_items(&mut self, rows: &Rows, escrow: &BTreeMap<Serial, AssetSlot>) {
        let items = std::mem::take(&mut self.items);
        let serials: BTreeSet<Serial> = items.keys().chain(rows.items.keys()).copied().collect();
        for serial in serials {
            let expected = items.get(&serial).copied();
            let row = rows.items.get(&serial).map(|item| (item.kind, item.place));
            if expected != row {
                self.differ(&format!("item {serial}"), &format!("{expected:?}"), &format!("{row:?}"));
            }
            let Some((kind, place)) = row else { continue };
            match place.holder {
                Holder::World => {}
                Holder::Stored(holder) => {
                    self.add_to_sum(place, kind, 1);
                    if rows.held.get(&(holder, place.slot, serial)) != Some(&kind) {
                        let what = format!("item {serial} is not found with entity {holder} of the database");
                        self.find(Finding::Index { what });
                    }
                }
                Holder::Pending(_) | Holder::Trade(..) => {
                    self.add_to_sum(place, kind, 1);
                    if escrow.get(&serial) != Some(&place) {
                        let what = format!("item {serial} is reserved at {place:?}, which does not have it");
                        self.find(Finding::Index { what });
                    }
                }
            }
        }
        for (holder, slot, serial) in rows.held.keys() {
            let place = rows.items.get(serial).map(|item| item.place);
            if place != Some(stored(*holder, *slot)) {
                let what = format!("item {serial} is found with entity {holder} of the database and is elsewhere");
                self.find(Finding::Index { what });
            }
        }
        for (serial, place) in escrow {
            if rows.items.get(serial).map(|item| item.place) != Some(*place) {
                let what = format!("item {serial} is reserved at {place:?} and is elsewhere");
                self.find(Finding::Index { what });
            }
        }
    }

    fn check_open(&mut self, rows: &Rows, id: TransferId, open: &Open) {
        let has_deadline = rows.deadlines.contains(&(open.expires().0, id));
        let has_parties = open.parties().iter().all(|party| rows.parties.contains(&(*party, id)));
        if !has_deadline || !has_parties {
            let what = format!("transfer {id} is open, but its deadline or a party lacks it");
            self.find(Finding::Index { what });
        }
    }

    /// Checks the head's next deadline.
    pub(super) fn check_due(&mut self, rows: &Rows, due: Option<WallTime>) {
        if let Some((earliest, id)) = rows.deadlines.first()
            && due.is_none_or(|due| due.0 > *earliest)
        {
            let what = format!("transfer {id} expires before the next recorded deadline");
            self.find(Finding::Index { what });
        }
    }

    /// Reports rows that refer to something that does not exist.
    fn check_stray(&mut self, rows: &Rows) {
        for (deadline, id) in &rows.deadlines {
            if rows.open.get(id).is_none_or(|open| open.expires().0 != *deadline) {
                let what = format!("transfer {id} has a deadline and is not open");
                self.find(Finding::Index { what });
            }
        }
        for (party, id) in &rows.parties {
            if rows.open.get(id).is_none_or(|open| !open.parties().contains(party)) {
                let what = format!("entity {party} of the database is party to transfer {id}, which is not open");
                self.find(Finding::Index { what });
            }
        }
    }

    fn check_holders(&mut self, rows: &Rows) {
        let mut held: BTreeMap<DatabaseId, (u32, u32)> = BTreeMap::new();
        let holding = rows.accounts.keys().map(|(holder, _, _)| *holder);
        for holder in holding.chain(rows.held.keys().map(|(holder, _, _)| *holder)) {
            held.entry(holder).or_default().0 += 1;
        }
        for (holder, _) in &rows.parties {
            held.entry(*holder).or_default().1 += 1;
        }
        let deleted = rows.holders.iter().filter(|(_, row)| row.deleted);
        let deleted: BTreeSet<DatabaseId> = deleted.map(|(holder, _)| *holder).collect();
        for holder in std::mem::take(&mut self.deleted).symmetric_difference(&deleted) {
            let is_so = deleted.contains(holder);
            let name = format!("whether entity {holder} of the database was deleted");
            self.differ(&name, &!is_so, &is_so);
        }
        let all: BTreeSet<DatabaseId> = held.keys().chain(rows.holders.keys()).copied().collect();
        for holder in all {
            let counted = held.get(&holder).copied().unwrap_or_default();
            let row = rows.holders.get(&holder).map(|row| (row.held, row.open));
            if row.unwrap_or_default() != counted {
                let name = format!("how much entity {holder} of the database holds and has open");
                self.differ(&name, &format!("{counted:?}"), &format!("{row:?}"));
            }
        }
    }

    fn add_to_sum(&mut self, place: AssetSlot, kind: AssetKind, amount: i128) {
        let amount = u128::try_from(amount).unwrap_or(0);
        let sum = self.report.sums.entry(kind).or_default();
        match place.holder {
            Holder::World => {}
            Holder::Stored(_) => sum.held += amount,
            Holder::Pending(_) | Holder::Trade(..) => sum.in_escrow += amount,
        }
    }

    pub(super) fn differ(&mut self, row: &str, expected: &impl ToString, found: &impl ToString) {
        self.find(Finding::Differs {
            row: row.to_owned(),
            found: found.to_string(),
            expected: expected.to_string(),
        });
    }

    fn check_terms(&mut self, rows: &Rows) {
        let expected = std::mem::take(&mut self.open);
        let ids: BTreeSet<TransferId> = expected.keys().chain(rows.open.keys()).copied().collect();
        for id in ids {
            let (terms, row) = (expected.get(&id), rows.open.get(&id).map(Terms::of));
            if terms != row.as_ref() {
                let name = format!("how transfer {id} stands");
                self.differ(&name, &format!("{terms:?}"), &format!("{row:?}"));
            }
        }
    }
}

fn stored(holder: DatabaseId, slot: Slot) -> AssetSlot {
    AssetSlot {
        holder: Holder::Stored(holder),
        slot,
    }
}

fn world() -> AssetSlot {
    AssetSlot {
        holder: Holder::World,
        slot: Slot(0),
    }
}
