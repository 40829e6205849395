//! The end of a log after an adoption: what is lost is declared by both keys, and the next log continues the rest.

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use annals_evidence::Lineage;
use annals_host::signer::{FolderError, Refusal, SignError, default_name, key_records, make_next_key, make_next_log};
use annals_ids::WallTime;
use annals_proof::{Checkpoint, KeyName, LogEnd, SignedNote, TreeHead, Trust, VerifierKey, succession::KeyRecord};
use annals_store::{
    MemoryStore, ScanOrder, Store, StoreError, Transaction,
    faults::{Call, Fault, FaultyStore},
    immediate,
    layout::{adoptions, archive::leaf_key, checkpoints, chunks},
};
use tempfile::TempDir;

use crate::signer::realm::{
    ORIGIN, SHARD, archive, batches, begin, copies, head_of, head_signed, realm, remembered, restore, sign, stored,
    turn, verifier,
};

const SECOND: &str = "localhost/sunken-log2";
const THIRD: &str = "localhost/sunken-log3";

/// When adoptions were made: long ago.
const ADOPTED: u64 = 1_700_000_000_000;

/// A realm whose store was restored to `backup` batches, after the signer had signed `signed`, and that has adopted its
/// log.
struct Restored {
    store: Store,
    data: TempDir,
    /// The trees that were signed.
    backup: TreeHead,
    lost: TreeHead,
    old: VerifierKey,
}

fn name(text: &str) -> KeyName {
    KeyName::new(text).expect("a name")
}

/// Writes an adoption to a store whose archive had `leaves` batches.
fn adopt(store: &Store, number: u32, leaves: u64) {
    adopt_at(store, (number, ADOPTED), leaves);
}

/// The same, at this time.
fn adopt_at(store: &Store, (number, at): (u32, u64), leaves: u64) {
    let numbers = [at, leaves, 3, 30, 0];
    let mut value: Vec<u8> = numbers.iter().flat_map(|number: &u64| number.to_be_bytes()).collect();
    value.push(2);
    for text in ["ada", "the cluster was restored"] {
        value.extend((text.len() as u32).to_be_bytes());
        value.extend(text.as_bytes());
    }
    let value = &value;
    let work = |transaction: Transaction| async move { transaction.set(&adoptions::key_of(number), value) };
    immediate(store.run_repeatable(work)).expect("the store answers");
}

fn restored(backup: u64, signed: &[u64]) -> Restored {
    let (store, data) = realm();
    let old = verifier(data.path());
    let head = archive(&store, &batches(backup, backup));
    sign(&mut begin(&store, data.path()).expect("it begins"));
    // The same realm goes on in a store that is lost later.
    let later = MemoryStore::new().store();
    let mut lost = head;
    for size in signed {
        lost = archive(&later, &batches(*size, *size));
        sign(&mut begin(&later, data.path()).expect("it begins"));
    }
    archive(&store, &batches(backup + 30, backup));
    adopt(&store, 0, backup);
    Restored {
        store,
        data,
        backup: head,
        lost,
        old,
    }
}

fn decide(data: &Path, next: &str) -> VerifierKey {
    let key = make_next_log(data, name(next), "ada", "the cluster was restored to a backup");
    key.expect("it is decided").verifier()
}

fn records(store: &Store) -> Vec<(u64, KeyRecord)> {
    immediate(key_records(store, SHARD)).expect("records")
}

fn end_in(record: &KeyRecord) -> LogEnd {
    let end = record.log_end().expect("a statement");
    end.expect("it continues another log")
}

fn sizes(store: &Store) -> Vec<u64> {
    let read = |transaction: Transaction| async move {
        let range = checkpoints::checkpoints(SHARD);
        let page = transaction.get_range(&range, 1_000, ScanOrder::Forward).await?;
        let sizes = page.rows.iter().map(|(key, _)| checkpoints::size_of(key));
        sizes.collect::<Result<Vec<u64>, StoreError>>()
    };
    immediate(store.read(read)).expect("the store answers")
}

fn head_of_log(note: &SignedNote, origin: &str, key: &VerifierKey) -> TreeHead {
    let trust = Trust {
        origin: origin.into(),
        keys: vec![key.clone()],
        witnesses: vec![],
        quorum: 0,
    };
    trust.check(note).expect("signed by the key").checkpoint.head
}

