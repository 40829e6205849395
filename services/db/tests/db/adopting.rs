//! A store and logs of different times or realms: how this is detected, what the log proves to an older store, and what
//! is given up.

use std::collections::BTreeMap;

use annals_db::{
    adopting::{AdoptError, Adoption, AdoptionRecord, Choice, Decision, Plan},
    comparison::{Comparison, Direction, Standing, Unknown, compare_log},
    recover,
};
use annals_event::Header;
use annals_ids::{BatchNumber, EntityId, Epoch, Hash, OwnerId, OwnerKind, ServiceSlot, WallTime};
use annals_store::{
    KeyRange, MemoryStore, ScanOrder, Store, Transaction, key_after,
    layout::{
        chunks,
        director::{self, Counter},
        owners,
    },
    limits::KEYS_END,
};

use crate::{
    acts, game,
    generated::{Play, founded},
    realm::{Realm, SHARD},
    wait,
};

/// Number of realms.
const SEEDS: u64 = 12;

/// Steps before and after the store is backed up.
const STEPS: usize = 60;

/// A copy of a store.
fn copy(store: &Store) -> Store {
    let copy = MemoryStore::new().store();
    let mut range = KeyRange::new(Vec::new(), KEYS_END.to_vec());
    loop {
        let page = wait(store.begin().get_range(&range, 500, ScanOrder::Forward)).expect("the store answers");
        let writing = copy.begin();
        for (key, value) in &page.rows {
            writing.set(key, value).expect("a small transaction");
        }
        wait(writing.commit()).expect("nothing fails");
        match page.rows.last().filter(|_| page.more) {
            Some((last, _)) => range = KeyRange::new(key_after(last), range.end),
            None => return copy,
        }
    }
}

/// Behaviour of replaced holders.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replaced {
    /// They go on writing.
    Write,
    /// They stop.
    Stop,
}

/// Owners write, are taken over, and leave traces of replaced holders; nothing is lost.
fn live(realm: &mut Realm, play: &mut Play, replaced: Replaced) {
    for _ in 0..STEPS {
        let owners: Vec<OwnerId> = realm.owners.keys().copied().collect();
        let owner = realm.pick(&owners).expect("there are owners");
        match realm.roll(8) {
            0 => realm.take_over(owner),
            1 => realm.record_open(owner),
            2 if replaced == Replaced::Write => {
                let which = realm.roll(3);
                realm.write_void(owner, which);
            }
            3 => {
                let count = realm.roll(20);
                realm.fold(count);
            }
            _ => {
                play.act(realm, owner);
                realm.write(owner, false);
            }
        }
    }
}

/// Compares every log that the store or the stream knows with a store.
fn compare(store: &Store, stream: &[(OwnerId, Vec<u8>)], owners: &[OwnerId]) -> Comparison {
    let mut comparison = Comparison::default();
    for owner in owners {
        let log = wait(compare_log(store, SHARD, *owner, &log_of(stream, *owner))).expect("the store answers");
        comparison.add(log);
    }
    comparison
}

fn log_of(stream: &[(OwnerId, Vec<u8>)], owner: OwnerId) -> Vec<Vec<u8>> {
    let of = stream.iter().filter(|(of, _)| *of == owner);
    of.map(|(_, bytes)| bytes.clone()).collect()
}

fn owners_of(realm: &Realm) -> Vec<OwnerId> {
    realm.owners.keys().copied().collect()
}

/// A realm that has continued since its store was backed up, and the backup, which lacks one owner and an epoch.
fn gone_on(seed: u64, replaced: Replaced) -> (Realm, Store) {
    let (mut realm, mut play) = (founded(seed), Play::default());
    live(&mut realm, &mut play, replaced);
    realm.fold(usize::MAX);
    // The definitions that the batches of these tests name.
    let writing = realm.store.begin();
    for (key, chunk) in chunks(&director::schema_key(Hash([3; 32])), &game::schema().encode()) {
        writing.set(&key, chunk).expect("a small transaction");
    }
    wait(writing.commit()).expect("nothing fails");
    let old = copy(&realm.store);
    realm.found(OwnerKind::Base);
    let owners = owners_of(&realm);
    let taken = realm.pick(&owners).expect("there are owners");
    realm.take_over(taken);
    realm.record_open(taken);
    live(&mut realm, &mut play, replaced);
    realm.settle();
    (realm, old)
}

