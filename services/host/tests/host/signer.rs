//! The signer on real files and a store in memory: each checkpoint continues the last one, and nothing else is ever
//! signed.

mod log_end;
mod realm;

use std::{
    fs,
    os::unix::fs::PermissionsExt,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use annals_host::signer::{
    Folder, FolderError, KEPT, Refusal, SignError, Signer, add_cosignatures, current_key, default_name, key_records,
    make_key, make_next_key,
};
use annals_proof::{KeyKind, KeyName, SignedNote, SignerKey, VerifierKey};
use annals_store::{
    Store, StoreError, Transaction,
    faults::{Call, Fault, FaultyStore},
    immediate,
    layout::{
        archive::{Tree, tree_key},
        checkpoints,
    },
};

use realm::{
    ORIGIN, SHARD, archive, batches, begin, copies, head_of, head_signed, realm, remembered, restore, sign, stored,
    turn, verifier,
};

#[test]
fn a_checkpoint_is_recorded_before_it_is_published() {
    let (store, data) = realm();
    let key = verifier(data.path());
    let mut signer = begin(&store, data.path()).expect("it begins");
    assert_eq!(
        turn(&mut signer).expect("nothing fails"),
        None,
        "of nothing there is no checkpoint"
    );
    for size in [1, 2, 300, 301, 1_000] {
        let head = archive(&store, &batches(size, size));
        let note = sign(&mut signer);
        assert_eq!(head_signed(&note, &key), head);
        assert_eq!(stored(&store).as_ref(), Some(&note));
        assert_eq!(remembered(data.path()), note.to_string());
        assert_eq!(turn(&mut signer).expect("nothing fails"), None, "nothing new");
        if size == 300 {
            drop(signer);
            signer = begin(&store, data.path()).expect("it continues");
            assert_eq!(
                turn(&mut signer).expect("nothing fails"),
                None,
                "it knows what it has signed"
            );
        }
    }
    let records = immediate(key_records(&store, SHARD)).expect("records");
    assert_eq!(records.len(), 1);
    assert_eq!(
        (records[0].0, &records[0].1.key, &records[0].1.change),
        (0, &key, &None)
    );
}

#[test]
fn an_archive_that_was_rolled_back_or_changed_is_not_signed() {
    let (store, data) = realm();
    let mut signer = begin(&store, data.path()).expect("it begins");
    archive(&store, &batches(500, 500));
    let signed = sign(&mut signer);
    let refused = |signer: &mut Signer, store: &Store| {
        let refusal = match turn(signer) {
            Err(SignError::Refused(refusal)) => refusal,
            other => panic!("{other:?}"),
        };
        assert_eq!(stored(store).as_ref(), Some(&signed));
        assert_eq!(remembered(data.path()), signed.to_string());
        refusal
    };
    for begun_anew in [false, true] {
        if begun_anew {
            drop(signer);
            signer = begin(&store, data.path()).expect("it begins");
        }
        for size in [0, 1, 255, 499] {
            archive(&store, &batches(size, size));
            let expected = Refusal::RolledBack {
                expected: 500,
                found: size,
            };
            assert_eq!(refused(&mut signer, &store), expected);
        }
        for (size, changed) in [(500, 0), (500, 499), (501, 499), (800, 256), (1_200, 0)] {
            let other = batches(size, changed);
            archive(&store, &other);
            let expected = Refusal::Rewritten {
                size: 500,
                expected: head_of(&batches(500, 500)).0.root,
                found: head_of(&other[..500]).0.root,
            };
            assert_eq!(refused(&mut signer, &store), expected, "{changed} of {size}");
        }
        // An archive whose stored tree does not match its leaves: the root to be signed would be wrong.
        let honest = batches(600, 600);
        archive(&store, &honest);
        let (head, mut peaks) = head_of(&honest);
        peaks[0].0[0] ^= 1;
        let tree = &Tree { size: head.size, peaks };
        let work = |transaction: Transaction| async move { transaction.set(&tree_key(SHARD), &tree.encode()) };
        immediate(store.run_repeatable(work)).expect("the store answers");
        let refusal = refused(&mut signer, &store);
        assert!(
            matches!(refusal, Refusal::Contradictory { size: 600, found, .. } if found == head.root),
            "{refusal:?}"
        );
    }
    archive(&store, &batches(600, 500));
    sign(&mut signer);
}

#[test]
fn an_unpublished_signature_is_recorded() {
    let (store, data) = realm();
    archive(&store, &batches(40, 40));
    let fails = Arc::new(AtomicBool::new(true));
    let failing = Arc::clone(&fails);
    let away = FaultyStore::wrap(&store, move |call| match call {
        Call::Commit if failing.load(Ordering::Relaxed) => Fault::Unavailable,
        _ => Fault::None,
    });
    let mut signer = begin(&away, data.path()).expect("it begins");
    assert!(matches!(turn(&mut signer), Err(SignError::Store(_))));
    assert_eq!(stored(&store), None);
    drop(signer);
    // It counts as signed: another archive of that size is refused.
    archive(&store, &batches(40, 39));
    let mut signer = begin(&away, data.path()).expect("it begins");
    fails.store(false, Ordering::Relaxed);
    assert!(matches!(
        turn(&mut signer),
        Err(SignError::Refused(Refusal::Rewritten { size: 40, .. }))
    ));
    // And it is written to the store when that is available again.
    assert_eq!(
        stored(&store).map(|note| note.to_string()),
        Some(remembered(data.path()))
    );
    archive(&store, &batches(41, 41));
    sign(&mut signer);
}

#[test]
fn a_signer_with_an_older_folder_uses_the_checkpoint_in_the_store() {
    let (store, data) = realm();
    let mut signer = begin(&store, data.path()).expect("it begins");
    archive(&store, &batches(10, 10));
    sign(&mut signer);
    let older = remembered(data.path());
    archive(&store, &batches(20, 20));
    sign(&mut signer);
    drop(signer);
    fs::write(data.path().join("signer/checkpoint"), &older).expect("written");
    archive(&store, &batches(15, 15));
    let mut signer = begin(&store, data.path()).expect("it begins");
    let expected = Refusal::RolledBack {
        expected: 20,
        found: 15,
    };
    assert!(matches!(turn(&mut signer), Err(SignError::Refused(refusal)) if refusal == expected));
    // A forged note in the log's name is ignored.
    let mut forged = SignedNote::new(stored(&store).expect("one").text().replace("\n20\n", "\n99\n")).expect("a text");
    forged.sign(
        &SignerKey::from_seed(KeyName::new(ORIGIN).expect("a name"), KeyKind::Note, &[1; 32]),
        0,
    );
    let text = &forged.to_string();
    let put = |transaction: Transaction| async move {
        transaction.set(&checkpoints::checkpoint_key(SHARD, 99), text.as_bytes())
    };
    immediate(store.run_repeatable(put)).expect("the store answers");
    drop(signer);
    archive(&store, &batches(30, 30));
    let newest = sign(&mut begin(&store, data.path()).expect("it begins"));
    // Nor does it hide older checkpoints, however much of it there is.
    let mut foreign = vec![b"no note".to_vec(); 2 * KEPT];
    foreign.push(text.clone().into_bytes());
    let put = |transaction: Transaction| {
        let rows = (100..).zip(&foreign);
        let put: Result<Vec<()>, StoreError> = rows
            .map(|(size, note)| transaction.set(&checkpoints::checkpoint_key(SHARD, size), note))
            .collect();
        async move { put.map(drop) }
    };
    immediate(store.run_repeatable(put)).expect("the store answers");
    fs::write(data.path().join("signer/checkpoint"), &older).expect("written");
    archive(&store, &batches(29, 29));
    let mut signer = begin(&store, data.path()).expect("it begins");
    let refused = turn(&mut signer);
    let expected = Refusal::RolledBack {
        expected: 30,
        found: 29,
    };
    assert!(
        matches!(&refused, Err(SignError::Refused(refusal)) if *refusal == expected),
        "{newest} and {refused:?}"
    );
}

#[test]
fn an_outdated_folder_signs_nothing() {
    let (store, data) = realm();
    let first = verifier(data.path());
    archive(&store, &batches(10, 10));
    sign(&mut begin(&store, data.path()).expect("it begins"));
    let before = copies(data.path());
    make_next_key(data.path(), default_name("sunken", SHARD).expect("a name")).expect("a key");
    let mut signer = begin(&store, data.path()).expect("it begins");
    for size in [11, 20] {
        archive(&store, &batches(size, size));
        sign(&mut signer);
    }
    drop(signer);
    let (second, after) = (verifier(data.path()), copies(data.path()));
    let known = || {
        let records = immediate(key_records(&store, SHARD)).expect("records");
        (stored(&store), records)
    };
    let (note, records) = known();
    archive(&store, &batches(30, 30));
    let refused = |data: &Path| {
        let refused = turn(&mut begin(&store, data).expect("it begins")).expect_err("it is not the log's");
        assert!(refused.is_refusal(), "{refused:?}");
        assert_eq!(known(), (note.clone(), records.clone()), "nothing was written");
        refused
    };
    // A copy from before the key was changed.
    restore(data.path(), &before);
    let SignError::OtherKey { from, stored, own } = refused(data.path()) else {
        panic!("it has no record of the second key");
    };
    assert_eq!((from, stored, own), (11, second.to_string(), "none".to_owned()));
    // Only the key from before the change.
    let (key, rest) = (&before[..1], &after[1..]);
    restore(data.path(), &[key, rest].concat());
    let retired = refused(data.path());
    assert!(
        matches!(&retired, SignError::Retired { key, last } if *key == first.to_string() && *last == second.to_string()),
        "{retired:?}"
    );
    // The folder was lost, and a new one created under the same name.
    let other = tempfile::tempdir().expect("a folder");
    let third = make_key(other.path(), default_name("sunken", SHARD).expect("a name")).expect("a key");
    let SignError::OtherKey { from, stored, own } = refused(other.path()) else {
        panic!("the log begins with another key");
    };
    assert_eq!(
        (from, stored, own),
        (0, first.to_string(), third.verifier().to_string())
    );
    // The latest copy.
    restore(data.path(), &after);
    let head = head_of(&batches(30, 30)).0;
    let note = sign(&mut begin(&store, data.path()).expect("it begins"));
    assert_eq!(head_signed(&note, &second), head);
}

#[test]
fn failed_store_writes_are_repeated() {
    let (store, data) = realm();
    let fails = Arc::new(AtomicBool::new(false));
    let failing = Arc::clone(&fails);
    let away = FaultyStore::wrap(&store, move |call| match call {
        Call::Commit if failing.load(Ordering::Relaxed) => Fault::Unavailable,
        _ => Fault::None,
    });
    let mut signer = begin(&away, data.path()).expect("it begins");
    archive(&store, &batches(10, 10));
    sign(&mut signer);
    for (size, keys) in [(20, 1), (30, 2)] {
        if keys == 2 {
            make_next_key(data.path(), default_name("sunken", SHARD).expect("a name")).expect("a key");
        }
        archive(&store, &batches(size, size));
        fails.store(true, Ordering::Relaxed);
        for _ in 0..2 {
            assert!(matches!(turn(&mut signer), Err(SignError::Store(_))), "{size}");
        }
        fails.store(false, Ordering::Relaxed);
        // The archive does not grow.
        assert_eq!(turn(&mut signer).expect("nothing fails"), None);
        let brought = stored(&store).expect("one");
        assert_eq!(brought.to_string(), remembered(data.path()));
        assert!(brought.text().contains(&format!("\n{size}\n")), "{brought}");
        assert_eq!(immediate(key_records(&store, SHARD)).expect("records").len(), keys);
    }
    let head = archive(&store, &batches(31, 31));
    assert_eq!(head_signed(&sign(&mut signer), &verifier(data.path())), head);
}

#[test]
fn a_key_rotation_is_a_checkpoint_signed_by_both_keys() {
    let (store, data) = realm();
    let secret = |name: &str| data.path().join("signer").join(name);
    let old = verifier(data.path());
    let mut signer = begin(&store, data.path()).expect("it begins");
    archive(&store, &batches(10, 10));
    sign(&mut signer);
    let new = make_next_key(data.path(), default_name("sunken", SHARD).expect("a name"))
        .expect("a key")
        .verifier();
    assert!(matches!(
        make_next_key(data.path(), default_name("sunken", SHARD).expect("a name")),
        Err(FolderError::Exists { .. })
    ));
    assert_eq!(
        turn(&mut signer).expect("nothing fails"),
        None,
        "it is changed with the next batch"
    );
    let (old_file, new_file) = (
        fs::read(secret("key")).expect("a key"),
        fs::read(secret("next-key")).expect("a key"),
    );
    let head = archive(&store, &batches(11, 11));
    let change = sign(&mut signer);
    assert_eq!((head_signed(&change, &old), head_signed(&change, &new)), (head, head));
    assert_eq!(verifier(data.path()), new);
    assert!(!secret("next-key").exists());
    let after = archive(&store, &batches(12, 12));
    let note = sign(&mut signer);
    assert_eq!(head_signed(&note, &new), after);
    assert!(
        note.verify(std::slice::from_ref(&old)).is_err(),
        "the old key signs no more"
    );

    let records = immediate(key_records(&store, SHARD)).expect("records");
    let keys: Vec<(u64, &VerifierKey)> = records.iter().map(|(from, record)| (*from, &record.key)).collect();
    assert_eq!(keys, [(0, &old), (11, &new)]);
    assert_eq!(records[1].1.follows(&old, ORIGIN), Ok(11));
    assert_eq!(records[1].1.change.as_ref(), Some(&change));

    // Killed between writing the record and changing the files.
    drop(signer);
    for (name, bytes) in [("key", &old_file), ("next-key", &new_file)] {
        fs::write(secret(name), bytes).expect("written");
        fs::set_permissions(secret(name), fs::Permissions::from_mode(0o600)).expect("private");
    }
    let mut signer = begin(&store, data.path()).expect("it begins");
    assert_eq!(turn(&mut signer).expect("nothing fails"), None);
    assert_eq!(verifier(data.path()), new);
    let head = archive(&store, &batches(13, 13));
    assert_eq!(head_signed(&sign(&mut signer), &new), head);
    assert_eq!(immediate(key_records(&store, SHARD)).expect("records").len(), 2);

    // A key of another name does not belong to this log.
    make_next_key(data.path(), KeyName::new("example.com/other").expect("a name")).expect("a key");
    archive(&store, &batches(14, 14));
    assert!(matches!(turn(&mut signer), Err(SignError::OtherName { .. })));
}

#[test]
fn the_secret_is_private_and_damage_is_reported() {
    let (store, data) = realm();
    let key = data.path().join("signer/key");
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(&key), 0o600);
    let name = || default_name("sunken", SHARD).expect("a name");
    assert!(matches!(make_key(data.path(), name()), Err(FolderError::Exists { .. })));
    for open in [0o640, 0o604, 0o660] {
        fs::set_permissions(&key, fs::Permissions::from_mode(open)).expect("set");
        assert!(
            matches!(current_key(data.path()), Err(FolderError::Exposed { .. })),
            "{open:o}"
        );
    }
    fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).expect("set");
    let text = fs::read_to_string(&key).expect("a key");
    for damaged in [
        String::new(),
        text.replace("+KEY+", "+"),
        text.replace('\n', "\n\n"),
        text[..text.len() - 3].to_owned(),
    ] {
        fs::write(&key, damaged).expect("written");
        assert!(matches!(current_key(data.path()), Err(FolderError::Key { .. })));
    }
    let witness = SignerKey::from_seed(name(), KeyKind::Cosignature, &[7; 32]);
    fs::write(&key, witness.to_secret_text()).expect("written");
    assert!(matches!(current_key(data.path()), Err(FolderError::Kind { .. })));
    fs::write(&key, &text).expect("written");

    let signer = begin(&store, data.path()).expect("it begins");
    assert!(matches!(Folder::take(data.path()), Err(FolderError::Taken { .. })));
    drop(signer);
    archive(&store, &batches(5, 5));
    let mut signer = begin(&store, data.path()).expect("it begins");
    sign(&mut signer);
    drop(signer);
    let checkpoint = data.path().join("signer/checkpoint");
    let signed = remembered(data.path());
    fs::write(&checkpoint, signed.replace("\n5\n", "\n4\n")).expect("written");
    assert!(matches!(begin(&store, data.path()), Err(SignError::Foreign(_))));
    fs::write(&checkpoint, &signed[..20]).expect("written");
    assert!(matches!(
        begin(&store, data.path()),
        Err(SignError::Folder(FolderError::Note { .. }))
    ));
}

