//! Findings and diagnostics: which rule is broken, where, why, and what to write instead.
//!
//! While files are read a [`Finding`] points into their texts; at the end it becomes a self-contained [`Diagnostic`]
//! with line, column and the text of the line.

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

/// Maximum characters of a message: a name in it can be as long as its file.
const MAX_MESSAGE: usize = 500;

/// Maximum suggestions in one run: each compares a word with many others.
const MAX_SUGGESTIONS: usize = 1_000;

/// A finding with its line and column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The broken rule; its text says why it is a rule.
    pub rule: Rule,
    pub severity: Severity,
    pub place: SourceSpan,
    /// The problem.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// The same in a form that a program can apply, if it is definite.
    pub fix: Option<Fix>,
    /// Related places, each with a text.
    pub related: Vec<(SourceSpan, String)>,
}

/// A replacement for the text at a place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fix {
    /// Replaces the text.
    Text(String),
    /// Replaces the tag, in the end tag too.
    Tag(String),
}

/// A part of one line of a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SourceSpan {
    /// The file's path below the game's folder; empty for the folder itself.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The first character, from 1.
    pub column: u32,
    /// Number of characters; at least 1, and not beyond the line.
    pub width: u32,
    /// The line without its end; the part around the place if the line is long.
    pub text: String,
    /// The column of the text's first character.
    pub text_column: u32,
    /// Whether the line continues behind the text.
    pub is_cut: bool,
}

/// A finding while the texts are in memory. Ordered by place.
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

/// The place of a finding.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Where {
    /// A file or folder without text.
    Path(String),
    /// A span of a text.
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

    /// Adds what to write instead.
    pub(crate) fn help(self, help: impl Into<String>) -> Self {
        Self {
            help: Some(shortened(help.into())),
            ..self
        }
    }

    /// Adds the text to write instead.
    pub(crate) fn write(self, text: &str) -> Self {
        self.help(format!("write `{text}`")).fix(Fix::Text(text.to_owned()))
    }

    /// Adds the tag to write instead.
    pub(crate) fn write_tag(self, tag: &str) -> Self {
        self.help(format!("write `<{tag}>`")).fix(Fix::Tag(tag.to_owned()))
    }

    /// Adds the text that was probably meant.
    pub(crate) fn meant(self, text: &str) -> Self {
        self.help(format!("did you mean `{text}`?"))
            .fix(Fix::Text(text.to_owned()))
    }

    /// Adds the tag that was probably meant.
    pub(crate) fn meant_tag(self, tag: &str) -> Self {
        self.help(format!("did you mean `<{tag}>`?"))
            .fix(Fix::Tag(tag.to_owned()))
    }

    /// Adds the replacement that a program can apply.
    pub(crate) fn fix(self, fix: Fix) -> Self {
        Self { fix: Some(fix), ..self }
    }

    /// Sets another severity.
    pub(crate) fn severity(self, severity: Severity) -> Self {
        Self { severity, ..self }
    }

    /// Makes an error a warning, for a place that no listed type needs.
    pub(crate) fn idle(self) -> Self {
        if self.severity != Severity::Error {
            return self;
        }
        let help = self.help.as_deref().unwrap_or("fix it");
        let help = format!("{help}; no listed type uses it, so the world compiles anyway");
        self.severity(Severity::Warning).help(help)
    }

    /// Adds a related place.
    pub(crate) fn related(mut self, span: Span, what: impl Into<String>) -> Self {
        self.related.push((span, what.into()));
        self
    }

    fn into_diagnostic(self, places: &mut Places<'_>) -> Diagnostic {
        Diagnostic {
            rule: self.rule,
            severity: self.severity,
            place: match self.at {
                Where::Path(path) => SourceSpan::of_file(path),
                Where::Span(span) => places.source_span(span),
            },
            message: self.message,
            help: self.help,
            fix: self.fix,
            related: self
                .related
                .into_iter()
                .map(|(span, what)| (places.source_span(span), what))
                .collect(),
        }
    }
}

impl SourceSpan {
    /// The place of a whole file or folder.
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

/// The line tables of the files with findings, built on demand.
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

    fn source_span(&mut self, span: Span) -> SourceSpan {
        let sources = self.sources;
        let lines = self
            .files
            .entry(span.file)
            .or_insert_with(|| Lines::of(sources.file(span.file)));
        lines.source_span(span)
    }
}

fn shortened(message: String) -> String {
    match message.char_indices().nth(MAX_MESSAGE) {
        Some((end, _)) => format!("{}…", &message[..end]),
        None => message,
    }
}
