//! Verifying: an intact archive is clean, and each possible fault is named, by an incremental verification as by one
//! from the beginning.

use std::ops::{Deref, DerefMut};

use annals_audit::{
    archive::Fault,
    verify::{Checkpoint, Finding, OpeningFault, Verification, VerifyReport, verify, verify_from},
};
use annals_def::split_mix;
use annals_event::{Body, Event, FrozenBatch, Subject};
use annals_host::log_source::Source;
use annals_ids::{
    Address, BatchNumber, CallNumber, EntityId, EventNumber, Hash, HistoryNumber, LeafIndex, LogPosition, Part,
};
use annals_store::{
    MemoryStore,
    archive::read_segments,
    layout::{
        archive::{self, Hole, Tree},
        chunks,
        owners::{self, Cursor, OpeningRecord},
        segments,
        snapshots::{self, Area, Position},
    },
};

use super::world::{SHARD, World};

const STEPS: usize = 120;

/// A world, and a verification that has looked at the first part of it.
struct Looked {
    world: World,
    verification: Verification,
    /// Number of leaves that it has read.
    walked: u64,
}

impl Deref for Looked {
    type Target = World;

    fn deref(&self) -> &World {
        &self.world
    }
}

impl DerefMut for Looked {
    fn deref_mut(&mut self) -> &mut World {
        &mut self.world
    }
}

impl Looked {
    /// Looks at the present state of a world.
    async fn at(world: World) -> Self {
        let mut verification = Verification::default();
        let source = Source::archive(world.store.clone());
        let report = verification.look(&source).await.unwrap();
        assert!(report.is_clean(), "{report}");
        let walked = report.leaves;
        Self {
            world,
            verification,
            walked,
        }
    }
}

async fn world(seed: u64) -> Looked {
    let mut world = Looked::at(World::generate(MemoryStore::new().store(), seed, STEPS / 4).await).await;
    world.play(seed + 1_000, STEPS - STEPS / 4).await;
    world.archive().await;
    world
}

/// The result of a verification from the beginning; an incremental one must find the same in what was added since its
/// last look.
async fn verified(world: &Looked) -> VerifyReport {
    let whole = verified_whole(world).await;
    let source = Source::archive(world.store.clone());
    let going_on = world.verification.clone().look(&source).await.unwrap();
    assert_eq!(going_on.to_string(), whole.to_string());
    assert_eq!(going_on.findings, whole.findings);
    whole
}

async fn verified_whole(world: &World) -> VerifyReport {
    verify(&Source::archive(world.store.clone())).await.unwrap()
}

fn at(batch: &FrozenBatch) -> LogPosition {
    LogPosition {
        owner: batch.owner,
        batch: batch.number,
    }
}

/// Asserts that something was found, and that the text names it.
#[track_caller]
fn assert_found(report: &VerifyReport, finding: &Finding, named: &[String]) {
    let text = report.to_string();
    assert!(report.findings.contains(finding), "{finding:?} is not in\n{text}");
    assert!(!report.is_clean() && text.contains("WRONG"), "{text}");
    for name in named {
        assert!(text.contains(name), "{name} is not named in\n{text}");
    }
}

fn batch_named(batch: &FrozenBatch) -> String {
    format!("batch {} of owner {}", batch.number, batch.owner)
}

#[tokio::test]
async fn generated_realms_verify_clean_and_replay_to_the_live_states() {
    for seed in 0..20 {
        let world = world(seed).await;
        let report = verified(&world).await;
        assert!(report.is_clean(), "seed {seed}: {report}");
        assert_eq!(report.leaves, world.frozen.len() as u64, "seed {seed}");
        for log in &world.logs {
            let state = report.owners[&log.owner].state;
            assert_eq!(state, Some((log.state.tail.batch, log.state.hash())), "seed {seed}");
        }
    }
}