#[test]
fn cosignatures_are_added_to_their_checkpoint_and_stay() {
    let (store, data) = realm();
    let mut signer = begin(&store, data.path()).expect("it begins");
    archive(&store, &batches(5, 5));
    let signed = sign(&mut signer);
    let witness = |seed: u8| {
        let name = KeyName::new(&format!("witness{seed}.example")).expect("a name");
        SignerKey::from_seed(name, KeyKind::Cosignature, &[seed; 32])
    };
    let mut cosigned = signed.clone();
    [1, 2]
        .iter()
        .for_each(|seed| cosigned.sign(&witness(*seed), 1_700_000_000));
    let add = |size, note: &SignedNote, seed| {
        let witnesses = [witness(seed).verifier()];
        immediate(add_cosignatures(&store, SHARD, size, note, &witnesses)).expect("the store answers")
    };
    assert_eq!(add(6, &cosigned, 1), 0, "there is no such checkpoint");
    assert_eq!(add(5, &cosigned, 3), 0, "it has not cosigned");
    let mut other = SignedNote::new(signed.text().replace("sunken", "risen")).expect("a text");
    other.sign(&witness(1), 1_700_000_000);
    assert_eq!(add(5, &other, 1), 0, "it has cosigned something else");
    assert_eq!(stored(&store).as_ref(), Some(&signed));
    assert_eq!(add(5, &cosigned, 1), 1);
    assert_eq!(
        stored(&store).expect("one").signatures().len(),
        2,
        "only whose key was named"
    );
    assert_eq!(add(5, &cosigned, 2), 1);
    assert_eq!(stored(&store), Some(cosigned.clone()));
    // A restarted signer writes what it has signed, and finds it in the store.
    drop(signer);
    let mut signer = begin(&store, data.path()).expect("it begins");
    assert_eq!(turn(&mut signer).expect("nothing fails"), None);
    assert_eq!(stored(&store), Some(cosigned));
}

