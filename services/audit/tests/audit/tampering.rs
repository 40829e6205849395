//! Archives that were changed, before and after they were taken in.

use std::collections::BTreeSet;

use annals_audit::{AuditError, EntityLog, Index, past::Past};
use annals_event::{Batch, Gathering, Imprint, OwnerState, Tail, Thinned, ledger::Order};
use annals_evidence::Contradiction;
use annals_ids::{
    BatchNumber, Epoch, EventNumber, LeafIndex, OwnerId, OwnerKind, ProcessId, SessionId, TransferId, WallTime,
};
use annals_store::{
    ArchivedBatch,
    layout::{
        archive::leaf_key,
        chunks,
        owners::{OwnerRecord, owner_key},
        retention::{Horizon, horizon_key, own_key},
        snapshots::Area,
    },
};

use crate::game::{Dice, Game, SHARD, commit, player};

/// Changes of one leaf tried per game.
const CHANGES: usize = 30;

#[tokio::test]
async fn a_changed_batch_is_named() {
    for (seed, shards) in (0..3).zip(1..) {
        let game = Game::play_on_shards(1_000 + seed, 80, shards).await;
        let mut dice = Dice(seed);
        for _ in 0..CHANGES {
            let leaf = dice.below(game.leaves.len());
            let mut bytes = game.leaves[leaf].1.clone();
            let place = dice.below(bytes.len());
            bytes[place] ^= 1 << dice.below(8);
            game.write(leaf, &bytes).await;
            let (_folder, mut index) = game.index().await;
            let found = index.catch_up(&game.store, |_| {}).await.expect_err("changed");
            game.write(leaf, &game.leaves[leaf].1).await;
            assert!(
                is_named(&game, leaf, &found),
                "seed {seed}, leaf {leaf}, byte {place}: {found:?}"
            );
        }
    }
}

/// Whether an error names the changed leaf. A change of the header alone leaves the batch well-formed: it shows at the
/// next batch of that log, whose previous hash differs, or, after the last one, in the tree.
fn is_named(game: &Game, leaf: usize, found: &AuditError) -> bool {
    let (at, _) = game.leaves[leaf];
    let is_next = |other: usize| {
        let (next, _) = game.leaves[other];
        next.owner == at.owner && next.batch == at.batch.next()
    };
    match found {
        AuditError::Changed { leaf: named, .. } => *named == game.leaf_of(leaf),
        AuditError::Archive(_) => true,
        AuditError::Unchained {
            leaf: named, before, ..
        } => {
            let places = 0..game.leaves.len();
            let named = places
                .clone()
                .find(|place| game.leaf_of(*place) == *named)
                .expect("one");
            named == leaf || (is_next(named) && *before == at.batch)
        }
        AuditError::Tree { .. } => (leaf..game.leaves.len()).all(|other| !is_next(other)),
        _ => false,
    }
}

#[tokio::test]
async fn a_removed_batch_is_named() {
    for shards in [1, 3] {
        let game = Game::play_on_shards(21, 60, shards).await;
        for place in 0..game.leaves.len() {
            let leaf = game.leaf_of(place);
            let range = annals_store::KeyRange::prefix(&leaf_key(leaf.shard, leaf.leaf));
            commit(&game.store, |transaction| transaction.clear_range(&range)).await;
            let (_folder, mut index) = game.index().await;
            let found = index.catch_up(&game.store, |_| {}).await.expect_err("removed");
            assert!(
                matches!(found, AuditError::LeafMissing(named) if named == leaf),
                "{leaf}: {found:?}"
            );
            game.write(place, &game.leaves[place].1).await;
        }
    }
}

