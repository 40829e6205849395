//! A game's definitions while they are being written: what is wrong, what could stand at the cursor, what something means
//! and costs, and where it is declared.
//!
//! Places are bytes of a file's text. Nothing here waits or touches a disk: whoever speaks with an editor keeps a
//! [`Draft`] up to date with what is on the disk and what is open.

mod complete;
mod fixes;
mod hover;
mod meaning;
mod page;
mod symbols;
mod target;

use std::{collections::BTreeMap, ops::Range};

use annals_def::{
    Diagnostic, Tree, dialect_of,
    grammar::{Dialect, root_of},
    survey,
};

use crate::describe::Description;
pub use complete::{Completion, CompletionKind};
pub use fixes::{QuickFix, Replacement};
pub use hover::Hover;
use page::Page;
pub use symbols::{Symbol, SymbolKind};
pub use target::Target;

/// A game's definitions while they are being written.
#[derive(Clone, Debug)]
pub struct Draft {
    tree: Tree,
    /// Below which the definitions are.
    root: &'static str,
    dialect: Dialect,
    pages: BTreeMap<String, Page>,
    diagnostics: Vec<Diagnostic>,
    /// Of the newest state without an error.
    description: Option<Description>,
}

impl Draft {
    /// The draft of these files, checked.
    #[must_use]
    pub fn new(tree: Tree) -> Self {
        let mut draft = Self {
            pages: pages(&tree),
            tree,
            root: "",
            dialect: Dialect::BigWorld,
            diagnostics: Vec::new(),
            description: None,
        };
        draft.check();
        draft
    }

    /// Adds or replaces a file, as it is in an editor. [`Draft::check`] looks at what has changed.
    pub fn write(&mut self, path: &str, text: String) {
        self.tree.insert(path, text.clone());
        self.pages.insert(path.to_owned(), Page::of(text));
    }

    /// Replaces all files.
    pub fn replace(&mut self, tree: Tree) {
        self.pages = pages(&tree);
        self.tree = tree;
    }

    /// Checks all files anew.
    pub fn check(&mut self) {
        let survey = survey(&self.tree);
        if let Some(description) = Description::of_survey(&survey) {
            self.description = Some(description);
        }
        self.diagnostics = survey.diagnostics;
        self.root = root_of(&self.tree).unwrap_or_default();
        self.dialect = dialect_of(&self.tree);
    }

    /// What is wrong, by file, line and column, as of the last [`Draft::check`].
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The text of a file, decoded.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.pages.get(path).map(|page| page.text.as_str())
    }

    /// The part of a file's text that a diagnostic's place means.
    #[must_use]
    pub fn range(&self, place: &annals_def::Place) -> Option<Range<usize>> {
        let page = self.pages.get(&place.file)?;
        page.characters(place.line, place.column, place.width)
    }
}

/// The files that have a text.
fn pages(tree: &Tree) -> BTreeMap<String, Page> {
    let texts = tree.texts().into_iter();
    texts
        .map(|(path, text)| (path.to_owned(), Page::of(text.into_owned())))
        .collect()
}