#[test]
fn old_checkpoints_are_deleted_unless_cosigned_or_at_a_rotation() {
    let (store, data) = realm();
    let mut signer = begin(&store, data.path()).expect("it begins");
    let witness = SignerKey::from_seed(
        KeyName::new("witness.example").expect("a name"),
        KeyKind::Cosignature,
        &[7; 32],
    );
    let last = KEPT as u64 + 20;
    for size in 1..=last {
        archive(&store, &batches(size, size));
        if size == 7 {
            make_next_key(data.path(), default_name("sunken", SHARD).expect("a name")).expect("a key");
        }
        let mut note = sign(&mut signer);
        if size == 3 {
            note.sign(&witness, 1_700_000_000);
            let text = &note.to_string();
            let put = |transaction: Transaction| async move {
                transaction.set(&checkpoints::checkpoint_key(SHARD, 3), text.as_bytes())
            };
            immediate(store.run_repeatable(put)).expect("the store answers");
        }
    }
    let read = |transaction: Transaction| async move {
        let range = checkpoints::checkpoints(SHARD);
        let page = transaction
            .get_range(&range, 1_000, annals_store::ScanOrder::Forward)
            .await?;
        page.rows
            .iter()
            .map(|(key, _)| checkpoints::size_of(key))
            .collect::<Result<Vec<u64>, StoreError>>()
    };
    let kept = immediate(store.read(read)).expect("the store answers");
    let expected: Vec<u64> = [3, 7].into_iter().chain(last - KEPT as u64 + 1..=last).collect();
    assert_eq!(kept, expected);
}
