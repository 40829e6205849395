//! Fixes that a program can apply.

use std::ops::Range;

use annals_def::{Diagnostic, Fix};

use super::Draft;

/// A fix for a diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuickFix {
    /// What the fix does, in a few words.
    pub title: String,
    /// The file that changes.
    pub file: String,
    /// The replacements, without overlap, in the order of the text.
    pub changes: Vec<Replacement>,
}

/// A range of a text and its replacement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Replacement {
    /// The range, in bytes of the text.
    pub range: Range<usize>,
    /// The replacement.
    pub text: String,
}

impl Draft {
    /// The fix for a diagnostic, if a program can apply one.
    #[must_use]
    pub fn fix(&self, diagnostic: &Diagnostic) -> Option<QuickFix> {
        let fix = diagnostic.fix.as_ref()?;
        let range = self.range(&diagnostic.place)?;
        let page = self.pages.get(&diagnostic.place.file)?;
        let change = |range: Range<usize>, text: &str| Replacement {
            range,
            text: text.to_owned(),
        };
        let (changes, title) = match fix {
            Fix::Text(text) => (vec![change(range, text)], format!("write `{text}`")),
            Fix::Tag(tag) => {
                let node = page.nodes.iter().find(|node| node.name == range)?;
                let both = [Some(node.name.clone()), node.end_name.clone()];
                let changes = both.into_iter().flatten().map(|range| change(range, tag));
                (changes.collect(), format!("write `<{tag}>`"))
            }
        };
        Some(QuickFix {
            title,
            file: diagnostic.place.file.clone(),
            changes,
        })
    }
}