#[test]
fn a_new_log_continues_what_an_adopted_archive_still_has() {
    let realm = restored(200, &[300]);
    let data = realm.data.path();
    let mut signer = begin(&realm.store, data).expect("it begins");
    let refused = turn(&mut signer).expect_err("nothing was decided");
    assert!(
        matches!(
            &refused,
            SignError::Adopted {
                adoption: 0,
                source: Refusal::RolledBack {
                    expected: 300,
                    found: 230
                }
            }
        ),
        "{refused:?}"
    );
    assert!(refused.is_refusal());
    let new = decide(data, SECOND);
    assert_eq!(turn(&mut signer).expect("the log ends"), None);
    assert_eq!(verifier(data), new);
    assert!(!data.join("signer/next-log").exists());
    assert_eq!(sizes(&realm.store), [200], "the lost checkpoint is deleted");

    let stored_records = records(&realm.store);
    let keys: Vec<(u64, &VerifierKey)> = stored_records
        .iter()
        .map(|(from, record)| (*from, &record.key))
        .collect();
    assert_eq!(keys, [(0, &realm.old), (201, &new)]);
    let record = &stored_records[1].1;
    assert_eq!(record.follows(&realm.old, ORIGIN), Ok(201));
    let end = end_in(record);
    assert_eq!((end.signed, end.continued), (realm.lost, realm.backup));
    assert_eq!(
        (end.ended.as_str(), &end.next, end.adoption),
        (ORIGIN, &new, (0, WallTime(ADOPTED)))
    );
    assert_eq!(
        (&end.operator[..], &end.reason[..]),
        ("ada", "the cluster was restored to a backup")
    );

    let head = head_of(&batches(230, 200)).0;
    let note = sign(&mut signer);
    assert_eq!(head_of_log(&note, SECOND, &new), head);
    assert_eq!(stored(&realm.store), Some(note));
    assert_eq!(turn(&mut signer).expect("nothing fails"), None, "nothing new");
    // The new log is like any other: it continues after a restart, and its key can be changed.
    drop(signer);
    let next = make_next_key(data, name(SECOND)).expect("a key").verifier();
    archive(&realm.store, &batches(231, 200));
    let change = sign(&mut begin(&realm.store, data).expect("it begins"));
    let head = archive(&realm.store, &batches(232, 200));
    let note = sign(&mut begin(&realm.store, data).expect("it begins"));
    assert_eq!(head_of_log(&note, SECOND, &next), head);
    let stored_records = records(&realm.store);
    assert_eq!(stored_records[2].1.change.as_ref(), Some(&change));
    assert_eq!(stored_records[2].1.follows(&new, SECOND), Ok(231));
    archive(&realm.store, &batches(232, 201));
    let refused = turn(&mut begin(&realm.store, data).expect("it begins"));
    assert!(
        matches!(refused, Err(SignError::Refused(_))),
        "the adoption has had its effect: {refused:?}"
    );
}

#[test]
fn a_log_ends_only_after_an_adoption_that_can_be_the_reason() {
    let (store, data) = realm();
    let mut signer = begin(&store, data.path()).expect("it begins");
    archive(&store, &batches(100, 100));
    sign(&mut signer);
    // An archive that continues the log drops the decision.
    decide(data.path(), SECOND);
    archive(&store, &batches(101, 101));
    sign(&mut signer);
    assert!(!data.path().join("signer/next-log").exists());
    let old = verifier(data.path());
    decide(data.path(), SECOND);
    assert_eq!(turn(&mut signer).expect("nothing fails"), None, "nothing new");
    assert!(!data.path().join("signer/next-log").exists(), "nothing is lost");
    archive(&store, &batches(90, 90));
    let refuses = |signer: &mut _, why: &str| {
        decide(data.path(), SECOND);
        let refused = turn(signer);
        assert!(!data.path().join("signer/next-log").exists(), "{why}");
        assert!(matches!(refused, Err(SignError::Refused(_))), "{why}: {refused:?}");
        assert_eq!(verifier(data.path()), old);
        assert_eq!(records(&store).len(), 1);
    };
    refuses(&mut signer, "nothing was adopted");
    adopt(&store, 0, 101);
    refuses(&mut signer, "the archive had all that was signed");
    adopt(&store, 1, 80);
    archive(&store, &batches(90, 85));
    // A decision from before the adoption.
    decide(data.path(), SECOND);
    let file = data.path().join("signer/next-log");
    let text = fs::read_to_string(&file).expect("a decision");
    let (rest, _) = text.trim_end().rsplit_once('\n').expect("a time");
    fs::write(&file, format!("{rest}\n{}\n", ADOPTED - 1)).expect("written");
    let refused = turn(&mut signer);
    assert!(
        matches!(refused, Err(SignError::Adopted { adoption: 1, .. })),
        "{refused:?}"
    );
    assert!(!file.exists(), "it is dropped");
    // Nor is a later adoption in the way, when all of that was already lost.
    adopt(&store, 2, 200);
    decide(data.path(), SECOND);
    assert_eq!(turn(&mut signer).expect("the log ends"), None);
    let end = end_in(&records(&store)[1].1);
    assert_eq!(
        (end.adoption.0, end.continued.size),
        (1, 0),
        "no smaller checkpoint was signed"
    );
    let head = head_of(&batches(90, 85)).0;
    assert_eq!(head_of_log(&sign(&mut signer), SECOND, &verifier(data.path())), head);
}