#[tokio::test]
async fn incremental_verification_equals_one_full_verification() {
    for seed in 0..10 {
        let mut world = Looked::at(World::new(MemoryStore::new().store()).await).await;
        for step in 0..6 {
            world.play(100 * seed + step, 15).await;
            if step % 2 == 0 {
                world.archive().await;
            }
            assert!(verified(&world).await.is_clean());
            let source = Source::archive(world.store.clone());
            world.verification.look(&source).await.unwrap();
            let checkpoint = world.verification.checkpoint();
            assert_eq!(checkpoint.roots[&SHARD].0, world.archived as u64, "seed {seed}");
            let again = verify_from(&source, checkpoint).await.unwrap();
            assert!(again.is_clean(), "seed {seed}: {again}");
        }
    }
}

#[tokio::test]
async fn a_full_verification_finds_changes_in_verified_batches() {
    let world = world(2).await;
    let source = Source::archive(world.store.clone());
    let mut verification = world.verification.clone();
    let first = &world.frozen[0];
    let key = owners::opening_key(first.owner, first.epoch);
    let opening = OpeningRecord::decode(&world.row(&key).await.unwrap()).unwrap();
    let hash = Hash([9; 32]);
    world
        .edit(&key, Some(&OpeningRecord { hash, ..opening }.encode()))
        .await;
    let report = verification.look(&source).await.unwrap();
    assert!(report.is_clean(), "it was walked over before: {report}");
    assert!(!verified_whole(&world).await.is_clean());
}

#[tokio::test]
async fn an_incremental_verification_restarts_after_a_fault() {
    let world = world(15).await;
    let source = Source::archive(world.store.clone());
    let mut verification = world.verification.clone();
    let last = world.frozen.last().unwrap();
    let leaf = world.leaf(last).await;
    world.edit(&archive::leaf_key(SHARD, leaf), None).await;
    assert!(!verification.look(&source).await.unwrap().is_clean());
    assert_eq!(verification.checkpoint(), Checkpoint::default());
    world.replace(leaf, &last.bytes).await;
    let report = verification.look(&source).await.unwrap();
    assert!(report.is_clean(), "it was put back: {report}");
    assert_eq!(report.to_string(), verified_whole(&world).await.to_string());
}

#[tokio::test]
async fn a_checkpoint_reveals_a_rewritten_archive() {
    let (world, other) = (world(16).await, world(17).await);
    let source = Source::archive(world.store.clone());
    let good = world.verification.checkpoint();
    assert!(verify_from(&source, good.clone()).await.unwrap().is_clean());
    // Another realm, as intact as this one.
    let report = verify_from(&Source::archive(other.store.clone()), good.clone())
        .await
        .unwrap();
    let (leaves, _) = good.roots[&SHARD];
    let named = format!("the first {leaves} leaves of shard {SHARD} differ from those verified before");
    assert_found(&report, &Finding::Rewritten { shard: SHARD, leaves }, &[named]);
    for (&owner, &(batch, state)) in &good.states {
        let mut changed = good.clone();
        changed.states.insert(owner, (batch, Hash([7; 32])));
        let report = verify_from(&source, changed).await.unwrap();
        let at = LogPosition { owner, batch };
        assert_eq!(report.findings, [Finding::Otherwise { at }], "{report}");
        let mut longer = good.clone();
        let at = LogPosition {
            owner,
            batch: BatchNumber(batch.0 + 10_000),
        };
        longer.states.insert(owner, (at.batch, state));
        let report = verify_from(&source, longer).await.unwrap();
        assert_eq!(report.findings, [Finding::Otherwise { at }], "{report}");
    }
    let mut longer = good;
    longer.roots.get_mut(&SHARD).unwrap().0 += 10_000;
    let report = verify_from(&source, longer).await.unwrap();
    assert!(matches!(report.findings[..], [Finding::Rewritten { .. }]), "{report}");
}