#[tokio::test]
async fn swapped_batches_are_named() {
    let game = Game::play(22, 60).await;
    for leaf in 1..game.leaves.len() {
        game.write(leaf - 1, &game.leaves[leaf].1).await;
        game.write(leaf, &game.leaves[leaf - 1].1).await;
        let (_folder, mut index) = game.index().await;
        let found = index.catch_up(&game.store, |_| {}).await.expect_err("reordered");
        let named = match found {
            AuditError::Unchained { leaf: named, .. } => {
                [leaf - 1, leaf].map(|leaf| game.leaf_of(leaf)).contains(&named)
            }
            // Batches of two logs, each of which still follows its predecessor.
            AuditError::Tree { .. } => game.leaves[leaf].0.owner != game.leaves[leaf - 1].0.owner,
            _ => false,
        };
        assert!(named, "{leaf}: {found:?}");
        game.write(leaf - 1, &game.leaves[leaf - 1].1).await;
        game.write(leaf, &game.leaves[leaf].1).await;
    }
}

#[tokio::test]
async fn citations_match_the_verified_batches() {
    let game = Game::play(23, 120).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let serial = game.serials[0];
    let item = index.item(&game.store, serial).await.expect("known");
    for step in &item.steps {
        let asked = step.cited.asked.as_ref().expect("asked for");
        for cited in [step.cited.leaf, asked.leaf] {
            let leaf = usize::try_from(cited.leaf.0).expect("small");
            let mut bytes = game.leaves[leaf].1.clone();
            let last = bytes.len() - 1;
            bytes[last] ^= 1;
            game.write(leaf, &bytes).await;
            let found = index.item(&game.store, serial).await.expect_err("changed");
            assert!(
                matches!(found, AuditError::Replaced { leaf, .. } if leaf == cited),
                "{found:?}"
            );
            game.write(leaf, &game.leaves[leaf].1).await;
        }
    }
}

/// An alternative batch for the same place in the log: with a later time, otherwise equal and consistent.
fn another(bytes: &[u8]) -> Vec<u8> {
    let Batch { header, events, .. } = Batch::read(bytes).expect("one");
    let mut gathering = Gathering::default();
    let mut calls = header.consumed.iter().peekable();
    for (place, event) in events.iter().enumerate() {
        while let Some(call) = calls.next_if(|call| call.at as usize <= place) {
            gathering.consume(call.from, call.to, call.number, call.trace);
        }
        gathering.record(event);
    }
    calls.for_each(|call| gathering.consume(call.from, call.to, call.number, call.trace));
    let imprint = Imprint {
        realm: header.realm.clone(),
        owner: header.owner,
        epoch: header.epoch,
        schema: header.schema,
    };
    let mut before = Tail {
        batch: BatchNumber(header.number.0 - 1),
        hash: header.previous,
        event: EventNumber(header.first_event.0 - 1),
    };
    let wall = WallTime(header.wall.0 + 1);
    let frozen = gathering.freeze(&imprint, &mut before, header.tick, wall, header.opens);
    frozen.bytes
}

/// The answers of an index to all questions about a game, by question.
async fn answers(game: &Game, index: &Index) -> Vec<(String, Result<String, AuditError>)> {
    let mut answers = Vec::new();
    let store = &game.store;
    for &serial in &game.serials {
        let item = index.item(store, serial).await;
        answers.push((format!("item {serial}"), item.map(|found| format!("{found:?}"))));
    }
    for deal in &game.deals {
        let trade = index.trade(store, deal.id).await;
        answers.push((format!("trade {}", deal.id), trade.map(|found| format!("{found:?}"))));
    }
    for (stored, entity, _) in (0..3).map(player) {
        let owned = index.owned(store, stored).await;
        answers.push((format!("account {stored}"), owned.map(|found| format!("{found:?}"))));
        let lives = index.lives(store, stored).await;
        answers.push((format!("lives {stored}"), lives.map(|found| format!("{found:?}"))));
        let session = index.session(store, SessionId(entity.0 * 10)).await;
        answers.push((format!("session {entity}"), session.map(|found| format!("{found:?}"))));
        let events = EntityLog::find(index, store, entity).await;
        answers.push((format!("entity {entity}"), events.map(|found| format!("{found:?}"))));
    }
    answers
}

