//! Names for the numbers in the ledger: kinds of assets, and slots of accounts.

use std::collections::BTreeMap;

use annals_ids::{AssetKind, Slot};

/// Names of kinds and slots, from `ledger.xml`. A number without a name is shown as the number.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LedgerNames {
    kinds: BTreeMap<AssetKind, String>,
    slots: BTreeMap<Slot, String>,
}

impl LedgerNames {
    /// Names for these numbers.
    #[must_use]
    pub fn new(kinds: BTreeMap<AssetKind, String>, slots: BTreeMap<Slot, String>) -> Self {
        Self { kinds, slots }
    }

    /// Whether there are no names.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.kinds.is_empty() && self.slots.is_empty()
    }

    /// The named kinds.
    #[must_use]
    pub fn kinds(&self) -> &BTreeMap<AssetKind, String> {
        &self.kinds
    }

    /// The named slots.
    #[must_use]
    pub fn slots(&self) -> &BTreeMap<Slot, String> {
        &self.slots
    }

    /// The name of a kind.
    #[must_use]
    pub fn kind(&self, kind: AssetKind) -> Option<&str> {
        self.kinds.get(&kind).map(String::as_str)
    }

    /// The name of a slot.
    #[must_use]
    pub fn slot(&self, slot: Slot) -> Option<&str> {
        self.slots.get(&slot).map(String::as_str)
    }

    /// The kind of this name.
    #[must_use]
    pub fn kind_named(&self, name: &str) -> Option<AssetKind> {
        let mut named = self.kinds.iter().filter(|(_, known)| *known == name);
        named.next().map(|(kind, _)| *kind)
    }

    /// The slot of this name.
    #[must_use]
    pub fn slot_named(&self, name: &str) -> Option<Slot> {
        let mut named = self.slots.iter().filter(|(_, known)| *known == name);
        named.next().map(|(slot, _)| *slot)
    }
}
