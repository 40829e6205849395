//! What changed between two moments.

use std::collections::{BTreeMap, BTreeSet};

use annals_def::{Schema, Value};
use annals_event::ledger::{Account, Place};
use annals_ids::{AssetKind, Hash, OwnerId, Serial, SpaceId};

use super::{PartAt, PartOf, Past};

/// One thing that is otherwise.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// The part began to exist.
    Made {
        /// Which part.
        of: PartOf,
        /// Whose it is.
        owner: OwnerId,
    },
    /// The part exists no more.
    Ended {
        /// Which part.
        of: PartOf,
        /// Whose it was.
        owner: OwnerId,
    },
    /// A property of a part that was there at both moments.
    Property {
        /// Which part.
        of: PartOf,
        /// The property's name.
        name: String,
        /// What it was; `None` where the definitions of the time had no such property.
        before: Option<Value>,
        /// What it is.
        after: Option<Value>,
    },
    /// Another owner holds the part.
    HandedOver {
        /// Which part.
        of: PartOf,
        /// Who held it.
        before: OwnerId,
        /// Who holds it.
        after: OwnerId,
    },
    /// The part is in another space.
    Space {
        /// Which part.
        of: PartOf,
        /// Where it was.
        before: SpaceId,
        /// Where it is.
        after: SpaceId,
    },
    /// An item was made, is no more, or is somewhere else.
    Item {
        /// Which item.
        serial: Serial,
        /// Of which kind.
        kind: AssetKind,
        /// Where it was.
        before: Option<Place>,
        /// Where it is.
        after: Option<Place>,
    },
    /// An account holds more or less.
    Units {
        /// Which account.
        account: Account,
        /// What it held.
        before: i128,
        /// What it holds.
        after: i128,
    },
}

/// All that is otherwise at a later moment than at an earlier one. Where parts stand is not compared, but for the space: that
/// is only sampled into the log.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Difference {
    /// Of entities first, by number and part, then items, then units.
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

/// What is otherwise with a part that was there at both moments.
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
