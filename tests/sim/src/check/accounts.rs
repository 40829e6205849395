//! Views of accounts: every value that a client was shown of an account view is what the ledger had reported to the
//! base part by that history number. The holdings are added up independently, from the notices that the logs of bases
//! record.

use std::collections::BTreeMap;

use annals_client::{Event, What};
use annals_def::{Edit, Value};
use annals_event::{
    Body, Subject,
    ledger::{LedgerUpdate, Slots},
};
use annals_ids::{AssetKind, EntityId, HistoryNumber, Part, Serial, Slot};

use crate::{archive::Archive, game, world::World};

/// Holdings of an entity.
#[derive(Clone, Debug, Default)]
struct Held {
    units: BTreeMap<(Slot, AssetKind), u64>,
    items: BTreeMap<Serial, (Slot, AssetKind)>,
}

/// Checks account views against holdings recomputed from the logs.
pub fn check(world: &World, archive: &Archive) -> Vec<String> {
    let restated = restated(archive);
    let mut wrong = Vec::new();
    for (number, client) in world.clients.iter().enumerate() {
        for event in &client.events {
            let Event::Shown(showing) = event else { continue };
            let What::Changed { property, change, .. } = &showing.what else {
                continue;
            };
            let entity_type = world.schema.type_named("Avatar").expect("the game has avatars");
            let Some(property) = entity_type.property(*property) else {
                continue;
            };
            if showing.part != Part::Base || !game::VIEWS.contains(&&*property.name) {
                continue;
            }
            let held = restated.get(&(showing.entity, showing.number));
            let expected = held.map(|held| Edit::Set(held.shown_as(&property.name)));
            if expected.as_ref() != Some(&change.edit) {
                wrong.push(format!(
                    "client {number} was shown {showing:?}, and the ledger had said {expected:?}"
                ));
            }
        }
    }
    wrong
}

/// Holdings of entities at the history numbers at which a view of theirs changed.
fn restated(archive: &Archive) -> BTreeMap<(EntityId, HistoryNumber), Held> {
    let mut held: BTreeMap<EntityId, Held> = BTreeMap::new();
    let mut restated = BTreeMap::new();
    for event in archive.logs.values().flatten().flat_map(|batch| &batch.events) {
        let Subject::Entity(entity, Part::Base) = event.subject else {
            continue;
        };
        match (&event.body, event.history) {
            (Body::Booked(update), _) => held.entry(entity).or_default().apply(update),
            (Body::Restated { .. }, Some(number)) => {
                restated.insert((entity, number), held.entry(entity).or_default().clone());
            }
            _ => {}
        }
    }
    restated
}

impl Held {
    fn apply(&mut self, update: &LedgerUpdate) {
        match update {
            LedgerUpdate::Statement(statement) => {
                *self = Self::default();
                self.come(&statement.holdings.slots);
            }
            LedgerUpdate::Booking(booking) => {
                if let Some(change) = &booking.change {
                    for (slot, assets) in &change.gone {
                        for (kind, units) in &assets.units {
                            *self.units.entry((*slot, *kind)).or_default() -= units;
                        }
                        self.items.retain(|serial, _| !assets.items.contains_key(serial));
                    }
                    self.come(&change.come);
                }
            }
        }
    }

    fn come(&mut self, slots: &Slots) {
        for (slot, assets) in slots {
            for (kind, units) in &assets.units {
                *self.units.entry((*slot, *kind)).or_default() += units;
            }
            let items = assets.items.iter();
            self.items.extend(items.map(|(serial, kind)| (*serial, (*slot, *kind))));
        }
    }

    /// The value of a view, as the game's definitions declare it.
    fn shown_as(&self, view: &str) -> Value {
        let number = |number: u64| Value::UInt(number);
        match view {
            "coins" => number(self.units.get(&(Slot(0), AssetKind(1))).copied().unwrap_or(0)),
            "rings" => {
                let worn = self.items.iter().filter(|(_, at)| **at == (Slot(1), AssetKind(2)));
                Value::Sequence(worn.map(|(serial, _)| number(serial.0)).collect())
            }
            "purse" => {
                let counted = self
                    .units
                    .iter()
                    .filter(|((slot, _), units)| *slot == Slot(1) && **units > 0);
                let balance = |((_, kind), units): (&(Slot, AssetKind), &u64)| (u64::from(kind.0), *units);
                pairs(counted.map(balance))
            }
            _ => {
                let carried = self.items.iter().filter(|(_, (slot, _))| *slot == Slot(0));
                pairs(carried.map(|(serial, (_, kind))| (u64::from(kind.0), serial.0)))
            }
        }
    }
}

fn pairs(pairs: impl Iterator<Item = (u64, u64)>) -> Value {
    Value::Sequence(
        pairs
            .map(|(one, other)| Value::Dict(vec![Value::UInt(one), Value::UInt(other)]))
            .collect(),
    )
}