#[tokio::test]
async fn a_missing_batch_is_named_with_its_events_and_dependents() {
    for seed in 0..10 {
        let world = world(seed).await;
        let (batch, entity, number) = world.a_change();
        world
            .edit(&archive::leaf_key(SHARD, world.leaf(&batch).await), None)
            .await;
        let report = verified(&world).await;
        println!("seed {seed}:\n{report}\n");
        let missing = Finding::Batch {
            at: at(&batch),
            fault: Fault::Missing,
            subjects: Vec::new(),
        };
        assert_found(&report, &missing, &[batch_named(&batch)]);
        let lost = |finding: &Finding| {
            matches!(finding, Finding::EventsLost { owner, batches, .. }
                if *owner == batch.owner && *batches == (batch.number, batch.number))
        };
        let is_last = world.last(batch.owner) == batch.number;
        assert!(is_last || report.findings.iter().any(lost), "seed {seed}: {report}");
        let hole = |finding: &Finding| matches!(finding, Finding::HistoryHole { entity: found, first, .. } if (*found, *first) == (entity, number));
        let later = world.logs.iter().filter_map(|log| log.state.entities.get(&entity));
        let is_newest = later.map(|image| image.history).max() == Some(number);
        assert!(is_newest || report.findings.iter().any(hole), "seed {seed}: {report}");
    }
}

#[tokio::test]
async fn the_cursor_reveals_a_truncated_log() {
    let world = world(3).await;
    let batch = world.frozen.last().unwrap();
    world
        .edit(&archive::leaf_key(SHARD, world.leaf(batch).await), None)
        .await;
    world.edit(&archive::place_key(batch.owner, batch.number), None).await;
    let report = verified(&world).await;
    let missing = Finding::Batch {
        at: at(batch),
        fault: Fault::Missing,
        subjects: Vec::new(),
    };
    assert_found(&report, &missing, &[batch_named(batch)]);
    let leaf = LeafIndex(world.frozen.len() as u64 - 1);
    let leaves = world.frozen.len() as u64;
    let shard = SHARD;
    assert_found(&report, &Finding::LeafMissing { shard, leaf, leaves }, &[]);
}

#[tokio::test]
async fn a_changed_byte_anywhere_is_named_with_its_batch() {
    let world = world(4).await;
    let mut dice = split_mix(4);
    for batch in &world.frozen {
        let leaf = world.leaf(batch).await;
        let mut changed = batch.bytes.clone();
        let place = dice() as usize % changed.len();
        changed[place] ^= 1 << (dice() % 8);
        world.replace(leaf, &changed).await;
        let report = match leaf.0 < world.walked {
            true => verified_whole(&world).await,
            false => verified(&world).await,
        };
        // A header that was changed and can still be decoded is detected by the batch that names its hash, or by the
        // cursor.
        let next = LogPosition {
            batch: batch.number.next(),
            ..at(batch)
        };
        let names = |finding: &Finding| match finding {
            Finding::Batch { at: found, .. } | Finding::Opening { at: found, .. } => {
                *found == at(batch) || *found == next
            }
            Finding::Cursor { at: found } => *found == at(batch),
            _ => false,
        };
        assert!(
            report.findings.iter().any(names),
            "byte {place} of {}: {report}",
            batch_named(batch)
        );
        world.replace(leaf, &batch.bytes).await;
    }
    assert!(verified(&world).await.is_clean());
}

#[tokio::test]
async fn the_entities_of_a_damaged_batch_are_reported() {
    let world = world(5).await;
    let (batch, entity, _) = world.a_change();
    let mut changed = batch.bytes.clone();
    // The value at the end of its one event: still an event, but not the one that was hashed.
    *changed.last_mut().unwrap() ^= 1;
    world.replace(world.leaf(&batch).await, &changed).await;
    let report = verified(&world).await;
    let damaged = |finding: &Finding| match finding {
        Finding::Batch {
            at: found,
            fault,
            subjects,
        } => {
            *found == at(&batch)
                && matches!(fault, Fault::Damaged(_))
                && subjects[..] == [Subject::Entity(entity, Part::Cell)]
        }
        _ => false,
    };
    assert!(report.findings.iter().any(damaged), "{report}");
    assert!(
        report.to_string().contains(&format!("cell of entity {entity}")),
        "{report}"
    );
    // The header is unchanged, and the header is the leaf.
    let tree = |finding: &Finding| matches!(finding, Finding::Edge { .. } | Finding::LeafMissing { .. });
    assert!(!report.findings.iter().any(tree), "{report}");
}

