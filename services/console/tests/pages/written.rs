//! The access log.

use std::{fs, os::unix::fs::PermissionsExt, path::Path};

use annals_console::views::{Head, ViewLog, ViewRecord, ViewsError, check};
use annals_evidence::words;
use annals_ids::{Hash, WallTime};
use axum::http::StatusCode;
use tempfile::TempDir;

use crate::{
    answers::escaped,
    archive::{Console, NAME, Signed},
    visitor::Visitor,
};

#[tokio::test]
async fn each_access_is_logged_with_user_page_and_time() {
    let signed = Signed::play(600, 60).await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let looked = [
        "/",
        "/item/1?page=2",
        "/item/99999",
        "/search?q=%3Cb%3E",
        "/item/1/bundle",
    ];
    for address in looked {
        iris.get(address).await;
    }
    let form = iris.get("/verification").await.field("form");
    let given = iris.give("/verification", &form, ("pasted", "hello")).await;
    assert_eq!(given.status, StatusCode::OK);
    let views = console.views();
    let mut expected = vec!["logged in".to_owned()];
    let as_written = |address: &str| match address {
        "/search?q=%3Cb%3E" => "GET /search, which found nothing".to_owned(),
        address => format!("GET {address}"),
    };
    expected.extend(looked.map(as_written));
    expected.extend(["GET /verification".to_owned(), "POST /verification".to_owned()]);
    let found: Vec<&str> = views.iter().map(|view| view.what.as_str()).collect();
    assert_eq!(found, expected);
    for view in &views {
        assert_eq!((view.who.as_str(), view.role.as_str()), ("iris", "auditor"));
        assert!(view.when.starts_with("20") && !view.from.is_empty());
    }
    // Pages that need no role are not recorded.
    iris.get("/style.css").await;
    assert_eq!(console.views().len(), views.len());
}

#[tokio::test]
async fn no_player_name_is_logged() {
    let signed = Signed::play(605, 60).await;
    let console = Console::over(&signed.game.store).await;
    let mut iris = Visitor::named(&console, "iris").await;
    let name = escaped(NAME);
    let found = iris.get(&format!("/search?q={name}")).await;
    assert_eq!(found.header("location"), "/account/100", "nor is it in an address");
    for address in [
        "/account/100",
        &format!("/account/100?name={name}&page=1"),
        &format!("/search?q={}", escaped("gandalf")),
        &format!("/search?q={}", "x".repeat(301)),
        "/search?q=1",
        &format!("/item/1?{name}"),
        "/entity/1000?at=00:00:01",
        "/entity/1000?%61t=00:00:02",
    ] {
        iris.get(address).await;
    }
    // A search by a visitor without the role does not record the name either.
    let mut otto = Visitor::named(&console, "otto").await;
    otto.get(&format!("/search?q={name}")).await;
    let views = console.views();
    let found: Vec<&str> = views.iter().map(|view| view.what.as_str()).collect();
    let expected = [
        "logged in",
        "GET /search, which led to /account/100",
        "GET /account/100",
        "GET /account/100?page=1",
        "GET /search, which found nothing",
        "GET /search, which had no answer",
        "GET /search, which led to /item/1",
        "GET /item/1",
        "GET /entity/1000?at=00%3A00%3A01",
        "GET /entity/1000?at=00%3A00%3A02",
        "logged in",
        "GET /search",
    ];
    assert_eq!(found, expected);
    let file = console.folder.path().join("views.log");
    let mode = fs::metadata(&file).expect("it is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o600, "nobody else reads who looked at what");
}

struct Kept {
    folder: TempDir,
    heads: Vec<Head>,
}

impl Kept {
    /// A closed file with some views.
    fn of(count: u64) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let log = ViewLog::open(&folder.path().join("views.log"), WallTime(0)).expect("new");
        let mut heads = Vec::new();
        for number in 0..count {
            let what = format!("GET /item/{number}?<\"\u{202e}\n>");
            let seen = ViewRecord {
                who: "iris",
                role: "auditor",
                from: "127.0.0.1",
                what: &what,
            };
            heads.push(log.write(WallTime(number), seen).expect("written"));
        }
        Self { folder, heads }
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("views.log")
    }

    fn last(&self) -> Head {
        self.heads.last().copied().unwrap_or_default()
    }
}

fn checked(path: &Path, kept: &[Head]) -> Result<Head, ViewsError> {
    check(path, kept, |_| {})
}

