//! Evidence of a log that continues an ended one: trust in the old key leads to it, and what was lost is named.

use annals_db::Prover;
use annals_evidence::{Anchors, Bundle, Wrong, check, check_receipt};
use annals_host::signer::key_records;
use annals_proof::{
    Checkpoint, KeyKind, KeyName, LogEnd, SignedNote, SignerKey, TreeHead, VerifierKey, succession::KeyRecord,
};

use crate::{
    archive::{Archive, NAME},
    game::SHARD,
};

const NEXT: &str = "example.com/audited-log2";

fn of(key: &VerifierKey) -> Anchors {
    Anchors {
        keys: vec![key.clone()],
        ..Anchors::default()
    }
}

fn keeping(key: &VerifierKey, kept: &SignedNote) -> Anchors {
    Anchors {
        kept: vec![kept.clone()],
        ..of(key)
    }
}

fn head(note: &SignedNote) -> TreeHead {
    note.text().parse::<Checkpoint>().expect("a checkpoint").head
}

fn forged(head: TreeHead, key: &SignerKey) -> SignedNote {
    let checkpoint = Checkpoint {
        origin: key.verifier().name().to_string(),
        head,
        extensions: vec![],
    };
    let mut note = SignedNote::new(checkpoint.to_string()).expect("a text");
    note.sign(key, 0);
    note
}

#[tokio::test]
async fn trust_in_the_old_key_leads_to_the_log_that_continues() {
    let mut archive = Archive::play(540, 120).await;
    let (question, kept, old) = (archive.trade(), archive.newest().await, archive.key.clone());
    let early = archive.bundle(question).await;
    let (lost, new) = archive.end_log(NEXT).await;
    // The archive is still shorter than what was lost.
    let wrong = refused(&archive, &lost).await.expect("nothing leads there");
    assert!(matches!(&wrong, Wrong::DeclaredLost(_)), "{wrong:?}");
    archive.go_on(60).await;
    archive.sign().await;

    let bytes = archive
        .try_bundle(question, std::slice::from_ref(&kept))
        .await
        .expect("evidence");
    for anchors in [of(&old), of(&new), keeping(&old, &kept)] {
        let verdict = check(&bytes, &anchors).expect("it verifies");
        let proven = verdict.proven().join("\n");
        assert!(proven.contains(&new.to_string()), "{proven}");
        assert_eq!(
            proven.contains("has named it to follow"),
            anchors.keys[0] == old,
            "{proven}"
        );
        let open = verdict.open().join("\n");
        let size = head(&kept).size;
        let expected = format!(
            "What the earlier log {NAME} had signed beyond its first {size} of {} batches. ada declared it lost at ",
            head(&lost).size
        );
        assert!(open.contains(&expected), "{open}");
        assert!(open.contains("\"the cluster was restored\""), "{open}");
    }
    // What was handed out before still verifies, with the old key only.
    check(&early, &keeping(&old, &kept)).expect("it verifies");
    assert!(matches!(check(&early, &of(&new)), Err(Wrong::Stranger { .. })));
    // A checkpoint of what was lost: no evidence continues it, and none denies it.
    for result in [
        check(&bytes, &keeping(&old, &lost)).err(),
        refused(&archive, &lost).await,
    ] {
        let wrong = result.expect("nothing leads there");
        assert!(
            matches!(&wrong, Wrong::DeclaredLost(lost) if lost.origin == NAME),
            "{wrong:?}"
        );
        assert!(wrong.is_no_verdict());
    }
    // Another history of what was continued is still a fork.
    let mut other = head(&kept);
    other.root.0[0] ^= 1;
    let other = forged(other, archive.old_key());
    let wrong = check(&bytes, &keeping(&old, &other)).expect_err("another history");
    assert!(matches!(wrong, Wrong::Forked { .. }), "{wrong:?}");
}

#[tokio::test]
async fn a_checkpoint_that_the_archive_still_has_is_not_lost() {
    let mut archive = Archive::play(550, 120).await;
    let (question, old) = (archive.trade(), archive.key.clone());
    archive.end_log(NEXT).await;
    let continued = records_of(&archive).await[1]
        .log_end()
        .expect("a statement")
        .expect("it is one")
        .continued;
    archive.go_on(60).await;
    let newest = head(&archive.sign().await);
    // The old log has signed more than its next one promises to continue, and the archive has kept that order.
    let size = continued.size + 5;
    assert!(size < newest.size);
    let mut prover = Prover::begin(archive.game.store.clone(), SHARD)
        .await
        .expect("the archive");
    let root = prover.root(size).await.expect("the archive has it");
    let kept = forged(TreeHead { size, root }, archive.old_key());
    let bytes = archive
        .try_bundle(question, std::slice::from_ref(&kept))
        .await
        .expect("evidence");
    let verdict = check(&bytes, &keeping(&old, &kept)).expect("it verifies");
    let proven = verdict.proven().join("\n");
    assert!(
        proven.contains(&format!("begins with the {size} of the checkpoint")),
        "{proven}"
    );
}