/// No answer rests on a batch that differs from the verified one, even if it is well-formed: loose or sealed.
#[tokio::test]
async fn no_answer_uses_a_batch_replaced_by_a_well_formed_one() {
    for (is_sealed, shards) in [(false, 1), (true, 1), (true, 3)] {
        let mut game = Game::play_on_shards(28, 50, shards).await;
        let leaves = game.leaves.len();
        let (_folder, mut index) = game.index().await;
        index.catch_up(&game.store, |_| {}).await.expect("sound");
        if is_sealed {
            game.seal(0, leaves).await;
        }
        let truth = answers(&game, &index).await;
        assert!(truth.iter().filter(|(_, answer)| answer.is_ok()).count() > 20);
        let mut refused_kinds = BTreeSet::new();
        for leaf in 0..leaves {
            let replaced = another(&game.leaves[leaf].1);
            let kept = std::mem::replace(&mut game.leaves[leaf].1, replaced);
            put(&game, leaf, is_sealed).await;
            let mut refused = 0;
            for ((question, answer), (_, true_answer)) in answers(&game, &index).await.into_iter().zip(&truth) {
                match (&answer, true_answer) {
                    (Ok(answer), Ok(true_answer)) => assert_eq!(answer, true_answer, "{question}, leaf {leaf}"),
                    (Err(AuditError::Replaced { leaf: named, .. }), _) => {
                        assert_eq!(*named, game.leaf_of(leaf), "{question}");
                        refused += 1;
                        refused_kinds.extend(question.split(' ').next().map(str::to_owned));
                    }
                    // What does not exist has no answer in either.
                    (Err(_), Err(_)) => {}
                    _ => panic!("{question}, leaf {leaf}: {answer:?}"),
                }
            }
            let (at, _) = game.leaves[leaf];
            let is_asked = !Batch::read(&kept).expect("one").events.is_empty();
            assert_eq!(refused > 0, is_asked, "leaf {leaf}, batch {at}");
            let cut = index.cut(None).await.expect("taken in");
            let past = Past::at(&index, &game.store, &cut).await;
            assert!(past.is_err_and(|error| error.is_finding()), "leaf {leaf}, batch {at}");
            game.leaves[leaf].1 = kept;
            put(&game, leaf, is_sealed).await;
        }
        let kinds = ["account", "entity", "item", "lives", "session", "trade"];
        assert_eq!(refused_kinds, kinds.map(str::to_owned).into());
    }
}

/// Writes a leaf of the game, loose or into the one segment.
async fn put(game: &Game, leaf: usize, is_sealed: bool) {
    if is_sealed {
        game.seal(0, game.leaves.len()).await;
    } else {
        game.write(leaf, &game.leaves[leaf].1).await;
    }
}

/// A thinned batch is checked against what was verified, like a whole one.
#[tokio::test]
async fn a_replaced_thinned_batch_is_named() {
    let game = Game::play(29, 40).await;
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let (_, entity, base) = player(0);
    let mut tried = 0;
    for (leaf, (at, bytes)) in game.leaves.iter().enumerate() {
        if at.owner != base {
            continue;
        }
        game.write(leaf, &thinned(bytes)).await;
        let found = EntityLog::find(&index, &game.store, entity)
            .await
            .expect("the same batch");
        assert_eq!(found.deleted.get(&base), Some(&at.batch));
        game.write(leaf, &thinned(&another(bytes))).await;
        let found = EntityLog::find(&index, &game.store, entity)
            .await
            .expect_err("replaced");
        let named = game.leaf_of(leaf);
        assert!(
            matches!(found, AuditError::Replaced { leaf, .. } if leaf == named),
            "{leaf}: {found:?}"
        );
        game.write(leaf, bytes).await;
        tried += 1;
    }
    assert!(tried > 5, "{tried} batches were replaced");
}

