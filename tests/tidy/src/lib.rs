//! Rules of the codebase as tests: layering, sizes, words.
//!
//! Responsible for: rules that a reviewer would otherwise have to remember. Each rule is a module with a function from
//! text or metadata to [`Violation`]s, and with tests that it catches one; `tests/repository.rs` applies all of them to
//! the repository. Not responsible for: what the compiler, clippy, rustfmt and cargo-deny check already.

pub mod attributes;
pub mod citations;
pub mod docs;
pub mod documents;
pub mod layering;
pub mod manifests;
pub mod outsiders;
pub mod purity;
pub mod reference;
pub mod repository;
pub mod sizes;
pub mod targets;
pub mod words;

use std::fmt;

/// A violation of a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Violation {
    /// The file, relative to the root of the repository; or the crate.
    pub place: String,
    /// The line, from 1; `None` if it concerns the whole.
    pub line: Option<usize>,
    /// The problem, and what to do.
    pub what: String,
}

impl Violation {
    /// A violation by a file or crate as a whole.
    pub fn of(place: &str, what: impl Into<String>) -> Self {
        Self {
            place: place.to_owned(),
            line: None,
            what: what.into(),
        }
    }

    /// A violation in one line of a file.
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
