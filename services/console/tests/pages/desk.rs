//! The first page, cases, and display names.

use annals_console::{
    cases::{Act, CaseError, NOTES, OPEN_CASES, TEXT_BYTES},
    views::{ViewLog, ViewRecord},
};
use annals_event::ledger::Outcome;
use annals_evidence::words;
use annals_ids::{BatchNumber, DatabaseId, Hash, LeafIndex, OwnerId, TradeId, WallTime};
use annals_personal::{Admission, PersonalKey, seal};
use annals_store::layout::{
    archive::{Hole, hole_key},
    checkpoints,
    personal::{self, Forgotten},
};
use axum::http::StatusCode;

use crate::{
    archive::{Console, NAME, Signed},
    game::{Game, SHARD, commit},
    visitor::{Shown, Visitor},
};

const FORM: &str = "application/x-www-form-urlencoded";

/// Key of the first player's person.
const KEY: [u8; 32] = [9; 32];

/// Records a log-in of the first player, with the name sealed as a base seals it.
async fn log_in(game: &mut Game, name: &str) {
    let admission = Admission {
        account: Some(name.to_owned()),
        address: "203.0.113.9:40000".to_owned(),
    };
    let person = DatabaseId(100);
    let sealed = seal(&PersonalKey::new(KEY), person, 1, &admission.encode());
    game.come_in(0, sealed).await;
    commit(&game.store, |transaction| {
        transaction.set(&personal::key_key(person), &KEY)
    })
    .await;
}

/// The part of a page between two texts.
fn between<'t>(text: &'t str, begin: &str, end: &str) -> &'t str {
    let rest = text
        .split_once(begin)
        .unwrap_or_else(|| panic!("no {begin:?} in {text}"))
        .1;
    rest.split_once(end).map_or(rest, |(part, _)| part)
}