#[test]
fn the_access_log_round_trips() {
    let kept = Kept::of(5);
    let mut seen = Vec::new();
    let head = check(&kept.path(), &kept.heads, |view| seen.push(view.clone())).expect("as it was written");
    assert_eq!(head, kept.last());
    assert_eq!(head.to_string().parse(), Ok(head));
    for (place, view) in seen.iter().enumerate() {
        assert_eq!(view.number, place as u64 + 1);
        assert_eq!(view.when, words::date(WallTime(place as u64)));
        assert_eq!(view.what, format!("GET /item/{place}?<\"\u{202e}\n>"));
        assert!(
            !view.to_string().contains(['\u{202e}', '\n']),
            "shown it cannot pass for something else"
        );
    }
    // The file continues where it ended.
    let log = ViewLog::open(&kept.path(), WallTime(9)).expect("opened");
    let seen = ViewRecord {
        who: "ida",
        role: "auditor",
        from: "::1",
        what: "GET /",
    };
    let next = log.write(WallTime(9), seen).expect("written");
    assert!(
        matches!(ViewLog::open(&kept.path(), WallTime(9)), Err(ViewsError::Taken(_))),
        "one console writes"
    );
    drop(log);
    assert_eq!(checked(&kept.path(), &kept.heads).expect("it continues"), next);
}

#[test]
fn a_changed_byte_is_found_wherever_it_is() {
    let kept = Kept::of(4);
    let bytes = fs::read(kept.path()).expect("read");
    for place in 0..bytes.len() {
        for bit in [0x01, 0x20, 0x80] {
            let mut changed = bytes.clone();
            changed[place] ^= bit;
            fs::write(kept.path(), &changed).expect("written");
            let found = checked(&kept.path(), &[kept.last()]);
            assert!(found.is_err(), "byte {place}, bit {bit:#x}");
            // Without a kept head, only a change within the last line goes undetected.
            let last = bytes[..bytes.len() - 1]
                .iter()
                .rposition(|byte| *byte == b'\n')
                .expect("lines");
            if place <= last {
                assert!(checked(&kept.path(), &[]).is_err(), "byte {place}, bit {bit:#x}");
                assert!(
                    ViewLog::open(&kept.path(), WallTime(0)).is_err(),
                    "nor does a console go on from it"
                );
            }
        }
    }
}

#[test]
fn missing_duplicate_and_reordered_lines_are_found() {
    let kept = Kept::of(5);
    let text = fs::read_to_string(kept.path()).expect("read");
    let lines: Vec<&str> = text.lines().collect();
    let join = |lines: &[&str]| lines.iter().map(|line| format!("{line}\n")).collect::<String>();
    for place in 0..lines.len() {
        let (mut without, mut twice) = (lines.clone(), lines.clone());
        without.remove(place);
        twice.insert(place, lines[place]);
        let mut swapped = lines.clone();
        swapped.swap(place, (place + 1) % lines.len());
        for changed in [without, twice, swapped] {
            fs::write(kept.path(), join(&changed)).expect("written");
            let found = checked(&kept.path(), &[kept.last()]);
            assert!(found.is_err(), "line {place}");
        }
        fs::write(kept.path(), join(&lines[..place])).expect("written");
        assert!(checked(&kept.path(), &[]).is_ok(), "a part of it is one of its own");
        let cut = checked(&kept.path(), &[kept.last()]);
        assert!(
            matches!(cut, Err(ViewsError::NotKept(head)) if head == kept.last()),
            "but not with what was kept"
        );
    }
    let forged = Head {
        number: 2,
        hash: Hash([1; 32]),
    };
    fs::write(kept.path(), &text).expect("written");
    assert!(matches!(checked(&kept.path(), &[forged]), Err(ViewsError::NotKept(head)) if head == forged));
}

#[test]
fn a_torn_last_line_is_truncated_and_reported() {
    let kept = Kept::of(3);
    let bytes = fs::read(kept.path()).expect("read");
    let last = bytes[..bytes.len() - 1]
        .iter()
        .rposition(|byte| *byte == b'\n')
        .expect("lines")
        + 1;
    for end in last + 1..bytes.len() {
        fs::write(kept.path(), &bytes[..end]).expect("written");
        assert!(matches!(checked(&kept.path(), &[]), Err(ViewsError::Torn)), "{end}");
        drop(ViewLog::open(&kept.path(), WallTime(7)).expect("repaired"));
        let mut seen = Vec::new();
        check(&kept.path(), &kept.heads[..2], |view| seen.push(view.what.clone())).expect("whole again");
        assert_eq!(seen.len(), 3);
        assert!(
            seen[2].contains(&format!("{} bytes of an incomplete line", end - last)),
            "{}",
            seen[2]
        );
    }
}
