//! Anchors of trust: keys, kept checkpoints, witnesses.

use annals_evidence::{Anchors, Bundle, Question, Wrong, check};
use annals_host::signer::add_cosignatures;
use annals_ids::DatabaseId;
use annals_proof::{Checkpoint, KeyKind, KeyName, SignedNote, SignerKey};

use crate::{
    archive::{Archive, NAME},
    game::SHARD,
};

fn size(note: &SignedNote) -> u64 {
    note.text().parse::<Checkpoint>().expect("a checkpoint").head.size
}

fn own(kind: KeyKind, name: &str) -> SignerKey {
    SignerKey::from_seed(KeyName::new(name).expect("a name"), kind, &[7; 32])
}

#[tokio::test]
async fn a_key_of_another_log_is_reported() {
    let archive = Archive::play(500, 120).await;
    let bytes = archive.bundle(archive.trade()).await;
    let stranger = Anchors {
        keys: vec![own(KeyKind::Note, NAME).verifier()],
        ..Anchors::default()
    };
    let wrong = check(&bytes, &stranger).expect_err("another key");
    assert!(matches!(wrong, Wrong::Stranger { .. }), "{wrong:?}");
    // A forger who signs a history of their own has consistent evidence, under another key.
    let forger = Archive::play(501, 120).await;
    let forged = forger.bundle(forger.trade()).await;
    check(&forged, &Anchors::default()).expect("it fits together");
    let wrong = check(&forged, &archive.anchors()).expect_err("another key");
    assert!(matches!(wrong, Wrong::Stranger { .. }), "{wrong:?}");
    let mut signed = Bundle::read(&bytes).expect("a bundle").0;
    signed.log.keys = Bundle::read(&forged).expect("a bundle").0.log.keys;
    let checked = check(&signed.write().expect("it fits together"), &Anchors::default());
    assert!(matches!(checked, Err(Wrong::Untrusted(_))), "{checked:?}");
}

#[tokio::test]
async fn an_earlier_key_vouches_for_later_ones() {
    let mut archive = Archive::play(510, 120).await;
    let mut keys = vec![archive.key.clone()];
    for _ in 0..2 {
        keys.push(archive.rotate());
        archive.go_on(20).await;
        archive.sign().await;
    }
    archive.go_on(20).await;
    // Under the checkpoint that introduced the last key, and under a later one.
    for is_later in [false, true] {
        let bytes = archive.bundle(archive.trade()).await;
        for (at, key) in keys.iter().enumerate() {
            let anchors = Anchors {
                keys: vec![key.clone()],
                ..Anchors::default()
            };
            let verdict = check(&bytes, &anchors).unwrap_or_else(|wrong| panic!("key {at}: {wrong:?}"));
            let said = verdict.proven().join("\n");
            assert!(said.contains(&keys[2].to_string()), "{said}");
            assert_eq!(said.contains("has named it to follow"), at < 2, "{said}");
        }
        let bundle = Bundle::read(&bytes).expect("a bundle").0;
        for missing in 0..3 {
            let mut shorter = bundle.clone();
            shorter.log.keys.remove(missing);
            let checked = check(&shorter.write().expect("it fits together"), &archive.anchors());
            // The checkpoint that introduces a key is signed by the previous key too.
            let is_enough = missing == 2 && !is_later;
            assert_eq!(checked.is_ok(), is_enough, "without key {missing}: {checked:?}");
        }
        for size in bundle.log.continued.keys() {
            let mut shorter = bundle.clone();
            shorter.log.continued.remove(size);
            let checked = check(&shorter.write().expect("it fits together"), &archive.anchors());
            assert!(checked.is_err(), "without what leads on from {size}");
            let mut changed = bundle.clone();
            changed.log.continued.get_mut(size).expect("it is there")[0].0[0] ^= 1;
            let checked = check(&changed.write().expect("it fits together"), &archive.anchors());
            assert!(matches!(checked, Err(Wrong::Continued { .. })), "{checked:?}");
        }
        if !is_later {
            archive.sign().await;
        }
    }
}

