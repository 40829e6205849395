//! Logs of several owners with every kind of disturbance, folded by a db process that fails, restarts and is
//! superseded: after each step the store has what was written.

use std::collections::BTreeMap;

use annals_db::{FoldError, RetentionPace};
use annals_def::Value;
use annals_event::{Audience, Batch, Body, Call};
use annals_ids::{Address, BatchNumber, CallNumber, EntityId, MemberId, OwnerId, Part, SessionId, WallTime};
use annals_store::immediate;

use crate::{
    acts::{self, place, set},
    realm::Realm,
};

/// Number of realms.
const SEEDS: u64 = 40;

/// Steps of each.
const STEPS: usize = 160;

/// Actions of entities in a realm.
#[derive(Default)]
pub(crate) struct Play {
    last_id: u64,
    /// Owners of cell parts, by entity, from creation to end; during a hand-over, the sender.
    pub(crate) cells: BTreeMap<EntityId, OwnerId>,
    /// Cell parts in hand-over: from, to, and by which call.
    pub(crate) under_way: Vec<(EntityId, OwnerId, OwnerId, CallNumber)>,
}

impl Play {
    fn next_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Makes a few changes to an owner's state.
    pub(crate) fn act(&mut self, realm: &mut Realm, owner: OwnerId) {
        for _ in 0..realm.roll(4) {
            match realm.scribe(owner).state.part().expect("it holds parts") {
                Part::Base => self.act_on_base(realm, owner),
                Part::Cell => self.act_on_cell(realm, owner),
            }
        }
    }

    fn act_on_base(&mut self, realm: &mut Realm, owner: OwnerId) {
        let entities: Vec<EntityId> = realm.scribe(owner).state.entities.keys().copied().collect();
        let chosen = realm.pick(&entities).filter(|_| realm.roll(6) > 0);
        let Some(entity) = chosen else {
            return self.create_base(realm, owner);
        };
        let (amount, name) = (realm.roll(9), realm.roll(12));
        let base = realm.scribe(owner).state.entities[&entity]
            .base()
            .cloned()
            .expect("a base part");
        match realm.roll(9) {
            0..=1 => set(realm, owner, entity, "gold", Value::Int(amount as i64)),
            2 => {
                let kit = vec![Value::Int(amount as i64), Value::Int(1)];
                set(realm, owner, entity, "kit", Value::Dict(kit));
            }
            3 => set(realm, owner, entity, "notes", Value::Int(amount as i64)),
            4 => set(realm, owner, entity, "name", Value::Unicode(format!("name {name}"))),
            5 => {
                let cell = self.cells.get(&entity).copied();
                acts::placed(realm, owner, entity, cell);
            }
            6 => {
                let new = self.next_id();
                let database = Some(base.database.0).filter(|id| *id != 0).unwrap_or(new);
                acts::store(realm, owner, entity, database);
            }
            7 => {
                let from = Address::Client(SessionId(entity.0));
                realm.scribe(owner).consume(from, Address::Base(entity));
            }
            _ if amount < 3 => acts::end(realm, owner, entity),
            _ => {}
        }
    }

    fn create_base(&mut self, realm: &mut Realm, owner: OwnerId) {
        let entity = EntityId(self.next_id());
        let name = realm.roll(12);
        acts::begin_base(realm, owner, entity, &format!("name {name}"), (0, 0));
    }

    /// Begins an entity with a large cell part.
    pub(crate) fn create_laden(&mut self, realm: &mut Realm, (base, cell): (OwnerId, OwnerId)) {
        let entity = EntityId(self.next_id());
        acts::begin_base(realm, base, entity, &format!("porter {entity}"), (0, 0));
        realm.write(base, false);
        acts::begin_cell(realm, cell, entity, base);
        self.cells.insert(entity, cell);
        set(realm, cell, entity, "baggage", Value::Bytes(vec![7; 160_000]));
        realm.write(cell, false);
    }

