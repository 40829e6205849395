//! Bundles for all possible questions about generated games.

use std::{
    collections::BTreeSet,
    io::{Cursor, Read},
};

use annals_audit::evidence::EvidenceError;
use annals_evidence::{Anchors, Bundle, Question, ShardLog, TradeStage, Wrong, check, check_receipt, zip};
use annals_ids::Shard;

use crate::{
    archive::{Archive, pack},
    game::SHARD,
};

const SEEDS: u64 = 4;

#[tokio::test]
async fn every_answer_has_a_bundle_that_proves_it() {
    let mut refused = 0;
    for seed in 0..SEEDS {
        let archive = Archive::play(300 + seed, 120).await;
        for question in archive.questions() {
            let bytes = archive.bundle(question).await;
            let verdict = check(&bytes, &archive.anchors());
            let verdict = verdict.unwrap_or_else(|wrong| panic!("seed {seed}, {question}: {wrong:?}"));
            let (bundle, answer) = Bundle::read(&bytes).expect("it was checked");
            assert_eq!(answer, archive.answer(question).await, "seed {seed}, {question}");
            assert_eq!((bundle.question, bundle.realm()), (question, "audited"));
            let deal = archive
                .game
                .deals
                .iter()
                .find(|deal| Question::Trade(deal.id) == question);
            if let Some(TradeStage::Refused(reason)) = deal.map(|deal| deal.stage) {
                let said = format!("never begun, its proposal was refused: {reason}.");
                assert!(verdict.statement().ends_with(&said), "{}", verdict.statement());
                refused += 1;
            }
            assert!(
                verdict.subject().contains(&question.to_string()),
                "{}",
                verdict.subject()
            );
            assert_eq!(
                bytes,
                archive.bundle(question).await,
                "seed {seed}, {question}: the same twice"
            );
        }
    }
    assert!(refused > 3, "{refused} proposals were refused");
}

#[tokio::test]
async fn a_bundle_reports_what_happened_and_its_anchors() {
    let archive = Archive::play(310, 150).await;
    let id = archive.settled()[0];
    let bytes = archive.bundle(Question::Trade(id)).await;
    let files = zip::read(&bytes).expect("a zip");
    let report = String::from_utf8(files[0].bytes.clone()).expect("text");
    assert!(
        report.starts_with(&format!("EVIDENCE: trade {id} of the realm audited\n")),
        "{report}"
    );
    assert!(report.contains(": settled.\n"), "{report}");
    let deal = archive.game.deals.iter().find(|deal| deal.id == id).expect("a trade");
    for party in deal.parties {
        assert!(report.contains(&format!("stored entity {party}")), "{report}");
    }
    for file in files.iter().filter(|file| file.name.starts_with("events/")) {
        assert!(report.contains(&format!("{}: batch ", file.name)), "{report}");
    }
    assert!(report.lines().all(|line| !line.contains('\t')), "{report}");
}

#[tokio::test]
async fn bundles_are_readable_by_other_programs() {
    let archive = Archive::play(311, 120).await;
    let bytes = archive.bundle(archive.trade()).await;
    let files = zip::read(&bytes).expect("a zip");
    let mut others = ::zip::ZipArchive::new(Cursor::new(&bytes)).expect("a zip");
    assert_eq!(others.len(), files.len());
    for (at, file) in files.iter().enumerate() {
        let mut other = others.by_index(at).expect("a file");
        let mut content = Vec::new();
        // Reading to the end compares the checksum.
        other.read_to_end(&mut content).expect("whole");
        assert_eq!(other.name().expect("a name"), file.name.as_str());
        assert_eq!(content, file.bytes, "{}", file.name);
    }
}

#[tokio::test]
async fn unsigned_leaves_are_not_proven() {
    let mut archive = Archive::play(312, 120).await;
    let before = archive.questions();
    archive.go_on(80).await;
    let mut refused = 0;
    for question in archive.questions() {
        match archive.try_bundle(question, &[]).await {
            Ok(bytes) => drop(check(&bytes, &archive.anchors()).expect("signed before")),
            Err(EvidenceError::Uncovered { needed, signed, .. }) => {
                assert!(needed > signed);
                refused += 1;
            }
            Err(other) => panic!("{question}: {other:?}"),
        }
    }
    assert!(refused > archive.questions().len() - before.len(), "{refused}");
    archive.sign().await;
    for question in archive.questions() {
        check(&archive.bundle(question).await, &archive.anchors()).expect("signed since");
    }
}

