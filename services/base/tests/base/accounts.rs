//! Properties that are views of accounts: shown once the events that they follow from are logged, and never set
//! directly.

use std::collections::BTreeMap;

use annals_def::{Property, Value, split_mix};
use annals_event::{
    Batch, Body, HISTORY_KEPT, Subject,
    ledger::{Assets, Booking, Change, LedgerUpdate, Outcome, Slots},
};
use annals_ids::{AssetKind, EntityId, HoldingsVersion, MemberId, Part, Slot};

use crate::{
    game::{COIN, SPOON, text},
    host::{Host, Mood},
    ledger::{Ledger, first, statement},
    player::{Player, log_in},
};

/// The method that tries to set a view in every way.
const CHEAT: MemberId = MemberId(13);

/// Seeds of a run.
const SEEDS: u64 = 12;

/// Steps per seed.
const STEPS: usize = 60;

fn seen(player: &Player, view: &str) -> u64 {
    match player.property_value(view) {
        Value::UInt(units) => units,
        other => panic!("{other:?}"),
    }
}

/// Number of logged events that say that a view of the entity has changed.
fn restated(host: &Host, entity: EntityId) -> usize {
    let subject = Subject::Entity(entity, Part::Base);
    let count = |batch: Batch| {
        let events = batch.events.iter();
        let restated = events.filter(|event| event.subject == subject && event.history.is_some());
        restated
            .filter(|event| matches!(event.body, Body::Restated { .. }))
            .count()
    };
    host.batches().map(count).sum()
}

#[test]
fn a_ledger_view_is_shown_after_its_batch() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    assert_eq!(seen(&player, "coins"), 0, "no balance is known yet");
    host.mood = Mood::Withholds;
    Ledger::default().send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(10))));
    host.pass(400);
    player.listen(&mut host);
    assert_eq!(seen(&player, "coins"), 0, "it is not logged");
    host.answer_again();
    player.listen(&mut host);
    assert_eq!((seen(&player, "coins"), seen(&player, "spoons")), (10, 0));
}

#[test]
fn a_ledger_view_cannot_be_set() {
    let mut host = Host::new();
    let mut player = log_in(&mut host, 5, 1);
    let entity = player.entity.unwrap().0;
    Ledger::default().send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(10))));
    host.call(entity, CHEAT);
    host.settle();
    player.listen(&mut host);
    let trail = text(&host.image(entity).properties[&MemberId(1)]);
    assert!(trail.ends_with("ccc"), "{trail}");
    assert_eq!(seen(&player, "coins"), 10);
}

/// A player's holdings of coins and spoons, in the first slot and in another that is not shown.
#[derive(Default)]
struct Purse {
    held: BTreeMap<(Slot, AssetKind), u64>,
    version: u64,
}

impl Purse {
    fn units(&self, kind: AssetKind) -> u64 {
        self.held.get(&(Slot(0), kind)).copied().unwrap_or(0)
    }

    /// Something enters an account, or leaves it; or both, of both kinds.
    fn change(&mut self, dice: &mut impl FnMut() -> u64) -> Change {
        let (mut gone, mut come) = (Slots::new(), Slots::new());
        for kind in [COIN, SPOON] {
            let slot = Slot(u16::from(dice().is_multiple_of(3)));
            let held = self.held.entry((slot, kind)).or_default();
            match dice() % 3 {
                0 if *held > 0 => {
                    let units = 1 + dice() % *held;
                    *held -= units;
                    let of = gone.entry(slot).or_default();
                    of.add(&Assets::units(kind, units)).unwrap();
                }
                1 => {
                    let units = 1 + dice() % 9;
                    *held += units;
                    let of = come.entry(slot).or_default();
                    of.add(&Assets::units(kind, units)).unwrap();
                }
                _ => {}
            }
        }
        self.version += 1;
        Change {
            version: HoldingsVersion(self.version),
            gone,
            come,
        }
    }
}

fn come_back(player: &mut Player, host: &mut Host, connection: u64) {
    player.connect(host, connection);
    player.listen(host);
    player.begin_view(host);
}

#[test]
fn a_client_sees_the_ledger_state_despite_faults() {
    for seed in 0..SEEDS {
        let mut dice = split_mix(seed);
        let mut host = Host::new();
        let mut player = log_in(&mut host, 5, 1);
        let entity = player.entity.unwrap().0;
        let mut ledger = Ledger::default();
        ledger.send(&mut host, entity, LedgerUpdate::Statement(Box::new(statement(10))));
        let mut purse = Purse {
            held: BTreeMap::from([((Slot(0), COIN), 10)]),
            version: 3,
        };
        let mut changes = 1;
        for step in 0..STEPS {
            let updates = match dice() % 12 {
                0 => HISTORY_KEPT,
                1..=8 => 1,
                _ => 0,
            };
            for _ in 0..updates {
                let before = [COIN, SPOON].map(|kind| purse.units(kind));
                let change = Some(purse.change(&mut dice));
                let after = [COIN, SPOON].map(|kind| purse.units(kind));
                changes += before
                    .iter()
                    .zip(after)
                    .filter(|(before, after)| **before != *after)
                    .count();
                let booking = Booking {
                    change,
                    ..ledger.booking(first(EntityId(1_000_000)), Outcome::Posted)
                };
                ledger.send(&mut host, entity, LedgerUpdate::Booking(Box::new(booking)));
            }
            match dice() % 6 {
                0 => {
                    host.settle();
                    host.crash();
                    come_back(&mut player, &mut host, 2 + step as u64);
                }
                1 => {
                    // Frames sent meanwhile are lost with the connection.
                    host.settle();
                    come_back(&mut player, &mut host, 2 + step as u64);
                }
                _ => {}
            }
            host.settle();
            player.listen(&mut host);
            for (view, kind) in [("coins", COIN), ("spoons", SPOON)] {
                assert_eq!(
                    seen(&player, view),
                    purse.units(kind),
                    "{view}, seed {seed}, step {step}"
                );
            }
        }
        assert_eq!(
            restated(&host, entity),
            changes,
            "each change is in the history once, seed {seed}"
        );
        let held = &host.image(entity).properties;
        let mut views = host.schema.type_named("Account").unwrap().properties.iter();
        let is_kept = |view: &Property| view.account.is_some() && held.contains_key(&view.index);
        assert!(!views.any(is_kept), "no state holds the value of a view");
        assert_eq!(host.folded().hash(), host.owner.state().hash(), "seed {seed}");
    }
}
