//! Banned words: marks of unfinished parts, references to where or by whom something was made, and meaningless file
//! names.

use crate::Violation;
use crate::repository::SourceFile;

/// A word, and the reason. Words are concatenated from halves, so that this file passes its own rule.
type Ban = (&'static str, &'static str);

const PRIVATE: &str = "not a standard term: use the one in docs/glossary.md";

/// Matched where no letter or digit is adjacent: words in capitals match capitals only, others match any case.
const WORDS: &[Ban] = &[
    (concat!("to", "do!"), "finish it, or leave it out"),
    (concat!("TO", "DO"), "finish it, or leave it out"),
    (concat!("unimple", "mented!"), "finish it, or leave it out"),
    (concat!("not yet imple", "mented"), "finish it, or leave it out"),
    (concat!("FIX", "ME"), "fix it"),
    (concat!("XX", "X"), "fix it"),
    (
        concat!("HA", "CK"),
        "implement it properly, or explain why this is proper",
    ),
    (concat!("for ", "now"), "document what is, not what was or may be"),
    (concat!("place", "holder"), "finish it, or leave it out"),
    (concat!("simplified ", "for"), "do the real thing"),
    (concat!("in a real ", "system"), "this is a real system"),
    (
        concat!("Co-authored", "-by"),
        "no trailers: the history records the authors",
    ),
    (
        concat!("Generated", "-by"),
        "no trailers: the history records the authors",
    ),
    (concat!("/wo", "rk/"), "a path of one machine"),
    (concat!("/ro", "ot/"), "a path of one machine"),
    (concat!("/ho", "me/"), "a path of one machine"),
    (concat!("me", "nded"), "write: repaired, fixed, restarted"),
    (concat!("me", "nding"), "write: repair, fix, restart"),
    (concat!("let go ", "by"), "write: deleted by, released by"),
    (concat!("to", "ld"), "write: sent, received, reported, shown"),
    (concat!("hau", "nt"), PRIVATE),
    (concat!("hau", "nts"), PRIVATE),
    (concat!("hau", "nted"), PRIVATE),
    (concat!("glim", "pse"), PRIVATE),
    (concat!("gazet", "teer"), PRIVATE),
    (concat!("rei", "ns"), PRIVATE),
    (concat!("ros", "ter"), PRIVATE),
    (concat!("staf", "fing"), PRIVATE),
    (concat!("py", "pi.org"), "no registry host names: clients know theirs"),
    (
        concat!("pythonhos", "ted.org"),
        "no registry host names: clients know theirs",
    ),
    (
        concat!("index.cra", "tes.io"),
        "no registry host names: clients know theirs",
    ),
    (
        concat!("registry.npm", "js.org"),
        "no registry host names: clients know theirs",
    ),
    (
        concat!("deb.deb", "ian.org"),
        "no registry host names: clients know theirs",
    ),
];

/// Start of such a loop.
const LOOP: &str = concat!("for ", "now in ");

/// A key of JSON that programs of auditors read.
const JSON_KEY: &str = concat!("\"to", "ld\"");

/// File and folder names that say nothing about their contents.
const NAMES: &[&str] = &[
    "common", "core", "engine", "helper", "helpers", "lib", "manager", "misc", "types", "util", "utils",
];

/// Banned words in a file, and in its name. The lock file and the licence are exempt.
pub fn check(file: &SourceFile) -> Vec<Violation> {
    let mut found: Vec<_> = meaningless_name(&file.path).into_iter().collect();
    if matches!(file.path.as_str(), "Cargo.lock" | "LICENSE") {
        return found;
    }
    // Few files have any of them, so that few are looked through line by line.
    let lower = file.text.to_lowercase();
    let occurs = |(word, _): &&Ban| lower.contains(&word.to_lowercase());
    let occurring: Vec<&Ban> = WORDS.iter().filter(occurs).collect();
    if occurring.is_empty() {
        return found;
    }
    for (number, line) in file.text.lines().enumerate() {
        // A `for` loop over a variable with this name is not a match, nor is the key in answers of `annals audit`.
        let line = line.replace(LOOP, "").replace(JSON_KEY, "");
        let lower = line.to_lowercase();
        for (word, reason) in &occurring {
            if contains_word(&line, word) || (!is_shouted(word) && contains_word(&lower, &word.to_lowercase())) {
                found.push(Violation::at(&file.path, number + 1, format!("{word:?}: {reason}")));
            }
        }
    }
    found
}

fn is_shouted(word: &str) -> bool {
    !word.contains(char::is_lowercase) && word.contains(char::is_uppercase)
}

/// Whether `word` occurs in `text` with no letter or digit adjacent.
fn contains_word(text: &str, word: &str) -> bool {
    text.match_indices(word).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + word.len()..].chars().next();
        let edge = |inner: Option<char>, outer: Option<char>| {
            !(inner.is_some_and(char::is_alphanumeric) && outer.is_some_and(char::is_alphanumeric))
        };
        edge(word.chars().next(), before) && edge(word.chars().next_back(), after)
    })
}

/// A Rust module or a folder with a meaningless name. `src/lib.rs` is cargo's name for a crate's root.
fn meaningless_name(path: &str) -> Option<Violation> {
    let rust = path.strip_suffix(".rs")?;
    let bad = rust.split('/').find(|part| NAMES.contains(part))?;
    if bad == "lib" && rust.ends_with("src/lib") {
        return None;
    }
    Some(Violation::of(
        path,
        format!("the name {bad:?} is meaningless: name it after its contents"),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_banned_word_is_found() {
        for (word, _) in WORDS {
            let quiet = if is_shouted(word) {
                (*word).to_owned()
            } else {
                word.to_lowercase()
            };
            for text in [format!("// see {word}, here"), word.to_uppercase(), quiet] {
                let found = check(&SourceFile::new("docs/a.md", &format!("fine\n{text}\n")));
                assert!(found.iter().any(|violation| violation.line == Some(2)), "{text}");
            }
        }
    }

    #[test]
    fn banned_words_inside_other_words_are_accepted() {
        for fine in [
            "autodock",
            "for nowhere",
            "shacked",
            "the framework/",
            "hackney",
            "a homely/place",
        ] {
            assert_eq!(check(&SourceFile::new("a.md", fine)), [], "{fine}");
        }
    }

    #[test]
    fn meaningless_file_names_are_found() {
        for bad in [
            "services/host/src/utils.rs",
            "services/core/src/lib.rs",
            "tests/common/mod.rs",
            "schema/def/lib.rs",
        ] {
            assert_eq!(check(&SourceFile::new(bad, "")).len(), 1, "{bad}");
        }
        for fine in ["services/host/src/lib.rs", "schema/def/src/data_type.rs", "ops/lib.sh"] {
            assert_eq!(check(&SourceFile::new(fine, "")), [], "{fine}");
        }
    }
}
