//! Patterns of paths: `*` is any part of a segment, `**` any segments, and a path also stands for all below it.

use glob::{MatchOptions, Pattern};
use thiserror::Error;

/// Maximum patterns of a request.
pub const MAX_PATTERNS: usize = 64;

/// Maximum bytes of a pattern.
const MAX_PATTERN_BYTES: usize = 200;

const OPTIONS: MatchOptions = MatchOptions {
    case_sensitive: true,
    require_literal_separator: true,
    require_literal_leading_dot: false,
};

/// Patterns, of which a path must match at least one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patterns(Vec<Pattern>);

/// A pattern cannot be used.
#[derive(Debug, Error)]
pub enum BadPattern {
    /// It is not a pattern.
    #[error("{pattern:?} is not a path: write segments between `/`, `*` for any of them, `**` for any number of them")]
    Malformed {
        pattern: String,
        source: glob::PatternError,
    },
    /// It is too long.
    #[error("a path has at most {MAX_PATTERN_BYTES} bytes")]
    Long,
    /// There are too many.
    #[error("at most {MAX_PATTERNS} paths are answered at once")]
    Many,
}

impl Patterns {
    /// Reads patterns. Slashes around them do not matter.
    ///
    /// # Errors
    /// When one is malformed or too long, or there are too many.
    pub fn new<P: AsRef<str>>(patterns: impl IntoIterator<Item = P>) -> Result<Self, BadPattern> {
        let mut read = Vec::new();
        for pattern in patterns {
            let pattern = pattern.as_ref().trim_matches('/');
            if pattern.len() > MAX_PATTERN_BYTES {
                return Err(BadPattern::Long);
            }
            if read.len() >= 2 * MAX_PATTERNS {
                return Err(BadPattern::Many);
            }
            for pattern in [pattern.to_owned(), format!("{pattern}/**")] {
                let malformed = |source| BadPattern::Malformed {
                    pattern: pattern.clone(),
                    source,
                };
                read.push(Pattern::new(&pattern).map_err(malformed)?);
            }
        }
        Ok(Self(read))
    }

    /// Whether a path matches.
    #[must_use]
    pub fn matches(&self, path: &str) -> bool {
        self.0.iter().any(|pattern| pattern.matches_with(path, OPTIONS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_matched_one_by_one() {
        let matches = |pattern: &str, path: &str| Patterns::new([pattern]).unwrap().matches(path);
        for (pattern, path) in [
            ("cell/3/tick/p99", "cell/3/tick/p99"),
            ("/cell/3/", "cell/3/tick/p99"),
            ("cell/*/tick", "cell/3/tick/p99"),
            ("*/*/clients", "base/7/clients"),
            ("**/p99", "cell/3/tick/p99"),
            ("cell/**/p99", "cell/3/tick/p99"),
            ("cell/3/tick/p*", "cell/3/tick/p50"),
            ("**", "director/abc/term"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("cell/3", "cell/31/tick"),
            ("cell/*/p99", "cell/3/tick/p99"),
            ("tick", "cell/3/tick/p99"),
            ("Cell", "cell/3/tick/p99"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn patterns_that_cannot_be_used_are_refused() {
        assert!(matches!(Patterns::new(["cell/[3"]), Err(BadPattern::Malformed { .. })));
        assert!(matches!(Patterns::new(["x".repeat(201)]), Err(BadPattern::Long)));
        assert!(Patterns::new(vec!["x"; MAX_PATTERNS]).is_ok());
        assert!(matches!(
            Patterns::new(vec!["x"; MAX_PATTERNS + 1]),
            Err(BadPattern::Many)
        ));
    }
}
