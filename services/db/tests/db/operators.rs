//! Random orders of operators.

use std::collections::BTreeMap;

use annals_event::ledger::{Assets, Goods, Order, Warrant};
use annals_ids::{ActionId, AssetKind, Serial, Slot};

use crate::realm::Realm;

/// Few, so that each is repeated now and then, from any base.
const ACTIONS: usize = 30;

/// An order; `gone` are items that may not exist any more.
pub(crate) fn order(realm: &mut Realm, slot: Slot, assets: Assets, gone: &[(Serial, AssetKind)]) -> Order {
    let warrant = Box::new(Warrant {
        action: ActionId(realm.roll(ACTIONS) as u128),
        operator: "grace".to_owned(),
        tool: "test".to_owned(),
        reason: "test".to_owned(),
    });
    if realm.roll(2) == 0 {
        return Order::Take { slot, assets, warrant };
    }
    let restored: BTreeMap<Serial, AssetKind> = realm.pick(gone).into_iter().collect();
    let made = restored.is_empty() || realm.roll(2) == 0;
    let kind = |realm: &mut Realm, first| AssetKind((first + realm.roll(3)) as u32);
    Order::Grant {
        slot,
        goods: Goods {
            units: made
                .then(|| (kind(realm, 0), 1 + realm.roll(9) as u64))
                .into_iter()
                .collect(),
            items: made
                .then(|| (kind(realm, 2), 1 + realm.roll(2) as u32))
                .into_iter()
                .collect(),
        },
        restored,
        warrant,
    }
}
