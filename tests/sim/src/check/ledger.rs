//! The ledger: nothing lost, nothing duplicated. Each order is executed once; per kind all postings sum to zero; each
//! item is in one place; each party is notified once; and at rest every entity knows its exact holdings.
//!
//! The entries are summed here as simply as possible. That the store's rows equal these sums is checked by the audit.

use std::collections::BTreeMap;

use annals_db::ledger::{audit, read_entries, read_notices};
use annals_event::{
    Body, Call, Subject,
    ledger::{AssetSlot, Assets, Entry, Holder, LedgerUpdate, LedgerView, Side},
};
use annals_ids::{
    AssetKind, DatabaseId, EntityId, EntryNumber, LogPosition, NoticeNumber, Part, Serial, Slot, TransferId,
};
use annals_store::immediate;

use crate::{archive::Archive, world::World};

/// Checks the ledger's promises.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let mut wrong = Vec::new();
    let store = world.truth();
    let entries = immediate(read_entries(&store, EntryNumber(0), usize::MAX)).expect("the simulated store answers");
    let waiting = immediate(read_notices(&store, NoticeNumber(0), usize::MAX)).expect("the simulated store answers");
    if let Some((number, _)) = waiting.first() {
        wrong.push(format!(
            "{} notices wait in the outbox, from {number} on",
            waiting.len()
        ));
    }
    let audited = immediate(audit(&store)).expect("the simulated store answers");
    wrong.extend(
        audited
            .findings
            .iter()
            .map(|finding| format!("the audit finds {finding}")),
    );
    executed_once(archive, &entries, &mut wrong);
    notified_once(archive, &mut wrong);
    let wealth = Wealth::of(&entries, &mut wrong);
    known(archive, &wealth, &mut wrong);
    wrong
}

/// Each order in a log was executed once, when the batch that contains it was folded; nothing else was executed.
fn executed_once(archive: &Archive, entries: &[Entry], wrong: &mut Vec<String>) {
    let mut ordered: BTreeMap<TransferId, LogPosition> = BTreeMap::new();
    for batch in archive.logs.values().flatten() {
        let at = LogPosition {
            owner: batch.header.owner,
            batch: batch.header.number,
        };
        for event in &batch.events {
            if let (Body::Ordered { number, .. }, Subject::Entity(asker, _)) = (&event.body, event.subject) {
                let number = *number;
                if ordered.insert(TransferId { asker, number }, at).is_some() {
                    wrong.push(format!("order {number} of entity {asker} is in the logs twice"));
                }
            }
        }
    }
    for (expected, entry) in (1..).zip(entries) {
        if entry.number.0 != expected {
            wrong.push(format!("entry {} where {expected} belongs", entry.number));
        }
        let executes = entry.order.is_some();
        if executes && ordered.remove(&entry.of) != Some(entry.at) {
            wrong.push(format!(
                "entry {} executes order {} of entity {}, which batch {} of owner {} does not hold, or another entry executed",
                entry.number, entry.of.number, entry.of.asker, entry.at.batch, entry.at.owner
            ));
        }
    }
    let left = ordered
        .keys()
        .map(|of| format!("order {} of entity {} was never executed", of.number, of.asker));
    wrong.extend(left);
}

/// Each party records every notice of the ledger's log once, and records nothing else.
fn notified_once(archive: &Archive, wrong: &mut Vec<String>) {
    let mut notices: BTreeMap<(EntityId, Vec<u8>), (u64, u64)> = BTreeMap::new();
    for event in archive.logs.values().flatten().flat_map(|batch| &batch.events) {
        match (&event.body, event.subject) {
            (
                Body::Called {
                    call: Call::Ledger { to, update },
                    ..
                },
                _,
            ) => {
                notices.entry((*to, written(update))).or_default().0 += 1;
            }
            (Body::Booked(update), Subject::Entity(entity, Part::Base)) => {
                notices.entry((entity, written(update))).or_default().1 += 1;
            }
            _ => {}
        }
    }
    for ((entity, _), (calls, records)) in notices {
        // An activation that has ended needs no notice.
        let lives = lives(archive).any(|(living, _, _)| living == entity);
        if calls != 1 || records > 1 || (lives && records == 0) {
            wrong.push(format!(
                "entity {entity} received a notice {calls} times and recorded it {records} times"
            ));
        }
    }
}

fn written(update: &LedgerUpdate) -> Vec<u8> {
    let mut bytes = Vec::new();
    update.write(&mut bytes);
    bytes
}

/// Activations of stored entities, with each one's knowledge of the ledger.
fn lives(archive: &Archive) -> impl Iterator<Item = (EntityId, DatabaseId, &LedgerView)> {
    let states = archive.states.values().flat_map(|state| &state.entities);
    states.filter_map(|(entity, image)| {
        let base = image.base().filter(|base| base.database != DatabaseId(0))?;
        Some((*entity, base.database, &base.ledger))
    })
}

/// Sums of the entries.
#[derive(Debug, Default)]
struct Wealth {
    units: BTreeMap<(Holder, Slot, AssetKind), i128>,
    items: BTreeMap<Serial, (AssetSlot, AssetKind)>,
}

impl Wealth {
    fn of(entries: &[Entry], wrong: &mut Vec<String>) -> Self {
        let mut wealth = Self::default();
        for entry in entries {
            wealth.take(entry, wrong);
        }
        wealth
    }

