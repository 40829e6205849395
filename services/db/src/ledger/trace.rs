//! The origin of units, by lots that are used first in, first out.

use async_recursion::async_recursion as boxed;
use std::collections::{BTreeMap, VecDeque};

use annals_event::ledger::{Account, AssetSlot, Entry, Holder, Order};
use annals_ids::{AssetKind, DatabaseId, EntryNumber, Slot, WallTime};
use annals_store::{Store, StoreError};

use super::pages::read_entries;

/// Entries read at a time.
const ENTRIES_AT_ONCE: usize = 512;

/// The entry in which units were made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    pub entry: EntryNumber,
    /// When it was made.
    pub wall: WallTime,
    /// Holder for which they were made.
    pub holder: DatabaseId,
    /// Reason of the entry.
    pub reason: String,
}

/// Units that were made together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lot {
    /// Number of units.
    pub amount: u64,
    /// Entry in which they were made.
    pub made_in: EntryNumber,
}

/// Returns the lots of an account's present holdings, oldest first, each with the entry in which it was made.
///
/// # Errors
/// When the store cannot be read.
#[boxed]
pub async fn trace_account(
    store: &Store,
    holder: DatabaseId,
    slot: Slot,
    kind: AssetKind,
) -> Result<Vec<(u64, Origin)>, StoreError> {
    let mut lots = Lots::default();
    let mut origins: BTreeMap<EntryNumber, Origin> = BTreeMap::new();
    let note = |entry: &Entry| {
        lots.take(entry);
        let made = |posting: &annals_event::ledger::Posting| {
            posting.account.kind == kind && posting.account.place.holder == Holder::World && posting.amount < 0
        };
        if entry.postings.iter().any(made) {
            let origin = Origin {
                entry: entry.number,
                wall: entry.wall,
                holder: entry.holder,
                reason: reason(entry),
            };
            origins.insert(entry.number, origin);
        }
    };
    each_entry(store, note).await?;
    let place = AssetSlot {
        holder: Holder::Stored(holder),
        slot,
    };
    let held = lots.of(Account { place, kind });
    let traced = held.map(|lot| Some((lot.amount, origins.get(&lot.made_in)?.clone())));
    Ok(traced.flatten().collect())
}

/// The lots of every account, first in, first out.
#[derive(Clone, Debug, Default)]
pub struct Lots {
    held: BTreeMap<Account, VecDeque<Lot>>,
}

impl Lots {
    /// Applies the next entry.
    pub fn take(&mut self, entry: &Entry) {
        let mut gone: BTreeMap<AssetKind, VecDeque<Lot>> = BTreeMap::new();
        for posting in entry.postings.iter().filter(|posting| posting.amount < 0) {
            let amount = posting.amount.unsigned_abs();
            let kind = posting.account.kind;
            if posting.account.place.holder == Holder::World {
                let made_in = entry.number;
                gone.entry(kind).or_default().push_back(Lot { amount, made_in });
            } else {
                let held = self.held.entry(posting.account).or_default();
                gone.entry(kind).or_default().extend(split(held, amount));
            }
        }
        for posting in entry.postings.iter().filter(|posting| posting.amount > 0) {
            let lots = gone.entry(posting.account.kind).or_default();
            let come = split(lots, posting.amount.unsigned_abs());
            if posting.account.place.holder != Holder::World {
                self.held.entry(posting.account).or_default().extend(come);
            }
        }
        self.held.retain(|_, lots| !lots.is_empty());
    }

    /// Lots of an account, oldest first.
    pub fn of(&self, account: Account) -> impl Iterator<Item = &Lot> {
        self.held.get(&account).into_iter().flatten()
    }

    /// All accounts that are not empty.
    pub fn accounts(&self) -> impl Iterator<Item = (&Account, &VecDeque<Lot>)> {
        self.held.iter()
    }
}

/// Takes `amount` units from the front, or fewer if there are not as many.
fn split(lots: &mut VecDeque<Lot>, mut amount: u64) -> Vec<Lot> {
    let mut taken = Vec::new();
    while amount > 0
        && let Some(lot) = lots.front_mut()
    {
        let part = lot.amount.min(amount);
        let made_in = lot.made_in;
        taken.push(Lot { amount: part, made_in });
        amount -= part;
        lot.amount -= part;
        if lot.amount == 0 {
            lots.pop_front();
        }
    }
    taken
}

fn reason(entry: &Entry) -> String {
    let parts = entry.order.as_ref().map(Order::parts).unwrap_or_default();
    let reason = parts.reason.or(parts.warrant.map(|warrant| warrant.reason.as_str()));
    reason.unwrap_or_default().to_owned()
}

async fn each_entry(store: &Store, mut note: impl FnMut(&Entry)) -> Result<(), StoreError> {
    let mut after = EntryNumber(0);
    loop {
        let read = read_entries(store, after, ENTRIES_AT_ONCE).await?;
        let Some(last) = read.last() else { return Ok(()) };
        after = last.number;
        read.iter().for_each(&mut note);
    }
}
