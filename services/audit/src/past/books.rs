//! Holdings, computed from the entries of the ledger.

use std::collections::BTreeMap;

use annals_event::ledger::{Account, AssetSlot, Entry, Holder};
use annals_ids::{AssetKind, Serial};

/// The holdings of all accounts. The world's account, the source of everything created, is not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Units by account; no empty accounts.
    pub units: BTreeMap<Account, i128>,
    /// Place and kind of each item that exists.
    pub items: BTreeMap<Serial, (AssetKind, AssetSlot)>,
}

impl Books {
    /// Applies the next entry.
    pub fn enter(&mut self, entry: &Entry) {
        for posting in &entry.postings {
            if posting.account.place.holder == Holder::World {
                continue;
            }
            let held = self.units.entry(posting.account).or_default();
            *held += i128::from(posting.amount);
            if *held == 0 {
                self.units.remove(&posting.account);
            }
        }
        for passage in &entry.passages {
            if passage.to.holder == Holder::World {
                self.items.remove(&passage.serial);
            } else {
                self.items.insert(passage.serial, (passage.kind, passage.to));
            }
        }
    }
}