    fn take(&mut self, entry: &Entry, wrong: &mut Vec<String>) {
        let mut sums: BTreeMap<AssetKind, i128> = BTreeMap::new();
        for posting in &entry.postings {
            let (place, kind) = (posting.account.place, posting.account.kind);
            let balance = self.units.entry((place.holder, place.slot, kind)).or_default();
            *balance += i128::from(posting.amount);
            *sums.entry(kind).or_default() += i128::from(posting.amount);
            if *balance < 0 && place.holder != Holder::World {
                wrong.push(format!("entry {} leaves {balance} units with {place:?}", entry.number));
            }
        }
        for (kind, sum) in sums.into_iter().filter(|(_, sum)| *sum != 0) {
            wrong.push(format!(
                "entry {} makes {sum} units of kind {kind} out of nothing",
                entry.number
            ));
        }
        for passage in &entry.passages {
            let before = self.items.insert(passage.serial, (passage.to, passage.kind));
            let made = before.is_none() && passage.from.holder == Holder::World;
            if !made && before != Some((passage.from, passage.kind)) {
                wrong.push(format!(
                    "entry {} moves item {} from {:?}, and it was at {before:?}",
                    entry.number, passage.serial, passage.from
                ));
            }
        }
    }

    /// A holder's assets, by slot.
    fn held(&self, wanted: Holder) -> BTreeMap<Slot, Assets> {
        let mut slots: BTreeMap<Slot, Assets> = BTreeMap::new();
        for ((_, slot, kind), units) in self
            .units
            .iter()
            .filter(|((holder, ..), units)| *holder == wanted && **units > 0)
        {
            let units = u64::try_from(*units).unwrap_or(u64::MAX);
            slots.entry(*slot).or_default().units.insert(*kind, units);
        }
        for (serial, (place, kind)) in self.items.iter().filter(|(_, (place, _))| place.holder == wanted) {
            slots.entry(place.slot).or_default().items.insert(*serial, *kind);
        }
        slots
    }
}

/// At rest each activation knows its holdings, its reservations and its tables, and has no order pending.
fn known(archive: &Archive, wealth: &Wealth, wrong: &mut Vec<String>) {
    for (entity, database, view) in lives(archive) {
        let Some(holdings) = &view.holdings else {
            wrong.push(format!("entity {entity} never received its holdings"));
            continue;
        };
        if !view.orders.is_empty() {
            wrong.push(format!("entity {entity} still waits for {} orders", view.orders.len()));
        }
        let mut compare = |what: &str, seen: &BTreeMap<Slot, Assets>, holder: Holder| {
            let real = wealth.held(holder);
            if *seen != real {
                wrong.push(format!(
                    "entity {entity} sees {seen:?} {what}, where the ledger has {real:?}"
                ));
            }
        };
        compare("in its slots", &holdings.slots, Holder::Stored(database));
        for (id, gift) in &view.gifts {
            let reserved = BTreeMap::from([(gift.slot, gift.assets.clone())]);
            compare("reserved", &reserved, Holder::Pending(*id));
        }
        for (id, trade) in &view.trades {
            for side in [Side::Proposer, Side::Partner] {
                compare("on a table", &trade.side(side).table, Holder::Trade(*id, side));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use annals_event::ledger::{Account, Outcome, Passage, Posting};
    use annals_ids::{BatchNumber, OwnerId, TransferNumber, WallTime};

    use super::*;

    const COIN: AssetKind = AssetKind(1);

    fn place(holder: Holder) -> AssetSlot {
        AssetSlot { holder, slot: Slot(0) }
    }

    fn entry(number: u64, postings: &[(Holder, i64)], passages: &[(Holder, Holder)]) -> Entry {
        let posting = |&(holder, amount): &(Holder, i64)| Posting {
            account: Account {
                place: place(holder),
                kind: COIN,
            },
            amount,
        };
        let passage = |&(from, to): &(Holder, Holder)| Passage {
            serial: Serial(1),
            kind: COIN,
            from: place(from),
            to: place(to),
        };
        Entry {
            number: EntryNumber(number),
            at: LogPosition {
                owner: OwnerId(1),
                batch: BatchNumber(number),
            },
            wall: WallTime(0),
            of: TransferId {
                asker: EntityId(1),
                number: TransferNumber(number),
            },
            holder: DatabaseId(1),
            order: None,
            outcome: Outcome::Posted,
            postings: postings.iter().map(posting).collect(),
            passages: passages.iter().map(passage).collect(),
        }
    }

    fn wrong(entries: &[Entry]) -> usize {
        let mut wrong = Vec::new();
        Wealth::of(entries, &mut wrong);
        wrong.len()
    }

    #[test]
    fn duplicated_and_lost_assets_are_found() {
        let (one, other) = (Holder::Stored(DatabaseId(1)), Holder::Stored(DatabaseId(2)));
        let made = entry(1, &[(Holder::World, -5), (one, 5)], &[(Holder::World, one)]);
        let given = entry(2, &[(one, -5), (other, 5)], &[(one, other)]);
        assert_eq!(wrong(&[made.clone(), given.clone()]), 0);
        assert_eq!(
            wrong(std::slice::from_ref(&given)),
            2,
            "units and an item without a creation"
        );
        assert_eq!(wrong(&[made.clone(), given.clone(), given]), 2, "given twice");
        assert_eq!(wrong(&[made.clone(), made.clone()]), 1, "an item is made once");
        assert_eq!(wrong(&[made, entry(2, &[(one, -1)], &[])]), 1, "a unit is lost");
    }
}
