//! The imports of a generated module: exactly the names that its text mentions.

use std::collections::BTreeSet;

use super::super::text::Text;

/// Importable names by path; a lower-case name is a module and is mentioned with `::` behind it.
const SOURCES: [(&str, &[&str]); 11] = [
    ("annals_client::typed", &["Called", "EntityEvent", "InterfaceMismatch"]),
    ("annals_client", &["ClientCore", "Event", "Millis"]),
    (
        "annals_def",
        &[
            "Component",
            "Mismatch",
            "Replaced",
            "Schema",
            "Step",
            "Tracked",
            "Value",
        ],
    ),
    (
        "annals_def::typed",
        &[
            "Bytes", "Dict", "Exactly", "Opaque", "Typed", "UdoRef", "Vector2", "Vector3", "Vector4",
        ],
    ),
    ("std::ops", &["Range", "RangeInclusive"]),
    (
        "annals_event",
        &["Audience", "CallError", "GlobalScope", "Outcome", "Place"],
    ),
    ("annals_event::ledger", &["Booking", "Order"]),
    (
        "annals_ids",
        &[
            "Address",
            "CallNumber",
            "ControllerId",
            "Direction",
            "EntityId",
            "Mailbox",
            "MemberId",
            "Part",
            "Position",
            "SpaceId",
            "TimerId",
            "TypeId",
        ],
    ),
    ("annals_node::inquiry", &["Learned", "NotLearned"]),
    (
        "annals_node::typed",
        &[
            "ArrayEdit",
            "Editable",
            "Failure",
            "Occasion",
            "OtherSchema",
            "Reply",
            "Returned",
            "Spot",
            "Wait",
        ],
    ),
    (
        "annals_node",
        &[
            "Answer",
            "Behaviour",
            "Bootstrap",
            "Caller",
            "Context",
            "ControllerSignal",
            "Denied",
            "GhostView",
            "Request",
            "TeleportFailed",
        ],
    ),
];

/// All importable names, which no other type may have.
pub(super) fn names() -> Vec<&'static str> {
    SOURCES.iter().flat_map(|(_, names)| names.iter()).copied().collect()
}

/// Writes the imports of a module with this text; `outer` are the types of the file around it.
pub(super) fn write(text: &mut Text, body: &str, outer: &[&str]) {
    let mentioned = mentioned(body);
    let is_mentioned = |name: &&&str| mentioned.contains(**name);
    let mut sources: Vec<(&str, Vec<&str>)> = vec![("super", outer.iter().filter(is_mentioned).copied().collect())];
    for (source, names) in SOURCES {
        let mut names: Vec<&str> = names.iter().filter(is_mentioned).copied().collect();
        if source == "annals_def" && mentioned.contains("typed::") {
            names.push("typed");
        }
        if source == "annals_node::typed" && mentioned.contains("node::") {
            sources.push(("annals_node", vec!["typed as node"]));
        }
        if source == "annals_client" && mentioned.contains("client::") {
            sources.push((source, vec!["typed as client"]));
        }
        sources.push((source, names));
    }
    let mut lines = Vec::new();
    for (source, mut names) in sources {
        names.sort_unstable();
        match names[..] {
            [] => {}
            [name] => lines.push((format!("use {source}::{name};"), Vec::new())),
            _ => lines.push((
                format!("use {source}::{{"),
                names.iter().map(|name| (*name).to_owned()).collect(),
            )),
        }
    }
    lines.sort_unstable_by_key(|(head, _)| order(head));
    for (head, names) in &lines {
        if names.is_empty() {
            text.line(head);
        } else {
            text.fill(head, names, "};");
        }
    }
    if !lines.is_empty() {
        text.gap();
    }
}

/// The sort key of imports, as in rustfmt: the file's own first, then by crate; single types, deeper paths, lists.
fn order(head: &str) -> (bool, String, u8, String) {
    let path = head.trim_start_matches("use ");
    let (source, rest) = path.split_once("::").unwrap_or((path, ""));
    let rank = match rest.chars().next() {
        Some('{') => 2,
        Some(first) if first.is_ascii_lowercase() => 1,
        _ => 0,
    };
    (source != "super", source.to_owned(), rank, rest.to_owned())
}

/// The words of a text, without documentation and strings. Words of paths include their `::`; a trait method gives its
/// trait.
fn mentioned(body: &str) -> BTreeSet<String> {
    let mut mentioned = BTreeSet::new();
    for line in body.lines().filter(|line| !line.trim_start().starts_with("///")) {
        for (at, part) in unquoted(line).enumerate() {
            if at % 2 == 1 {
                continue;
            }
            let mut rest = part.as_str();
            while let Some(start) = rest.find(|letter: char| letter.is_ascii_alphanumeric() || letter == '_') {
                // A name behind `::` is resolved by its path.
                let is_inside = rest[..start].ends_with("::");
                rest = &rest[start..];
                let end = rest.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
                let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
                if matches!(word, "into_value" | "from_value") {
                    mentioned.insert("Typed".to_owned());
                }
                if after.starts_with("::") {
                    mentioned.insert(format!("{word}::"));
                }
                if !is_inside {
                    mentioned.insert(word.to_owned());
                }
                rest = after;
            }
        }
    }
    mentioned
}

/// The parts of a line outside and inside quotes, alternating.
fn unquoted(line: &str) -> impl Iterator<Item = String> {
    let mut parts = vec![String::new()];
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        if letter == '"' {
            parts.push(String::new());
            continue;
        }
        if let Some(part) = parts.last_mut() {
            part.push(letter);
        }
        if letter == '\\' {
            letters.next();
        }
    }
    parts.into_iter()
}