    fn act_on_cell(&mut self, realm: &mut Realm, owner: OwnerId) {
        let entities: Vec<EntityId> = realm.scribe(owner).state.entities.keys().copied().collect();
        let chosen = realm.pick(&entities).filter(|_| realm.roll(5) > 0);
        let Some(entity) = chosen else {
            return self.create_cell(realm, owner);
        };
        let amount = realm.roll(9);
        match realm.roll(10) {
            0..=2 => set(realm, owner, entity, "hp", Value::Int(amount as i64)),
            3 => set(realm, owner, entity, "threat", Value::Int(amount as i64)),
            4 => set(realm, owner, entity, "baggage", Value::Bytes(vec![7; amount * 20_000])),
            5 => realm.scribe(owner).record(entity, false, Body::Moved(place(amount))),
            6 => {
                let invoked = Body::Invoked {
                    method: MemberId(0),
                    args: Vec::new(),
                    audience: Audience::All,
                };
                realm.scribe(owner).record(entity, true, invoked);
            }
            7 => self.hand_over(realm, owner, entity),
            8 => self.take_over(realm, owner),
            _ if amount < 3 => {
                self.cells.remove(&entity);
                acts::end(realm, owner, entity);
            }
            _ => {}
        }
    }

    /// Begins the cell part of some entity whose base has none.
    fn create_cell(&mut self, realm: &mut Realm, owner: OwnerId) {
        let bases = realm
            .owners
            .values()
            .filter(|held| held.scribe.state.part() == Some(Part::Base));
        let homes = bases.flat_map(|held| held.scribe.state.entities.keys().map(|id| (*id, held.scribe.owner())));
        let without: Vec<(EntityId, OwnerId)> = homes.filter(|(id, _)| !self.cells.contains_key(id)).collect();
        let Some((entity, home)) = realm.pick(&without) else {
            return;
        };
        acts::begin_cell(realm, owner, entity, home);
        self.cells.insert(entity, owner);
    }

    pub(crate) fn hand_over(&mut self, realm: &mut Realm, from: OwnerId, entity: EntityId) {
        let others = realm.owners.values().map(|held| &held.scribe.state);
        let cells = others.filter(|state| state.part() == Some(Part::Cell) && state.owner != from);
        let others: Vec<OwnerId> = cells.map(|state| state.owner).collect();
        let Some(to) = realm.pick(&others) else { return };
        let scribe = realm.scribe(from);
        let image = Box::new(scribe.state.entities[&entity].clone());
        let number = scribe.next_call(Address::Owner(from), Address::Owner(to));
        scribe.record(entity, false, Body::Offloaded { to, number });
        scribe.record_own(Body::Called {
            to: Address::Owner(to),
            home: to,
            number,
            call: Call::Onload { entity, image },
        });
        self.under_way.push((entity, from, to, number));
    }

    /// The owner takes cell parts that are handed over to it, and their sender is notified.
    pub(crate) fn take_over(&mut self, realm: &mut Realm, to: OwnerId) {
        let Some(first) = self.under_way.iter().position(|(_, _, target, _)| *target == to) else {
            return;
        };
        let (entity, from, to, number) = self.under_way.remove(first);
        let (_, image) = realm.scribe(from).state.departing[&(to, number)].clone();
        let taken = realm.scribe(to).consume(Address::Owner(from), Address::Owner(to));
        assert_eq!(taken, number, "calls are taken in their order");
        let image = Box::new(image);
        realm
            .scribe(to)
            .record(entity, false, Body::Onloaded { from, number, image });
        self.cells.insert(entity, to);
        // The sender is notified only when it is logged.
        realm.write(to, false);
        realm.scribe(from).record(entity, false, Body::Departed { to, number });
        realm.scribe(from).record_own(Body::Confirmed {
            to: Address::Owner(to),
            upto: number,
            lost: false,
        });
    }
}

/// Disturbs an owner's log once.
pub(crate) fn disturb(realm: &mut Realm, owner: OwnerId) {
    let lost: Vec<BatchNumber> = realm.owner(owner).lost.keys().copied().collect();
    match realm.roll(10) {
        0 => realm.take_over(owner),
        1 | 2 => realm.record_open(owner),
        3 => {
            let which = realm.roll(3);
            realm.write_void(owner, which);
        }
        4 => {
            if let Some(number) = realm.pick(&lost) {
                realm.fill(owner, number);
            }
        }
        5 => {
            if let Some(number) = realm.pick(&lost) {
                realm.fill_wrongly(owner, number);
            }
        }
        6 => {
            let again = realm.roll(realm.stream.len());
            let (owner, bytes) = realm.stream[again].clone();
            realm.stream.push((owner, bytes));
        }
        7 => realm.write_ungranted(owner),
        8 => {
            let again = realm.roll(realm.stream.len());
            let (_, mut bytes) = realm.stream[again].clone();
            let at = realm.roll(bytes.len());
            bytes[at] ^= 1;
            // One that still decodes as a batch would be a forgery that cannot be distinguished from the original.
            if Batch::read(&bytes).is_err() {
                realm.write_strange(owner, bytes);
            }
        }
        _ => {
            let again = realm.roll(realm.stream.len());
            let (of, bytes) = realm.stream[again].clone();
            if of != owner {
                realm.write_strange(owner, bytes);
            }
        }
    }
}

