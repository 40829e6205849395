//! Views of ledger accounts: properties that show a part of an entity's holdings in the ledger.

use std::fmt;

use annals_ids::{AssetKind, Slot};

use crate::data_type::DataType;

/// The account that a property shows. The property has no value of its own: reads return the state of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AccountView {
    /// The slot of the entity's holdings.
    pub slot: Slot,
    /// The part of the slot.
    pub shows: Holding,
}

/// The part of a slot that a view shows. It follows from the property's type and whether a kind is named:
/// [`Holding::of`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Holding {
    /// The number of units of a kind: `UINT64`.
    Units(AssetKind),
    /// The serials of the items of a kind, ascending: `ARRAY <of> UINT64 </of>`.
    Serials(AssetKind),
    /// The number of units of every counted kind, by kind: an `ARRAY` of `FIXED_DICT` with the fields `kind` (`UINT32`)
    /// and `units` (`UINT64`), in this order.
    Balances,
    /// All items, by serial: an `ARRAY` of `FIXED_DICT` with the fields `kind` (`UINT32`) and `serial` (`UINT64`), in
    /// this order.
    Items,
}

impl Holding {
    /// The holding that a property of this type shows, with or without a kind; `None` if views cannot have the type.
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

    /// The named kind.
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