#[tokio::test]
async fn a_changed_archive_proves_nothing() {
    let archive = Archive::play(313, 120).await;
    let question = archive.trade();
    let answer = archive.answer(question).await;
    let cited = answer.cited()[0].clone();
    for leaf in [cited.leaf, cited.asked.expect("asked for").leaf] {
        let leaf = usize::try_from(leaf.leaf.0).expect("small");
        let whole = archive.game.leaves[leaf].1.clone();
        let mut bytes = whole.clone();
        *bytes.last_mut().expect("not empty") ^= 1;
        archive.game.write(leaf, &bytes).await;
        let found = archive.try_bundle_of(question, &answer).await.expect_err("changed");
        assert!(found.is_finding(), "{found:?}");
        archive.game.write(leaf, &whole).await;
    }
    // A leaf on which the answer does not rest: the tree differs from the one that was signed.
    let cited: Vec<u64> = answer
        .cited()
        .iter()
        .flat_map(|cited| [Some(cited.leaf), cited.asked.as_ref().map(|asked| asked.leaf)])
        .flatten()
        .map(|leaf| leaf.leaf.0)
        .collect();
    let other = (0..archive.game.leaves.len())
        .rev()
        .find(|leaf| !cited.contains(&(*leaf as u64)));
    let other = other.expect("another leaf");
    let stranger = crate::game::Game::play(999, 120).await;
    archive.game.write(other, &stranger.leaves[other].1).await;
    let found = archive.try_bundle_of(question, &answer).await.expect_err("changed");
    assert!(matches!(found, EvidenceError::Rewritten { .. }), "{found:?}");
}

#[tokio::test]
async fn without_anchors_the_unproven_claims_are_listed() {
    let archive = Archive::play(314, 120).await;
    let bytes = archive.bundle(archive.trade()).await;
    let unknown = check(&bytes, &Anchors::default()).expect("it belongs together");
    let known = check(&bytes, &archive.anchors()).expect("it is signed");
    let (open, fewer) = (unknown.open().join("\n"), known.open().join("\n"));
    assert!(open.contains("That this key is the realm's."), "{open}");
    assert!(!fewer.contains("That this key is the realm's."), "{fewer}");
    for always in ["That nothing was left out.", "what truly happened", "the same history"] {
        assert!(open.contains(always) && fewer.contains(always), "{fewer}");
    }
    assert!(
        known
            .proven()
            .iter()
            .any(|said| said.contains(&archive.key.to_string()))
    );
}

/// The orders of an answer may be on other shards than the ledger's entries: each event is proven against the tree of its
/// own shard.
#[tokio::test]
async fn an_answer_that_rests_on_other_shards_has_a_checkpoint_of_each() {
    let mut several = 0;
    for shards in [2, 3] {
        let archive = Archive::play_on_shards(320, 120, shards).await;
        for question in archive.questions() {
            let answer = archive.answer(question).await;
            let asked = answer.cited().into_iter().filter_map(|cited| cited.asked.clone());
            let others: BTreeSet<Shard> = asked
                .map(|asked| asked.leaf.shard)
                .filter(|shard| *shard != SHARD)
                .collect();
            let bytes = archive.bundle(question).await;
            let (bundle, found) = Bundle::read(&bytes).expect("it was checked");
            assert_eq!(found, answer, "{question}");
            assert!(bundle.others.keys().eq(&others), "{question}: {others:?}");
            let verdict = check(&bytes, &archive.anchors_of_all()).expect("it verifies");
            let open = verdict.open().join("\n");
            assert!(!open.contains("is the realm's"), "{question}: {open}");
            if others.is_empty() {
                continue;
            }
            several += 1;
            // With the ledger's key alone, the keys of the other shards are reported as open.
            let verdict = check(&bytes, &archive.anchors()).expect("it verifies");
            let open = verdict.open().join("\n");
            for shard in &others {
                let said = format!("That the key that has signed the log of shard {shard} is the realm's.");
                assert!(open.contains(&said), "{question}: {open}");
            }
            let files = zip::read(&bytes).expect("a zip");
            assert!(files[1].bytes.starts_with(b"annals evidence v3\n"));
            let report = String::from_utf8(files[0].bytes.clone()).expect("text");
            assert!(
                report.contains(" of shard 0\n") && report.contains("shards/0000"),
                "{report}"
            );
        }
        for trade in archive.settled() {
            let receipt = archive.receipt(trade).await.expect("a receipt");
            check_receipt(receipt.as_bytes(), &archive.anchors()).expect("it verifies");
        }
    }
    assert!(several > 10, "{several} answers rest on several shards");
}