#[tokio::test]
async fn swapped_batches_are_both_named() {
    let world = world(6).await;
    let (first, ..) = world.a_change();
    let second = world
        .frozen
        .iter()
        .find(|other| other.owner == first.owner && other.number == first.number.next());
    let second = second.unwrap();
    let (one, two) = (world.leaf(&first).await, world.leaf(second).await);
    let swapped = |report: &VerifyReport| {
        for batch in [&first, second] {
            let misplaced = Finding::Batch {
                at: at(batch),
                fault: Fault::Misplaced,
                subjects: Vec::new(),
            };
            let found = report.findings.iter().any(|finding| match finding {
                Finding::Batch { at, fault, .. } => {
                    Finding::Batch {
                        at: *at,
                        fault: fault.clone(),
                        subjects: Vec::new(),
                    } == misplaced
                }
                _ => false,
            });
            assert!(found, "{} is not named in\n{report}", batch_named(batch));
        }
    };
    world.replace(one, &second.bytes).await;
    world.replace(two, &first.bytes).await;
    swapped(&verified(&world).await);
    world.replace(one, &first.bytes).await;
    world.replace(two, &second.bytes).await;
    assert!(verified(&world).await.is_clean());
    let place = |batch: &FrozenBatch| archive::place_key(batch.owner, batch.number);
    world.edit(&place(&first), Some(&archive::encode_place(two))).await;
    world.edit(&place(second), Some(&archive::encode_place(one))).await;
    swapped(&verified(&world).await);
}

#[tokio::test]
async fn a_batch_in_two_places_is_named() {
    let world = world(7).await;
    let (batch, ..) = world.a_change();
    let other = world.frozen.iter().find(|other| other.owner != batch.owner).unwrap();
    let leaf = world.leaf(other).await;
    world
        .edit(
            &archive::place_key(batch.owner, batch.number),
            Some(&archive::encode_place(leaf)),
        )
        .await;
    let report = verified(&world).await;
    let twice = |finding: &Finding| matches!(finding, Finding::LeafTwice { leaf: found, .. } if *found == leaf);
    assert!(report.findings.iter().any(twice), "{report}");
}

#[tokio::test]
async fn a_wrong_tree_edge_is_named() {
    let world = world(8).await;
    let key = archive::tree_key(SHARD);
    let good = world.row(&key).await.unwrap();
    let leaves = world.frozen.len() as u64;
    for peak in 0..Tree::decode(Some(&good)).unwrap().peaks.len() {
        let mut tree = Tree::decode(Some(&good)).unwrap();
        tree.peaks[peak].0[7] ^= 1;
        world.edit(&key, Some(&tree.encode())).await;
        let report = verified(&world).await;
        let shard = SHARD;
        assert_eq!(
            report.findings,
            [Finding::Edge { shard, leaves }],
            "peak {peak}: {report}"
        );
    }
    world.edit(&key, Some(&good)).await;
    assert!(verified(&world).await.is_clean());
}

#[tokio::test]
async fn the_tree_reveals_a_last_batch_replaced_with_its_cursor() {
    let mut world = world(9).await;
    let entity = *world.logs[0].state.entities.keys().next().unwrap();
    world.change(0, entity, 3);
    world.archive().await;
    let last = world.frozen.last().unwrap().clone();
    let leaf = world.leaf(&last).await;
    // The same batch with another wall time: all its references are correct.
    let mut forged = last.bytes.clone();
    let header_end = forged.len() - annals_event::Header::read(&forged).unwrap().0.events_length as usize;
    let wall = header_end - 32 * 3 - 8 - 1;
    forged[wall] ^= 1;
    let hash = annals_event::Header::read(&forged).unwrap().1;
    world.replace(leaf, &forged).await;
    let key = owners::cursor_key(last.owner);
    let cursor = Cursor::decode(world.row(&key).await.as_deref()).unwrap();
    world.edit(&key, Some(&Cursor { hash, ..cursor }.encode())).await;
    let report = verified(&world).await;
    let leaves = world.frozen.len() as u64;
    assert_eq!(report.findings, [Finding::Edge { shard: SHARD, leaves }], "{report}");
}