#[tokio::test]
async fn the_first_page_shows_the_most_recent_trades_oldest_first() {
    let signed = Signed::play(700, 300).await;
    let game = &signed.game;
    let console = Console::over(&game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let shown = iris.get("/").await;
    assert_eq!(shown.status, StatusCode::OK, "{}", shown.text());
    let mut last: Vec<TradeId> = Vec::new();
    for truth in &game.truths {
        let is_done = !matches!(truth.entry.outcome, Outcome::Refused(_));
        if let Some(deal) = truth.deal.as_ref().filter(|_| is_done) {
            last.retain(|known| *known != deal.id);
            last.push(deal.id);
        }
    }
    let first = last.len().checked_sub(10).expect("ten trades and more");
    let text = shown.text();
    let listed = between(&text, "Recent trades", "What can be searched for");
    let mut rest = listed;
    for id in &last[first..] {
        let deal = game.deals.iter().find(|deal| deal.id == *id).expect("a trade");
        for said in [
            format!("trade {id}"),
            deal.parties.map(|party| format!("stored entity {party}")).join(" and "),
            words::stage(deal.stage),
        ] {
            let Some((_, behind)) = rest.split_once(&said) else {
                panic!("{said:?} is not in what is left: {rest}");
            };
            rest = behind;
        }
    }
    assert_eq!(listed.matches("trade ").count(), 10);
    assert!(text.contains("None: the archive verifies"), "{text}");
}

#[tokio::test]
async fn holes_unsigned_archives_and_failed_verification_are_alarms() {
    let signed = Signed::play(710, 60).await;
    let game = &signed.game;
    let console = Console::over(&game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let (owner, first) = (OwnerId(2), BatchNumber(77));
    let hole = Hole {
        after: Hash([1; 32]),
        named: Hash([2; 32]),
        until: BatchNumber(79),
    };
    commit(&game.store, |transaction| {
        transaction.set(&hole_key(owner, first), &hole.encode())?;
        transaction.clear_range(&checkpoints::checkpoints(SHARD))
    })
    .await;
    let text = iris.get("/").await.text();
    let alarms = between(&text, "Alarms", "Open cases");
    assert!(alarms.contains("Nothing of the archive is signed."), "{alarms}");
    assert!(
        alarms.contains("The log of owner 2 has a hole: batch 77 is missing, and batch 79 follows."),
        "{alarms}"
    );
    // If the archive does not verify, the page shows that instead of its lists; the search box stays.
    let leaf = game.leaves.len() - 1;
    let mut bytes = game.leaves[leaf].1.clone();
    *bytes.last_mut().expect("not empty") ^= 1;
    game.write(leaf, &bytes).await;
    let console = Console::over(&game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let shown = iris.get("/").await;
    assert_eq!(shown.status, StatusCode::INTERNAL_SERVER_ERROR);
    let text = shown.text();
    assert!(
        text.contains("This does not verify") && !text.contains("Recent trades"),
        "{text}"
    );
    assert!(shown.html().contains("id=\"search\""));
}

#[tokio::test]
async fn an_account_is_titled_by_its_name_until_erasure() {
    let mut signed = Signed::play(720, 120).await;
    log_in(&mut signed.game, NAME).await;
    signed.sign().await;
    let game = &signed.game;
    let console = Console::over(&game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let shown = iris.get("/account/100").await;
    let heading = |shown: &Shown| between(shown.html(), "<h1>", "</h1>").to_owned();
    let quoted = "&quot;&lt;img src=x onerror=alert(1)&gt;\\u{22}'&amp;&quot;";
    assert_eq!(
        heading(&shown),
        format!("{quoted} <span class=\"quiet\">stored entity 100</span>")
    );
    assert_eq!(
        between(shown.html(), "<title>", "</title>"),
        "Stored entity 100 · Annals console",
        "browsers keep titles"
    );
    assert!(!shown.html().contains("<img"));
    let other = iris.get("/account/101").await;
    assert_eq!(
        heading(&other),
        "Stored entity 101",
        "who never logged in by a name that can be read"
    );
    assert!(other.text().contains("(stored entity 100)"), "{}", other.text());
    // A name whose key is missing from the store is not shown, and nothing is shown of a person who was forgotten.
    commit(&game.store, |transaction| {
        transaction.clear(&personal::key_key(DatabaseId(100)))
    })
    .await;
    assert_eq!(heading(&iris.get("/account/100").await), "Stored entity 100");
    let forgotten = Forgotten {
        at: 1,
        leaves: LeafIndex(3),
        by: "olga".to_owned(),
        reason: "asked".to_owned(),
    };
    commit(&game.store, |transaction| {
        transaction.set(&personal::key_key(DatabaseId(100)), &KEY)?;
        transaction.set(&personal::forgotten_key(DatabaseId(100)), &forgotten.encode())
    })
    .await;
    assert_eq!(heading(&iris.get("/account/100").await), "Stored entity 100");
    for view in console.views() {
        assert!(!view.what.contains("img"), "{view}");
    }
}

#[tokio::test]
async fn a_kind_has_the_name_of_its_time() {
    let mut signed = Signed::play(730, 60).await;
    let before = signed.game.truths.len();
    signed.game.rename("ducat").await;
    signed.game.play_on(60).await;
    signed.sign().await;
    let game = &signed.game;
    let console = Console::over(&game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let (_folder, index) = signed.index().await;
    let owned = index.owned(&game.store, DatabaseId(100)).await.expect("known");
    let mut seen = [0; 2];
    for (page, steps) in owned.steps.chunks(50).enumerate() {
        let text = iris.get(&format!("/account/100?page={}", page + 1)).await.text();
        let mut rest = between(&text, "What it did", "Hand it on");
        for step in steps {
            let is_new = step.cited.entry.number.0 > before as u64;
            let name = ["coin", "ducat"][usize::from(is_new)];
            for amount in step.held.after.values().flat_map(|assets| assets.units.values()) {
                let said = format!("{amount} {name} (kind 1)");
                let Some((_, behind)) = rest.split_once(&said) else {
                    panic!(
                        "entry {}: {said:?} is not in what is left: {rest}",
                        step.cited.entry.number
                    );
                };
                (rest, seen[usize::from(is_new)]) = (behind, seen[usize::from(is_new)] + 1);
            }
        }
    }
    assert!(seen[0] > 5 && seen[1] > 5, "{seen:?}");
    let last = iris.get("/account/100").await.text();
    let has = between(&last, "What it has", "What it did");
    assert!(has.contains("ducat (kind 1)") && !has.contains("coin"), "{has}");
}

#[tokio::test]
async fn only_auditors_open_annotate_and_close_cases() {
    let signed = Signed::play(740, 60).await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let page = iris.get("/account/100").await;
    let form = page.field("form");
    let sent = |text: &str, rest: &str| format!("form={form}&text={text}{rest}").into_bytes();
    let opened = iris
        .post("/cases", FORM, sent("lost+a+sword+%3Cb%3E", "&about=/account/100"))
        .await;
    assert_eq!(
        (opened.status, opened.header("location")),
        (StatusCode::SEE_OTHER, "/case/1")
    );
    let other = iris.post("/cases", FORM, sent("another+one", "&about=")).await;
    assert_eq!(other.header("location"), "/case/2");
    let shown = iris.get("/account/100").await;
    assert!(
        shown
            .text()
            .contains("Case 1 about stored entity 100: lost a sword <b>"),
        "{}",
        shown.text()
    );
    assert!(!shown.html().contains("sword <b>"));
    assert!(!iris.get("/account/101").await.text().contains("Case 1 about"));
    let noted = iris.post("/case/1", FORM, sent("given+away", "&act=noted")).await;
    assert_eq!(noted.header("location"), "/case/1");
    let casework = iris.get("/").await.text();
    let open = between(&casework, "Open cases", "Recent trades");
    let (first, second) = (open.find("Case 1 about"), open.find("Case 2"));
    assert!(first.is_some() && first < second, "the oldest first: {open}");
    let closed = iris.post("/case/1", FORM, sent("it+stands", "&act=closed")).await;
    assert_eq!(closed.header("location"), "/case/1");
    let case = iris.get("/case/1").await.text();
    for said in [
        "Case 1 closed",
        "lost a sword <b>",
        "opened by iris",
        "given away",
        "it stands",
        "closed by iris",
    ] {
        assert!(case.contains(said), "{said}: {case}");
    }
    let casework = iris.get("/").await.text();
    assert!(!casework.contains("Case 1 about") && casework.contains("Case 2"));
    refusals(&console, &mut iris, &form).await;
    let written: Vec<String> = console.views().iter().map(ToString::to_string).collect();
    for said in [
        ": opened case 1, about /account/100: lost a sword <b>",
        ": opened case 2: another one",
        ": noted case 1: given away",
        ": closed case 1: it stands",
    ] {
        assert!(written.iter().any(|line| line.ends_with(said)), "{said}: {written:#?}");
    }
}

/// Steps in cases that are rejected, and visitors whose steps are.
async fn refusals(console: &Console, iris: &mut Visitor, form: &str) {
    let sent = |text: &str, rest: &str| format!("form={form}&text={text}{rest}").into_bytes();
    for (address, body, status) in [
        ("/case/1", sent("again", "&act=noted"), StatusCode::BAD_REQUEST),
        ("/case/9", sent("again", "&act=closed"), StatusCode::BAD_REQUEST),
        ("/case/2", sent("+", "&act=noted"), StatusCode::BAD_REQUEST),
        ("/case/2", sent("again", "&act=opened"), StatusCode::BAD_REQUEST),
        ("/cases", sent("x", "&about=//evil.example"), StatusCode::BAD_REQUEST),
        ("/cases", b"form=other&text=x&about=".to_vec(), StatusCode::BAD_REQUEST),
        (
            "/cases",
            sent(&"x".repeat(TEXT_BYTES + 1), "&about="),
            StatusCode::BAD_REQUEST,
        ),
    ] {
        assert_eq!(iris.post(address, FORM, body).await.status, status, "{address}");
    }
    assert_eq!(iris.get("/case/9").await.status, StatusCode::NOT_FOUND);
    let mut otto = Visitor::named(console, "otto").await;
    for address in ["/cases", "/case/2"] {
        let shown = otto.post(address, FORM, sent("mine", "&act=closed&about=")).await;
        assert_eq!(shown.status, StatusCode::FORBIDDEN, "{address}");
    }
}

#[test]
fn cases_are_stored_with_the_access_log_and_bounded() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("views.log");
    let seen = ViewRecord {
        who: "iris",
        role: "auditor",
        from: "127.0.0.1",
        what: "",
    };
    let log = ViewLog::open(&path, WallTime(0)).expect("new");
    let first = log
        .open_case(WallTime(1), seen, Some("/trade/5/1"), "one")
        .expect("opened");
    for note in 1..NOTES {
        log.go_on_with_case(WallTime(2), seen, (first, Act::Noted), &format!("note {note}"))
            .expect("noted");
    }
    let long = log.go_on_with_case(WallTime(2), seen, (first, Act::Noted), "more");
    assert!(matches!(long, Err(CaseError::TooLong(1))));
    for _ in 1..OPEN_CASES {
        log.open_case(WallTime(3), seen, None, "another").expect("opened");
    }
    let many = log.open_case(WallTime(3), seen, None, "one too many");
    assert!(matches!(many, Err(CaseError::TooMany)));
    for about in ["/trade/5", "account/5", "/account/x", "/account/5/", "/search", ""] {
        let opened = log.open_case(WallTime(3), seen, Some(about), "x");
        assert!(matches!(opened, Err(CaseError::About)), "{about:?}");
    }
    log.go_on_with_case(WallTime(4), seen, (first, Act::Closed), "done")
        .expect("closed");
    let number = log
        .open_case(WallTime(5), seen, None, "there is room again")
        .expect("opened");
    assert_eq!(number, OPEN_CASES as u64 + 1, "no number is given twice");
    let before = log.open_cases();
    drop(log);
    let log = ViewLog::open(&path, WallTime(6)).expect("as it was");
    assert_eq!(log.open_cases(), before);
    let closed = log.case(first).expect("read").expect("there");
    assert!(!closed.is_open() && closed.about.as_deref() == Some("/trade/5/1"));
    assert_eq!(closed.steps.len(), NOTES + 1);
    assert_eq!(
        (closed.steps[1].text.as_str(), closed.steps[NOTES].text.as_str()),
        ("note 1", "done")
    );
    assert_eq!(log.case(9_999).expect("read"), None);
}
