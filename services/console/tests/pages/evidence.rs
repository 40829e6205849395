//! Evidence downloads, and the verification page.

use annals_event::ledger::Stage;
use annals_evidence::{Anchors, Question, TradeStage, Verdict, check, check_receipt};
use annals_ids::{DatabaseId, Hash, Serial, TradeId};
use annals_proof::{Checkpoint, KeyKind, KeyName, SignedNote, SignerKey, TreeHead};
use axum::http::StatusCode;

use crate::{
    archive::{Console, Signed},
    game::SHARD,
    visitor::{Shown, Visitor},
};

fn settled(signed: &Signed) -> TradeId {
    let with_goods = |deal: &&crate::game::Deal| {
        deal.stage == TradeStage::Begun(Stage::Settled)
            && signed.game.truths.iter().any(|truth| {
                let is_it = truth
                    .deal
                    .as_ref()
                    .is_some_and(|was| was.id == deal.id && was.stage == deal.stage);
                is_it && !(truth.entry.postings.is_empty() && truth.entry.passages.is_empty())
            })
    };
    signed
        .game
        .deals
        .iter()
        .find(with_goods)
        .expect("something was exchanged")
        .id
}

fn anchors(signed: &Signed, kept: Vec<SignedNote>) -> Anchors {
    Anchors {
        keys: vec![signed.verifier.clone()],
        kept,
        ..Anchors::default()
    }
}

fn verified(shown: &Shown, anchors: &Anchors) -> Verdict {
    assert_eq!(
        shown.status,
        StatusCode::OK,
        "{}",
        String::from_utf8_lossy(&shown.bytes)
    );
    assert_eq!(shown.header("content-type"), "application/zip");
    assert!(
        shown
            .header("content-disposition")
            .starts_with("attachment; filename=\"")
    );
    check(&shown.bytes, anchors).expect("it verifies")
}

#[tokio::test]
async fn downloads_are_valid_evidence() {
    let signed = Signed::play(400, 300).await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let trade = settled(&signed);
    for (address, question) in [
        (format!("/trade/{trade}"), Question::Trade(trade)),
        ("/item/1".to_owned(), Question::Item(Serial(1))),
        ("/account/101".to_owned(), Question::Account(DatabaseId(101))),
    ] {
        assert!(
            iris.get(&address)
                .await
                .html()
                .contains(&format!("href=\"{address}/bundle\""))
        );
        let shown = iris.get(&format!("{address}/bundle")).await;
        let verdict = verified(&shown, &anchors(&signed, Vec::new()));
        assert_eq!(verdict.subject(), format!("evidence: {question} of the realm audited"));
    }
    let receipt = iris.get(&format!("/trade/{trade}/receipt")).await;
    assert_eq!(receipt.status, StatusCode::OK);
    check_receipt(&receipt.bytes, &anchors(&signed, Vec::new())).expect("it verifies");
    let open = signed
        .game
        .deals
        .iter()
        .find(|deal| deal.stage != TradeStage::Begun(Stage::Settled))
        .expect("one was not");
    let none = iris.get(&format!("/trade/{}/receipt", open.id)).await;
    assert_eq!(none.status, StatusCode::NOT_FOUND);
    assert!(none.text().contains("was not settled"));
}