#[tokio::test]
async fn an_edited_cursor_is_named() {
    let world = world(10).await;
    let owner = world.logs[1].owner;
    let key = owners::cursor_key(owner);
    let good = Cursor::decode(world.row(&key).await.as_deref()).unwrap();
    let event = EventNumber(good.event.0 + 1);
    world.edit(&key, Some(&Cursor { event, ..good }.encode())).await;
    let report = verified(&world).await;
    let batch = good.batch;
    assert_found(
        &report,
        &Finding::Cursor {
            at: LogPosition { owner, batch },
        },
        &[],
    );
}

#[tokio::test]
async fn a_repeated_history_number_is_named_with_both_places() {
    let mut world = world(11).await;
    // Elsewhere the same avatar is created again, and its level changes for the first time again.
    let (batch, entity, _) = world.a_change();
    let log = world
        .logs
        .iter()
        .position(|log| !log.state.entities.contains_key(&entity))
        .unwrap();
    let twin = world.creation(log, entity);
    let first = HistoryNumber(1);
    let events = [
        world.event(entity, None, 0, twin),
        world.event(entity, Some(first), 0, world.changed("level", 9)),
    ];
    let forged = world.freeze(log, &[], &events, false);
    world.force(&forged).await;
    let report = verified(&world).await;
    let twice = report.findings.iter().find_map(|finding| match finding {
        Finding::HistoryTwice {
            entity: found,
            part: Part::Cell,
            number,
            at: found_at,
            before,
        } if *found == entity && *number == first && *found_at == at(&forged) => Some(*before),
        _ => None,
    });
    let before = twice.unwrap_or_else(|| panic!("{report}"));
    assert!(before.batches.0 <= before.batches.1, "{batch:?}");
    assert!(report.to_string().contains(&batch_named(&forged)), "{report}");
}

#[tokio::test]
async fn a_call_without_a_sender_is_named_with_its_link() {
    for seed in 0..5 {
        let mut world = world(seed).await;
        let log = (0..3).find(|log| !world.logs[*log].state.entities.is_empty()).unwrap();
        let entity = *world.logs[log].state.entities.keys().next().unwrap();
        let (from, to) = (Address::Cell(EntityId(99_999)), Address::Cell(entity));
        let history = world.next_history(log, entity);
        let effect = world.event(entity, Some(history), 1, world.changed("level", 77));
        let forged = world.freeze(log, &[(from, to, CallNumber(1))], &[effect], false);
        world.force(&forged).await;
        let report = verified(&world).await;
        let [Finding::Unmade(taken)] = &report.findings[..] else {
            panic!("seed {seed}: {report}")
        };
        assert_eq!((taken.at, taken.link.from, taken.link.to), (at(&forged), from, to));
        assert_eq!(taken.event, world.logs[log].state.tail.event.next());
        let text = report.to_string();
        let named = format!(
            "event {}: call 1 on cell of entity 99999 → cell of entity {entity}",
            taken.event
        );
        assert!(text.contains(&batch_named(&forged)) && text.contains(&named), "{text}");
    }
}

