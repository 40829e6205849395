//! Concurrent requests to two bases for the same stored entities, while their holders die, activations end and db folds
//! late: no entity is ever activated twice. db's part, checking out and giving back, is done here as db does it.

use std::collections::BTreeMap;

use annals_base::{BaseInput, Begin, CheckedOut};
use annals_def::split_mix;
use annals_event::{Body, Subject};
use annals_ids::{DatabaseId, EntityId, Epoch, MemberId};
use annals_node::{Begun, NotOpened};

use crate::{
    game::ACCOUNT,
    host::{Host, Mood},
};

/// Number of stored entities.
const ENTITIES: u64 = 3;

/// Steps of one run.
const STEPS: usize = 250;

/// Method that ends an account.
const LEAVE: MemberId = MemberId(3);

/// A check-out: the base that it names, and its number.
type Checkout = (usize, u64);

/// Progress of a request to activate an entity.
#[derive(Clone, Copy, Debug)]
enum Asker {
    Locating { at: usize },
    CheckingOut { at: usize, epoch: Epoch },
    Beginning { checkout: Checkout, epoch: Epoch },
}

struct Race {
    hosts: [Host; 2],
    checkouts: BTreeMap<u64, Checkout>,
    numbers: u64,
    /// Folded batches of each log.
    folded: [usize; 2],
    askers: Vec<(u64, Asker)>,
    begun: usize,
    outdated: usize,
}

impl Race {
    fn new() -> Self {
        Self {
            hosts: [Host::new(), Host::new()],
            checkouts: BTreeMap::new(),
            numbers: 1,
            folded: [0; 2],
            askers: Vec::new(),
            begun: 0,
            outdated: 0,
        }
    }

    fn step(&mut self, dice: &mut dyn FnMut() -> u64) {
        let host = (dice() % 2) as usize;
        match dice() % 20 {
            0..3 => {
                let entity = 1 + dice() % ENTITIES;
                self.askers.push((entity, Asker::Locating { at: host }));
            }
            3..12 if !self.askers.is_empty() => {
                let asker = (dice() % self.askers.len() as u64) as usize;
                self.go_on(asker, dice);
            }
            12 => self.hosts[host].crash_with_snapshot(self.folded[host]),
            13 => self.hosts[host].mood = Mood::Withholds,
            14 if self.hosts[host].mood == Mood::Withholds => self.hosts[host].answer_again(),
            15..17 => {
                let living = self.hosts[host].owner.state().databases.values().next().copied();
                if let Some(entity) = living {
                    self.hosts[host].call(entity, LEAVE);
                }
            }
            17..19 => self.fold(host),
            _ => self.hosts[host].settle(),
        }
    }

    fn go_on(&mut self, asker: usize, dice: &mut dyn FnMut() -> u64) {
        let (entity, stage) = self.askers[asker];
        let next = match stage {
            Asker::Locating { at } => {
                let epoch = self.hosts[at].epoch;
                Asker::CheckingOut { at, epoch }
            }
            Asker::CheckingOut { at, epoch } => {
                let checkout = *self.checkouts.entry(entity).or_insert_with(|| {
                    self.numbers += 1;
                    (at, self.numbers)
                });
                match checkout.0 == at {
                    true => Asker::Beginning { checkout, epoch },
                    false => Asker::Locating { at: checkout.0 },
                }
            }
            Asker::Beginning { checkout, epoch } => {
                // A request may be duplicated, or its answer lost.
                if dice().is_multiple_of(3) {
                    self.askers.push((entity, stage));
                }
                match self.begin(entity, checkout, epoch) {
                    Some(Err(NotOpened::Outdated)) => Asker::Locating { at: checkout.0 },
                    Some(Err(other)) => panic!("{other}"),
                    Some(Ok(_)) | None => {
                        self.askers.swap_remove(asker);
                        return;
                    }
                }
            }
        };
        self.askers[asker].1 = next;
    }

    /// Sends a request to a base; `None` if its log does not acknowledge, so that it has not answered.
    fn begin(&mut self, entity: u64, (at, number): Checkout, epoch: Epoch) -> Option<Result<Begun, NotOpened>> {
        let host = &mut self.hosts[at];
        let entity = CheckedOut {
            epoch,
            database: DatabaseId(entity),
            checkout: number,
            type_id: ACCOUNT,
            properties: Vec::new(),
            key: None,
        };
        host.role(BaseInput::Begin(Begin { request: 1, entity }));
        host.settle();
        let answer = host.begun.pop().map(|(_, begun)| begun);
        match &answer {
            Some(Ok(begun)) => self.begun += usize::from(!begun.was_active),
            Some(Err(_)) => self.outdated += 1,
            None => {}
        }
        host.begun.clear();
        answer
    }

    /// db folds a batch of a log.
    fn fold(&mut self, at: usize) {
        let mut lives: BTreeMap<EntityId, (u64, u64)> = BTreeMap::new();
        let mut given_back = Vec::new();
        let logged = self.hosts[at].batches().take(self.folded[at] + 1);
        let mut folded = 0;
        for batch in logged {
            folded += 1;
            for event in batch.events {
                let Subject::Entity(entity, _) = event.subject else {
                    continue;
                };
                match event.body {
                    Body::BaseCreated(creation) => {
                        lives.insert(entity, (creation.database.0, creation.checkout));
                    }
                    Body::Destroyed if folded > self.folded[at] => given_back.extend(lives.remove(&entity)),
                    _ => {}
                }
            }
        }
        self.folded[at] = folded;
        for (entity, number) in given_back {
            if self.checkouts.get(&entity) == Some(&(at, number)) {
                self.checkouts.remove(&entity);
            }
        }
    }

    /// No entity is activated on both bases, neither in their state nor in their logs.
    fn check(&self, about: &str) {
        for entity in 1..=ENTITIES {
            let known = self.hosts.iter().filter(|host| {
                let databases = &host.owner.state().databases;
                databases.contains_key(&DatabaseId(entity))
            });
            assert!(known.count() <= 1, "{about}: entity {entity} has two activations");
            let logged: i32 = self.hosts.iter().map(|host| logged_lives(host, entity)).sum();
            assert!(
                logged <= 1,
                "{about}: the logs hold {logged} activations of entity {entity}"
            );
        }
    }
}

/// Number of activations of a stored entity that have begun in a log and not ended.
fn logged_lives(host: &Host, database: u64) -> i32 {
    let mut living = BTreeMap::new();
    for event in host.batches().flat_map(|batch| batch.events) {
        let Subject::Entity(entity, _) = event.subject else {
            continue;
        };
        match event.body {
            Body::BaseCreated(creation) if creation.database.0 == database => drop(living.insert(entity, ())),
            Body::Destroyed => drop(living.remove(&entity)),
            _ => {}
        }
    }
    i32::try_from(living.len()).expect("few")
}

#[test]
fn no_stored_entity_ever_has_two_activations() {
    let (mut begun, mut outdated) = (0, 0);
    for seed in 0..20 {
        let mut dice = split_mix(seed);
        let mut race = Race::new();
        for step in 0..STEPS {
            race.step(&mut dice);
            race.check(&format!("seed {seed}, step {step}"));
        }
        begun += race.begun;
        outdated += race.outdated;
    }
    println!("{begun} activations began, {outdated} requests were out of date");
    assert!(
        begun > 40 && outdated > 40,
        "{begun} activations, {outdated} out of date"
    );
}
