//! Cuts of realms of several shards whose archives end at different moments (rule T6): the last cut has every leaf that
//! depends only on leaves in the archives, and no other.

use std::collections::{BTreeMap, BTreeSet};

use annals_db::{Extent, Row, read_unlogged};
use annals_event::{Batch, Body, Call};
use annals_ids::{Address, BatchNumber, CallNumber, Epoch, OwnerId, Part, Shard, WallTime};
use annals_store::{
    ArchivedBatch,
    layout::owners::{OpeningRecord, opening_key},
};

use crate::{
    cut_oracle::largest,
    realm::Realm,
    restoring::header,
    shards_restored::{Archives, archives, cuts},
    wait,
};

/// Number of realms.
const SEEDS: u64 = 60;

/// Number of batches in each.
const STEPS: usize = 200;

/// Owners on three shards whose clocks differ, and which call each other: calls are consumed and confirmed later or
/// never.
fn played(seed: u64) -> Realm {
    let mut realm = Realm::of_shards(seed, 3);
    let owners: Vec<OwnerId> = (0..5).map(|_| realm.found(Part::Base)).collect();
    for step in 0..STEPS {
        converse(&mut realm, &owners, step as u64);
    }
    realm.settle();
    realm
}

/// One owner calls another, consumes a call, or confirms calls, and writes a batch.
pub(crate) fn converse(realm: &mut Realm, owners: &[OwnerId], step: u64) {
    let (from, to) = (realm.pick(owners).expect("owners"), realm.pick(owners).expect("owners"));
    if from == to {
        return;
    }
    let ends = (Address::Owner(from), Address::Owner(to));
    let made = realm.scribe(from).next_call(ends.0, ends.1).0 - 1;
    let received = realm.scribe(to).state.links(ends.1);
    let consumed = received
        .and_then(|links| links.taken.get(&ends.0))
        .copied()
        .unwrap_or_default();
    let sent = realm.scribe(from).state.links(ends.0);
    let oldest = sent.and_then(|links| links.sent.get(&ends.1));
    let oldest = oldest
        .and_then(|sent| sent.unconfirmed.first_key_value())
        .map(|(oldest, _)| *oldest);
    let writer = match realm.roll(5) {
        0 | 1 if consumed.0 < made => {
            realm.scribe(to).consume(ends.0, ends.1);
            to
        }
        2 | 3 if oldest.is_some_and(|oldest| oldest <= consumed) => {
            realm.scribe(from).record_own(Body::Confirmed {
                to: ends.1,
                upto: consumed,
                lost: false,
            });
            from
        }
        _ => {
            call(realm, from, to);
            from
        }
    };
    let skew = u64::from(writer.0) * 40;
    realm.scribe(writer).set_clock(WallTime(1_000 + 10 * step + skew));
    realm.write(writer, false);
}

fn call(realm: &mut Realm, from: OwnerId, to: OwnerId) {
    let scribe = realm.scribe(from);
    let number = scribe.next_call(Address::Owner(from), Address::Owner(to));
    scribe.record_own(Body::Called {
        to: Address::Owner(to),
        home: to,
        number,
        call: Call::Arrived { of: CallNumber(1) },
    });
}

/// Archives that end at any leaf of each shard, as if a backup had read them while shards were behind.
pub(crate) fn cut_short(realm: &mut Realm, whole: &Archives) -> Archives {
    let mut cut = Archives::new();
    for (shard, leaves) in whole {
        let kept = leaves.len().saturating_sub(realm.roll(40));
        cut.insert(*shard, leaves[..kept].to_vec());
    }
    cut
}

fn last_cut(rows: &[Row], archives: &Archives) -> Extent {
    let empty = archives.keys().map(|shard| (*shard, 0)).collect();
    let none = Extent {
        leaves: empty,
        ..Extent::default()
    };
    cuts(rows, archives, None).pop().unwrap_or(none)
}

/// Confirmations of calls that are not consumed in these leaves.
fn contradictions(archives: &Archives, ends: &BTreeMap<Shard, u64>) -> usize {
    let leaves = archives
        .iter()
        .flat_map(|(shard, leaves)| &leaves[..ends[shard] as usize]);
    let batches: Vec<Batch> = leaves
        .map(|leaf| match leaf {
            ArchivedBatch::Whole(bytes) => Batch::read(bytes).expect("a batch"),
            ArchivedBatch::Thinned(_) => panic!("nothing was deleted"),
        })
        .collect();
    let consumed = batches.iter().flat_map(|batch| &batch.header.consumed);
    let consumed: BTreeSet<_> = consumed.map(|call| (call.from, call.to, call.number)).collect();
    let confirmed = batches.iter().flat_map(|batch| {
        let from = Address::Owner(batch.header.owner);
        batch.events.iter().filter_map(move |event| match event.body {
            Body::Confirmed { to, upto, .. } => Some((from, to, upto)),
            _ => None,
        })
    });
    confirmed.filter(|call| !consumed.contains(call)).count()
}