#[tokio::test]
async fn a_call_of_a_lost_batch_is_reported_at_its_receiver() {
    let mut world = Looked::at(World::new(MemoryStore::new().store()).await).await;
    world.create(0);
    world.create(1);
    let [caller, called] = [0, 1].map(|log| *world.logs[log].state.entities.keys().next().unwrap());
    world.call(0, caller, 1, called);
    world.archive().await;
    let made = world.frozen[world.frozen.len() - 3].clone();
    world
        .edit(&archive::leaf_key(SHARD, world.leaf(&made).await), None)
        .await;
    let report = verified(&world).await;
    let unmade =
        |finding: &Finding| matches!(finding, Finding::Unmade(taken) if taken.link.from == Address::Cell(caller));
    assert!(report.findings.iter().any(unmade), "{report}");
}

/// A world with a caller and an entity that it calls, in two logs.
async fn caller_and_called() -> (Looked, EntityId, EntityId) {
    let mut world = Looked::at(World::new(MemoryStore::new().store()).await).await;
    world.create(0);
    world.create(1);
    let [caller, called] = [0, 1].map(|log| *world.logs[log].state.entities.keys().next().unwrap());
    (world, caller, called)
}

/// As after an accepted hole in the log of the receiver, which had taken the call behind it.
#[tokio::test]
async fn a_call_that_its_receiver_skips_is_named() {
    let (mut world, caller, called) = caller_and_called().await;
    let (from, to) = (Address::Cell(caller), Address::Cell(called));
    world.make(0, caller, 1, called);
    let last = world.make(0, caller, 1, called);
    let upto = CallNumber(1);
    let skipped = world.event(called, None, 0, Body::CallsSkipped { from, upto });
    world.append(1, &[], &[skipped]);
    let skipping = world.frozen.last().unwrap().clone();
    world.append(1, &[(from, to, last)], &[]);
    world.archive().await;
    let report = verified(&world).await;
    let [Finding::Skipped { number, at: found }] = &report.findings[..] else {
        panic!("{report}")
    };
    assert_eq!((*number, found.at, found.link.to), (upto, at(&skipping), to));
    let text = report.to_string();
    assert!(text.contains("call 1 from cell of entity"), "{text}");
}

/// As after an accepted hole in the log of the sender: the numbers before its new generation were never used.
#[tokio::test]
async fn skipped_numbers_without_calls_are_no_finding() {
    let (mut world, caller, called) = caller_and_called().await;
    let (from, to) = (Address::Cell(caller), Address::Cell(called));
    world.call(0, caller, 1, called);
    let renumbered = Event {
        subject: Subject::Owner,
        ..world.event(caller, None, 0, Body::CallsRenumbered { generation: 1 })
    };
    world.append(0, &[], &[renumbered]);
    let number = world.make(0, caller, 1, called);
    let upto = CallNumber::floor(1);
    assert_eq!(number, upto.next());
    let skipped = world.event(called, None, 0, Body::CallsSkipped { from, upto });
    world.append(1, &[], &[skipped]);
    world.append(1, &[(from, to, number)], &[]);
    world.archive().await;
    let report = verified(&world).await;
    assert!(report.findings.is_empty(), "{report}");
}

#[tokio::test]
async fn edited_and_missing_openings_are_named() {
    let mut world = world(12).await;
    world.reopen(2).await;
    world.change_somebody(2);
    world.archive().await;
    let owner = world.logs[2].owner;
    let epoch = world.logs[2].imprint.epoch;
    let key = owners::opening_key(owner, epoch);
    let good = world.row(&key).await.unwrap();
    let opening = OpeningRecord::decode(&good).unwrap();
    let at = LogPosition {
        owner,
        batch: opening.number,
    };
    world.edit(&key, None).await;
    let fault = OpeningFault::Unrecorded;
    assert_found(&verified(&world).await, &Finding::Opening { at, epoch, fault }, &[]);
    let other = OpeningRecord {
        hash: Hash([9; 32]),
        ..opening
    };
    world.edit(&key, Some(&other.encode())).await;
    let fault = OpeningFault::Other;
    assert_found(&verified(&world).await, &Finding::Opening { at, epoch, fault }, &[]);
    world.edit(&key, Some(&good)).await;
    let never = OpeningRecord {
        epoch: epoch.next(),
        ..opening
    };
    world
        .edit(&owners::opening_key(owner, never.epoch), Some(&never.encode()))
        .await;
    let (epoch, fault) = (never.epoch, OpeningFault::Absent);
    assert_found(&verified(&world).await, &Finding::Opening { at, epoch, fault }, &[]);
}

