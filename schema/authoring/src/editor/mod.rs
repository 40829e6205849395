//! Editor support for a game's definitions: diagnostics, completion, hover texts, places of declarations.
//!
//! Places are bytes of a file's text. This module does no I/O: its caller keeps a [`Draft`] up to date with the files
//! on disk and in the editor.

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

/// A game's definitions during editing.
#[derive(Clone, Debug)]
pub struct Draft {
    tree: Tree,
    /// The folder that contains the definitions.
    root: &'static str,
    dialect: Dialect,
    pages: BTreeMap<String, Page>,
    diagnostics: Vec<Diagnostic>,
    /// The description of the latest state without errors.
    description: Option<Description>,
}

impl Draft {
    /// A checked draft of these files.
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

    /// Adds or replaces a file with its text in an editor. [`Draft::check`] must be called to check the change.
    pub fn write(&mut self, path: &str, text: String) {
        self.tree.insert(path, text.clone());
        self.pages.insert(path.to_owned(), Page::of(text));
    }

    /// Replaces all files.
    pub fn replace(&mut self, tree: Tree) {
        self.pages = pages(&tree);
        self.tree = tree;
    }

    /// Checks all files again.
    pub fn check(&mut self) {
        let survey = survey(&self.tree);
        if let Some(description) = Description::of_survey(&survey) {
            self.description = Some(description);
        }
        self.diagnostics = survey.diagnostics;
        self.root = root_of(&self.tree).unwrap_or_default();
        self.dialect = dialect_of(&self.tree);
    }

    /// The diagnostics of the last [`Draft::check`], ordered by file, line and column.
    #[must_use]
    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    /// The text of a file, decoded.
    #[must_use]
    pub fn text(&self, path: &str) -> Option<&str> {
        self.pages.get(path).map(|page| page.text.as_str())
    }

    /// The range of a file's text that a diagnostic's place denotes.
    #[must_use]
    pub fn range(&self, place: &annals_def::SourceSpan) -> Option<Range<usize>> {
        let page = self.pages.get(&place.file)?;
        page.characters(place.line, place.column, place.width)
    }
}

/// The files with text.
fn pages(tree: &Tree) -> BTreeMap<String, Page> {
    let texts = tree.texts().into_iter();
    texts
        .map(|(path, text)| (path.to_owned(), Page::of(text.into_owned())))
        .collect()
}
