//! Assets, places and orders in words, with a world's names for kinds and slots, and the names of accounts. The number
//! is always given with the name.

use std::collections::BTreeMap;

use annals_def::LedgerNames;
use annals_event::ledger::{AssetSlot, Assets, Entry, Holder, Side, Slots};
use annals_ids::{AssetKind, DatabaseId, Hash, Serial, Slot};

/// The names for numbers of the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Lexicon {
    /// Kinds and slots, by the definitions under which an entry was written.
    schemas: BTreeMap<Hash, LedgerNames>,
    /// Stored entities; each name in its display form.
    stored: BTreeMap<DatabaseId, String>,
}

/// The names under particular definitions.
#[derive(Clone, Copy, Debug, Default)]
pub struct Terms<'a> {
    ledger: Option<&'a LedgerNames>,
    stored: Option<&'a BTreeMap<DatabaseId, String>>,
}

impl Lexicon {
    /// The names of kinds and slots in these definitions, by their fingerprints.
    pub fn new(schemas: impl IntoIterator<Item = (Hash, LedgerNames)>) -> Self {
        let named = schemas.into_iter().filter(|(_, names)| !names.is_empty());
        Self {
            schemas: named.collect(),
            stored: BTreeMap::new(),
        }
    }

    /// Adds names of stored entities, each in its display form.
    #[must_use]
    pub fn with_stored(self, stored: BTreeMap<DatabaseId, String>) -> Self {
        Self { stored, ..self }
    }

    /// The names for an entry that was written under these definitions.
    #[must_use]
    pub fn under(&self, schema: Hash) -> Terms<'_> {
        Terms {
            ledger: self.schemas.get(&schema),
            stored: Some(&self.stored),
        }
    }

    /// The names of kinds and slots, by the definitions that have any.
    #[must_use]
    pub fn schemas(&self) -> &BTreeMap<Hash, LedgerNames> {
        &self.schemas
    }

    /// The names of stored entities.
    #[must_use]
    pub fn named_stored(&self) -> &BTreeMap<DatabaseId, String> {
        &self.stored
    }
}

impl<'a> Terms<'a> {
    /// Names of kinds and slots alone.
    #[must_use]
    pub fn of(ledger: &'a LedgerNames) -> Self {
        Self {
            ledger: Some(ledger),
            stored: None,
        }
    }

