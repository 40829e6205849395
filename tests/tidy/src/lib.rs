//! Rules of the codebase as tests: layering, sizes, words.
//!
//! Responsible for: what a reviewer would otherwise have to remember. Each rule is a module with a function from text or
//! metadata to [`Violation`]s and with tests that it catches one; `tests/repository.rs` holds the repository against all of
//! them. Not responsible for: what the compiler, clippy, rustfmt and cargo-deny check already.

pub mod attributes;
pub mod citations;
pub mod documents;
pub mod layering;
pub mod manifests;
pub mod outsiders;
pub mod purity;
pub mod repository;
pub mod sizes;
pub mod words;

use std::fmt;

/// Something that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, from the root of the repository; or the crate.
    pub place: String,
    /// The line, from 1; `None` when it is about the whole.
    pub line: Option<usize>,
    /// What is wrong and what to do.
    pub what: String,
}

impl Violation {
    /// About a file or crate as a whole.
    pub fn of(place: &str, what: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            line: None,
            what: what.into(),
        }
    }

    /// About one line of a file.
    pub fn at(place: &str, line: usize, what: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            line: Some(line),
            what: what.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            Some(line) => write!(f, "{}:{line}: {}", self.place, self.what),
            None => write!(f, "{}: {}", self.place, self.what),
        }
    }
}