#[test]
fn a_damaged_archive_ends_no_log() {
    let realm = restored(20, &[60]);
    let mut damaged = batches(61, 61);
    archive(&realm.store, &damaged);
    damaged[5] = batches(61, 0).swap_remove(5);
    let (leaf, bytes) = (annals_ids::LeafIndex(5), &damaged[5].1);
    let put = |transaction: Transaction| async move {
        for (key, chunk) in chunks(&leaf_key(SHARD, leaf), bytes) {
            transaction.set(&key, chunk)?;
        }
        Ok::<_, StoreError>(())
    };
    immediate(realm.store.run_repeatable(put)).expect("the store answers");
    decide(realm.data.path(), SECOND);
    let refused = turn(&mut begin(&realm.store, realm.data.path()).expect("it begins"));
    assert!(
        matches!(refused, Err(SignError::Refused(Refusal::Contradictory { .. }))),
        "{refused:?}"
    );
    assert_eq!(verifier(realm.data.path()), realm.old);
}

#[test]
fn a_decision_is_made_once_and_says_who_and_why() {
    let realm = restored(20, &[60]);
    let data = realm.data.path();
    for (operator, reason) in [
        ("", "why"),
        ("ada", ""),
        ("ada", " "),
        ("ada\nbob", "why"),
        ("ada", "w\u{202e}hy"),
    ] {
        let decided = make_next_log(data, name(SECOND), operator, reason);
        assert!(matches!(decided, Err(FolderError::Text)), "{operator:?} {reason:?}");
    }
    decide(data, ORIGIN);
    assert!(matches!(
        make_next_log(data, name(SECOND), "ada", "why"),
        Err(FolderError::Exists { .. })
    ));
    let mut signer = begin(&realm.store, data).expect("it begins");
    assert!(matches!(turn(&mut signer), Err(SignError::UsedName { next }) if next == ORIGIN));
    let file = data.join("signer/next-log");
    let text = fs::read_to_string(&file).expect("a decision");
    for damaged in [
        text.lines().next().expect("a line").to_owned(),
        format!("{text}more\n"),
        text.replace("ada", ""),
    ] {
        fs::write(&file, damaged).expect("written");
        let refused = turn(&mut signer);
        assert!(matches!(refused, Err(SignError::Folder(_))), "{refused:?}");
        assert_eq!(verifier(data), realm.old);
    }
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).expect("set");
    assert!(matches!(
        turn(&mut signer),
        Err(SignError::Folder(FolderError::Exposed { .. }))
    ));
}