    /// The name of a kind.
    #[must_use]
    pub fn kind_name(&self, kind: AssetKind) -> Option<&'a str> {
        self.ledger.and_then(|names| names.kind(kind))
    }

    /// The name of a slot.
    #[must_use]
    pub fn slot_name(&self, slot: Slot) -> Option<&'a str> {
        self.ledger.and_then(|names| names.slot(slot))
    }

    /// The name of a stored entity, in its display form.
    #[must_use]
    pub fn stored_name(&self, stored: DatabaseId) -> Option<&'a str> {
        self.stored.and_then(|names| names.get(&stored)).map(String::as_str)
    }

    /// `gold (kind 1)`, or `kind 1`.
    #[must_use]
    pub fn kind(&self, kind: AssetKind) -> String {
        match self.kind_name(kind) {
            Some(name) => format!("{name} (kind {kind})"),
            None => format!("kind {kind}"),
        }
    }

    /// `5 gold (kind 1)`, or `5 of kind 1`.
    #[must_use]
    pub fn units(&self, amount: u64, kind: AssetKind) -> String {
        match self.kind_name(kind) {
            Some(_) => format!("{amount} {}", self.kind(kind)),
            None => format!("{amount} of kind {kind}"),
        }
    }

    /// `item 7 (sword, kind 2)`, or `item 7 (kind 2)`.
    #[must_use]
    pub fn item(&self, serial: Serial, kind: AssetKind) -> String {
        match self.kind_name(kind) {
            Some(name) => format!("item {serial} ({name}, kind {kind})"),
            None => format!("item {serial} (kind {kind})"),
        }
    }

    /// `item 7 (sword, kind 2)`, or `item 7 of kind 2`: as the subject of an answer.
    #[must_use]
    pub fn subject(&self, serial: Serial, kind: AssetKind) -> String {
        match self.kind_name(kind) {
            Some(_) => self.item(serial, kind),
            None => format!("item {serial} of kind {kind}"),
        }
    }

    /// `slot 1 (bank)`, or `slot 1`.
    #[must_use]
    pub fn slot(&self, slot: Slot) -> String {
        match self.slot_name(slot) {
            Some(name) => format!("slot {slot} ({name})"),
            None => format!("slot {slot}"),
        }
    }

    /// `anna (stored entity 17)`, or `stored entity 17`.
    #[must_use]
    pub fn stored(&self, stored: DatabaseId) -> String {
        match self.stored_name(stored) {
            Some(name) => format!("{name} (stored entity {stored})"),
            None => format!("stored entity {stored}"),
        }
    }

    /// A place in words.
    #[must_use]
    pub fn place(&self, place: AssetSlot) -> String {
        match place.holder {
            Holder::World => "nowhere".to_owned(),
            Holder::Stored(holder) => format!("{}, {}", self.stored(holder), self.slot(place.slot)),
            Holder::Pending(transfer) => format!("transfer {transfer}, under way"),
            Holder::Trade(trade, Side::Proposer) => format!("table of trade {trade}, proposer"),
            Holder::Trade(trade, Side::Partner) => format!("table of trade {trade}, partner"),
        }
    }

    /// The effects of an entry on assets.
    #[must_use]
    pub fn moved(&self, entry: &Entry) -> String {
        let units = entry.postings.iter().map(|posting| {
            let units = self.units(posting.amount.unsigned_abs(), posting.account.kind);
            let goes = if posting.amount < 0 { "leaves" } else { "comes to" };
            format!("{units} {goes} {}", self.place(posting.account.place))
        });
        let items = entry.passages.iter().map(|passage| {
            let item = self.item(passage.serial, passage.kind);
            let (from, to) = (self.place(passage.from), self.place(passage.to));
            format!("{item} goes from {from} to {to}")
        });
        let moved: Vec<String> = units.chain(items).collect();
        if moved.is_empty() {
            "nothing".to_owned()
        } else {
            moved.join("; ")
        }
    }

    /// Holdings, by slot.
    #[must_use]
    pub fn slots(&self, slots: &Slots) -> String {
        let held = slots.iter().filter(|(_, assets)| !assets.is_empty());
        let named: Vec<String> = held
            .map(|(slot, held)| format!("{}: {}", self.slot(*slot), self.assets(held)))
            .collect();
        if named.is_empty() {
            "nothing".to_owned()
        } else {
            named.join("; ")
        }
    }

    /// Units and items.
    #[must_use]
    pub fn assets(&self, assets: &Assets) -> String {
        let units = assets.units.iter().filter(|(_, amount)| **amount > 0);
        let units = units.map(|(kind, amount)| self.units(*amount, *kind));
        let items = assets.items.iter().map(|(serial, kind)| self.item(*serial, *kind));
        let named: Vec<String> = units.chain(items).collect();
        if named.is_empty() {
            "nothing".to_owned()
        } else {
            named.join(", ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shown_with_names_if_known() {
        let names = LedgerNames::new(
            [(AssetKind(1), "gold".to_owned())].into(),
            [(Slot(1), "bank".to_owned())].into(),
        );
        let schema = Hash([7; 32]);
        let lexicon = Lexicon::new([(schema, names), (Hash([8; 32]), LedgerNames::default())])
            .with_stored([(DatabaseId(17), "anna".to_owned())].into());
        assert_eq!(lexicon.schemas().len(), 1, "definitions that name nothing are left out");
        let held = Assets {
            units: [(AssetKind(1), 5), (AssetKind(2), 3)].into(),
            items: [(Serial(9), AssetKind(1)), (Serial(10), AssetKind(2))].into(),
        };
        let slots: Slots = [(Slot(0), Assets::units(AssetKind(1), 1)), (Slot(1), held)].into();
        let place = |holder| AssetSlot {
            holder: Holder::Stored(DatabaseId(holder)),
            slot: Slot(1),
        };
        let terms = lexicon.under(schema);
        assert_eq!(
            terms.slots(&slots),
            "slot 0: 1 gold (kind 1); slot 1 (bank): 5 gold (kind 1), 3 of kind 2, item 9 (gold, kind 1), item 10 (kind 2)"
        );
        assert_eq!(terms.place(place(17)), "anna (stored entity 17), slot 1 (bank)");
        assert_eq!(terms.place(place(18)), "stored entity 18, slot 1 (bank)");
        assert_eq!(terms.subject(Serial(9), AssetKind(1)), "item 9 (gold, kind 1)");
        // Earlier definitions, before the name was given, have none.
        let before = lexicon.under(Hash([9; 32]));
        assert_eq!(before.place(place(17)), "anna (stored entity 17), slot 1");
        assert_eq!(before.subject(Serial(9), AssetKind(1)), "item 9 of kind 1");
        assert_eq!(Terms::default().place(place(17)), "stored entity 17, slot 1");
        assert_eq!(Terms::default().slots(&slots).matches("gold").count(), 0);
    }
}
