//! What was found in the files: which rule, where, what, why, and what to write instead.
//!
//! While files are read a [`Finding`] points into their texts; at the end it becomes a [`Diagnostic`] that stands by
//! itself, with line, column and the line's text.

mod findings;
mod lines;
mod nearest;
mod render;
mod rule;

pub use findings::MAX_FINDINGS;
pub(crate) use findings::{Allowance, Findings};
pub use nearest::nearest;
pub use render::{Style, columns, digest, paint, render};
pub use rule::{Rule, RuleText, Severity};

use std::collections::BTreeMap;

use crate::source::{FileId, Sources, Span};
pub(crate) use lines::Lines;

/// Longest message, characters: a name in it can be as long as its file.
const MAX_MESSAGE: usize = 500;

/// Most suggestions of what was meant, in one run: each compares a word with many others.
const MAX_SUGGESTIONS: usize = 1_000;

/// Something found in the files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The rule that is broken; its text says why it is one.
    pub rule: Rule,
    /// How grave it is.
    pub severity: Severity,
    /// Where.
    pub place: Place,
    /// What is wrong.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// The same for a program, if it is that definite.
    pub fix: Option<Fix>,
    /// Other places that matter, and what is there.
    pub related: Vec<(Place, String)>,
}

/// What to write in the place of what was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fix {
    /// This text.
    Text(String),
    /// This tag, and in the end tag as well.
    Tag(String),
}

/// A part of one line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    /// The file's path below the game's folder; empty for the folder itself.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The first character, from 1.
    pub column: u32,
    /// How many characters; at least 1, and not beyond the line.
    pub width: u32,
    /// The line without its end; of a long line what is around the place.
    pub text: String,
    /// The column at which the text begins.
    pub text_column: u32,
    /// The line goes on behind the text.
    pub is_cut: bool,
}

/// Something found, while the texts are at hand. Ordered by its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    pub(crate) at: Where,
    pub(crate) rule: Rule,
    pub(crate) message: String,
    pub(crate) severity: Severity,
    pub(crate) help: Option<String>,
    pub(crate) fix: Option<Fix>,
    pub(crate) related: Vec<(Span, String)>,
}

/// Where something was found.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Where {
    /// In a path that has no text.
    Path(String),
    /// In a text.
    Span(Span),
}

impl Finding {
    pub(crate) fn new(rule: Rule, span: Span, message: impl Into<String>) -> Self {
        Self::at(rule, Where::Span(span), message.into())
    }

    pub(crate) fn in_path(rule: Rule, path: impl Into<String>, message: impl Into<String>) -> Self {
        Self::at(rule, Where::Path(path.into()), message.into())
    }

    fn at(rule: Rule, at: Where, message: String) -> Self {
        let severity = rule.text().severity;
        Self {
            rule,
            severity,
            at,
            message: shortened(message),
            help: None,
            fix: None,
            related: Vec::new(),
        }
    }

    /// The same with what to write instead.
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(shortened(help.into())),
            ..self
        }
    }

    /// The same with the text to write instead.
    pub(crate) fn write(self, text: &str) -> Self {
        self.help(format!("write `{text}`")).fix(Fix::Text(text.to_owned()))
    }

    /// The same with the tag to write instead.
    pub(crate) fn write_tag(self, tag: &str) -> Self {
        self.help(format!("write `<{tag}>`")).fix(Fix::Tag(tag.to_owned()))
    }

    /// The same with the text that was probably meant.
    pub(crate) fn meant(self, text: &str) -> Self {
        self.help(format!("did you mean `{text}`?"))
            .fix(Fix::Text(text.to_owned()))
    }

    /// The same with the tag that was probably meant.
    pub(crate) fn meant_tag(self, tag: &str) -> Self {
        self.help(format!("did you mean `<{tag}>`?"))
            .fix(Fix::Tag(tag.to_owned()))
    }

    /// The same with what a program can write instead.
    pub(crate) fn fix(self, fix: Fix) -> Self {
        Self { fix: Some(fix), ..self }
    }

    /// The same with another gravity.
    pub(crate) fn severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// The same where no listed type needs what is wrong: an error is a warning.
    pub(crate) fn idle(self) -> Self {
        if self.severity != Severity::Error {
            return self;
        }
        let help = self.help.as_deref().unwrap_or("put it right");
        let help = format!("{help}; no listed type uses it, so the world compiles without");
        self.severity(Severity::Warning).help(help)
    }

    /// The same with another place that matters.
    pub(crate) fn related(mut self, span: Span, what: impl Into<String>) -> Self {
        self.related.push((span, what.into()));
        self
    }

    fn into_diagnostic(self, places: &mut Places<'_>) -> Diagnostic {
        Diagnostic {
            rule: self.rule,
            severity: self.severity,
            place: match self.at {
                Where::Path(path) => Place::of_file(path),
                Where::Span(span) => places.place(span),
            },
            message: self.message,
            help: self.help,
            fix: self.fix,
            related: self
                .related
                .into_iter()
                .map(|(span, what)| (places.place(span), what))
                .collect(),
        }
    }
}

impl Place {
    /// A file as a whole, or a folder.
    fn of_file(file: String) -> Self {
        Self {
            file,
            line: 1,
            column: 1,
            width: 1,
            text: String::new(),
            text_column: 1,
            is_cut: false,
        }
    }
}

/// The lines of the files in which something was found, as they are asked for.
struct Places<'s> {
    sources: &'s Sources<'s>,
    files: BTreeMap<FileId, Lines<'s>>,
}

impl<'s> Places<'s> {
    fn of(sources: &'s Sources<'s>) -> Self {
        Self {
            sources,
            files: BTreeMap::new(),
        }
    }

    fn place(&mut self, span: Span) -> Place {
        let sources = self.sources;
        let lines = self
            .files
            .entry(span.file)
            .or_insert_with(|| Lines::of(sources.file(span.file)));
        lines.place(span)
    }
}

fn shortened(message: String) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}