#[test]
fn a_crash_leaves_the_old_log_or_the_new_one() {
    // In the order in which the change of logs removes or replaces them.
    let files = ["checkpoint", "next-key", "key", "next-log"];
    let realm = restored(200, &[300]);
    let data = realm.data.path();
    let path = |file: &str| data.join("signer").join(file);
    // A change of keys was planned; it belongs to the old log.
    make_next_key(data, default_name("sunken", SHARD).expect("a name")).expect("a key");
    let new = decide(data, SECOND);
    let before: Vec<Vec<u8>> = files.iter().map(|file| fs::read(path(file)).expect("a file")).collect();
    let fails = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    let away = FaultyStore::wrap(&realm.store, move |call| match call {
        Call::Commit if failing.load(Ordering::Relaxed) => Fault::Unavailable,
        _ => Fault::None,
    });
    let mut signer = begin(&away, data).expect("it begins");
    // The first commit of a turn is that of the last checkpoint.
    fails.store(false, Ordering::Relaxed);
    drop(turn(&mut signer).expect("the log ends"));
    drop(signer);
    // Killed after the record was written, with the first files of the change done.
    for done in 0..=files.len() {
        for (file, bytes) in files.iter().zip(&before).rev().take(files.len() - done) {
            fs::write(path(file), bytes).expect("written");
            fs::set_permissions(path(file), fs::Permissions::from_mode(0o600)).expect("private");
        }
        // The store does not have the change either.
        let lost = before_store(&realm.store, &realm.old, &before[0]);
        assert_eq!(lost, 300);
        fails.store(true, Ordering::Relaxed);
        let mut signer = begin(&away, data).expect("it begins");
        assert!(matches!(turn(&mut signer), Err(SignError::Store(_))), "{done}");
        fails.store(false, Ordering::Relaxed);
        let note = sign(&mut signer);
        assert_eq!(head_of_log(&note, SECOND, &new).size, 230, "{done}");
        assert_eq!(verifier(data), new);
        assert!(!path("next-log").exists() && !path("next-key").exists());
        assert_eq!(sizes(&realm.store), [200, 230]);
        assert_eq!(records(&realm.store).len(), 2);
        fs::remove_file(path("checkpoint")).expect("it was there");
    }
    // The old key alone signs nothing.
    fs::write(path("key"), &before[2]).expect("written");
    archive(&realm.store, &batches(231, 200));
    let refused = turn(&mut begin(&realm.store, data).expect("it begins"));
    assert!(matches!(refused, Err(SignError::Retired { .. })), "{refused:?}");
}

/// Puts a store into the state before a log has ended; returns the size of its newest checkpoint.
fn before_store(store: &Store, old: &VerifierKey, checkpoint: &[u8]) -> u64 {
    let work = |transaction: Transaction| async move {
        for (size, from) in [(230, 201), (300, 300)] {
            transaction.clear(&checkpoints::checkpoint_key(SHARD, size))?;
            transaction.clear(&checkpoints::signer_key(SHARD, from))?;
        }
        transaction.set(&checkpoints::checkpoint_key(SHARD, 300), checkpoint)?;
        Ok::<_, StoreError>(())
    };
    immediate(store.run_repeatable(work)).expect("the store answers");
    assert_eq!(head_signed(&stored(store).expect("one"), old).size, 300);
    sizes(store).last().copied().unwrap_or_default()
}

#[test]
fn keys_that_signed_only_what_is_lost_are_in_the_statement() {
    let (store, data) = realm();
    let first = verifier(data.path());
    let plan = || {
        let key = make_next_key(data.path(), default_name("sunken", SHARD).expect("a name"));
        key.expect("a key").verifier()
    };
    archive(&store, &batches(10, 10));
    sign(&mut begin(&store, data.path()).expect("it begins"));
    let second = plan();
    archive(&store, &batches(20, 20));
    sign(&mut begin(&store, data.path()).expect("it begins"));
    let later = MemoryStore::new().store();
    let mut lost = Vec::new();
    // The first of them is on record at the size at which the next log begins.
    for size in [21, 40] {
        lost.push(plan());
        archive(&later, &batches(size, size));
        sign(&mut begin(&later, data.path()).expect("it begins"));
    }
    archive(&store, &batches(30, 20));
    adopt(&store, 0, 20);
    let new = decide(data.path(), SECOND);
    let mut signer = begin(&store, data.path()).expect("it begins");
    assert_eq!(turn(&mut signer).expect("the log ends"), None);
    sign(&mut signer);
    let stored_records = records(&store);
    let keys: Vec<(u64, &VerifierKey)> = stored_records
        .iter()
        .map(|(from, record)| (*from, &record.key))
        .collect();
    assert_eq!(keys, [(0, &first), (20, &second), (21, &new)]);
    let record = &stored_records[2].1;
    let end = end_in(record);
    let in_statement: Vec<&VerifierKey> = end.lost_keys.iter().map(|record| &record.key).collect();
    assert_eq!(in_statement, lost.iter().collect::<Vec<_>>());
    assert_eq!(record.follows(&second, ORIGIN), Ok(21));
    for other in [&first, &lost[0], &lost[1]] {
        assert!(record.follows(other, ORIGIN).is_err());
    }
    drop(signer);
    let head = archive(&store, &batches(31, 20));
    let note = sign(&mut begin(&store, data.path()).expect("it continues"));
    assert_eq!(head_of_log(&note, SECOND, &new), head);
    assert_eq!(records(&store), stored_records);
}