#[tokio::test]
async fn the_evidence_must_extend_a_kept_checkpoint() {
    let mut archive = Archive::play(520, 120).await;
    let (question, kept) = (archive.trade(), archive.newest().await);
    let with = |kept: &SignedNote| Anchors {
        kept: vec![kept.clone()],
        ..archive_anchors(&archive.key)
    };
    let early = archive.bundle(question).await;
    check(&early, &with(&kept)).expect("the same tree");
    let anchors = with(&kept);
    archive.go_on(60).await;
    let later = archive.sign().await;
    let wrong = check(
        &early,
        &Anchors {
            kept: vec![later.clone()],
            ..anchors.clone()
        },
    )
    .expect_err("nothing leads there");
    assert!(wrong.is_no_verdict(), "{wrong:?}");
    let unlinked = archive.bundle(question).await;
    let wrong = check(&unlinked, &anchors).expect_err("nothing leads there");
    assert!(wrong.is_no_verdict(), "{wrong:?}");
    let linked = archive
        .try_bundle(question, std::slice::from_ref(&kept))
        .await
        .expect("evidence");
    let verdict = check(&linked, &anchors).expect("it continues it");
    let said = verdict.proven().join("\n");
    assert!(
        said.contains(&format!("begins with the {} of the checkpoint", size(&kept))),
        "{said}"
    );
    assert!(!verdict.open().join("\n").contains("the same history"));
    // Another history, signed with the same key: only a kept checkpoint reveals it.
    let mut forked: Checkpoint = kept.text().parse().expect("a checkpoint");
    forked.head.root.0[0] ^= 1;
    let signer = own(KeyKind::Note, NAME);
    let mut note = SignedNote::new(forked.to_string()).expect("a note");
    note.sign(&signer, 0);
    let anchors = Anchors {
        keys: vec![archive.key.clone(), signer.verifier()],
        kept: vec![note.clone()],
        ..Anchors::default()
    };
    let wrong = check(&linked, &anchors).expect_err("another history");
    assert!(matches!(wrong, Wrong::Forked { .. }), "{wrong:?}");
    // A log with another name.
    let anchors = Anchors {
        kept: vec![note],
        ..archive_anchors(&archive.key)
    };
    let wrong = check(&linked, &anchors).expect_err("another log");
    assert!(matches!(wrong, Wrong::Kept(_)), "{wrong:?}");
}

#[tokio::test]
async fn leaves_beyond_a_kept_checkpoint_are_reported_as_not_anchored() {
    let mut archive = Archive::play(525, 120).await;
    let question = Question::Account(DatabaseId(100));
    let early = archive.newest().await;
    archive.go_on(60).await;
    let late = archive.sign().await;
    let kept = [early.clone(), late.clone()];
    let bytes = archive.try_bundle(question, &kept).await.expect("evidence");
    let events = Bundle::read(&bytes).expect("a bundle").0.events;
    let behind = events.iter().filter(|event| event.leaf.leaf.0 >= size(&early)).count();
    assert!(behind > 1 && behind < events.len(), "{behind} of {}", events.len());
    let open = |kept: &[SignedNote]| {
        let anchors = Anchors {
            kept: kept.to_vec(),
            ..archive_anchors(&archive.key)
        };
        check(&bytes, &anchors).expect("it verifies").open().join("\n")
    };
    let said = open(&kept[..1]);
    let expected = format!(
        "the same history, beyond the {} batches of the checkpoint that you kept: {behind} of the events lie there.",
        size(&early)
    );
    assert!(said.contains(&expected), "{said}");
    assert!(open(&[]).contains("the same history. Anyone"), "{}", open(&[]));
    for covered in [&kept[1..], &kept[..]] {
        let said = open(covered);
        assert!(!said.contains("the same history"), "{said}");
    }
}

fn archive_anchors(key: &annals_proof::VerifierKey) -> Anchors {
    Anchors {
        keys: vec![key.clone()],
        ..Anchors::default()
    }
}

#[tokio::test]
async fn a_cosigned_checkpoint_is_preferred_to_a_newer_one() {
    let mut archive = Archive::play(530, 120).await;
    let mut cosigned = archive.newest().await;
    let question = archive.trade();
    let witness = own(KeyKind::Cosignature, "witness.example");
    cosigned.sign(&witness, 1_795_308_600);
    let witnesses = [witness.verifier()];
    let added = add_cosignatures(&archive.game.store, SHARD, size(&cosigned), &cosigned, &witnesses);
    assert_eq!(added.await.expect("the store answers"), 1);
    archive.go_on(60).await;
    archive.sign().await;
    let bytes = archive.bundle(question).await;
    assert_eq!(Bundle::read(&bytes).expect("a bundle").0.log.checkpoint, cosigned);
    let mut anchors = archive.anchors();
    let unknown = check(&bytes, &anchors).expect("signed").open().join("\n");
    assert!(unknown.contains("none of their keys was given"), "{unknown}");
    anchors.witnesses = vec![witness.verifier()];
    anchors.quorum = 1;
    let verdict = check(&bytes, &anchors).expect("cosigned");
    let said = verdict.proven().join("\n");
    assert!(
        said.contains("witness.example") && said.contains("2026-11-22T00:50:00.000Z"),
        "{said}"
    );
    anchors.witnesses = vec![own(KeyKind::Cosignature, "another.example").verifier()];
    let wrong = check(&bytes, &anchors).expect_err("nobody known has cosigned");
    assert!(matches!(wrong, Wrong::Untrusted(_)), "{wrong:?}");
}
