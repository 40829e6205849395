//! Nothing in a file is silently ignored: anything inserted anywhere into a valid file changes the diagnostics or the
//! compiled game.

use std::path::Path;

use crate::support::tree_of;
use annals_authoring::Explanation;
use annals_def::{Compiled, Rule, Tree, compile};

/// Offsets of each start tag: after its name, and after its `>`.
fn start_tags(text: &str) -> Vec<(usize, usize)> {
    let mut tags = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find('<') {
        at += found;
        let rest = &text[at..];
        if rest.starts_with("<!--") {
            at += rest.find("-->").expect("well formed");
        } else if rest[1..].starts_with(|c: char| c.is_alphabetic()) {
            let name = rest
                .find(|c: char| c.is_whitespace() || "/>".contains(c))
                .expect("well formed");
            let end = rest.find('>').expect("well formed");
            tags.push((at + name, at + end + 1));
            at += end;
        } else {
            at += 1;
        }
    }
    tags
}

/// The text with `content` inserted into the element of a start tag.
fn with_content(text: &str, (_, end): (usize, usize), content: &str) -> String {
    if !text[..end].ends_with("/>") {
        return format!("{}{content}{}", &text[..end], &text[end..]);
    }
    let start = text[..end].rfind('<').expect("well formed");
    let name: String = text[start + 1..]
        .chars()
        .take_while(|c| !c.is_whitespace() && !"/>".contains(*c))
        .collect();
    format!("{}>{content}</{name}>{}", &text[..end - 2], &text[end..])
}

/// Valid games: the cases that compile without diagnostics, and the right examples of the explanations.
fn good_games() -> Vec<(String, Tree)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../def/test_data/ok");
    let entries = folder.read_dir().expect("readable");
    let cases = entries.map(|entry| entry.expect("readable").path());
    let cases = cases.filter(|case| case.extension().is_some_and(|ending| ending == "case"));
    let rules = Rule::ALL
        .iter()
        .map(|rule| (format!("{rule:?}"), Explanation::of(*rule).right.tree()));
    let mut games: Vec<_> = cases
        .map(|case| (case.display().to_string(), tree_of(&case)))
        .chain(rules)
        .collect();
    games.retain(|(_, tree)| compile(tree).diagnostics.is_empty());
    games
}

/// Whether two games and their diagnostics are equal, except for positions, which move.
fn is_same(a: &Compiled, b: &Compiled) -> bool {
    let said = |compiled: &Compiled| {
        let mut said: Vec<_> = compiled
            .diagnostics
            .iter()
            .map(|d| (d.rule, d.message.clone()))
            .collect();
        said.sort();
        said
    };
    matches!((&a.schema, &b.schema), (Some(a), Some(b)) if a == b) && said(a) == said(b)
}

#[test]
fn any_insertion_into_a_valid_file_has_an_effect() {
    let mut ignored = Vec::new();
    let mut tried = 0;
    for (game, tree) in good_games() {
        let before = compile(&tree);
        for (path, bytes) in tree.files().filter(|(path, _)| !path.starts_with("server/")) {
            let text = std::str::from_utf8(bytes).expect("text");
            for tag in start_tags(text) {
                let changes = [
                    (
                        "an attribute",
                        format!("{} stray=\"9\"{}", &text[..tag.0], &text[tag.0..]),
                    ),
                    ("an element", with_content(text, tag, " <Stray9/> ")),
                    (
                        "an element with more",
                        with_content(text, tag, " <Stray9> 9 <x/> </Stray9> "),
                    ),
                    ("text", with_content(text, tag, " stray9 ")),
                ];
                for (what, changed) in changes {
                    tried += 1;
                    let mut after = tree.clone();
                    after.insert(path, changed);
                    if is_same(&before, &compile(&after)) {
                        let line = text[..tag.0].matches('\n').count() + 1;
                        let name = text[..tag.0].rsplit('<').next().unwrap_or_default();
                        ignored.push(format!("{game}: {path}:{line}: {what} in <{name}>"));
                    }
                }
            }
        }
    }
    assert!(tried > 2_000, "{tried}");
    assert!(
        ignored.is_empty(),
        "{} of {tried}:\n{}",
        ignored.len(),
        ignored.join("\n")
    );
}

#[test]
fn an_unread_file_is_reported() {
    for path in [
        "entity_defs/Avatar.DEF",
        "entity_defs/more.xml",
        "entity_defs/old/Avatar.def",
        "component_defs/Bag.xml",
    ] {
        let mut tree = Tree::new();
        tree.insert("entities.xml", "<root> <Avatar/> </root>");
        tree.insert("entity_defs/Avatar.def", "<root> </root>");
        tree.insert(path, "<root> </root>");
        let found = compile(&tree).diagnostics;
        assert!(
            found.iter().any(|diagnostic| diagnostic.place.file == path),
            "{path}: {found:?}"
        );
    }
}