#[test]
fn a_log_that_continues_another_can_end_too() {
    // The second backup is older than what the second log has continued, or newer.
    for (backup, expected) in [(150, 100), (250, 240)] {
        let realm = restored(200, &[300]);
        let data = realm.data.path();
        // A checkpoint that both stores still have.
        let second = decide(data, SECOND);
        let mut signer = begin(&realm.store, data).expect("it begins");
        assert_eq!(turn(&mut signer).expect("the log ends"), None);
        for size in [240, 280] {
            archive(&realm.store, &batches(size, 200));
            sign(&mut signer);
        }
        drop(signer);
        let older = MemoryStore::new().store();
        let (length, changed) = (backup + 10, backup.min(200));
        let kept = archive(&older, &batches(length, changed));
        let rows = restore_checkpoints(&realm, &older, backup);
        assert_eq!(rows > 0, backup > 200);
        // A store from before the first adoption assigns its number again.
        let adoption = if backup > 200 {
            (1, ADOPTED + 1)
        } else {
            (0, ADOPTED + 1)
        };
        if backup > 200 {
            adopt(&older, 0, 200);
        }
        adopt_at(&older, adoption, backup);
        decide(data, SECOND);
        let mut signer = begin(&older, data).expect("it begins");
        let refused = turn(&mut signer);
        assert!(matches!(refused, Err(SignError::UsedName { .. })), "{refused:?}");
        fs::remove_file(data.join("signer/next-log")).expect("a decision");
        let copied = copies(data);
        let third = decide(data, THIRD);
        assert_eq!(turn(&mut signer).expect("the log ends"), None);
        let all = records(&older);
        let end = end_in(&all.last().expect("a record").1);
        let expected = if backup < 200 { 0 } else { expected };
        assert_eq!(
            (end.continued.size, end.ended.as_str(), end.adoption),
            (expected, SECOND, (adoption.0, WallTime(adoption.1)))
        );
        let note = sign(&mut signer);
        assert_eq!(head_of_log(&note, THIRD, &third), kept);
        let mut last = realm.old.clone();
        for (from, record) in &all[1..] {
            assert_eq!(record.follows(&last, last.name().as_str()), Ok(*from));
            last = record.key.clone();
        }
        assert_eq!(last, third);
        let is_lost = end.lost_keys.iter().any(|lost| lost.key == second);
        assert_eq!(is_lost, backup < 200);
        // A copy of the folder from before that signs nothing, and changes nothing.
        let known = (records(&older), sizes(&older));
        drop(signer);
        restore(data, &copied);
        archive(&older, &batches(length + 1, changed));
        let refused = turn(&mut begin(&older, data).expect("it begins"));
        assert!(matches!(refused, Err(SignError::OtherKey { .. })), "{refused:?}");
        assert_eq!((records(&older), sizes(&older)), known);
        assert_lost(&known.0, realm.lost, expected);
    }
}

/// Checks that a verifier knows what each of three logs has lost, of which the third continues so many batches.
fn assert_lost(records: &[(u64, KeyRecord)], lost: TreeHead, continued: u64) {
    let records: Vec<KeyRecord> = records.iter().map(|(_, record)| record.clone()).collect();
    let lineage = Lineage::verify(&records).expect("one follows from the other");
    for (origin, size, is_lost) in [
        (ORIGIN, 300, true),
        (SECOND, 280, true),
        (ORIGIN, continued.min(200), false),
        (THIRD, 999, false),
    ] {
        let checkpoint = Checkpoint {
            origin: origin.to_owned(),
            head: TreeHead { size, ..lost },
            extensions: vec![],
        };
        let found = lineage.declared_lost(&checkpoint);
        assert_eq!(found.is_some(), is_lost, "{origin} {size}: {found:?}");
    }
}

#[test]
fn two_logs_can_end_at_the_same_size() {
    let (store, data) = realm();
    let old = verifier(data.path());
    archive(&store, &batches(200, 200));
    sign(&mut begin(&store, data.path()).expect("it begins"));
    // A key that has signed only what is lost, on record behind the place at which the next logs begin.
    let later = MemoryStore::new().store();
    archive(&later, &batches(250, 250));
    make_next_key(data.path(), default_name("sunken", SHARD).expect("a name")).expect("a key");
    sign(&mut begin(&later, data.path()).expect("it begins"));
    let backup = MemoryStore::new().store();
    for (store, changed, adopted, next) in [(&store, 200, 1, SECOND), (&backup, 201, 2, THIRD)] {
        archive(store, &batches(240, changed));
        adopt_at(store, (0, ADOPTED + adopted), 200);
        if next == THIRD {
            let first = [(0, records(&later)[0].1.clone())];
            put_records(store, &first);
        }
        decide(data.path(), next);
        let mut signer = begin(store, data.path()).expect("it begins");
        assert_eq!(turn(&mut signer).expect("the log ends"), None);
        sign(&mut signer);
        drop(signer);
        archive(store, &batches(241, changed));
        sign(&mut begin(store, data.path()).expect("it continues"));
        let all: Vec<KeyRecord> = records(store).into_iter().map(|(_, record)| record).collect();
        assert_eq!(all.len(), 2, "{all:?}");
        let lineage = Lineage::verify(&all).expect("one follows from the other");
        assert!(lineage.has_key(&old));
        assert_eq!(lineage.origin(), next);
    }
}

