//! Differences between two moments.

use std::collections::{BTreeMap, BTreeSet};

use annals_def::{Schema, Value};
use annals_event::ledger::{Account, AssetSlot};
use annals_ids::{AssetKind, Hash, OwnerId, Serial, SpaceId};

use super::{PartAt, PartOf, Past};

/// One difference.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The part was created.
    Made {
        /// The part.
        of: PartOf,
        owner: OwnerId,
    },
    /// The part no longer exists.
    Ended {
        /// The part.
        of: PartOf,
        /// Its former owner.
        owner: OwnerId,
    },
    /// A property changed, of a part that existed at both moments.
    Property {
        /// The part.
        of: PartOf,
        /// The property's name.
        name: String,
        /// Former value; `None` if the definitions of the time had no such property.
        before: Option<Value>,
        /// New value.
        after: Option<Value>,
    },
    /// The part was handed over to another owner.
    HandedOver {
        /// The part.
        of: PartOf,
        /// Former owner.
        before: OwnerId,
        /// New owner.
        after: OwnerId,
    },
    /// The part moved to another space.
    Space {
        /// The part.
        of: PartOf,
        /// Former space.
        before: SpaceId,
        /// New space.
        after: SpaceId,
    },
    /// An item was created, destroyed, or moved.
    Item {
        /// The item.
        serial: Serial,
        kind: AssetKind,
        /// Former place.
        before: Option<AssetSlot>,
        /// New place.
        after: Option<AssetSlot>,
    },
    /// The balance of an account changed.
    Units {
        account: Account,
        /// Former balance.
        before: i128,
        /// New balance.
        after: i128,
    },
}

/// All differences between an earlier and a later moment. Of positions only the space is compared: the rest is only
/// sampled into the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// Changes of entities first, by number and part, then of items, then of units.
    pub changes: Vec<Change>,
}

impl Difference {
    /// Compares two moments, each under the definitions of its time.
    #[must_use]
    pub fn between(before: &Past, after: &Past, schemas: &BTreeMap<Hash, Schema>) -> Self {
        let mut changes = Vec::new();
        let (old, new) = (before.parts(), after.parts());
        let all: BTreeSet<PartOf> = old.keys().chain(new.keys()).copied().collect();
        for of in all {
            match (old.get(&of), new.get(&of)) {
                (None, Some(new)) => changes.push(Change::Made { of, owner: new.owner }),
                (Some(old), None) => changes.push(Change::Ended { of, owner: old.owner }),
                (Some(old), Some(new)) => compare(of, (old, new), schemas, &mut changes),
                (None, None) => {}
            }
        }
        let (old, new) = (before.books(), after.books());
        let items: BTreeSet<Serial> = old.items.keys().chain(new.items.keys()).copied().collect();
        for serial in items {
            let (was, is) = (old.items.get(&serial), new.items.get(&serial));
            if let Some((kind, _)) = was.or(is).filter(|_| was != is) {
                changes.push(Change::Item {
                    serial,
                    kind: *kind,
                    before: was.map(|(_, place)| *place),
                    after: is.map(|(_, place)| *place),
                });
            }
        }
        let accounts: BTreeSet<Account> = old.units.keys().chain(new.units.keys()).copied().collect();
        for account in accounts {
            let held = |units: &BTreeMap<Account, i128>| units.get(&account).copied().unwrap_or(0);
            let (before, after) = (held(&old.units), held(&new.units));
            if before != after {
                changes.push(Change::Units { account, before, after });
            }
        }
        Self { changes }
    }
}

/// Differences of a part that existed at both moments.
fn compare(
    of: PartOf,
    (old, new): (&PartAt<'_>, &PartAt<'_>),
    schemas: &BTreeMap<Hash, Schema>,
    out: &mut Vec<Change>,
) {
    if old.owner != new.owner {
        let (before, after) = (old.owner, new.owner);
        out.push(Change::HandedOver { of, before, after });
    }
    if let (Some(before), Some(after)) = (old.space(), new.space())
        && before != after
    {
        out.push(Change::Space { of, before, after });
    }
    let was: BTreeMap<_, _> = old
        .properties(schemas)
        .map(|(found, value)| (&found.name, value))
        .collect();
    let is: BTreeMap<_, _> = new
        .properties(schemas)
        .map(|(found, value)| (&found.name, value))
        .collect();
    let names: BTreeSet<_> = was.keys().chain(is.keys()).copied().collect();
    for name in names {
        let (before, after) = (was.get(name), is.get(name));
        if before != after {
            out.push(Change::Property {
                of,
                name: name.clone(),
                before: before.map(|value| value.clone().into_owned()),
                after: after.map(|value| value.clone().into_owned()),
            });
        }
    }
}
