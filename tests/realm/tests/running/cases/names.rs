//! Replaces numbers that differ from realm to realm by numbers that are the same in all.
//!
//! A moment or an entry is numbered by its rank among those of the same report, which preserves order; all else
//! (entities, items, events, sessions, hashes) is numbered in the order of first appearance. Numbers that are the same
//! in every realm (kinds, slots, amounts, versions, the number of an order or of a session's call) are kept. The base
//! of an entity is chosen by the realm, and the number of events in a batch depends on timing: both are left out. Each
//! event has a batch and a moment of its own. Initial holdings are created concurrently with an account's first log-in,
//! and either may come first: both are reported as of the first second.

use std::collections::{BTreeMap, BTreeSet};

use regex::{Captures, Regex};

/// Patterns of replaced numbers, by kind; the first match applies.
const NUMBERS: &str = concat!(
    r"(?P<moment>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z)",
    r"|verified: \d+ batches of the archive, root (?P<root>[0-9a-f]{64}), \d+ entries",
    r"|\b(?P<hash>[0-9a-f]{64}|[0-9a-f]{32})\b",
    r"|(?m:^  entry +(?P<entry>\d+)$)",
    r"|(?P<batch>\b\d+@\d+) #(?P<event>\d+)",
    r"|(?P<asker>\b\d+)/\d+\b",
    r"|stored entity (?P<stored>\d+)|entity (?P<database>\d+) of the database|check-out (?P<checkout>\d+)",
    r"|(?:entity|Account) (?P<entity>\d+)(?: \((?:base|cell)\), call (?P<call>\d+))?|item (?P<item>\d+)",
    r"|127\.0\.0\.1:(?P<port>\d+)",
    r"|owner \d+, call (?P<owner_call>\d+)|session (?P<session>\d+)(?: of owner (?P<owner>\d+))?",
);

/// Marks a ledger entry that is made concurrently with an account's first log-in.
const BEGINNING: &str = "what every account begins with";

/// The hour in which moments are reported, one second each.
const HOUR: &str = "2026-11-23T10";

/// The replacement of each number of one sort.
#[derive(Default)]
struct Counted(BTreeMap<String, usize>);

/// Replacements of all sorts.
struct Names {
    /// Each with the number of the event reported beside it, or 0: events of one batch have the same moment. Both are
    /// omitted for initial holdings.
    moments: Vec<(String, u64)>,
    entries: Vec<u64>,
    counted: BTreeMap<&'static str, Counted>,
}

/// The text with all these numbers replaced.
pub(super) fn normalized(text: &str) -> String {
    let numbers = Regex::new(NUMBERS).expect("it is a pattern");
    let of = |name: &'static str| numbers.captures_iter(text).filter_map(move |found| found.name(name));
    let at = |found: regex::Match<'_>| {
        let paragraph = text[found.start()..].split("\n\n").next().unwrap_or_default();
        if paragraph.contains(BEGINNING) {
            return (String::new(), 0);
        }
        let mut events = numbers.captures_iter(paragraph).filter_map(|found| found.name("event"));
        let event = events.next().and_then(|found| found.as_str().parse().ok());
        (found.as_str().to_owned(), event.unwrap_or(0))
    };
    let moments: BTreeSet<(String, u64)> = of("moment").map(at).collect();
    let entries: BTreeSet<u64> = of("entry").filter_map(|found| found.as_str().parse().ok()).collect();
    let mut names = Names {
        moments: moments.into_iter().collect(),
        entries: entries.into_iter().collect(),
        counted: BTreeMap::new(),
    };
    let normalized = numbers.replace_all(text, |found: &Captures<'_>| match found.name("moment") {
        Some(moment) => names.second(&at(moment)),
        None => names.replacement(found),
    });
    normalized.into_owned()
}

impl Names {
    fn second(&self, moment: &(String, u64)) -> String {
        let second = self.moments.iter().position(|known| known == moment);
        let second = second.expect("it was collected");
        format!("{HOUR}:{:02}:{:02}.000Z", second / 60, second % 60)
    }