/// A question whose answer rests on shard 1, its bundle, and that bundle's files.
async fn of_shard_one(archive: &Archive) -> (Question, Bundle, Vec<zip::File>) {
    for question in archive.questions() {
        let bytes = archive.bundle(question).await;
        let (bundle, _) = Bundle::read(&bytes).expect("it was checked");
        if bundle.others.contains_key(&Shard(1)) {
            return (question, bundle, zip::read(&bytes).expect("a zip"));
        }
    }
    panic!("no answer rests on shard 1");
}

#[tokio::test]
async fn events_of_another_shard_are_proven_by_its_own_log() {
    let archive = Archive::play_on_shards(330, 120, 2).await;
    let (question, bundle, files) = of_shard_one(&archive).await;
    let anchors = archive.anchors_of_all();
    // Each byte that is changed is found.
    for name in ["shards/00001/checkpoint.txt", "shards/00001/keys/0001.txt"] {
        let mut changed = files.clone();
        let file = changed.iter_mut().find(|file| file.name == name).expect("it is there");
        let middle = file.bytes.len() / 2;
        file.bytes[middle] ^= 1;
        assert!(check(&pack(changed), &anchors).is_err(), "{name} was changed");
        let fewer = files.iter().filter(|file| file.name != name).cloned().collect();
        assert!(check(&pack(fewer), &anchors).is_err(), "{name} was removed");
    }
    // An event is not said to be on a shard on which it is not.
    let mut moved = bundle.clone();
    let event = moved
        .events
        .iter_mut()
        .find(|event| event.leaf.shard == Shard(1))
        .expect("it is there");
    event.leaf.shard = Shard(0);
    let wrong = moved
        .write()
        .map(|bytes| check(&bytes, &anchors).expect_err("it is not there"));
    assert!(
        matches!(wrong, Ok(Wrong::Event { .. } | Wrong::Bundle(_)) | Err(_)),
        "{wrong:?}"
    );
    // A stranger's key of the same name.
    let stranger = Archive::play_on_shards(331, 120, 2).await;
    let keys = [archive.key.clone(), stranger.anchors_of_all().keys[0].clone()].to_vec();
    let wrong = check(
        &pack(files.clone()),
        &Anchors {
            keys,
            ..Anchors::default()
        },
    );
    assert!(matches!(wrong, Err(Wrong::Stranger { .. })), "{wrong:?}");
    // Checkpoints that were kept of either shard are continued.
    let kept = [archive.newest().await, archive.newest_of(Shard(1)).await];
    let mut archive = archive;
    archive.go_on(80).await;
    archive.sign().await;
    let bytes = archive.try_bundle(question, &kept).await.expect("evidence");
    let anchors = Anchors {
        kept: kept.to_vec(),
        ..archive.anchors_of_all()
    };
    let verdict = check(&bytes, &anchors).expect("it continues both");
    let said = verdict.proven().join("\n");
    assert_eq!(said.matches("of the checkpoint that you kept").count(), 2, "{said}");
    // The log of one shard does not pass for that of another.
    let (mut twice, _) = Bundle::read(&bytes).expect("it was checked");
    let of_ledger = ShardLog {
        checkpoint: kept[0].clone(),
        ..bundle.log.clone()
    };
    twice.others.insert(Shard(1), of_ledger);
    let wrong = check(&twice.write().expect("a bundle"), &Anchors::default());
    assert!(matches!(wrong, Err(Wrong::SameLog { .. })), "{wrong:?}");
}