fn plan(store: &Store, realm: &Realm, choice: Choice) -> Result<Plan, AdoptError> {
    let comparison = compare(store, &realm.stream, &owners_of(realm));
    let mut plan = Plan::default();
    for (owner, log) in comparison.logs {
        wait(plan.add((store, SHARD), log, &log_of(&realm.stream, owner), choice))?;
    }
    Ok(plan)
}

fn decision() -> Decision {
    Decision {
        at: WallTime(1 << 40),
        operator: "auditor".into(),
        reason: "the cluster was restored to Tuesday".into(),
    }
}

/// Decides on a plan and folds the whole stream.
fn carry_out(store: &Store, realm: &Realm, plan: &Plan) {
    let seed = realm.seed;
    let decision = decision();
    let begun = Adoption::begin(store.clone(), game::schema(), plan, &decision);
    let mut adoption = wait(begun).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    for (owner, bytes) in &realm.stream {
        wait(adoption.take(SHARD, *owner, bytes.clone())).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
    let alarms = wait(adoption.finish(&plan.ends())).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    // Identifiers that several entities claim are not caused by the adoption.
    let faults = alarms
        .iter()
        .filter(|alarm| !matches!(alarm, annals_db::Alarm::IdentifierTaken { .. }));
    assert_eq!(faults.count(), 0, "seed {seed}: {alarms:?}");
}

fn counter(store: &Store, counter: Counter) -> u64 {
    let value = wait(store.begin().get(&director::counter_key(counter))).expect("the store answers");
    director::decode_counter(value.as_deref()).expect("a counter")
}

fn epochs(store: &Store) -> BTreeMap<OwnerId, Epoch> {
    let owners = wait(owners::read_owners(&store.begin())).expect("the store answers");
    owners
        .into_iter()
        .map(|(owner, record)| (owner, record.epoch))
        .collect()
}

#[test]
fn an_unrestored_store_always_agrees_with_its_logs() {
    for seed in 0..SEEDS {
        let (mut realm, mut play) = (founded(seed), Play::default());
        for _ in 0..4 {
            live(&mut realm, &mut play, Replaced::Write);
            let comparison = compare(&realm.store, &realm.stream, &owners_of(&realm));
            assert_eq!(comparison.mismatch(false), None, "seed {seed}: {comparison:?}");
            let offered = realm.offered;
            realm.fold(realm.stream.len() - offered);
            let comparison = compare(&realm.store, &realm.stream, &owners_of(&realm));
            assert_eq!(comparison.mismatch(false), None, "seed {seed}: {comparison:?}");
        }
    }
}

#[test]
fn an_older_store_is_detected_by_every_unknown_log() {
    for seed in 0..SEEDS {
        let (realm, old) = gone_on(seed, Replaced::Write);
        let comparison = compare(&old, &realm.stream, &owners_of(&realm));
        let founded = *realm.owners.keys().next_back().expect("there are owners");
        assert_eq!(
            comparison.logs[&founded].standing,
            Standing::Ahead(Unknown::Owner),
            "seed {seed}"
        );
        for (owner, log) in &comparison.logs {
            let is_known = epochs(&old).get(owner) == epochs(&realm.store).get(owner);
            let is_ahead = matches!(log.standing, Standing::Ahead(_));
            assert!(is_ahead || is_known, "seed {seed}: owner {owner}: {:?}", log.standing);
        }
        // Whether or not a process holds an owner: no process restores what the store does not know.
        for is_held in [false, true] {
            let mismatch = comparison.mismatch(is_held).expect("the store is older");
            assert_eq!(mismatch.direction, Direction::StoreIsOlder, "seed {seed}");
            let text = mismatch.to_string();
            let beyond = mismatch.beyond();
            assert!(
                text.contains(&format!("{} batches with {} events", beyond.batches, beyond.events)),
                "{text}"
            );
            assert!(text.contains("annals realm adopt-log --discard"), "{text}");
        }
    }
}

#[test]
fn an_unallocated_number_shows_an_older_store() {
    let (realm, _) = gone_on(1, Replaced::Write);
    let store = copy(&realm.store);
    let owners = owners_of(&realm);
    // Sets the store back to before the last ids were given out and the last batches were folded.
    let writing = store.begin();
    let key = director::counter_key(Counter::Entities);
    writing
        .set(&key, &director::encode_counter(1))
        .expect("a small transaction");
    for owner in &owners {
        writing.clear(&owners::cursor_key(*owner)).expect("a small transaction");
    }
    wait(writing.commit()).expect("nothing fails");
    let comparison = compare(&store, &realm.stream, &owners);
    let numbers = comparison
        .logs
        .values()
        .filter(|log| matches!(log.standing, Standing::Ahead(Unknown::Number { next: 1, .. })));
    assert!(numbers.count() > 0, "{comparison:?}");
}

/// The fragment of a service on a base owner begins.
fn begin_fragment(realm: &mut Realm) {
    let bases = realm
        .owners
        .iter()
        .filter(|(_, held)| held.scribe.state.kind == OwnerKind::Base);
    let owner = bases.map(|(owner, _)| *owner).next().expect("a base owner");
    let fragment = EntityId::of_fragment(owner, ServiceSlot(7));
    acts::begin_base(realm, owner, fragment, "", (0, 0));
    realm.write(owner, false);
}

/// Their ids are beyond every number that the director gives out.
#[test]
fn fragments_do_not_make_a_store_look_older() {
    let mut realm = founded(1);
    realm.settle();
    begin_fragment(&mut realm);
    let comparison = compare(&realm.store, &realm.stream, &owners_of(&realm));
    for is_held in [false, true] {
        assert_eq!(comparison.mismatch(is_held), None, "{comparison:?}");
    }
}

#[test]
fn an_adoption_raises_no_counter_into_the_ids_of_fragments() {
    let (mut realm, old) = gone_on(1, Replaced::Write);
    begin_fragment(&mut realm);
    realm.settle();
    let plan = plan(&old, &realm, Choice::Adopt).unwrap_or_else(|error| panic!("{error}"));
    carry_out(&old, &realm, &plan);
    let next = counter(&old, Counter::Entities);
    assert!(next < EntityId::of_fragment(OwnerId(0), ServiceSlot(0)).0, "{next}");
}

#[test]
fn proven_batches_are_adopted_completely() {
    for seed in 0..SEEDS {
        let (mut realm, old) = gone_on(seed, Replaced::Write);
        let plan = plan(&old, &realm, Choice::Adopt).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert_eq!(plan.discarded().batches, 0, "seed {seed}");
        let before = [
            Counter::Entities,
            Counter::Owners,
            Counter::Processes,
            Counter::Checkouts,
        ];
        let before = before.map(|kind| (kind, counter(&realm.store, kind)));
        carry_out(&old, &realm, &plan);
        for (kind, next) in before {
            assert!(counter(&old, kind) > next, "seed {seed}: {kind:?}");
        }
        for (owner, epoch) in epochs(&realm.store) {
            let raised = plan.logs.contains_key(&owner);
            assert!(!raised || epochs(&old)[&owner] > epoch, "seed {seed}: owner {owner}");
        }
        // The oracle examines the older store now: it has everything that was ever written.
        let newest = std::mem::replace(&mut realm.store, old);
        let archive = realm.check();
        let written: usize = realm.owners.values().map(|owner| owner.chain.len()).sum();
        assert_eq!(archive.leaves.len(), written, "seed {seed}");
        realm.check_database(&archive);
        let comparison = compare(&realm.store, &realm.stream, &owners_of(&realm));
        assert_eq!(comparison.mismatch(false), None, "seed {seed}: {comparison:?}");
        drop(newest);
    }
}

#[test]
fn an_interrupted_adoption_resumes() {
    let (mut realm, old) = gone_on(3, Replaced::Write);
    let plan = plan(&old, &realm, Choice::Adopt).expect("the log is whole");
    let begun = wait(Adoption::begin(old.clone(), game::schema(), &plan, &decision()));
    let mut adoption = begun.unwrap_or_else(|error| panic!("{error}"));
    for (owner, bytes) in &realm.stream[..realm.stream.len() / 2] {
        wait(adoption.take(SHARD, *owner, bytes.clone())).expect("the store answers");
    }
    drop(adoption);
    let unfinished = wait(Adoption::unfinished(&old)).expect("the store answers");
    assert_eq!(unfinished.expect("it is unfinished").adoption.operator, "auditor");
    let resumed = wait(Adoption::resume(old.clone(), game::schema())).expect("the store answers");
    let mut adoption = resumed.expect("there is one");
    for (owner, bytes) in &realm.stream {
        wait(adoption.take(SHARD, *owner, bytes.clone())).expect("the store answers");
    }
    wait(adoption.finish(&plan.ends())).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(wait(Adoption::unfinished(&old)), Ok(None));
    let records = wait(AdoptionRecord::read_all(&old.begin())).expect("the store answers");
    assert_eq!(records.len(), 1);
    assert_eq!(records[0].adoption.adopted, plan.adopted().batches);
    realm.store = old;
    let archive = realm.check();
    let written: usize = realm.owners.values().map(|owner| owner.chain.len()).sum();
    assert_eq!(archive.leaves.len(), written);
}

#[test]
fn discarded_batches_are_void_and_the_realm_continues() {
    for seed in 0..SEEDS {
        let (realm, old) = gone_on(seed, Replaced::Stop);
        let plan = plan(&old, &realm, Choice::Discard).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(plan.discarded().batches > 0, "seed {seed}");
        carry_out(&old, &realm, &plan);
        for (owner, held) in &realm.owners {
            let recovered = wait(recover(&old, SHARD, *owner, held.scribe.state.kind));
            let recovered = recovered.unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            let stands = usize::try_from(recovered.cursor.batch.0).expect("few batches");
            let expected = stands.checked_sub(1).map(|last| held.chain[last].state);
            let found = (stands > 0).then(|| recovered.state.hash());
            assert_eq!(found, expected, "seed {seed}: owner {owner}");
            let is_cut = plan.logs.get(owner).is_some_and(|log| log.discarded.batches > 0);
            assert_eq!(stands < held.chain.len(), is_cut, "seed {seed}: owner {owner}");
            let read = |transaction: Transaction| async move { transaction.get(&owners::owner_key(*owner)).await };
            let record = wait(old.read(read)).expect("the store answers").expect("a record");
            let record = owners::OwnerRecord::decode(&record).expect("it is intact");
            assert_eq!(
                record.call_generation > 0,
                is_cut,
                "seed {seed}: owner {owner}, rule C13"
            );
        }
        let comparison = compare(&old, &realm.stream, &owners_of(&realm));
        assert_eq!(comparison.mismatch(false), None, "seed {seed}: {comparison:?}");
    }
}

#[test]
fn batches_after_a_hole_are_discarded_only_on_request() {
    let mut tried = 0;
    for seed in 0..SEEDS {
        let (mut realm, old) = gone_on(seed, Replaced::Stop);
        let known = compare(&old, &realm.stream, &owners_of(&realm));
        // The middle of what some log has beyond the archive.
        let wide = known
            .logs
            .values()
            .find(|log| log.beyond.batches >= 6 && matches!(log.standing, Standing::Ahead(_)));
        let Some(wide) = wide else { continue };
        let (owner, lost) = (
            wide.owner,
            BatchNumber(realm.owners[&wide.owner].chain.len() as u64 - 2),
        );
        let is_lost = |(of, bytes): &(OwnerId, Vec<u8>)| {
            *of == owner && Header::read(bytes).is_ok_and(|(header, _)| header.number == lost)
        };
        realm.stream.retain(|message| !is_lost(message));
        let refused = plan(&old, &realm, Choice::Adopt);
        assert!(
            matches!(refused, Err(AdoptError::Unprovable { .. })),
            "seed {seed}: {refused:?}"
        );
        let plan = plan(&old, &realm, Choice::AdoptProvable).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(plan.logs[&owner].discarded.batches > 0, "seed {seed}");
        carry_out(&old, &realm, &plan);
        let stands = wait(annals_db::read_cursor(&old, owner))
            .expect("the store answers")
            .batch;
        // An `Open` that no batch follows proves nothing.
        let chain = &realm.owners[&owner].chain[..usize::try_from(lost.0 - 1).expect("few batches")];
        let last = chain
            .iter()
            .rfind(|written| !written.batch.opens)
            .expect("it was written to");
        assert_eq!(stands, last.batch.number, "seed {seed}");
        tried += 1;
    }
    assert!(tried > 3, "only {tried} realms had a log that is long enough");
}

#[test]
fn a_log_without_the_stores_batches_is_older() {
    for seed in 0..SEEDS {
        let (mut realm, _) = gone_on(seed, Replaced::Write);
        let owners = owners_of(&realm);
        let half = realm.stream.len() / 2;
        realm.stream.truncate(half);
        let comparison = compare(&realm.store, &realm.stream, &owners);
        let mismatch = comparison.mismatch(false).expect("the log is older");
        assert_eq!(mismatch.direction, Direction::LogIsOlder, "seed {seed}: {mismatch}");
        assert_eq!(
            comparison.mismatch(true),
            None,
            "seed {seed}: the holder of an owner restores it"
        );
        let refused = plan(&realm.store, &realm, Choice::Adopt);
        assert!(
            matches!(refused, Err(AdoptError::Unprovable { .. })),
            "seed {seed}: {refused:?}"
        );

        let close = |store: &Store| {
            let writing = store.begin();
            let closed = director::encode_closed(WallTime(9));
            writing
                .set(&director::closed_key(), &closed)
                .expect("a small transaction");
            wait(writing.commit()).expect("nothing fails");
        };
        let closed = copy(&realm.store);
        close(&closed);
        let comparison = compare(&closed, &realm.stream, &owners);
        assert_eq!(comparison.mismatch(false), None, "seed {seed}: everything was archived");

        let plan = plan(&realm.store, &realm, Choice::Discard).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        assert!(!plan.behind.is_empty(), "seed {seed}");
        carry_out(&realm.store.clone(), &realm, &plan);
        let comparison = compare(&realm.store, &realm.stream, &owners);
        assert_eq!(comparison.mismatch(false), None, "seed {seed}: the loss was accepted");
    }
}

#[test]
fn a_log_that_begins_too_late_does_not_continue_the_archive() {
    let (mut realm, old) = gone_on(5, Replaced::Write);
    let owners = owners_of(&realm);
    let wide = compare(&old, &realm.stream, &owners);
    let wide = wide
        .logs
        .values()
        .max_by_key(|log| log.beyond.batches)
        .expect("there are logs");
    let (owner, kept) = (wide.owner, BatchNumber(realm.owners[&wide.owner].chain.len() as u64));
    realm
        .stream
        .retain(|(of, bytes)| *of != owner || Header::read(bytes).is_ok_and(|(header, _)| header.number >= kept));
    // A store with every epoch and opening that has folded less: a newer store has had the rest trimmed.
    let store = copy(&realm.store);
    let writing = store.begin();
    writing.clear(&owners::cursor_key(owner)).expect("a small transaction");
    wait(writing.commit()).expect("nothing fails");
    let comparison = compare(&store, &realm.stream, &[owner]);
    assert_eq!(comparison.logs[&owner].standing, Standing::Detached { first: kept });
    assert!(
        comparison
            .mismatch(false)
            .is_some_and(|mismatch| mismatch.direction == Direction::StoreIsOlder)
    );
    assert_eq!(
        comparison.mismatch(true),
        None,
        "db asks its holder for what is missing"
    );
}

#[test]
fn another_realms_log_is_never_adopted() {
    for seed in 0..SEEDS {
        let (realm, _) = gone_on(seed, Replaced::Write);
        let (other, _) = gone_on(seed + SEEDS, Replaced::Write);
        let comparison = compare(&realm.store, &other.stream, &owners_of(&realm));
        let mismatch = comparison.mismatch(true).expect("it is another realm's");
        assert_eq!(mismatch.direction, Direction::OtherRealm, "seed {seed}: {mismatch}");
        for choice in [Choice::Adopt, Choice::AdoptProvable, Choice::Discard] {
            let refused = plan(&realm.store, &other, choice);
            assert!(
                matches!(refused, Err(AdoptError::Foreign(_))),
                "seed {seed}: {refused:?}"
            );
        }
    }
}
