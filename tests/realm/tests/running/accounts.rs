//! Account holdings shown to players while they choose an avatar: each value that a client was shown is what the ledger
//! had reported to the account by that history number, according to the archive.

use std::collections::BTreeMap;

use annals_audit::archive::LogWalk;
use annals_def::{Schema, Value};
use annals_director::read_owners;
use annals_event::{
    Body, Event, Subject,
    ledger::{Holdings, LedgerUpdate},
};
use annals_ids::{EntityId, Hash, HistoryNumber, MemberId, OwnerKind, Part};
use annals_sample::{CARRIED, COIN, SWORD, WORN};
use annals_store::Store;
use annals_wire::client::property_hash;

/// A view value that a client was shown, by a change or with the whole entity.
#[derive(Clone, Debug)]
pub(crate) struct Shown {
    pub(crate) entity: EntityId,
    pub(crate) number: HistoryNumber,
    pub(crate) member: MemberId,
    /// Hash of the value, as clients hash a whole value.
    pub(crate) hash: Hash,
}

/// Compares all values with the archive. Returns how many coins were seen in each.
pub(crate) async fn assert_equal_to_ledger(schema: &Schema, store: &Store, shown: &[Shown]) -> Vec<u64> {
    let account = schema.type_named("Account").expect("the sample has accounts");
    let holdings_by_number = holdings_by_number(store).await;
    let mut coins = Vec::new();
    for one in shown {
        let property = account.property(one.member).expect("it was shown");
        let first = (one.entity, one.member, HistoryNumber(0));
        let mut before = holdings_by_number.range(first..=(one.entity, one.member, one.number));
        let (_, held) = before
            .next_back()
            .unwrap_or_else(|| panic!("the archive says nothing of {one:?}"));
        let expected = said(held, &property.name);
        let hash = property_hash(&property.data_type, &expected);
        assert_eq!(Some(one.hash), hash, "{}, {one:?}: {expected}", property.name);
        if let ("coins", Value::UInt(seen)) = (&*property.name, expected) {
            coins.push(seen);
        }
    }
    coins
}

fn said(held: &Holdings, view: &str) -> Value {
    let slot = if view == "worn" { WORN } else { CARRIED };
    let assets = held.slots.get(&slot).cloned().unwrap_or_default();
    if view == "coins" {
        return Value::UInt(assets.units.get(&COIN).copied().unwrap_or(0));
    }
    let swords = assets.items.iter().filter(|(_, kind)| **kind == SWORD);
    Value::Sequence(swords.map(|(serial, _)| Value::UInt(serial.0)).collect())
}

/// Holdings of entities at the history numbers at which a view of theirs changed.
async fn holdings_by_number(store: &Store) -> BTreeMap<(EntityId, MemberId, HistoryNumber), Holdings> {
    let (mut holdings, mut holdings_by_number) = (BTreeMap::new(), BTreeMap::new());
    for (owner, record) in read_owners(store).await.expect("the store answers") {
        if record.kind != OwnerKind::Base {
            continue;
        }
        let walk = LogWalk::begin(store, record.shard, owner).await;
        let mut walk = walk.expect("the store answers");
        while let Some(step) = walk.next().await.expect("the store answers") {
            for event in step.batch.expect("the archive is whole").events {
                let Subject::Entity(entity, Part::Base) = event.subject else {
                    continue;
                };
                let held: &mut Holdings = holdings.entry(entity).or_default();
                apply_event(held, &event);
                if let (Body::Restated { member }, Some(number)) = (&event.body, event.history) {
                    holdings_by_number.insert((entity, *member, number), held.clone());
                }
            }
        }
    }
    holdings_by_number
}

fn apply_event(held: &mut Holdings, event: &Event) {
    match &event.body {
        Body::Booked(LedgerUpdate::Statement(statement)) => *held = statement.holdings.clone(),
        Body::Booked(LedgerUpdate::Booking(booking)) => {
            if let Some(change) = &booking.change {
                held.change(change).expect("it follows");
            }
        }
        _ => {}
    }
}
