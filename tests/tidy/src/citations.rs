//! Protocol rules cited in comments and documents, as `(L1)`, `(C1 to C6)` or `rule F17`, exist in `docs/protocol.md`.

use std::collections::BTreeSet;

use crate::Violation;
use crate::repository::SourceFile;

/// The ids of all rules: the bold words at the start of the protocol's list items.
pub fn rules(protocol: &str) -> BTreeSet<String> {
    let heads = protocol
        .lines()
        .filter_map(|line| line.trim_start().strip_prefix("- **"));
    heads
        .filter_map(|head| Some(head.split([' ', '*', '.']).next()?.to_owned()))
        .filter(|id| is_id(id))
        .collect()
}

/// Citations in `file` of rules that are not among `rules`. Ids with a letter that no rule has belong to something
/// else.
pub fn check(file: &SourceFile, rules: &BTreeSet<String>) -> Vec<Violation> {
    let (rust, markdown) = (file.has_extension("rs"), file.has_extension("md"));
    let mut found = Vec::new();
    for (number, line) in file.text.lines().enumerate() {
        if !(markdown || rust && line.trim_start().starts_with("//")) {
            continue;
        }
        for id in cited(line) {
            let has_series = rules.iter().any(|rule| rule.starts_with(&id[..1]));
            if has_series && !rules.contains(id) {
                let what = format!("docs/protocol.md has no rule {id}");
                found.push(Violation::at(&file.path, number + 1, what));
            }
        }
    }
    found
}

/// A capital letter and a number of one or two digits.
fn is_id(word: &str) -> bool {
    let mut letters = word.chars();
    letters.next().is_some_and(|letter| letter.is_ascii_uppercase())
        && (2..=3).contains(&word.len())
        && letters.all(|letter| letter.is_ascii_digit())
}

/// The ids in parentheses that contain nothing else, and those after the word "rule".
fn cited(line: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let parenthesised = line.split('(').skip(1).filter_map(|rest| Some(rest.split_once(')')?.0));
    for part in parenthesised {
        let words: Vec<&str> = words(part)
            .filter(|word| !matches!(*word, "to" | "and" | "rule" | "rules"))
            .collect();
        if words.iter().all(|word| is_id(word)) {
            found.extend(words);
        }
    }
    for (at, _) in line.match_indices("rule") {
        let behind = words(&line[at..]).skip(1);
        found.extend(
            behind
                .take_while(|word| is_id(word) || matches!(*word, "to" | "and"))
                .filter(|word| is_id(word)),
        );
    }
    found
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split([' ', ',', ';', ')', ':', '.'])
        .filter(|word| !word.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn citations_of_missing_rules_are_found() {
        let rules = rules("## C. Calls\n- **C1** The sender.\n  - **C12 Long.** More.\n- **An owner** is one log.\n");
        assert_eq!(rules, BTreeSet::from(["C1".to_owned(), "C12".to_owned()]));
        let file = |path: &str, text: &str| SourceFile {
            path: path.to_owned(),
            text: text.to_owned(),
            size: text.len() as u64,
        };
        let found = |path: &str, text: &str| -> Vec<String> {
            let found = check(&file(path, text), &rules);
            found.into_iter().map(|violation| violation.what).collect()
        };
        let none: [String; 0] = [];
        assert_eq!(
            found("a.rs", "/// Once (C1 to C12), rule C1; (Z9), (a C7 of another kind)"),
            none
        );
        assert_eq!(found("a.rs", "let calls = (C7, C8);"), none);
        assert_eq!(found("a.rs", "// Lost (C1, C7)"), ["docs/protocol.md has no rule C7"]);
        assert_eq!(
            found("a.md", "by rules C1 and C9."),
            ["docs/protocol.md has no rule C9"]
        );
    }
}
