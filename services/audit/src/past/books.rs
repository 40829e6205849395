//! Who had what, added up from the entries of the ledger.

use std::collections::BTreeMap;

use annals_event::ledger::{Account, Entry, Holder, Place};
use annals_ids::{AssetKind, Serial};

/// What every account held. The world's, from which all comes that is made, is not kept.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Books {
    /// Units by account; none that is empty.
    pub units: BTreeMap<Account, i128>,
    /// Where each item was, and of which kind it is; none that does not exist.
    pub items: BTreeMap<Serial, (AssetKind, Place)>,
}

impl Books {
    /// Goes through the next entry.
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