fn put_records(store: &Store, records: &[(u64, KeyRecord)]) {
    let put = |transaction: Transaction| async move {
        records.iter().try_for_each(|(from, record)| {
            transaction.set(&checkpoints::signer_key(SHARD, *from), record.to_string().as_bytes())
        })
    };
    immediate(store.run_repeatable(put)).expect("the store answers");
}

#[test]
fn a_store_that_has_what_was_declared_lost_keeps_it() {
    let (store, data) = realm();
    archive(&store, &batches(200, 200));
    sign(&mut begin(&store, data.path()).expect("it begins"));
    let original = MemoryStore::new().store();
    archive(&original, &batches(300, 300));
    sign(&mut begin(&original, data.path()).expect("it begins"));
    let before = (records(&original), sizes(&original));
    archive(&store, &batches(230, 200));
    adopt(&store, 0, 200);
    decide(data.path(), SECOND);
    assert_eq!(
        turn(&mut begin(&store, data.path()).expect("it begins")).expect("the log ends"),
        None
    );
    // The store that was lost is found: it has no adoption. Its checkpoints stay.
    archive(&original, &batches(301, 301));
    sign(&mut begin(&original, data.path()).expect("it continues what was promised"));
    assert!(before.1.iter().all(|size| sizes(&original).contains(size)));
    // A key that the folder has never known.
    let (_, unknown) = crate::signer::realm::realm();
    let (from, key) = (250, verifier(unknown.path()));
    put_records(&store, &[(from, KeyRecord { key, change: None })]);
    let known = (records(&store), sizes(&store));
    archive(&store, &batches(231, 200));
    let refused = turn(&mut begin(&store, data.path()).expect("it begins"));
    assert!(refused.is_err(), "{refused:?}");
    assert_eq!((records(&store), sizes(&store)), known);
}

/// Copies a realm's checkpoints of at most `upto` batches, and their keys, to another store; returns how many keys have
/// signed after another log.
fn restore_checkpoints(realm: &Restored, other: &Store, upto: u64) -> usize {
    let read = |transaction: Transaction| async move {
        let mut rows = Vec::new();
        for range in [checkpoints::checkpoints(SHARD), checkpoints::signers(SHARD)] {
            rows.extend(transaction.get_range(&range, 1_000, ScanOrder::Forward).await?.rows);
        }
        Ok::<_, StoreError>(rows)
    };
    let rows = immediate(realm.store.read(read)).expect("the store answers");
    let rows: Vec<_> = rows
        .into_iter()
        .filter(|(key, _)| checkpoints::size_of(key).expect("a size") <= upto)
        .collect();
    let rows = &rows;
    let put =
        |transaction: Transaction| async move { rows.iter().try_for_each(|(key, value)| transaction.set(key, value)) };
    immediate(other.run_repeatable(put)).expect("the store answers");
    records(other).len() - 1
}

#[test]
fn a_copy_from_before_the_end_signs_nothing() {
    let realm = restored(200, &[300]);
    let data = realm.data.path();
    let before = copies(data);
    decide(data, SECOND);
    let mut signer = begin(&realm.store, data).expect("it begins");
    assert_eq!(turn(&mut signer).expect("the log ends"), None);
    sign(&mut signer);
    drop(signer);
    let after = copies(data);
    let known = (records(&realm.store), sizes(&realm.store));
    restore(data, &before);
    archive(&realm.store, &batches(300, 300));
    let refused = turn(&mut begin(&realm.store, data).expect("it begins"));
    assert!(
        matches!(&refused, Err(SignError::OtherKey { from: 201, .. })),
        "not even what it has signed before: {refused:?}"
    );
    assert_eq!((records(&realm.store), sizes(&realm.store)), known);
    restore(data, &after);
    assert_eq!(remembered(data), stored(&realm.store).expect("one").to_string());
}
