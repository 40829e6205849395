//! Pages agree with what the game recorded.

use annals_def::LedgerNames;
use annals_event::ledger::{Slots, Stage};
use annals_evidence::{Terms, TradeStage, words};
use annals_ids::{DatabaseId, Serial, TradeId};
use axum::http::StatusCode;

use crate::{
    archive::{Console, NAME, Signed},
    game::{Game, REASON, definitions},
    visitor::{Shown, Visitor},
};

const SEEDS: u64 = 3;

/// Asserts that these texts appear on a page in this order.
fn follow(shown: &Shown, expected: &[String]) {
    let text = shown.text();
    let mut rest = text.as_str();
    for (place, expected) in expected.iter().enumerate() {
        let Some(at) = rest.find(expected.as_str()) else {
            panic!("{place}: {expected:?} is not in what is left of the page: {rest}");
        };
        rest = &rest[at + expected.len()..];
    }
}

/// Ledger names from the game's definitions.
pub(crate) fn names() -> LedgerNames {
    definitions().ledger_names().clone()
}

/// Holdings, as a page lists them.
fn listed(slots: &Slots) -> Vec<String> {
    let names = names();
    let terms = Terms::of(&names);
    let held: Vec<_> = slots.iter().filter(|(_, assets)| !assets.is_empty()).collect();
    if held.is_empty() {
        return vec!["nothing".to_owned()];
    }
    let mut said = Vec::new();
    for (slot, assets) in held {
        said.push(terms.slot(*slot));
        said.extend(assets.units.iter().map(|(kind, amount)| terms.units(*amount, *kind)));
        said.extend(assets.items.iter().map(|(serial, kind)| terms.item(*serial, *kind)));
    }
    said
}

/// Holdings after a number of entries.
fn held(game: &Game, entries: usize, holder: DatabaseId) -> Slots {
    let truth = entries.checked_sub(1).map(|last| &game.truths[last]);
    let held = truth.and_then(|truth| truth.held.get(&holder)).cloned();
    held.unwrap_or_default()
}

#[tokio::test]
async fn a_trade_is_shown_with_both_inventories_before_and_after_each_step() {
    let mut settled = 0;
    for seed in 0..SEEDS {
        let signed = Signed::play(300 + seed, 220).await;
        let game = &signed.game;
        let console = Console::over(&game.store).await;
        let mut iris = Visitor::named(&console, "iris").await;
        for deal in &game.deals {
            let shown = iris.get(&format!("/trade/{}", deal.id)).await;
            assert_eq!(shown.status, StatusCode::OK, "seed {seed}: {}", shown.text());
            let mut expected = vec![format!("Trade {} {}", deal.id, words::stage(deal.stage))];
            let mut steps = 0;
            for (place, truth) in game.truths.iter().enumerate() {
                let Some(was) = truth.deal.as_ref().filter(|was| was.id == deal.id) else {
                    continue;
                };
                steps += 1;
                expected.push(words::outcome(truth.entry.outcome));
                expected.push(format!("entry {}", truth.entry.number));
                for (side, party) in deal.parties.into_iter().enumerate() {
                    expected.push(["Proposer", "Partner"][side].to_owned());
                    expected.extend(listed(&was.tables[side]));
                    if was.accepted[side] {
                        expected.push("accepted".to_owned());
                    }
                    expected.extend(listed(&held(game, place, party)));
                    expected.extend(listed(&held(game, place + 1, party)));
                }
            }
            follow(&shown, &expected);
            assert_eq!(shown.html().matches("<article").count(), steps, "seed {seed}");
            settled += usize::from(deal.stage == TradeStage::Begun(Stage::Settled));
        }
    }
    assert!(settled > 5, "{settled} trades were settled");
}

