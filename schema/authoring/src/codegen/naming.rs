//! Converts names of the language to names in code.
//!
//! A name is split into words where the case of its letters changes or at a character other than a letter or digit, and
//! joined in the style of the target language. A character other than an ASCII letter or digit becomes its number
//! (`u91d1`), which cannot collide with other characters. The first user of a name keeps it; later users get a number
//! appended.

use std::collections::BTreeSet;

/// Rust keywords that can be written as raw identifiers (`r#`).
const KEYWORDS: [&str; 50] = [
    "abstract",
    "as",
    "async",
    "await",
    "become",
    "box",
    "break",
    "const",
    "continue",
    "do",
    "dyn",
    "else",
    "enum",
    "extern",
    "false",
    "final",
    "fn",
    "for",
    "gen",
    "if",
    "impl",
    "in",
    "let",
    "loop",
    "macro",
    "match",
    "mod",
    "move",
    "mut",
    "override",
    "priv",
    "pub",
    "ref",
    "return",
    "static",
    "struct",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "union",
    "unsafe",
    "unsized",
    "use",
    "virtual",
    "where",
    "while",
    "yield",
    "macro_rules",
];

/// Rust keywords that cannot be raw identifiers.
const NEVER: [&str; 4] = ["crate", "self", "super", "Self"];

/// Whether a name is a keyword of Rust, which no crate can have as its name.
#[must_use]
pub fn is_keyword(name: &str) -> bool {
    KEYWORDS.contains(&name) || NEVER.contains(&name)
}

/// The names in use in one scope.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope {
    taken: BTreeSet<String>,
}

impl Scope {
    /// A scope in which these names are taken.
    pub(super) fn with(names: &[&str]) -> Self {
        let taken = names.iter().map(|name| (*name).to_owned()).collect();
        Self { taken }
    }

    /// Claims a name in snake case, and returns it as written in Rust.
    pub(super) fn snake(&mut self, name: &str) -> String {
        let name = self.take(&snake(name), "_");
        if NEVER.contains(&name.as_str()) {
            return self.take(&format!("{name}_"), "_");
        }
        if KEYWORDS.contains(&name.as_str()) {
            return format!("r#{name}");
        }
        name
    }

    /// Claims a name in the style of constants.
    pub(super) fn constant(&mut self, name: &str) -> String {
        self.take(&snake(name).to_ascii_uppercase(), "_")
    }

    /// Claims a name in the style of types.
    pub(super) fn pascal(&mut self, name: &str) -> String {
        let name = self.take(&pascal(name), "");
        if NEVER.contains(&name.as_str()) {
            return self.take(&format!("{name}Type"), "");
        }
        name
    }

    /// Claims a name in the style of TypeScript members.
    pub(super) fn camel(&mut self, name: &str) -> String {
        self.take(&camel(name), "_")
    }

    /// Whether a name is free.
    pub(super) fn is_free(&self, name: &str) -> bool {
        !self.taken.contains(name)
    }

    fn take(&mut self, wanted: &str, before_number: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 2_u32;
        while !self.taken.insert(name.clone()) {
            name = format!("{wanted}{before_number}{number}");
            number += 1;
        }
        name
    }
}

/// `hpMax` and `HP_Max` as `hp_max`.
pub(super) fn snake(name: &str) -> String {
    let lower: Vec<String> = words(name).iter().map(|word| word.to_ascii_lowercase()).collect();
    begin_with_letter(lower.join("_"), "n")
}

/// `hpMax` and `HP_MAX` as `HpMax`.
pub(super) fn pascal(name: &str) -> String {
    begin_with_letter(words(name).iter().map(|word| capitalised(word)).collect(), "N")
}

/// `HP_MAX` as `hpMax`.
pub(super) fn camel(name: &str) -> String {
    let mut words = words(name).into_iter();
    let first = words.next().unwrap_or_default().to_ascii_lowercase();
    let rest: String = words.map(|word| capitalised(&word)).collect();
    begin_with_letter(first + &rest, "n")
}

fn capitalised(word: &str) -> String {
    let mut capitalised = word.to_ascii_lowercase();
    if let Some(first) = capitalised.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    capitalised
}

/// Prefixes names that begin with a digit or are empty.
fn begin_with_letter(name: String, letter: &str) -> String {
    if name.starts_with(|first: char| first.is_ascii_alphabetic()) {
        name
    } else {
        format!("{letter}{name}")
    }
}

/// The words of a name, in ASCII letters and digits.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let letters: Vec<char> = name.chars().collect();
    for (at, &letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| letters.get(at)).copied();
        let after = letters.get(at + 1).copied();
        if begins_word(before, letter, after) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if letter.is_ascii_alphanumeric() {
            word.push(letter);
        } else if letter != '_' && letter.is_alphanumeric() {
            word += &format!("u{:x}", u32::from(letter));
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether a letter begins a word: after a character other than a letter or digit, where lower case becomes upper, and
/// before the last capital of several that a lower-case letter follows.
fn begins_word(before: Option<char>, letter: char, after: Option<char>) -> bool {
    let Some(before) = before else { return true };
    let small = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    if !before.is_alphanumeric() || !letter.is_alphanumeric() || before.is_ascii() != letter.is_ascii() {
        return true;
    }
    letter.is_ascii_uppercase()
        && (small(before) || before.is_ascii_uppercase() && after.is_some_and(|after| after.is_ascii_lowercase()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_spelling() {
        for (name, expected) in [
            ("hp", ("hp", "Hp", "hp")),
            ("hpMax", ("hp_max", "HpMax", "hpMax")),
            ("HP_Max", ("hp_max", "HpMax", "hpMax")),
            ("modelID", ("model_id", "ModelId", "modelId")),
            ("HTTPServer2Go", ("http_server2_go", "HttpServer2Go", "httpServer2Go")),
            ("left.itemCount", ("left_item_count", "LeftItemCount", "leftItemCount")),
            ("__x__y_", ("x_y", "XY", "xY")),
            ("_3d", ("n3d", "N3d", "n3d")),
            ("金币", ("u91d1u5e01", "U91d1u5e01", "u91d1u5e01")),
            ("hp金币", ("hp_u91d1u5e01", "HpU91d1u5e01", "hpU91d1u5e01")),
            ("___", ("n", "N", "n")),
            ("", ("n", "N", "n")),
        ] {
            assert_eq!(
                (snake(name).as_str(), pascal(name).as_str(), camel(name).as_str()),
                expected,
                "{name}"
            );
        }
    }

    #[test]
    fn keywords_and_clashes_get_distinct_names_in_their_order() {
        let mut scope = Scope::with(&["created"]);
        let names = [
            "type", "TYPE", "self", "Self_", "created", "hpMax", "hp_max", "HPMax", "union",
        ];
        let expected = [
            "r#type",
            "type_2",
            "self_",
            "self_2",
            "created_2",
            "hp_max",
            "hp_max_2",
            "hp_max_3",
            "r#union",
        ];
        assert_eq!(names.map(|name| scope.snake(name)), expected);
        let mut scope = Scope::default();
        assert_eq!(
            ["self", "self", "a_b", "aB"].map(|name| scope.pascal(name)),
            ["SelfType", "Self2", "AB", "AB2"]
        );
    }
}
