//! Receipts of generated trades.

use annals_audit::evidence::EvidenceError;
use annals_evidence::{Anchors, ReceiptError, Wrong, check_receipt};

use crate::{
    archive::{Archive, NAME},
    game::Dice,
};

#[tokio::test]
async fn every_trade_has_a_receipt_of_the_exchanged_assets() {
    let mut receipts = 0;
    for seed in 0..4 {
        let archive = Archive::play(600 + seed, 200).await;
        let settled = archive.settled();
        for deal in &archive.game.deals {
            let made = archive.receipt(deal.id).await;
            if !settled.contains(&deal.id) {
                let refused = made.expect_err("nothing was exchanged");
                let is_expected = matches!(refused, EvidenceError::Unsettled(id) if id == deal.id)
                    || matches!(refused, EvidenceError::Receipt(_));
                assert!(is_expected && !refused.is_finding(), "{refused:?}");
                continue;
            }
            let text = made.expect("a receipt");
            let verdict = check_receipt(text.as_bytes(), &archive.anchors()).expect("it verifies");
            // Contents of the tables before the exchange.
            let mut about = archive.game.truths.iter().filter_map(|truth| truth.deal.as_ref());
            let open = about
                .rfind(|was| was.id == deal.id && was.stage != deal.stage)
                .expect("it was open");
            for side in 0..2 {
                let mut given = annals_event::ledger::Assets::default();
                open.tables[side]
                    .values()
                    .for_each(|assets| given.add(assets).expect("room"));
                let line = format!(
                    "stored entity {} gave stored entity {}: {}",
                    deal.parties[side],
                    deal.parties[1 - side],
                    annals_evidence::Terms::default().assets(&given)
                );
                assert!(text.contains(&format!("\n{line}\n")), "seed {seed}: {line} in {text}");
                assert!(verdict.statement().contains(&line), "{}", verdict.statement());
            }
            // No other account appears in it.
            let said = text.split("c2sp.org").next().expect("words");
            for other in (100..103).filter(|other| !deal.parties.iter().any(|party| party.0 == *other)) {
                assert!(!said.contains(&format!("entity {other}")), "{said}");
            }
            receipts += 1;
        }
    }
    assert!(receipts > 6, "{receipts}");
}

#[tokio::test]
async fn a_key_name_with_invisible_characters_is_not_printed() {
    let archive = Archive::play(608, 200).await;
    let text = archive.receipt(archive.settled()[0]).await.expect("a receipt");
    for blank in ['\u{2800}', '\u{3164}', '\u{202e}'] {
        let name = format!("{NAME},{blank}which{blank}you{blank}gave,");
        let checked = check_receipt(text.replace(NAME, &name).as_bytes(), &Anchors::default());
        let Err(Wrong::Receipt(ReceiptError::Key(wrong))) = checked else {
            panic!("{checked:?}");
        };
        assert!(!wrong.to_string().contains(blank), "{wrong}");
    }
}

#[tokio::test]
async fn a_changed_receipt_is_found() {
    let archive = Archive::play(610, 200).await;
    let text = archive
        .receipt(archive.settled()[0])
        .await
        .expect("a receipt")
        .into_bytes();
    let mut dice = Dice(610);
    for place in 0..text.len() {
        let mut changed = text.clone();
        changed[place] ^= 1 << dice.below(8);
        let checked = check_receipt(&changed, &Anchors::default());
        assert!(checked.is_err(), "byte {place}: {checked:?}");
        assert!(
            check_receipt(&text[..place], &Anchors::default()).is_err(),
            "cut at {place}"
        );
    }
    let other = archive.receipt(archive.settled()[1]).await.expect("a receipt");
    let text = String::from_utf8(text).expect("text");
    let parts: Vec<&str> = text.split("\nc2sp.org/").collect();
    let others: Vec<&str> = other.split("\nc2sp.org/").collect();
    for part in 0..3 {
        let mut mixed = parts.clone();
        mixed[part] = others[part];
        let mixed = mixed.join("\nc2sp.org/");
        assert!(
            check_receipt(mixed.as_bytes(), &Anchors::default()).is_err(),
            "part {part}"
        );
    }
    let twice = format!("{text}\n{}", text.split_once("\nc2sp").map_or("", |(_, proofs)| proofs));
    assert!(
        check_receipt(twice.as_bytes(), &Anchors::default()).is_err(),
        "more than there should be"
    );
}

#[tokio::test]
async fn a_receipt_is_signed_by_the_log() {
    let archive = Archive::play(620, 200).await;
    let other = Archive::play(621, 200).await;
    let text = archive.receipt(archive.settled()[0]).await.expect("a receipt");
    assert!(
        check_receipt(text.as_bytes(), &other.anchors()).is_err(),
        "another log's key"
    );
    let renamed = text.replace(&archive.key.to_string(), &other.key.to_string());
    assert!(
        check_receipt(renamed.as_bytes(), &Anchors::default()).is_err(),
        "not signed by it"
    );
    let open = check_receipt(text.as_bytes(), &Anchors::default())
        .expect("it fits together")
        .open();
    assert!(
        open.iter().any(|said| said.contains("That this key is the realm's.")),
        "{open:?}"
    );
}