    fn replacement(&mut self, found: &Captures<'_>) -> String {
        let named = |name: &str| found.name(name).map(|found| found.as_str());
        let whole = &found[0];
        if let Some(entry) = named("entry") {
            let place = self.entries.iter().position(|known| known.to_string() == entry);
            return whole.replace(entry, &(1 + place.expect("it was collected")).to_string());
        }
        if named("root").is_some() {
            let root = "e3".repeat(32);
            return format!("verified: 4096 batches of the archive, root {root}, 256 entries");
        }
        if let (Some(batch), Some(event)) = (named("batch"), named("event")) {
            let owner = batch.split('@').next().unwrap_or_default();
            let place = self.place("event", &format!("{owner} #{event}"));
            return format!("3@{} #{}", 100 + place, 1_000 + place);
        }
        if let Some(hash) = named("hash") {
            return format!("{:0width$x}", self.place("hash", hash), width = hash.len());
        }
        let mut normalized = whole.to_owned();
        if let Some(call) = named("call") {
            let of_whom = format!("{call} of {}", named("entity").unwrap_or_default());
            normalized = normalized.replace(
                &format!("call {call}"),
                &format!("call {}", self.place("call", &of_whom)),
            );
        }
        if let Some(owner) = named("owner") {
            normalized = normalized.replace(&format!("owner {owner}"), "owner 3");
        }
        if let Some(call) = named("owner_call") {
            normalized = format!("owner 1, call {}", self.place("owner_call", call));
        }
        for (name, sort, from) in [
            ("asker", "entity", 1_048_576),
            ("entity", "entity", 1_048_576),
            ("stored", "stored", 100),
            ("database", "stored", 100),
            ("checkout", "checkout", 0),
            ("item", "item", 0),
            ("port", "port", 50_000),
            ("session", "session", 2_097_152),
        ] {
            if let Some(number) = named(name) {
                normalized = normalized.replacen(number, &(from + self.place(sort, number)).to_string(), 1);
            }
        }
        normalized
    }

    /// Index of a number among those of its sort.
    fn place(&mut self, sort: &'static str, number: &str) -> usize {
        let Counted(known) = self.counted.entry(sort).or_default();
        let next = known.len() + 1;
        *known.entry(number.to_owned()).or_insert(next)
    }
}

#[test]
fn numbers_are_normalized_by_their_kind() {
    let text = "entity 77 of stored entity 900 gives item 31 (kind 2) in 77/4 at 5@812 #99\n  entry  51\n\
                2026-01-02T03:04:05.678Z\n  entry  47\n2026-01-02T03:04:05.670Z; entity 901 of the database, Account 77, \
                stored entity 900 from 127.0.0.1:4711, by entity 78 (cell), call 9, by owner 2, call 31, client session 5 of owner 8, call 2";
    assert_eq!(
        normalized(text),
        "entity 1048577 of stored entity 101 gives item 1 (kind 2) in 1048577/4 at 3@101 #1001\n  entry  2\n\
         2026-11-23T10:00:01.000Z\n  entry  1\n2026-11-23T10:00:00.000Z; entity 102 of the database, Account 1048577, \
         stored entity 101 from 127.0.0.1:50001, by entity 1048578 (cell), call 1, by owner 1, call 1, client session 2097153 of owner 3, call 2"
    );
}

#[test]
fn events_of_one_batch_and_of_two_are_normalized_alike() {
    let one = "2026-01-02T03:04:05.678Z\n  3@812 #99\n\n2026-01-02T03:04:05.678Z\n  3@812 #100";
    let two = "2026-01-02T03:04:05.678Z\n  3@812 #99\n\n2026-01-02T03:04:05.680Z\n  3@813 #100";
    assert_eq!(normalized(one), normalized(two));
}

#[test]
fn the_order_of_account_and_first_session_does_not_change_the_text() {
    let text_at = |made: u8, came: u8| {
        normalized(&format!(
            "2026-01-02T03:04:0{made}.000Z\n  what  made: what every account begins with\n\n\
             2026-01-02T03:04:01.000Z\n  what  a life began\n\n2026-01-02T03:04:0{came}.000Z\n  what  a session came in"
        ))
    };
    assert_eq!(text_at(2, 3), text_at(3, 2));
    assert!(text_at(2, 3).starts_with("2026-11-23T10:00:00.000Z"));
}