#[test]
fn the_last_cut_has_all_leaves_whose_causes_are_archived_and_no_others() {
    let (mut left_out, mut contradicted) = (0, 0);
    for seed in 0..SEEDS {
        let mut realm = played(seed);
        let (rows, whole) = (wait(read_unlogged(&realm.store)).expect("readable"), archives(&realm));
        for _ in 0..4 {
            let archives = cut_short(&mut realm, &whole);
            let found = last_cut(&rows, &archives).leaves;
            assert_eq!(found, largest(&archives, &[], None), "seed {seed}");
            assert_eq!(contradictions(&archives, &found), 0, "seed {seed}");
            let all: BTreeMap<Shard, u64> = archives
                .iter()
                .map(|(shard, found)| (*shard, found.len() as u64))
                .collect();
            left_out += usize::from(found != all);
            contradicted += usize::from(contradictions(&archives, &all) > 0);
        }
    }
    assert!(
        left_out > 150 && contradicted > 50,
        "{left_out} archives had leaves to leave out, {contradicted} had a confirmation of a call that was not consumed"
    );
}

/// A realm in which a call was confirmed whose consumption is in no archive. Each shard writes more `later`, in
/// milliseconds.
fn contradicted(later: u64) -> (Vec<Row>, Archives, OwnerId) {
    const CONFIRMED: u64 = 1_000;
    let mut realm = Realm::of_shards(1, 3);
    let owners: BTreeMap<Shard, OwnerId> = (0..40)
        .map(|_| {
            let owner = realm.found(Part::Base);
            (realm.owners[&owner].shard, owner)
        })
        .collect();
    let [from, to, _] = *owners.values().copied().collect::<Vec<_>>() else {
        panic!("each shard has an owner: {owners:?}")
    };
    let write = |realm: &mut Realm, owner, at| {
        realm.scribe(owner).set_clock(WallTime(at));
        realm.write(owner, false);
    };
    call(&mut realm, from, to);
    write(&mut realm, from, CONFIRMED);
    realm.scribe(from).record_own(Body::Confirmed {
        to: Address::Owner(to),
        upto: CallNumber(1),
        lost: false,
    });
    write(&mut realm, from, CONFIRMED);
    for owner in owners.values() {
        write(&mut realm, *owner, CONFIRMED + later);
    }
    realm.settle();
    let rows = wait(read_unlogged(&realm.store)).expect("readable");
    (rows, archives(&realm), to)
}

fn sizes(archives: &Archives) -> BTreeMap<Shard, u64> {
    let sizes = archives.iter().map(|(shard, leaves)| (*shard, leaves.len() as u64));
    sizes.collect()
}

/// The consumption may have been in a batch that is void since: everything behind it would be left out for ever.
#[test]
fn confirmations_are_ignored_where_a_hole_was_accepted() {
    let (rows, archives, to) = contradicted(1_000);
    assert_ne!(last_cut(&rows, &archives).leaves, sizes(&archives));
    let closing = OpeningRecord::closing(Epoch(9), BatchNumber(2));
    let opening = (opening_key(to, closing.epoch), closing.encode());
    let with_hole = [&rows[..], &[opening]].concat();
    assert_eq!(last_cut(&with_hole, &archives).leaves, sizes(&archives));
}

/// What a shard has not archived a minute later is lost.
#[test]
fn confirmations_are_ignored_if_all_shards_have_archived_later_batches() {
    for (later, is_whole) in [(0, false), (59_000, false), (61_000, true)] {
        let (rows, archives, _) = contradicted(later);
        let found = last_cut(&rows, &archives).leaves;
        assert_eq!(found == sizes(&archives), is_whole, "{later} ms");
    }
    // A shard whose db is away may have archived nothing at all.
    let (rows, mut archives, to) = contradicted(61_000);
    let shard_of = |leaves: &[ArchivedBatch]| leaves.iter().any(|leaf| header(leaf).owner == to);
    let consumer = archives.values_mut().find(|leaves| shard_of(leaves));
    consumer.expect("the shard of the receiver").clear();
    assert_ne!(last_cut(&rows, &archives).leaves, sizes(&archives));
}