/// Removes from the stream what lies before the archive, as trimming does: the newest archived batch of each log stays.
fn trim(realm: &mut Realm) {
    let cursors: BTreeMap<OwnerId, u64> = realm
        .owners
        .keys()
        .map(|owner| (*owner, realm.archived_count(*owner) as u64))
        .collect();
    let is_kept = |(owner, bytes): &(OwnerId, Vec<u8>)| match annals_event::Header::read(bytes) {
        Ok((header, _)) => header.number.0 >= cursors[owner],
        Err(_) => false,
    };
    realm.stream.retain(is_kept);
    realm.offered = 0;
}

pub(crate) fn founded(seed: u64) -> Realm {
    founded_in(Realm::new(seed))
}

fn founded_in(mut realm: Realm) -> Realm {
    for part in [Part::Base, Part::Cell, Part::Base, Part::Cell] {
        realm.found(part);
    }
    realm
}

fn step(realm: &mut Realm, play: &mut Play, keeps: bool) {
    let owners: Vec<OwnerId> = realm.owners.keys().copied().collect();
    let owner = realm.pick(&owners).expect("there are owners");
    match realm.roll(18) {
        0..=7 => {
            play.act(realm, owner);
            let lose = realm.roll(10) == 0;
            realm.write(owner, lose);
        }
        8..=11 => disturb(realm, owner),
        12 => {
            drop(realm.begin_db());
        }
        13 => {
            let mut former = realm.begin_db();
            while immediate(former.next_folded())
                .expect("it was accepted before")
                .is_some()
            {}
            former.offer(owner, realm.stream.last().expect("a message").1.clone());
            let refused = immediate(former.commit());
            assert!(
                matches!(refused, Err(FoldError::Superseded { .. } | FoldError::Store(_))),
                "seed {}: {refused:?}",
                realm.seed
            );
            let refused = immediate(former.sealer().of_leaves(1).seal_next());
            assert!(
                matches!(
                    refused,
                    Ok(None) | Err(FoldError::Superseded { .. } | FoldError::Store(_))
                ),
                "seed {}: {refused:?}",
                realm.seed
            );
        }
        14 => {
            let most = 1 + realm.roll(9);
            realm.seal(most);
            realm.tile();
        }
        15 if !keeps => {
            // An unfinished one begins again with the next: as after a crash.
            let mut retention = realm.db.retention(RetentionPace::Eager);
            let turns = realm.roll(12);
            realm.deleted(&mut retention, WallTime(u64::MAX), turns);
        }
        _ => {
            let count = 1 + realm.roll(30);
            realm.fold(count);
        }
    }
}

#[test]
fn the_store_has_the_written_properties() {
    for seed in 0..SEEDS {
        // In every other pair, db folds the next transaction before the last is durable.
        let mut realm = if seed % 4 < 2 {
            founded(seed)
        } else {
            founded_in(Realm::pipelined(seed).0)
        };
        let mut play = Play::default();
        // Every other realm has a store that fails.
        realm.fail_one_in(if seed % 2 == 0 { 0 } else { 40 });
        for turn in 0..STEPS {
            // Every third one keeps everything for ever.
            step(&mut realm, &mut play, seed % 3 == 0);
            if turn % 8 == 0 {
                realm.check();
            }
            if turn % 50 == 49 {
                trim(&mut realm);
            }
        }
        realm.settle();
        let archive = realm.check();
        for (owner, held) in &realm.owners {
            let archived = realm.archived_count(*owner);
            assert_eq!(
                archived,
                held.chain.len(),
                "seed {seed}: everything of owner {owner}; {:?}",
                realm.db.missing().collect::<Vec<_>>()
            );
        }
        realm.check_database(&archive);
    }
}