#[tokio::test]
async fn an_item_is_shown_with_all_its_owners() {
    let signed = Signed::play(310, 200).await;
    let game = &signed.game;
    let console = Console::over(&game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let names = names();
    let terms = Terms::of(&names);
    for &serial in &game.serials {
        let shown = iris.get(&format!("/item/{serial}")).await;
        assert_eq!(shown.status, StatusCode::OK);
        let mut expected = vec![format!("Item {serial}"), "Who has had it".to_owned()];
        let mut last = None;
        for truth in &game.truths {
            for passage in truth.entry.passages.iter().filter(|passage| passage.serial == serial) {
                expected.extend([terms.place(passage.from), terms.place(passage.to)]);
                expected.push(truth.entry.number.to_string());
                last = Some(passage.to);
            }
        }
        follow(&shown, &expected);
        let last = terms.place(last.expect("it was made"));
        follow(&shown, &[format!("It is with: {last}.")]);
    }
}

#[tokio::test]
async fn an_account_is_shown_with_each_step_once() {
    let signed = Signed::play(320, 400).await;
    let game = &signed.game;
    let console = Console::over(&game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let (_folder, index) = signed.index().await;
    for holder in (100..103).map(DatabaseId) {
        let owned = index.owned(&game.store, holder).await.expect("known");
        let pages = owned.steps.len().div_ceil(50);
        assert!(pages > 1, "{} steps: play longer", owned.steps.len());
        let mut seen = 0;
        for page in 1..=pages {
            let shown = iris.get(&format!("/account/{holder}?page={page}")).await;
            let steps = &owned.steps[seen..owned.steps.len().min(seen + 50)];
            seen += steps.len();
            let mut expected = vec![format!("part {page} of {pages}")];
            for step in steps {
                expected.push(words::outcome(step.cited.entry.outcome));
                expected.extend(listed(&step.held.after));
                expected.push(step.cited.entry.number.to_string());
            }
            follow(&shown, &expected);
        }
        assert_eq!(seen, owned.steps.len());
        let newest = iris.get(&format!("/account/{holder}")).await;
        follow(&newest, &[format!("part {pages} of {pages}")]);
    }
}

#[tokio::test]
async fn one_search_box_finds_every_kind_of_object() {
    let signed = Signed::play(330, 200).await;
    let game = &signed.game;
    let console = Console::over(&game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let deal = game.deals[0].id;
    for (typed, address) in [
        (format!("{deal}"), format!("/trade/{deal}")),
        (format!("+trade+{deal}+"), format!("/trade/{deal}")),
        ("item+1".to_owned(), "/item/1".to_owned()),
        ("1".to_owned(), "/item/1".to_owned()),
        ("100".to_owned(), "/account/100".to_owned()),
        ("stored:101".to_owned(), "/account/101".to_owned()),
        ("1000".to_owned(), "/entity/1000".to_owned()),
        ("entity+1001".to_owned(), "/entity/1001".to_owned()),
    ] {
        let shown = iris.get(&format!("/search?q={typed}")).await;
        assert_eq!(
            (shown.status, shown.header("location")),
            (StatusCode::SEE_OTHER, address.as_str()),
            "{typed}"
        );
    }
    for nothing in [
        "gandalf",
        "stored:7",
        "7000000",
        "5/5",
        "trade+5/5",
        "item+9999",
        "stored:x",
    ] {
        let shown = iris.get(&format!("/search?q={nothing}")).await;
        assert_eq!(shown.status, StatusCode::NOT_FOUND, "{nothing}");
        assert!(shown.text().contains("Nothing found"), "{nothing}");
    }
    for nothing in ["/trade/5/5", "/item/9999", "/account/7", "/session/7", "/nowhere"] {
        assert_eq!(iris.get(nothing).await.status, StatusCode::NOT_FOUND, "{nothing}");
    }
    for unclear in [
        "/trade/5/x",
        "/item/x",
        "/account/-1",
        "/entity/%00",
        "/entity/1000?at=yesterday",
    ] {
        assert_eq!(iris.get(unclear).await.status, StatusCode::BAD_REQUEST, "{unclear}");
    }
}

/// Percent-encodes a text for an address.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}

#[tokio::test]
async fn player_text_is_escaped() {
    let signed = Signed::play(340, 120).await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let name = escaped(NAME);
    let found = iris.get(&format!("/search?q={name}")).await;
    assert_eq!(found.header("location"), "/account/100", "by its name");
    let first = signed.game.serials.first().copied().unwrap_or(Serial(1));
    let pages = [
        found.header("location").to_owned(),
        format!("/account/100?page=1&name={name}"),
        format!("/search?q={}", escaped(&format!("{NAME}!"))),
        format!("/search?q={}", escaped("<b>gandalf</b> \"'&")),
        format!("/entity/1000?at={}", escaped("<b>yesterday</b>")),
        format!("/item/{first}"),
        format!("/trade/{}", escaped("<b>/1")),
    ];
    let mut reasons = 0;
    for page in pages {
        let shown = iris.get(&page).await;
        let html = shown.html();
        for hostile in ["<img", "<script", "<b>gandalf", "<b>yesterday", "onerror=alert(1)>"] {
            assert!(!html.contains(hostile), "{page}: {hostile}");
        }
        reasons += usize::from(shown.text().contains(REASON));
    }
    assert!(reasons > 1, "the reasons are there, as text");
}

#[tokio::test]
async fn a_changed_archive_gives_only_an_error() {
    let signed = Signed::play(350, 150).await;
    let game = &signed.game;
    let deal: TradeId = game.deals[0].id;
    // Before the first verification, and after a full one.
    for is_known in [false, true] {
        let console = Console::over(&game.store).await;
        let mut iris = Visitor::named(&console, "iris").await;
        if is_known {
            let before = iris.get(&format!("/trade/{deal}")).await;
            assert_eq!(before.status, StatusCode::OK);
        }
        let proposed = game.truths.iter().find(|truth| truth.entry.of == deal.0);
        let at = proposed.expect("it was proposed").entry.at;
        let leaf = game
            .leaves
            .iter()
            .position(|(found, _)| *found == at)
            .expect("archived");
        let mut bytes = game.leaves[leaf].1.clone();
        *bytes.last_mut().expect("not empty") ^= 1;
        game.write(leaf, &bytes).await;
        let addresses = match is_known {
            true => vec![format!("/trade/{deal}"), format!("/trade/{deal}/bundle")],
            false => vec![
                format!("/trade/{deal}"),
                "/item/1".to_owned(),
                "/verification".to_owned(),
                "/search?q=1".to_owned(),
            ],
        };
        for address in addresses {
            let shown = iris.get(&address).await;
            assert_eq!(
                shown.status,
                StatusCode::INTERNAL_SERVER_ERROR,
                "{address}: {}",
                shown.text()
            );
            follow(&shown, &["This does not verify".to_owned(), at.to_string()]);
            assert!(
                shown.html().contains("role=\"alert\"") && !shown.html().contains("<article"),
                "{address}"
            );
        }
        game.write(leaf, &game.leaves[leaf].1).await;
        let repaired = iris.get(&format!("/trade/{deal}")).await;
        assert_eq!(repaired.status, StatusCode::OK, "as soon as it is as it was");
    }
}

#[tokio::test]
async fn a_realm_of_several_shards_is_answered_from_all_of_its_archives() {
    let mut signed = Signed::play_on_shards(355, 120, 3).await;
    signed.game.play_on(20).await;
    let kept = signed.sign().await;
    signed.game.play_on(20).await;
    signed.sign().await;
    let game = &signed.game;
    let console = Console::over(&game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let deals = game.deals.iter().map(|deal| format!("/trade/{}", deal.id));
    let items = game.serials.iter().map(|serial| format!("/item/{serial}"));
    let others = [
        "/account/100",
        "/entity/1002",
        "/entity/1002?at=2@3",
        "/entity/1000?event=0",
    ];
    for address in deals.chain(items).chain(others.map(str::to_owned)) {
        let shown = iris.get(&address).await;
        assert_eq!(shown.status, StatusCode::OK, "{address}: {}", shown.text());
        let roots = [0, 1, 2].map(|shard| format!("Root of shard {shard} "));
        follow(&shown, &roots);
    }
    let desk = iris.get("/").await;
    let unsigned = [1, 2].map(|shard| format!("Nothing of the archive of shard {shard} is signed."));
    follow(&desk, &unsigned);
    let form = iris.get("/verification").await.field("form");
    let shown = iris.give("/verification", &form, ("pasted", &kept.to_string())).await;
    let said = [
        "All of each shard is one tree",
        "Shard 2, ",
        "Shard 0: It continues what was signed",
        "Shard 1: Nothing is signed",
        "It continues the checkpoint that you kept",
    ];
    follow(&shown, &said.map(str::to_owned));
    let refused = iris.get("/account/100/bundle").await;
    assert_eq!(refused.status, StatusCode::SERVICE_UNAVAILABLE);
    let said = "No signed checkpoint covers this answer";
    let what = "batches of the archive of shard 1";
    follow(&refused, &[said, what].map(str::to_owned));
}

#[tokio::test]
async fn queries_run_concurrently_while_the_archive_grows() {
    let mut signed = Signed::play(360, 100).await;
    let console = Console::over(&signed.game.store).await;
    let iris = Visitor::named(&console, "iris").await;
    let mut asking = tokio::task::JoinSet::new();
    for round in 0..4 {
        for number in 0..12 {
            let mut iris = iris.clone();
            let address = ["/item/1", "/account/100", "/verification", "/search?q=nobody"][(round + number) % 4];
            asking.spawn(async move { (address, iris.get(address).await) });
        }
        signed.game.play_on(30).await;
    }
    while let Some(answered) = asking.join_next().await {
        let (address, shown) = answered.expect("it does not panic");
        let expected = match address {
            "/search?q=nobody" => StatusCode::NOT_FOUND,
            _ => StatusCode::OK,
        };
        assert_eq!(shown.status, expected, "{address}: {}", shown.text());
    }
    let entries = signed.game.truths.len();
    let mut iris = iris;
    let last = iris.get("/item/1").await;
    follow(&last, &[format!("{entries} entries of the ledger")]);
}