#[tokio::test]
async fn a_snapshot_that_differs_from_the_log_is_named() {
    let mut world = world(13).await;
    let log = (0..3).find(|log| !world.logs[*log].state.entities.is_empty()).unwrap();
    let state = world.logs[log].state.clone();
    let owner = state.owner;
    let entity = *state.entities.keys().next().unwrap();
    let write = async |world: &World, level: Option<u64>| {
        let transaction = world.store.begin();
        let mut own = Vec::new();
        state.write_own(&mut own);
        for (key, chunk) in chunks(&snapshots::own_key(owner, Area::First), &own) {
            transaction.set(&key, chunk).unwrap();
        }
        for (id, image) in &state.entities {
            let mut image = image.clone();
            if let (Some(level), true) = (level, *id == entity) {
                let level = annals_def::Value::UInt(level);
                let member = world
                    .schema
                    .type_named("Avatar")
                    .unwrap()
                    .property_named("level")
                    .unwrap()
                    .index;
                image.properties.insert(member, level);
            }
            let mut bytes = Vec::new();
            image.write(&mut bytes);
            for (key, chunk) in chunks(&snapshots::entity_key(owner, Area::First, *id), &bytes) {
                transaction.set(&key, chunk).unwrap();
            }
        }
        let position = Position {
            batch: state.tail.batch,
            area: Area::First,
        };
        transaction
            .set(&snapshots::position_key(owner), &position.encode())
            .unwrap();
        transaction.commit().await.unwrap();
    };
    write(&world, None).await;
    world.append(log, &[], &[]);
    world.archive().await;
    assert!(verified(&world).await.is_clean());
    write(&world, Some(199)).await;
    let report = verified(&world).await;
    let batch = world.logs[log].state.tail.batch;
    assert_eq!(
        report.findings,
        [Finding::Snapshot {
            at: LogPosition { owner, batch }
        }],
        "{report}"
    );
}

#[tokio::test]
async fn a_hole_registered_by_db_is_reported() {
    let world = world(14).await;
    let owner = world.logs[0].owner;
    let (first, until) = (world.last(owner).next(), world.last(owner).next().next());
    let hole = Hole {
        after: Hash([1; 32]),
        named: Hash([2; 32]),
        until,
    };
    world.edit(&archive::hole_key(owner, first), Some(&hole.encode())).await;
    let report = verified(&world).await;
    assert_eq!(
        report.findings,
        [Finding::NamedHole { owner, first, until }],
        "{report}"
    );
}

#[tokio::test]
async fn a_damaged_block_of_a_segment_names_every_batch_in_it() {
    for seed in 0..4 {
        let world = world(seed).await;
        assert!(world.seal(60).await > 0);
        let report = verified(&world).await;
        assert!(report.is_clean(), "seed {seed}: {report}");
        let sealed = read_segments(&world.store, SHARD).await.unwrap();
        let segment = &sealed[0];
        let key = [&segments::block_key(SHARD, segment.last, 0)[..], &[0, 0]].concat();
        let mut block = world.row(&key).await.unwrap();
        let middle = block.len() / 2;
        block[middle] ^= 1;
        world.edit(&key, Some(&block)).await;
        let report = verified_whole(&world).await;
        for batch in &world.frozen[..60] {
            if segment.block_of(batch.owner, batch.number) == Some(0) {
                let named = |finding: &Finding| matches!(finding, Finding::Batch { at: found, fault: Fault::Damaged(_), .. } if *found == at(batch));
                assert!(
                    report.findings.iter().any(named),
                    "seed {seed}: {}\n{report}",
                    batch_named(batch)
                );
            }
        }
    }
}
