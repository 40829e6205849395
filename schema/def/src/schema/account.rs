//! Properties that are views of accounts: what they show of what the ledger says that an entity holds.

use std::fmt;

use annals_ids::{AssetKind, Slot};

use crate::data_type::DataType;

/// Of what a property is the view. It has no value of its own: whoever reads it is told what the ledger says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountView {
    /// Which slot of what the entity holds.
    pub slot: Slot,
    /// What of it.
    pub shows: Holding,
}

/// What a view shows of a slot. The property's type and whether a kind is named decide it: [`Holding::of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// How many units of a kind there are: `UINT64`.
    Units(AssetKind),
    /// The serials of the items of a kind, ascending: `ARRAY <of> UINT64 </of>`.
    Serials(AssetKind),
    /// Of every kind that is counted how many units there are, by kind: an `ARRAY` of `FIXED_DICT` with the fields
    /// `kind` (`UINT32`) and `units` (`UINT64`), in this order.
    Balances,
    /// All items, by serial: an `ARRAY` of `FIXED_DICT` with the fields `kind` (`UINT32`) and `serial` (`UINT64`), in
    /// this order.
    Items,
}

impl Holding {
    /// What a property of this type shows, with a kind or without; `None` if no view is of such a type.
    #[must_use]
    pub fn of(data_type: &DataType, kind: Option<AssetKind>) -> Option<Self> {
        let array = match data_type {
            DataType::UInt64 => return kind.map(Self::Units),
            DataType::Array(array) if array.size.is_none() => array,
            _ => return None,
        };
        match (&array.of, kind) {
            (DataType::UInt64, Some(kind)) => Some(Self::Serials(kind)),
            (DataType::FixedDict(dict), None) if !dict.allow_none => match &dict.fields[..] {
                [kind, what] if kind.name == "kind" && kind.data_type == DataType::UInt32 => match &*what.name {
                    _ if what.data_type != DataType::UInt64 => None,
                    "units" => Some(Self::Balances),
                    "serial" => Some(Self::Items),
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }

    /// The kind that is named.
    #[must_use]
    pub fn kind(self) -> Option<AssetKind> {
        match self {
            Self::Units(kind) | Self::Serials(kind) => Some(kind),
            Self::Balances | Self::Items => None,
        }
    }
}

/// `units of kind 1 in slot 0`
impl fmt::Display for AccountView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shows {
            Holding::Units(kind) => write!(f, "units of kind {kind}")?,
            Holding::Serials(kind) => write!(f, "items of kind {kind}")?,
            Holding::Balances => f.write_str("units of all kinds")?,
            Holding::Items => f.write_str("all items")?,
        }
        write!(f, " in slot {}", self.slot)
    }
}