#[tokio::test]
async fn unsigned_data_is_not_offered_as_evidence() {
    let mut signed = Signed::play(410, 150).await;
    signed.game.play_on(120).await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let newest = signed.game.truths.last().expect("something was done").entry.holder;
    let shown = iris.get(&format!("/account/{newest}/bundle")).await;
    assert_eq!(shown.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(shown.text().contains("signed checkpoint covers"), "{}", shown.text());
    signed.sign().await;
    let shown = iris.get(&format!("/account/{newest}/bundle")).await;
    verified(&shown, &anchors(&signed, Vec::new()));
}

#[tokio::test]
async fn a_kept_checkpoint_confirms_an_unchanged_archive() {
    let mut signed = Signed::play(420, 200).await;
    signed.game.play_on(20).await;
    let kept = signed.sign().await;
    signed.game.play_on(60).await;
    signed.sign().await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let page = iris.get("/verification").await;
    let text = page.text();
    assert_eq!(page.status, StatusCode::OK);
    let (leaves, root) = (signed.game.leaves.len(), root_of(&signed).await);
    for said in [
        format!("{leaves} batches"),
        root.to_string(),
        signed.verifier.to_string(),
        "What this check cannot show".to_owned(),
    ] {
        assert!(text.contains(&said), "{said}: {text}");
    }
    let form = page.field("form");
    let as_pasted = kept.to_string().trim_end().replace('\n', "\r\n");
    for (field, given) in [("pasted", as_pasted), ("file", kept.to_string())] {
        let shown = iris.give("/verification", &form, (field, &given)).await;
        assert_eq!(shown.status, StatusCode::OK, "{}", shown.text());
        assert!(
            shown.text().contains("It continues the checkpoint that you kept"),
            "{}",
            shown.text()
        );
        let bundle = iris.give("/account/100/bundle", &form, (field, &given)).await;
        verified(&bundle, &anchors(&signed, vec![kept.clone()]));
    }
    for form in ["", "00"] {
        let shown = iris.give("/verification", form, ("pasted", &kept.to_string())).await;
        assert_eq!(shown.status, StatusCode::BAD_REQUEST, "a form of another site");
    }
}

/// Root of the whole archive.
async fn root_of(signed: &Signed) -> Hash {
    let (_folder, index) = signed.index().await;
    index.extent().expect("sound").trees[&SHARD].root
}

/// A signed checkpoint with the given content.
fn signed_by(key: &SignerKey, size: u64, root: Hash) -> String {
    let checkpoint = Checkpoint {
        origin: key.verifier().name().to_string(),
        head: TreeHead { size, root },
        extensions: Vec::new(),
    };
    let mut note = SignedNote::new(checkpoint.to_string()).expect("a note");
    note.sign(key, 0);
    note.to_string()
}

#[tokio::test]
async fn a_kept_checkpoint_of_a_lost_log_is_reported_as_given_up() {
    let mut signed = Signed::play(440, 200).await;
    let leaves = signed.game.leaves.len() as u64;
    let lost = signed_by(&signed.key, leaves + 50, Hash([5; 32]));
    let continued = signed_by(&signed.key, leaves, root_of(&signed).await);
    signed
        .end_log(&SignedNote::parse(lost.as_bytes()).expect("a note"))
        .await;
    signed.game.play_on(60).await;
    signed.sign().await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let form = iris.get("/verification").await.field("form");
    let shown = iris.give("/verification", &form, ("pasted", &lost)).await;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.text());
    for said in [
        "The checkpoint that you kept was given up",
        "were declared lost by otto",
        "the cluster was restored",
    ] {
        assert!(shown.text().contains(said), "{said}: {}", shown.text());
    }
    let shown = iris.give("/verification", &form, ("pasted", &continued)).await;
    assert!(
        shown.text().contains("It continues the checkpoint that you kept"),
        "{}",
        shown.text()
    );
}

#[tokio::test]
async fn a_kept_checkpoint_reveals_a_changed_archive() {
    let signed = Signed::play(430, 200).await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let form = iris.get("/verification").await.field("form");
    let leaves = signed.game.leaves.len() as u64;
    let (_folder, index) = signed.index().await;
    let root = index.extent().expect("sound").trees[&SHARD].root;
    for (size, root, said) in [
        (leaves / 2, root, "they were changed since"),
        (leaves, Hash([7; 32]), "they were changed since"),
        (leaves + 5, root, "it was rolled back"),
    ] {
        let kept = signed_by(&signed.key, size, root);
        let shown = iris.give("/verification", &form, ("pasted", &kept)).await;
        assert_eq!(shown.status, StatusCode::INTERNAL_SERVER_ERROR, "{said}");
        assert!(
            shown.text().contains("This does not verify") && shown.text().contains(said),
            "{}",
            shown.text()
        );
    }
    let name = KeyName::new("example.com/audited").expect("a name");
    let stranger = SignerKey::from_seed(name, KeyKind::Note, &[9; 32]);
    for nothing in [signed_by(&stranger, leaves, root), "hello".to_owned()] {
        let shown = iris.give("/verification", &form, ("pasted", &nothing)).await;
        assert_eq!(shown.status, StatusCode::OK);
        assert!(
            shown.text().contains("The given checkpoint proves nothing"),
            "{}",
            shown.text()
        );
        let bundle = iris.give("/item/1/bundle", &form, ("pasted", &nothing)).await;
        assert!(
            bundle.status.is_client_error() || bundle.status.is_server_error(),
            "{}",
            bundle.status
        );
    }
}