#[tokio::test]
async fn another_archive_is_not_confused_with_the_indexed_one() {
    let (game, other) = (Game::play(24, 60).await, Game::play(25, 200).await);
    let (_folder, mut index) = game.index().await;
    index.catch_up(&game.store, |_| {}).await.expect("sound");
    let found = index.catch_up(&other.store, |_| {}).await.expect_err("another");
    assert!(matches!(found, AuditError::Another(SHARD)), "{found:?}");
    let shorter = Game::play(24, 30).await;
    let found = index.catch_up(&shorter.store, |_| {}).await.expect_err("cut back");
    assert!(matches!(found, AuditError::Shorter { .. }), "{found:?}");
}

#[tokio::test]
async fn an_entry_without_an_order_is_named() {
    for is_ordered in [false, true] {
        let mut game = Game::play(26, 60).await;
        let elsewhere = *game.serials.last().expect("an item");
        let order = is_ordered.then(|| Order::Void {
            of: TransferId::default(),
        });
        game.forge(elsewhere, order).await;
        game.forge(elsewhere, None).await;
        let (_folder, mut index) = game.index().await;
        index.catch_up(&game.store, |_| {}).await.expect("well-formed");
        let found = index.item(&game.store, elsewhere).await.expect_err("made up");
        let is_named = match found {
            AuditError::Contradiction(Contradiction::NotAsked { entry, .. }) => {
                is_ordered && entry == game.truths[game.truths.len() - 2].entry.number
            }
            AuditError::Contradiction(Contradiction::Astray { serial, .. }) => !is_ordered && serial == elsewhere,
            _ => false,
        };
        assert!(is_named, "{found:?}");
    }
}

/// The batch as retention would thin it.
fn thinned(bytes: &[u8]) -> Vec<u8> {
    let batch = Batch::read(bytes).expect("one");
    let thinned = ArchivedBatch::Thinned(Thinned::of(&batch).write());
    thinned.stored().into_owned()
}

/// Makes the store claim that an owner is a cell, and that its log has a floor at that batch.
async fn pretend_a_floor(game: &Game, owner: OwnerId, bytes: &[u8]) {
    let batch = Batch::read(bytes).expect("one");
    let mut floor = OwnerState::new(owner, OwnerKind::Cell);
    floor.tail = batch.tail();
    let mut own = Vec::new();
    floor.write_own(&mut own);
    let horizon = Horizon {
        leaf: LeafIndex(game.leaves.len() as u64),
        wall: batch.header.wall,
        area: Area::First,
        bytes: 0,
    };
    let record = OwnerRecord {
        kind: OwnerKind::Cell,
        shard: SHARD,
        epoch: Epoch(1),
        process: ProcessId(1),
        call_generation: 0,
    };
    commit(&game.store, |transaction| {
        for (key, chunk) in chunks(&own_key(SHARD, horizon.area, owner), &own) {
            transaction.set(&key, chunk)?;
        }
        transaction.set(&horizon_key(SHARD), &horizon.encode())?;
        transaction.set(&owner_key(owner), &record.encode())
    })
    .await;
}

/// Only retention may delete events, and never those of bases and the ledger: a batch without its events is found, even
/// if every hash is unchanged.
#[tokio::test]
async fn a_batch_without_its_events_is_named() {
    for pretend in [false, true] {
        let game = Game::play(24, 60).await;
        let mut firsts = BTreeSet::new();
        for (leaf, (at, bytes)) in game.leaves.iter().enumerate() {
            // The owner's kind is unknown at the first batch of its log.
            let is_first = firsts.insert(at.owner);
            if Batch::read(bytes).expect("one").events.is_empty() || (pretend && is_first) {
                continue;
            }
            game.write(leaf, &thinned(bytes)).await;
            if pretend {
                pretend_a_floor(&game, at.owner, bytes).await;
            }
            let (_folder, mut index) = game.index().await;
            let found = index.catch_up(&game.store, |_| {}).await.expect_err("let go of");
            let named = game.leaf_of(leaf);
            assert!(
                matches!(found, AuditError::Changed { leaf, .. } if leaf == named),
                "{leaf}: {found:?}"
            );
            game.write(leaf, bytes).await;
        }
    }
}