#[tokio::test]
async fn a_receipt_says_nothing_about_a_checkpoint_of_another_log() {
    let mut archive = Archive::play(555, 120).await;
    let (trade, old, kept) = (archive.settled()[0], archive.key.clone(), archive.newest().await);
    let early = archive.receipt(trade).await.expect("a receipt");
    let (_, new) = archive.end_log(NEXT).await;
    archive.go_on(60).await;
    let later = archive.sign().await;
    let receipt = archive.receipt(trade).await.expect("a receipt");
    for (receipt, kept) in [(&receipt, &kept), (&early, &later)] {
        let anchors = Anchors {
            keys: vec![old.clone(), new.clone()],
            kept: vec![kept.clone()],
            ..Anchors::default()
        };
        let wrong = check_receipt(receipt.as_bytes(), &anchors).expect_err("nothing leads there");
        assert!(matches!(wrong, Wrong::Unlinked { .. }), "{wrong:?}");
    }
}

async fn records_of(archive: &Archive) -> Vec<KeyRecord> {
    let records = key_records(&archive.game.store, SHARD).await.expect("records");
    records.into_iter().map(|(_, record)| record).collect()
}

async fn refused(archive: &Archive, kept: &SignedNote) -> Option<Wrong> {
    let made = archive.try_bundle(archive.trade(), std::slice::from_ref(kept)).await;
    match made {
        Err(annals_audit::evidence::EvidenceError::Wrong(wrong)) => Some(wrong),
        other => panic!("{:?}", other.map(|bytes| bytes.len())),
    }
}

#[tokio::test]
async fn a_forged_end_of_a_log_is_found() {
    let mut archive = Archive::play(545, 120).await;
    let (question, old) = (archive.trade(), archive.key.clone());
    let (_, new) = archive.end_log(NEXT).await;
    archive.go_on(60).await;
    archive.sign().await;
    let bundle = Bundle::read(&archive.bundle(question).await).expect("a bundle").0;
    let end = records_of(&archive).await[1]
        .log_end()
        .expect("a statement")
        .expect("it is one");
    let new_key = archive.current_key();
    assert_eq!(new_key.verifier(), new);
    let stranger = SignerKey::from_seed(KeyName::new(NAME).expect("a name"), KeyKind::Note, &[7; 32]);
    let with = |end: &LogEnd, signers: &[&SignerKey]| {
        let mut note = SignedNote::new(end.to_string()).expect("a text");
        signers.iter().for_each(|signer| note.sign(signer, 0));
        let mut forged = bundle.clone();
        forged.log.keys[1] = KeyRecord {
            key: new.clone(),
            change: Some(note),
        };
        check(&forged.write().expect("it fits together"), &of(&old))
    };
    with(&end, &[archive.old_key(), &new_key]).expect("it verifies");
    for signers in [vec![archive.old_key()], vec![&new_key], vec![&stranger, &new_key]] {
        let checked = with(&end, &signers);
        assert!(matches!(checked, Err(Wrong::Key { .. })), "{checked:?}");
    }
    // Both keys sign that the next log begins with something else than it does.
    let mut other = end.clone();
    other.continued.root.0[0] ^= 1;
    let checked = with(&other, &[archive.old_key(), &new_key]);
    assert!(matches!(checked, Err(Wrong::Continued { .. })), "{checked:?}");
    // The end of another log, and one that names another key.
    let elsewhere = LogEnd {
        ended: KeyName::new("example.com/other").expect("a name"),
        ..end.clone()
    };
    let named = LogEnd {
        next: stranger.verifier(),
        ..end.clone()
    };
    for (other, why) in [(elsewhere, "another log"), (named, "another key")] {
        let mut note = SignedNote::new(other.to_string()).expect("a text");
        [archive.old_key(), &new_key].iter().for_each(|key| note.sign(key, 0));
        let record = KeyRecord {
            key: new.clone(),
            change: Some(note),
        };
        assert!(record.follows(&old, NAME).is_err(), "{why}");
    }
    // A name that an earlier log has had.
    let again = SignerKey::from_seed(KeyName::new(NAME).expect("a name"), KeyKind::Note, &[9; 32]);
    let back = LogEnd {
        ended: new.name().clone(),
        next: again.verifier(),
        ..end
    };
    let mut note = SignedNote::new(back.to_string()).expect("a text");
    [&new_key, &again].iter().for_each(|key| note.sign(key, 0));
    let mut forged = bundle.clone();
    forged.log.keys.push(KeyRecord {
        key: again.verifier(),
        change: Some(note),
    });
    let checked = check(&forged.write().expect("it fits together"), &of(&old));
    assert!(matches!(checked, Err(Wrong::KeyOrder { .. })), "{checked:?}");
}
