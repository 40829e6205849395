//! Views of accounts: property values derived from a base part's ledger view, and stored nowhere.

use annals_def::{AccountView, Holding, Value};
use annals_ids::{AssetKind, Serial};

use super::{Assets, LedgerView};

impl LedgerView {
    /// The value of a property that is the view of an account. Until the holdings are known it is empty: 0, or an empty
    /// list.
    #[must_use]
    pub fn value(&self, account: AccountView) -> Value {
        let nothing = Assets::default();
        let slots = self.holdings.as_ref().map(|holdings| &holdings.slots);
        let held = slots.and_then(|slots| slots.get(&account.slot)).unwrap_or(&nothing);
        match account.shows {
            Holding::Units(kind) => Value::UInt(held.units.get(&kind).copied().unwrap_or(0)),
            Holding::Serials(kind) => {
                let items = held.items.iter().filter(|(_, of)| **of == kind);
                Value::Sequence(items.map(|(serial, _)| Value::UInt(serial.0)).collect())
            }
            Holding::Balances => {
                let balance = |(kind, units): (&AssetKind, &u64)| of_kind(*kind, *units);
                Value::Sequence(held.units.iter().map(balance).collect())
            }
            Holding::Items => {
                let item = |(serial, kind): (&Serial, &AssetKind)| of_kind(*kind, serial.0);
                Value::Sequence(held.items.iter().map(item).collect())
            }
        }
    }
}

fn of_kind(kind: AssetKind, number: u64) -> Value {
    Value::Dict(vec![Value::UInt(kind.0.into()), Value::UInt(number)])
}
