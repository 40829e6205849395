//! Bundles for all possible questions about generated games.

use std::io::{Cursor, Read};

use annals_audit::evidence::EvidenceError;
use annals_evidence::{Anchors, Bundle, Question, TradeStage, check, check_receipt, zip};

use crate::{archive::Archive, game::SHARD};

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
            Err(EvidenceError::Uncovered { needed, signed }) => {
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

/// A bundle has one checkpoint, so it proves batches of one shard, that of the ledger. A receipt rests on entries of the
/// ledger alone.
#[tokio::test]
async fn an_answer_that_rests_on_other_shards_has_no_bundle() {
    let (mut made, mut refused) = (0, 0);
    for shards in [2, 3] {
        let archive = Archive::play_on_shards(320, 120, shards).await;
        for question in archive.questions() {
            let answer = archive.answer(question).await;
            let asked = answer.cited().into_iter().filter_map(|cited| cited.asked.clone());
            let other = asked
                .map(|asked| (asked.at, asked.leaf.shard))
                .find(|(_, shard)| *shard != SHARD);
            match (archive.try_bundle_of(question, &answer).await, other) {
                (Ok(bytes), None) => {
                    check(&bytes, &archive.anchors()).expect("it verifies");
                    made += 1;
                }
                (Err(error @ EvidenceError::OtherShard { .. }), Some((at, shard))) => {
                    assert!(!error.is_finding());
                    let named = format!("batch {at} of shard {shard}");
                    assert!(error.to_string().contains(&named), "{named}: {error}");
                    refused += 1;
                }
                (made, other) => panic!("{question}, {other:?}: {:?}", made.map(|bytes| bytes.len())),
            }
        }
        for trade in archive.settled() {
            let receipt = archive.receipt(trade).await.expect("a receipt");
            check_receipt(receipt.as_bytes(), &archive.anchors()).expect("it verifies");
        }
    }
    assert!(made > 0 && refused > 10, "{made} bundles were made, {refused} refused");
}
